"""Every score under every design: covariance, reference, SURE, and the set that may be the best.

    python validation/studies/selection_designs.py [--quick] [--repetitions 200]

The settings are those of the design check. For each candidate the mean score over its true MSE, on
the domains that the score used, with Monte Carlo errors; for each setting how often the set of
candidates that cannot be told from the best at 95 % holds the truly best one, and how large it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from _shared import cells, markdown, with_error, words, write_page, write_table
from design_check import FOLDS, NAMES, settings

import pybridge as pb
from pybridge.design.folds import make_folds
from pybridge.direct.inputs import domain_sample
from pybridge.selection.averages import common_domains
from pybridge.selection.fits import replicates_of
from pybridge.selection.options import SelectionOptions
from pybridge.selection.pairs import may_be_best
from pybridge.selection.reference import find_reference
from pybridge.selection.refits import fit_candidates
from pybridge.selection.scoring import score_candidates
from pybridge.simulate import repeated_sampling
from pybridge.simulate.measures import ratio_with_error

REFERENCES = ("HT", "Hájek", "PPI", "GREG")
VARIANTS = ("jackknife", "linearised", "sure", *(f"jackknife {name}" for name in REFERENCES))
LEVEL = 0.95


@dataclass(frozen=True)
class AllScores:
    """A sample's scores (V, C), the squared errors on their domains (V, C), and the sets (V, C)."""

    procedure: object  # of the design check: its candidates and folds

    def __call__(self, draw):
        truth = np.asarray(draw.population.truth)
        kinds = self.procedure.candidates
        split = self.procedure.split(draw)
        folds = make_folds(draw.design, FOLDS if split is None else split, seed=draw.seed)
        sample = domain_sample(
            draw.design, draw.known, outcome=draw.outcome, domain=draw.domain, folds=folds
        )
        replicates = replicates_of(sample)
        fits = fit_candidates(kinds, replicates, design=draw.design, folds=folds)
        reference = find_reference("auto", kinds, replicates)
        found = {
            kind: score_candidates(fits, replicates, reference, SelectionOptions(covariance=kind))
            for kind in ("jackknife", "linearised")
        }
        tables = {kind: scores.tables["db_cv"] for kind, scores in found.items()}
        tables["sure"] = found["linearised"].tables["sure"]
        for name in REFERENCES:
            tables[f"jackknife {name}"] = found["jackknife"].by_reference[name]["db_cv"]
        square = np.stack([(fit.estimate - truth) ** 2 for fit in fits])
        out = {"score": [], "error": [], "near": []}
        for variant in VARIANTS:
            table = common_domains(np.asarray(tables[variant]))
            used = np.isfinite(table[np.isfinite(table).any(axis=1)]).all(axis=0)
            out["score"].append(table[:, used].mean(axis=1))
            out["error"].append(square[:, used].mean(axis=1))
            out["near"].append(may_be_best(table, level=LEVEL))
        return {key: np.stack(rows) for key, rows in out.items()}


def ratios(name, runs):
    """One row a candidate: its mean score over its true MSE by every way to score."""
    score, error = runs["score"], runs["error"]
    out = pd.DataFrame({"setting": name, "candidate": NAMES})
    out["true_rmse"] = np.sqrt(error[:, 0].mean(axis=0))
    for v, variant in enumerate(VARIANTS):
        # A perfect predictor leaves rounding: no error to compare with.
        square = np.where(error[:, v] > 1e-20, error[:, v], 0.0)
        out[variant], out[f"{variant}_error"] = ratio_with_error(score[:, v], square)
    return out


def sets(name, runs):
    """One row a way to score: how often its set holds the truly best candidate, and its size."""
    rows = []
    for v, variant in enumerate(VARIANTS):
        error = runs["error"][:, v].mean(axis=0)
        best = int(np.argmin(np.where(np.isfinite(error), error, np.inf)))
        held = runs["near"][:, v, best]
        rows.append(
            {
                "setting": name,
                "score": variant,
                "best": NAMES[best],
                "held": held.mean(),
                "held_error": np.sqrt(held.mean() * (1 - held.mean()) / len(held)),
                "size": runs["near"][:, v].sum(axis=1).mean(),
                "repetitions": len(held),
            }
        )
    return pd.DataFrame(rows)


def main():
    say = words("selection_designs", __doc__, repetitions=200)
    parts, near, left_out = [], [], []
    for name, (population, plan, procedure) in settings(say.seed).items():
        try:
            runs = repeated_sampling(
                population,
                plan,
                AllScores(procedure),
                repetitions=say.repetitions,
                seed=say.seed,
                workers=say.workers,
                progress=False,
            )
        except pb.errors.FitError as error:
            left_out.append(f"- {name}: {error.message}")
            continue
        parts.append(ratios(name, runs))
        near.append(sets(name, runs))
    table, held = pd.concat(parts, ignore_index=True), pd.concat(near, ignore_index=True)
    write_table(say, "ratios", table)
    write_table(say, "sets", held)
    shown = cells(table, ["true_rmse", *VARIANTS])
    shown.insert(0, "candidate", table["candidate"])
    shown.insert(0, "setting", table["setting"])
    plain = held[held["score"] == "jackknife"]
    rows = [
        {
            "setting": r.setting,
            "truly best": r.best,
            "in the set": with_error(r.held, r.held_error),
            "candidates in it": f"{r.size:.1f} of {len(NAMES)}",
        }
        for r in plain.itertuples()
    ]
    lines = [
        "# Every score under every design",
        "",
        f"{say.repetitions} samples a setting, Monte Carlo errors in brackets. Mean score over "
        "true MSE; the jackknife's reference is chosen (auto) where none is named.",
        "",
        markdown(shown),
        "",
        f"How often the candidates that cannot be told from the best at {100 * LEVEL:g} % hold the "
        "truly best one:",
        "",
        markdown(pd.DataFrame(rows)),
        "",
        *(["Without a result:", "", *left_out] if left_out else []),
    ]
    write_page(say, lines)


if __name__ == "__main__":
    main()
