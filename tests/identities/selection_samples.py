"""Samples for the identities of a selection: one stratum, strata, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.selection.record import Selection
from tests.simulation import populations


K = 5


KINDS = {
    "simple random": (dict(total=1500), 0.15, None),
    "strata across": (dict(total=1500, n_strata=3), [0.1, 0.2, 0.5], None),
    "domains are strata": (dict(total=1500, domain_is_stratum=True), 0.15, None),
    "strata smaller than K": (dict(total=1500, domain_is_stratum=True, spread=1.0), 0.03, None),
    "clusters": (dict(total=2500, n_strata=2, cluster_size=5, cluster_sd=0.4), 0.2, "cluster"),
}


DIRECT = ("ht", "hajek", "ppi", "greg")


class Setting:
    """A sample of a seeded population, its design, and what is known of the population."""

    def __init__(self, kind: str, *, fpc: bool = True, scale: float = 1.0) -> None:
        options, fraction, unit = KINDS[kind]
        pop = populations.population(8, seed=5, **{"spread": 0.3, "mean": 3.0, **options})
        rng = np.random.default_rng(9)
        rows, w, known = populations.stratified_sample(pop, fraction, rng, unit=unit)
        _, F, N = populations.truth(pop)
        names = np.array([f"d{i}" for i in range(8)], dtype=object)
        self.units = pd.DataFrame(
            {
                "y": scale * pop["y"][rows],
                "f": scale * pop["f"][rows],
                "d": names[pop["domain"][rows]],
                "w": w,
                "h": pop["stratum"][rows],
                "psu": pop["cluster"][rows],
                "known": known,
            }
        )
        self.words: dict[str, Any] = dict(weights="w", strata="h", ids=unit and "psu")
        self.words["fpc"] = "known" if fpc else None
        self.design = pb.survey_design(self.units, **self.words)
        totals = pd.DataFrame(
            {"d": names, "N": N, "f": scale * F, "r": [f"r{i % 2}" for i in range(8)]}
        )
        self.population = pb.population(
            totals, domain="d", size="N", auxiliary_means=["f"], taxonomy=["r"]
        )

    def select(self, candidates: Any, **options: Any) -> Selection:
        words = {"outcome": "y", "domain": "d", **options}
        return pb.select(self.design, self.population, candidates, **words)

    def without(self, fold: int, unit_fold: np.ndarray) -> pd.DataFrame:
        """The sample without a fold, re-weighted by primary units inside design strata."""
        unit = "psu" if self.words["ids"] else None
        keep = unit_fold != fold
        table = self.units.reset_index(names="row") if unit is None else self.units
        psu = table["row" if unit is None else unit]
        all_of = psu.groupby(self.units["h"]).nunique()
        left = psu[keep].groupby(self.units["h"][keep]).nunique()
        factor = (all_of / left).reindex(self.units["h"][keep]).to_numpy()
        return self.units[keep].assign(w=lambda t: t["w"] * factor)

    def deleted(self, record: Any, unit_fold: np.ndarray) -> np.ndarray:
        """What deleting the folds one by one estimates of a record's variances, (m,).

        Σ_h c_h n_h/(n_h − 1) Σ (t − mean)² over primary units' totals t of w e/N_i, with
        c_h = (K−1)/K Σ_k n_hk/(n_h − n_hk).
        """
        table = self.units.assign(fold=unit_fold)
        table["unit"] = table["psu"] if self.words["ids"] else np.arange(len(table))
        beta = np.zeros(2)
        beta[: record.coefficients.shape[1]] = record.coefficients[0]
        table["e"] = table["w"] * (table["y"] - beta[0] - beta[1] * table["f"])
        parts = np.zeros(self.population.n_domains)
        for _, own in table.groupby("h"):
            units = own.drop_duplicates("unit")
            n, n_k = len(units), np.bincount(units["fold"], minlength=K)
            if n < 2:
                continue
            factor = (K - 1) / K * (n_k / (n - n_k)).sum() if n_k.max() < n else 1.0
            totals = own.pivot_table(index="unit", columns="d", values="e", aggfunc="sum")
            t = totals.reindex(columns=self.population.domains).fillna(0.0) / self.population.size
            parts += factor * n * t.var(ddof=1).to_numpy()
        return parts


def built_in(method: str) -> Any:
    auxiliary = "f" if method in ("ppi", "greg") else None
    return pb.candidate(method, direct=method, unit_auxiliary=auxiliary)


def smoothed(name: str, **options: Any) -> Any:
    return pb.candidate(
        name,
        direct="greg",
        unit_auxiliary="f",
        smoothing="fay_herriot",
        area_formula="~ f",
        **options,
    )


def close(mine: np.ndarray, theirs: np.ndarray, rtol: float) -> None:
    """Equal where both exist, missing at the same places; relative to the largest."""
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
    assert np.nanmax(np.abs(mine - theirs)) <= rtol * np.nanmax(np.abs(theirs))


def tables(selection: Selection) -> dict[str, np.ndarray]:
    return {key: np.asarray(values) for key, values in selection.domain_scores.items()}
