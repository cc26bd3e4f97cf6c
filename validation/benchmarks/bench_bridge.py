"""What the bridge to R adds to R's own time: one fit, a batch, the start, large arrays.

Prints ratios of one run; run by `make bench`. R's own times come from the same functions on the
same data in a running Rscript.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import numpy as np

from pybridge import datasets
from pybridge.r import call, call_many, shutdown

FITS = 1_000
ROUNDS = 9

# A running R that does so many fits of the milk data whenever it is asked, and says how long.
IN_R = """
suppressPackageStartupMessages(invisible(loadNamespace("sae")))
utils::data("milk", package = "sae")
y <- milk$yi
X <- stats::model.matrix(~ factor(MajorArea), milk)
vardir <- milk$SD^2
fit <- function() sae::mseFH(y ~ X - 1, vardir, method = "REML", MAXITER = 100, PRECISION = 1e-4)
now <- function() as.numeric(Sys.time())
asked <- file("stdin", "r")
repeat {
  times <- readLines(asked, 1L)
  if (!length(times)) break
  start <- now()
  for (i in seq_len(as.integer(times))) fit()
  cat(now() - start, "\\n")
  flush(stdout())
}
"""

# A child Python from nothing to the answer of the first fit, and R from nothing to the package.
FIRST_FIT = """
import time
import numpy
started = time.perf_counter()
from pybridge.r.process import Worker
from pybridge.r.door import _replies, _request
worker = Worker()
worker.start()
answer = worker.exchange([_request("selftest_echo", [{}], ["sae"])], "selftest_echo", None)
print(time.perf_counter() - started)
worker.kill()
"""


def line(what: str, value: str, bar: str, good: bool) -> None:
    """One line of the table."""
    print(f"{what:<58} {value:>22}   bar {bar:<16} {'met' if good else 'NOT MET'}")


def milk_inputs() -> dict[str, object]:
    """The milk data as the shim of sae::mseFH takes them."""
    milk = datasets.milk()
    areas = sorted(milk["MajorArea"].unique())
    columns = [np.ones(len(milk))] + [(milk["MajorArea"] == a).to_numpy(float) for a in areas[1:]]
    return {
        "estimate": milk["yi"].to_numpy(),
        "covariates": np.column_stack(columns),
        "variance": milk["SD"].to_numpy() ** 2,
        "method": "REML",
        "MAXITER": 100,
        "PRECISION": 1e-4,
        "B": 0,
        "seed": None,
        "outside": None,
        "guarded": False,
    }


class RunningR:
    """An Rscript that fits on request."""

    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.child = subprocess.Popen(["Rscript", "-e", IN_R], text=True, **pipes)

    def ask(self, times: int) -> None:
        """Have so many fits made in a loop."""
        self.child.stdin.write(f"{times}\n")
        self.child.stdin.flush()

    def answer(self) -> float:
        """How long they took, by R's own clock."""
        return float(self.child.stdout.readline())

    def seconds(self, times: int) -> float:
        """For so many fits in a loop, by R's own clock."""
        self.ask(times)
        return self.answer()

    def stop(self) -> None:
        self.child.communicate()


def median_of(function, times: int) -> float:
    """Median wall time."""
    spans = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spans.append(time.perf_counter() - start)
    return statistics.median(spans)


def fits() -> None:
    """One fit and a batch of fits against R's own, in turns, so that both meet the same machine."""
    inputs = milk_inputs()
    packages = ("sae",)

    def one() -> None:
        call("sae_fay_herriot", inputs, packages=packages)

    def many(workers: int) -> float:
        start = time.perf_counter()
        call_many("sae_fay_herriot", [inputs] * FITS, packages=packages, workers=workers)
        return time.perf_counter() - start

    def two_loops() -> float:
        """Two plain R processes, half of the fits each, at the same time."""
        start = time.perf_counter()
        for process in (r, other):
            process.ask(FITS // 2)
        for process in (r, other):
            process.answer()
        return time.perf_counter() - start

    r, other = RunningR(), RunningR()
    one(), two_loops(), many(2)
    turns = [(median_of(one, 20), r.seconds(20) / 20) for _ in range(ROUNDS)]
    bridge, own = (statistics.median(turn[i] for turn in turns) for i in range(2))
    line(
        "sae::mseFH, milk: bridge against R's own call",
        f"{bridge * 1e3:.1f} ms, {own * 1e3:.1f} ms",
        "1.2 x + 10 ms",
        bridge <= 1.2 * own + 0.010,
    )
    # In turns, so that a machine that others slow down slows all four.
    turns = [(many(1), r.seconds(FITS), many(2), two_loops()) for _ in range(ROUNDS)]
    ratio = statistics.median(turn[0] / turn[1] for turn in turns)
    line(f"{FITS} fits in one call against R's loop", f"{ratio:.2f} x", "1.2 x", ratio <= 1.2)
    gain = statistics.median(turn[0] / turn[2] for turn in turns)
    own = statistics.median(turn[1] / turn[3] for turn in turns)
    line(
        "throughput of two workers against one",
        f"{gain:.2f} x ({own:.2f} x plain R)",
        "1.7 x",
        gain >= 1.7,
    )
    r.stop(), other.stop()


def start() -> None:
    """From nothing to the first answer with sae loaded, against R's own start with sae."""

    def r() -> None:
        subprocess.run(["Rscript", "-e", 'invisible(loadNamespace("sae"))'], check=True)

    def worker() -> float:
        command = [sys.executable, "-c", FIRST_FIT]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    r_spans, worker_spans = [], []
    for _ in range(5):
        r_spans.append(median_of(r, 1))
        worker_spans.append(worker())
    extra = min(worker_spans) - min(r_spans)
    line("start with sae: worker above R", f"{extra:+.2f} s", "0.6 s", extra <= 0.6)


def arrays() -> None:
    """10^6 doubles to R and back, warm."""
    x = np.random.default_rng(1).standard_normal(10**6)
    call("selftest_echo", {"x": x})
    span = median_of(lambda: call("selftest_echo", {"x": x}), 20)
    line("10^6 doubles there and back, median of 20", f"{span * 1e3:.1f} ms", "50 ms", span < 0.05)
    span = median_of(lambda: call("selftest_echo", {"x": 1.0}), 200)
    line("the smallest call, median of 200", f"{span * 1e3:.2f} ms", "10 ms", span < 0.01)


if __name__ == "__main__":
    arrays()
    fits()
    start()
    shutdown()
