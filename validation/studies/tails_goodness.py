"""Size and power of the tests of fit: by table, and by bootstrap.

    python validation/studies/tails_goodness.py [--quick]

Size at 5 % over shapes and sample sizes, each with its Monte Carlo standard error, for
Anderson-Darling and Cramer-von Mises; power against a Weibull, a lognormal and a uniform bump.
"""

from __future__ import annotations

import argparse

import numpy as np

from pybridge.tails._batch import refit_rows
from pybridge.tails._distribution import draw_sorted, to_exponential
from pybridge.tails._goodness import STATISTICS, statistics
from pybridge.tails.generalized_pareto import generalized_pareto
from pybridge.tails.goodness import table_p_value, table_reaches

SHAPES = (-0.2, 0.0, 0.2, 0.5)
SIZES = (50, 200, 1570)


def rejections(x, level=0.05):
    """Shares of the rows (R, n), in rising order, that each test rejects by table."""
    fits = refit_rows(excesses=x)
    e = to_exponential(excesses=x, shape=fits.shape[:, None], scale=fits.scale[:, None])
    found = statistics(exponentials=e)
    out = []
    for name, values in zip(STATISTICS, found):
        usable = [
            k
            for k in range(len(x))
            if not fits.at_boundary[k] and table_reaches(shape=fits.shape[k], n=x.shape[1])
        ]
        p = [table_p_value(name, values[k], shape=fits.shape[k], n=x.shape[1]) for k in usable]
        out.append(float(np.mean(np.array(p) <= level)))
    return out


def table_sizes(*, shape, n, replicates, seed):
    """Sizes at 5 % of both tests."""
    rng = np.random.default_rng([seed, n, int(10 * shape) + 50])
    parts, step = [], max(1, 200_000 // n)
    for start in range(0, replicates, step):
        rows = min(step, replicates - start)
        x = draw_sorted(rng=rng, n_rows=rows, n=n, shape=shape, scale=1.0)
        parts.append((rows, rejections(x)))
    total = sum(rows for rows, _ in parts)
    return [sum(rows * share[k] for rows, share in parts) / total for k in range(2)]


def bootstrap_size(*, shape, n, replicates, inner, seed):
    """Size at 5 % of Anderson-Darling by bootstrap."""
    rng = np.random.default_rng([seed, n])
    rejected = used = 0
    for k in range(replicates):
        x = draw_sorted(rng=rng, n_rows=1, n=n, shape=shape, scale=1.0)[0]
        fit = generalized_pareto(x, threshold=0.0, engine="native")
        if fit.usable:
            p = fit.goodness_of_fit(replicates=inner, seed=k).anderson_darling_p
            used, rejected = used + 1, rejected + (p <= 0.05)
    return rejected / used


def power(kind, n, replicates, seed):
    """Share rejected of samples that are not generalised Pareto."""
    rng = np.random.default_rng([seed, n])
    if kind == "Weibull 2":
        x = rng.weibull(2.0, size=(replicates, n))
    elif kind == "lognormal":
        x = np.exp(rng.standard_normal((replicates, n)))
    else:
        x = rng.exponential(size=(replicates, n))
        bump = rng.random((replicates, n)) < 0.1
        x = np.where(bump, 2.0 + 0.2 * rng.random((replicates, n)), x)
    return rejections(np.sort(x, axis=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    part = 10 if parser.parse_args().quick else 1
    print("size at 5 % by table, with its standard error")
    print(f"{'shape':>6} {'n':>5} {'samples':>8}  Anderson-Darling  Cramer-von Mises")
    for shape in SHAPES:
        for n in SIZES:
            samples = (20_000 if n < 1000 else 10_000) // part
            a, c = table_sizes(shape=shape, n=n, replicates=samples, seed=1)
            error = (0.05 * 0.95 / samples) ** 0.5
            print(
                f"{shape:6.1f} {n:5d} {samples:8d}  {a:8.4f} ± {error:.4f} {c:8.4f} ± {error:.4f}"
            )
    print("size at 5 % of Anderson-Darling by bootstrap of 499")
    for shape in SHAPES:
        for n, samples in ((50, 1000 // part), (200, 500 // part)):
            size = bootstrap_size(shape=shape, n=n, replicates=samples, inner=499, seed=2)
            error = (0.05 * 0.95 / samples) ** 0.5
            print(f"{shape:6.1f} {n:5d} {samples:8d}  {size:8.4f} ± {error:.4f}", flush=True)
    print(f"power at 5 % by table, {2000 // part} samples each")
    for kind in ("Weibull 2", "lognormal", "bump"):
        for n in (50, 100, 200, 400, 800, 1570):
            a, c = power(kind, n, 2000 // part, 3)
            print(f"{kind:>10} {n:5d}  {a:16.3f}  {c:16.3f}", flush=True)


if __name__ == "__main__":
    main()
