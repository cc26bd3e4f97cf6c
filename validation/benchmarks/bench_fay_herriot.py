"""The native Fay-Herriot engine against R's sae, its growth, and what the bridge to sae costs.

    python validation/benchmarks/bench_fay_herriot.py

1. REML with its MSE at m = 5 000: native at least 10 000 times faster than sae::mseFH. sae is timed
   by itself inside Rscript at m = 500 and 1 000 and extrapolated by the growth between the two (a
   full run takes minutes and gigabytes).
2. Native time at m = 1 000 000 over time at 100 000: at most 15.
3. A sae fit through the bridge: at most 1.2 times the same call in a running R plus 10 ms.
"""

from __future__ import annotations

import math
import subprocess
import sys
from time import perf_counter

import numpy as np
import pandas as pd

from pybridge.smoothing._area_model import fit_area_model
from pybridge.smoothing.fay_herriot import fay_herriot

FASTER = 10_000
GROWTH = 15
SHARE, MORE = 1.2, 0.010

# The same problem in both languages: the numbers do not matter for the time, the sizes do.
SAE = """
problem <- function(m) {
  set.seed(1)
  x <- rnorm(m)
  d <- runif(m, 0.5, 2)
  list(y = 1 + x + sqrt(1 + d) * rnorm(m), X = cbind(1, x), d = d)
}
seconds <- function(m, times) {
  p <- problem(m)
  y <- p$y
  X <- p$X
  d <- p$d
  min(replicate(times, system.time(sae::mseFH(y ~ X - 1, d))[["elapsed"]]))
}
invisible(seconds(50, 1))
cat(seconds(SMALL, 7), seconds(500, 3), seconds(1000, 2), "\\n")
"""
SMALL = 300


def problem(m: int) -> dict[str, np.ndarray]:
    """One random problem with two covariates."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=m)
    variance = rng.uniform(0.5, 2.0, m)
    estimate = 1 + x + np.sqrt(1 + variance) * rng.normal(size=m)
    covariates = np.column_stack([np.ones(m), x])
    return {"estimate": estimate, "variance": variance, "covariates": covariates}


def seconds(work, times: int) -> float:
    """The least of several runs, after one that does not count: other work only adds."""
    work()
    runs = []
    for _ in range(times):
        start = perf_counter()
        work()
        runs.append(perf_counter() - start)
    return min(runs)


def native_seconds(m: int, times: int) -> float:
    given = problem(m)
    return seconds(lambda: fit_area_model(**given), times)


def bridge_seconds(m: int, mode: str) -> float:
    given = problem(m)
    frame = pd.DataFrame({"estimate": given["estimate"], "variance": given["variance"]})
    frame["x"] = given["covariates"][:, 1]
    return seconds(lambda: fay_herriot("estimate ~ x", frame, mode=mode), 7)


def verdict(good: bool) -> str:
    return "ok" if good else "OVER"


def main() -> int:
    code = SAE.replace("SMALL", str(SMALL))
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
    small, half, full = map(float, done.stdout.split())
    power = math.log2(full / half)
    sae = full * 5**power
    native = native_seconds(5_000, 15)
    faster = sae / native
    good = [faster >= FASTER]
    print(
        f"sae::mseFH: {half:.2f} s at m = 500, {full:.2f} s at 1 000 (growth m^{power:.2f}), "
        f"extrapolated {sae:.0f} s at 5 000; native {native * 1e3:.1f} ms: {faster:,.0f} times "
        f"faster; bar {FASTER:,}: {verdict(good[-1])}"
    )
    lower, upper = native_seconds(100_000, 5), native_seconds(1_000_000, 3)
    good.append(upper / lower <= GROWTH)
    print(
        f"native: {lower:.3f} s at m = 100 000, {upper:.3f} s at 1 000 000: ratio "
        f"{upper / lower:.1f}; bar {GROWTH}: {verdict(good[-1])}"
    )
    limit = SHARE * small + MORE
    for mode in ("raw", "guarded"):
        through = bridge_seconds(SMALL, mode)
        good.append(through <= limit)
        print(
            f"sae through the bridge, {mode}, m = {SMALL}: {through * 1e3:.0f} ms; in R itself "
            f"{small * 1e3:.0f} ms; bar {limit * 1e3:.0f} ms: {verdict(good[-1])}"
        )
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
