"""Makes pybridge/tails/goodness_table.csv: the law of A^2 and W^2 with estimated parameters.

    python validation/studies/tails_goodness_table.py [--replicates N] [--raw FILE] [--write]

For every shape and sample size of a grid, samples are drawn from the distribution, fitted by
maximum likelihood, and their statistics kept, given that the estimated shape is that of the grid
(see ``pybridge.tails._goodness.given_shape``). The upper quantiles are then smoothed over the
grid by least squares on powers of the shape times (1, 1/n, 1/n^2): the simulation error of single
cells goes down several-fold. Prints the root mean square distance of the raw quantiles from the
smoothed ones in Monte Carlo standard errors. The raw quantiles are kept in --raw, and read from
there if it exists. Without --write the table is not stored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from pybridge.tails._goodness import STATISTICS, bootstrap_statistics

TARGET = Path(__file__).resolve().parents[2] / "pybridge" / "tails" / "goodness_table.csv"
SHAPES = (-0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5)
SIZES = (30, 60, 120, 300, 1600)
TAILS = (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.125) + (
    0.1,
    0.085,
    0.075,
    0.06,
    0.05,
    0.04,
    0.03,
    0.025,
    0.02,
    0.015,
    0.01,
    0.005,
    0.0025,
    0.001,
)


def simulate(replicates: int, seed: int) -> dict[str, np.ndarray]:
    """Raw quantiles and their standard errors, (shapes, sizes, tails, 2) per statistic."""
    out = {name: np.empty((len(SHAPES), len(SIZES), len(TAILS), 2)) for name in STATISTICS}
    tails = np.array(TAILS)
    for i, shape in enumerate(SHAPES):
        for j, n in enumerate(SIZES):
            rng = np.random.default_rng([seed, i, j])
            found, n_boundary = bootstrap_statistics(
                shape=shape, n=n, replicates=replicates, rng=rng
            )
            print(f"shape {shape:5.2f}, n {n:5d}: {n_boundary} of {replicates} without a fit")
            half = np.sqrt(tails * (1 - tails) / replicates)
            for name in STATISTICS:
                values = getattr(found, name)
                quantiles = np.quantile(values, 1 - tails)
                low = np.quantile(values, np.clip(1 - tails - half, 0, 1))
                high = np.quantile(values, np.clip(1 - tails + half, 0, 1))
                out[name][i, j] = np.stack([quantiles, 0.5 * (high - low)], axis=-1)
    return out


def smooth(raw: np.ndarray) -> tuple[np.ndarray, float]:
    """Smoothed quantiles (shapes, sizes, tails), and the root mean square of their z-scores."""
    shape, inverse = np.meshgrid(SHAPES, 1.0 / np.array(SIZES), indexing="ij")
    columns = [
        shape**p * inverse**q for q, top in ((0, 6), (1, 4), (2, 2)) for p in range(top + 1)
    ]
    design = np.stack(columns, axis=-1).reshape(-1, len(columns))
    out, scores = np.empty(raw.shape[:3]), []
    for k in range(raw.shape[2]):
        value, error = raw[:, :, k, 0].ravel(), raw[:, :, k, 1].ravel()
        weight = 1.0 / error
        fitted = design @ np.linalg.lstsq(design * weight[:, None], value * weight, rcond=None)[0]
        out[:, :, k] = fitted.reshape(raw.shape[:2])
        scores.append((value - fitted) / error)
    return out, float(np.sqrt(np.mean(np.square(scores))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--raw", type=Path)
    parser.add_argument("--write", action="store_true")
    words = parser.parse_args()
    if words.raw is not None and words.raw.exists():
        raw = dict(np.load(words.raw))
    else:
        raw = simulate(words.replicates, words.seed)
        if words.raw is not None:
            np.savez(words.raw, **raw)
    rows = []
    for name in STATISTICS:
        smoothed, score = smooth(raw[name])
        print(f"{name}: root mean square of (raw - smoothed) / standard error {score:.2f}")
        for i, shape in enumerate(SHAPES):
            for j, n in enumerate(SIZES):
                for tail, value in zip(TAILS, smoothed[i, j]):
                    rows.append((name, shape, n, tail, round(float(value), 5)))
    if words.write:
        names = ["statistic", "shape", "n", "tail", "value"]
        table = pd.DataFrame(rows, columns=names).pivot(
            index=["statistic", "shape", "n"], columns="tail", values="value"
        )
        table[sorted(table.columns, reverse=True)].to_csv(TARGET, lineterminator="\n")
        print(f"written: {TARGET.name}, {len(table)} rows")


if __name__ == "__main__":
    main()
