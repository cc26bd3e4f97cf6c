"""Coverage of the 95 % intervals of the shape: profile, delta, and resampling bootstrap.

    python validation/studies/tails_coverage.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np

from pybridge.tails._distribution import draw
from pybridge.tails.generalized_pareto import generalized_pareto


def coverage(*, shape, n, replicates, seed, bootstrap=0, resampled=0):
    """Shares of intervals that hold the true shape, among fits that have standard errors.

    The resampling interval, of ``bootstrap`` refits, is taken of the first ``resampled`` fits.
    """
    rng = np.random.default_rng([seed, n, int(100 * shape) + 1000])
    held: dict = {"profile": 0, "delta": 0, "resampling": 0}
    used = 0
    for k in range(replicates):
        x = draw(rng=rng, size=(n,), shape=shape, scale=1.0)
        fit = generalized_pareto(x, threshold=0.0, engine="native")
        if fit.status != "converged":
            continue
        for kind in ("profile", "delta"):
            one = fit.interval("shape", kind=kind)
            held[kind] += one.lower <= shape <= one.upper
        if used < resampled:
            one = fit.bootstrap(replicates=bootstrap, seed=k).interval()
            held["resampling"] += one.lower <= shape <= one.upper
        used += 1
    out = {kind: held[kind] / used for kind in ("profile", "delta")}
    out["resampling"] = held["resampling"] / min(used, resampled) if resampled else np.nan
    return {**out, "used": used / replicates}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    replicates, resampled = (200, 40) if parser.parse_args().quick else (2000, 400)
    errors = [(0.95 * 0.05 / n) ** 0.5 for n in (replicates, resampled)]
    print(
        f"{replicates} samples each, standard error {errors[0]:.4f}; resampling intervals of 399 "
        f"refits in the first {resampled}, standard error {errors[1]:.3f}"
    )
    print(f"{'shape':>6} {'n':>5}  profile   delta  resampling    used")
    for shape in (-0.3, -0.2, 0.0, 0.2, 0.5):
        for n in (50, 100, 200, 400, 1570):
            some = resampled if n >= 100 and shape in (0.0, 0.2) else 0
            words = {"replicates": replicates, "seed": 1, "bootstrap": 399, "resampled": some}
            found = coverage(shape=shape, n=n, **words)
            print(
                f"{shape:6.1f} {n:5d}  {found['profile']:7.4f} {found['delta']:7.4f} "
                f"{found['resampling']:11.4f} {found['used']:7.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
