"""Samples of every kind, their estimates, and comparing two of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.design.survey_design import SurveyDesign
from pybridge.tables.population import Population
from tests.simulation import populations


# Two float64 routes through sums of a few hundred terms; variances are differences of such sums.
RTOL, RTOL_VARIANCE = 1e-12, 1e-10


KINDS = {
    "simple random": (dict(total=1500), 0.15, None),
    "strata across": (dict(total=1500, n_strata=3), [0.1, 0.2, 0.5], None),
    "domains are strata": (dict(total=1500, domain_is_stratum=True), 0.15, None),
    "clusters": (dict(total=2000, n_strata=2, cluster_size=5, cluster_sd=0.4), 0.2, "cluster"),
    "poisson": (dict(total=1500), None, None),
}


METHODS = {
    "ht": pb.horvitz_thompson,
    "hajek": pb.hajek,
    "ppi": lambda *a, **k: pb.prediction_powered(*a, prediction="f", **k),
    "greg": pb.generalized_regression,
    "greg within": lambda *a, **k: pb.generalized_regression(*a, slope="within", **k),
    "greg domain": lambda *a, **k: pb.generalized_regression(*a, slope="domain", **k),
}


class Case(NamedTuple):
    """A sample, the totals of its population, and how it was drawn."""

    units: pd.DataFrame
    totals: pd.DataFrame
    words: dict[str, Any]

    def design(self, units: pd.DataFrame | None = None, **words: Any) -> SurveyDesign:
        return pb.survey_design(self.units if units is None else units, **{**self.words, **words})

    def population(self, totals: pd.DataFrame | None = None) -> Population:
        table = self.totals if totals is None else totals
        return pb.population(
            table, domain="d", size="N", auxiliary_means=["f", "g"], taxonomy=["r"]
        )

    def estimates(
        self,
        method: str,
        units: pd.DataFrame | None = None,
        totals: pd.DataFrame | None = None,
        **words: Any,
    ) -> Any:
        data = self.design(units, **words), self.population(totals)
        return METHODS[method](*data, outcome="y", domain="d")


def case(kind: str, seed: int = 4) -> Case:
    options, fraction, unit = KINDS[kind]
    pop = populations.population(9, seed=3, spread=0.4, mean=2.0, **options)
    rng = np.random.default_rng(seed)
    names = np.array([f"d{i}" for i in range(9)], dtype=object)
    pop["g"] = rng.standard_normal(len(pop["y"])) + 0.3 * pop["f"]
    words: dict[str, Any] = {"weights": "w"}
    if kind == "poisson":
        rows, w = populations.poisson_sample(pop, 250, rng, np.exp(0.5 * pop["f"]))
        known, words["pps"] = w, "poisson"
    else:
        rows, w, known = populations.stratified_sample(pop, fraction, rng, unit=unit)
        words.update(strata="h", fpc="known", ids=unit and "psu")
    _, F, N = populations.truth(pop)
    units = pd.DataFrame({name: pop[name][rows] for name in ("y", "f", "g")})
    units = units.assign(
        d=names[pop["domain"][rows]],
        w=w,
        known=known,
        h=pop["stratum"][rows],
        psu=pop["cluster"][rows],
    )
    G = np.bincount(pop["domain"], pop["g"]) / N
    groups = [f"r{i % 3}" for i in range(9)]
    return Case(units, pd.DataFrame({"d": names, "N": N, "f": F, "g": G, "r": groups}), words)


def same(mine: Any, theirs: Any, rtol: float = RTOL, rtol_variance: float = RTOL_VARIANCE) -> None:
    """All numbers of two records of direct estimates; covariances relative to the variances."""
    np.testing.assert_allclose(mine.estimate, theirs.estimate, rtol=rtol)
    for name in ("variance", "covariance_ht"):
        gap = np.abs(getattr(mine, name) - getattr(theirs, name)) / theirs.variance
        assert gap.max() < rtol_variance, name
    np.testing.assert_array_equal(mine.degrees_of_freedom, theirs.degrees_of_freedom)
    np.testing.assert_array_equal(mine.n_labelled, theirs.n_labelled)
