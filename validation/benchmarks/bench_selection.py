"""A selection from the sample to the choice: seven native candidates, once and with ten splits.

Prints CPU times in one run; run by `make bench`.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

UNITS, LABELS, DOMAINS = 68_371, 6_837, 63


def make_sample(*, levels: int = 1, seed: int = 3):
    """A simple random sample of a population in 63 domains, and what is known of the whole."""
    import pybridge as pb

    rng = np.random.default_rng(seed)
    domain = rng.integers(DOMAINS, size=UNITS)
    mean = rng.standard_normal(DOMAINS)
    f = mean[domain] + rng.standard_normal(UNITS)
    group = 0.2 * rng.standard_normal(21)[np.arange(DOMAINS) // 3]
    theta = 0.9 * mean + 0.3 * rng.standard_normal(DOMAINS) + group
    y = theta[domain] + 0.4 * (f - mean[domain]) + rng.standard_normal(UNITS)
    units = pd.DataFrame({"domain": domain, "f": f, "y": y})
    taxonomy = [f"level{k}" for k in range(levels)]
    for k, name in enumerate(taxonomy):
        units[name] = domain // 3 ** (levels - k)
    known = pb.population(units, domain="domain", auxiliary=["f"], taxonomy=taxonomy)
    labelled = units[rng.permutation(UNITS) < LABELS].assign(w=UNITS / LABELS, N=float(UNITS))
    return pb.survey_design(labelled, weights="w", fpc="N"), known


def seven_candidates():
    """HT, PPI, GREG, FH, PP-S, TFH and PP-TS, all native."""
    import pybridge as pb

    greg = {"direct": "greg", "unit_auxiliary": "f"}
    area = {"smoothing": "fay_herriot", "area_formula": "~ f"}
    tree = {"smoothing": "taxonomy", "area_formula": "~ f"}
    return [
        pb.candidate("HT"),
        pb.candidate("PPI", direct="ppi", unit_auxiliary="f"),
        pb.candidate("GREG", **greg),
        pb.candidate("FH", **area),
        pb.candidate("PP-S", method="bayes", **area, **greg),
        pb.candidate("TFH", **tree),
        pb.candidate("PP-TS", **tree, **greg),
    ]


def seconds(levels: int, repetitions: int, *, times: int = 3) -> float:
    """Median CPU time of a selection, the first one left out."""
    import pybridge as pb

    design, known = make_sample(levels=levels)
    spent = []
    for _ in range(times + 1):
        start = time.process_time()
        pb.select(design, known, seven_candidates(), outcome="y", repetitions=repetitions)
        spent.append(time.process_time() - start)
    return float(np.median(spent[1:]))


def main():
    what = f"selection, 7 native candidates, K = 5, {DOMAINS} domains, {LABELS:,} labels"
    for levels, repetitions, words in (
        (1, 1, "limit 0.5 s"),
        (1, 10, "10 times, limit 3 s"),
        (2, 1, "a taxonomy of three levels"),
    ):
        print(f"{what}, {words}: {seconds(levels, repetitions):.2f} s")


if __name__ == "__main__":
    main()
