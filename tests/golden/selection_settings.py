"""Samples of every kind, for a selection and for its reimplementation."""

from __future__ import annotations

import numpy as np
import pandas as pd

import pybridge as pb
from tests.simulation import populations
from validation.reimplementations import direct, selection


K = 5


# The route through cells against that through units: differences of squares, of the largest score.
RTOL = 1e-10


POPULATIONS = {
    "one stratum": (dict(total=2000), 0.12, None),
    "strata across": (dict(total=2000, n_strata=3), [0.08, 0.2, 0.6], None),
    "domains are strata": (dict(total=2000, domain_is_stratum=True), 0.12, None),
    "clusters": (dict(total=3000, n_strata=3, cluster_size=6, cluster_sd=0.4), 0.15, "cluster"),
    "small strata": (dict(total=2000, domain_is_stratum=True, spread=0.9), 0.025, None),
    "few units": (dict(total=2000, spread=1.2), 0.02, None),
    "binary": (dict(total=2000, binary=True), 0.12, None),
    "skewed": (dict(total=3000, n_strata=3), 0.15, None),
}


DIRECT = ("ht", "hajek", "ppi", "greg")


class Setting:
    """One sample, for both sides."""

    def __init__(self, kind, seed=2):
        options, fraction, unit = POPULATIONS[kind]
        options = {"spread": 0.3, "mean": 3.0, **options}
        pop = populations.population(8, seed=7, **options)
        if kind == "skewed":
            pop["y"] = np.exp(0.6 * pop["y"])
        rng = np.random.default_rng(seed)
        rows, w, N_h = populations.stratified_sample(pop, fraction, rng, unit=unit)
        _, F, N = populations.truth(pop)
        labels = np.array([f"d{i}" for i in range(len(N))])
        self.population = direct.Population(N, F)
        self.X = np.column_stack([np.ones(len(N)), F])
        self.sample = direct.Sample(
            y=pop["y"][rows],
            w=w,
            domain=pop["domain"][rows],
            F=pop["f"][rows],
            stratum=pop["stratum"][rows],
            psu=None if unit is None else pop[unit][rows],
            n_population=N_h,
        )
        self.units = pd.DataFrame(
            {
                "y": pop["y"][rows],
                "f": pop["f"][rows],
                "w": w,
                "h": pop["stratum"][rows],
                "psu": pop["cluster"][rows],
                "fpc": N_h,
                "d": labels[pop["domain"][rows]],
            }
        )
        self.design = pb.survey_design(
            self.units, weights="w", strata="h", ids=unit and "psu", fpc="fpc"
        )
        totals = pd.DataFrame({"d": labels, "N": N, "f": F})
        self.totals = pb.population(totals, domain="d", size="N", auxiliary_means=["f"])
        self.folds = selection.draw_folds(self.sample, K, rng, strata="own")

    def select(self, candidates, **options):
        options = {"folds": self.folds, **options}
        return pb.select(self.design, self.totals, candidates, outcome="y", domain="d", **options)

    def refit(self, name):
        candidate = selection.direct_candidate(name, self.population)
        return selection.refit(candidate, self.sample, self.folds, strata="own")

    def refit_fay_herriot(self, name):
        candidate = selection.fay_herriot_candidate(
            name, self.population, self.X, whole=self.sample
        )
        return selection.refit(candidate, self.sample, self.folds, strata="own")

    def reference(self, name):
        """The reference's fits, its direct variances, and the estimator itself."""
        estimator = direct.ESTIMATORS[name](self.sample, self.population)
        fits = self.refit(name)
        lacks = ~np.isfinite(fits.kept).all(axis=0) | self.never_kept
        fits.kept[:, lacks] = np.nan
        return fits, direct.variances(estimator, self.sample), estimator

    @property
    def never_kept(self):
        """Domains that some complement has no unit of: no direct estimate there."""
        m = len(self.population.N)
        counts = [np.bincount(self.sample.domain[self.folds != k], minlength=m) for k in range(K)]
        return np.min(counts, axis=0) == 0

    @property
    def never_held(self):
        """Domains that some fold has no unit of."""
        m = len(self.population.N)
        counts = [np.bincount(self.sample.domain[self.folds == k], minlength=m) for k in range(K)]
        return np.min(counts, axis=0) == 0


def described(name):
    auxiliary = {"ppi": "f", "greg": "f"}.get(name)
    return pb.candidate(name, direct=name, unit_auxiliary=auxiliary)


def smoothed(name, **options):
    options = {"smoothing": "fay_herriot", "area_formula": "~ f", "method": "REML", **options}
    return pb.candidate(
        f"FH {name}", direct=name, unit_auxiliary="f" if name == "greg" else None, **options
    )


def same(mine, theirs, rtol=RTOL):
    """Equal where both exist, missing at the same places; relative to the largest score."""
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
    scale = np.nanmax(np.abs(theirs))
    assert np.nanmax(np.abs(mine - theirs)) <= rtol * scale
