"""Coverage of the 95 % intervals of the shape: profile, delta, and resampling bootstrap.

    python validation/studies/tails_coverage.py
"""

from __future__ import annotations

import numpy as np

from pybridge.tails._distribution import draw
from pybridge.tails.generalized_pareto import generalized_pareto


def coverage(*, shape, n, replicates, seed, bootstrap=0):
    """Shares of intervals that hold the true shape, among fits that have standard errors."""
    rng = np.random.default_rng([seed, n, int(100 * shape) + 1000])
    held: dict = {"profile": 0, "delta": 0, "resampling": 0}
    used = 0
    for k in range(replicates):
        x = draw(rng=rng, size=(n,), shape=shape, scale=1.0)
        fit = generalized_pareto(x, threshold=0.0, engine="native")
        if fit.status != "converged":
            continue
        used += 1
        for kind in ("profile", "delta"):
            one = fit.interval("shape", kind=kind)
            held[kind] += one.lower <= shape <= one.upper
        if bootstrap:
            one = fit.bootstrap(replicates=bootstrap, seed=k).interval()
            held["resampling"] += one.lower <= shape <= one.upper
    out = {kind: count / used for kind, count in held.items()}
    return {**out, "used": used / replicates}


def main():
    replicates = 4000
    print(f"{replicates} samples each, standard error 0.0035")
    print(f"{'shape':>6} {'n':>5}  profile   delta  resampling    used")
    for shape in (-0.3, -0.2, 0.0, 0.2, 0.5):
        for n in (50, 100, 200, 400, 1570):
            found = coverage(shape=shape, n=n, replicates=replicates, seed=1, bootstrap=399)
            print(
                f"{shape:6.1f} {n:5d}  {found['profile']:7.4f} {found['delta']:7.4f} "
                f"{found['resampling']:11.4f} {found['used']:7.3f}"
            )


if __name__ == "__main__":
    main()
