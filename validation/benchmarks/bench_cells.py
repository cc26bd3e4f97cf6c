"""The pass over the units against pandas' groupby, its memory, and what comes after it.

Prints ratios of CPU times in one run; run by `make bench`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd

UNITS = int(os.environ.get("PYBRIDGE_BENCH_UNITS", 10_000_000))
DOMAINS = 1_000


def make_units(n: int, *, categorical: bool, seed: int = 1) -> pd.DataFrame:
    """A population of n units in 1,000 domains, two auxiliaries, one in ten labelled."""
    rng = np.random.default_rng(seed)
    domain = rng.integers(0, DOMAINS, n)
    f, g = rng.standard_normal(n), rng.standard_normal(n)
    y = 0.5 * f + 0.2 * g + rng.standard_normal(n)
    y[rng.random(n) >= 0.1] = np.nan
    key = pd.Categorical.from_codes(domain, [f"d{i}" for i in range(DOMAINS)])
    return pd.DataFrame({"domain": key if categorical else domain, "y": y, "f": f, "g": g})


def run_pass(units: pd.DataFrame):
    """Population, labelled sample, design and cells: all that touches units."""
    from pybridge.design.folds import make_folds
    from pybridge.direct.inputs import domain_sample
    from pybridge.design.from_units import prepare_units

    ready = prepare_units(
        units, population=None, outcome="y", domain="domain", auxiliary=["f", "g"]
    )
    folds = make_folds(ready.design, 5, seed=1)
    return ready, domain_sample(ready.design, ready.population, outcome="y", folds=folds)


def best_of(function, times: int = 5) -> float:
    """Least CPU time of a few runs: both sides are single-threaded, and the machine is shared."""
    spans = []
    for _ in range(times):
        start = time.process_time()
        function()
        spans.append(time.process_time() - start)
    return min(spans)


def in_turn(first, second, times: int = 7) -> tuple[float, float]:
    """Median CPU times of two functions called in turn, so that both meet the same machine."""
    spans: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for function, found in zip((first, second), spans):
            start = time.process_time()
            function()
            found.append(time.process_time() - start)
    return float(np.median(spans[0])), float(np.median(spans[1]))


def speed() -> None:
    """The pass against groupby.sum of the same columns by the same key."""
    for categorical in (False, True):
        units = make_units(UNITS, categorical=categorical)
        grouped, passed = in_turn(
            lambda: units.groupby("domain", observed=True)[["y", "f", "g"]].sum(),
            lambda: run_pass(units),
        )
        kind = "categorical" if categorical else "integer"
        print(
            f"cells pass, {UNITS:,} units, {kind} key: {passed:.2f} s; "
            f"groupby.sum {grouped:.2f} s; ratio {passed / grouped:.2f} (bar 1.5)"
        )


def memory_child() -> None:
    """Peak memory of the pass above the input, in one child process."""
    import resource

    units = make_units(UNITS, categorical=False)
    run_pass(units.head(1000))
    size = int(units.memory_usage(deep=False).sum())
    before = _resident()
    # The peak so far includes making the input; reset it where the kernel can.
    with open("/proc/self/clear_refs", "w", encoding="ascii") as handle:
        handle.write("5")
    run_pass(units)
    peak = _peak() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    extra = peak - before
    print(
        f"memory beside the input: {extra / 1e6:.0f} MB of {size / 1e6:.0f} MB input; "
        f"ratio {extra / size:.2f} (bar 0.5)"
    )


def _status(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as handle:
        for line in handle:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def _resident() -> int:
    return _status("VmRSS:")


def _peak() -> int:
    return _status("VmHWM:")


def after_the_pass() -> None:
    """DB-CV with the 7 native candidates, K = 5, for samples of two sizes."""
    from pybridge.selection.standard import standard_candidates
    from pybridge.selection.fits import replicates_of
    from pybridge.selection.refits import fit_candidates
    from pybridge.selection.reference import find_reference
    from pybridge.selection.options import SelectionOptions
    from pybridge.selection.scoring import score_candidates

    for n in (68_371, 1_000_000):
        units = make_units(n, categorical=False).assign(domain=lambda t: t["domain"] % 63)
        units["group"] = units["domain"] // 3
        from pybridge.design.folds import make_folds
        from pybridge.direct.inputs import domain_sample
        from pybridge.design.from_units import prepare_units

        ready = prepare_units(
            units,
            population=None,
            outcome="y",
            domain="domain",
            auxiliary=["f"],
            taxonomy=["group", "domain"],
        )
        folds = make_folds(ready.design, 5, seed=1)
        sample = domain_sample(ready.design, ready.population, outcome="y", folds=folds)
        seven = [
            c
            for c in standard_candidates(["f"], engine="native")
            if c.name not in ("Hájek", "FH-GREG")
        ]

        def score() -> None:
            replicates = replicates_of(sample)
            fits = fit_candidates(seven, replicates)
            options = SelectionOptions()
            score_candidates(fits, replicates, find_reference("auto", seven, replicates), options)

        print(
            f"DB-CV after the pass, {len(seven)} native candidates, K = 5, 63 domains, "
            f"{n:,} units: {best_of(score):.2f} s (bar 1 s)"
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        memory_child()
    else:
        speed()
        subprocess.run([sys.executable, __file__, "memory"], check=True)
        after_the_pass()
