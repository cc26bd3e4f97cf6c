"""Settings in which smoothing is simulated: a population, a sampling plan, what is estimated."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.simulate import (
    EstimateCandidates,
    FinitePopulation,
    Outcome,
    deployed_service,
    finite_population,
    sampling_plan,
    simulate_population,
    verifiable_benchmark,
)
from pybridge.simulate.plans import SamplingPlan
from pybridge.simulate.repeated import Draw

LEVEL = 0.95


@dataclass(frozen=True)
class Smoothing(EstimateCandidates):
    """Estimates, and beside them the direct ones with smoothed variances and normal intervals.

    ``smoothed_<ht | greg>_<lower | upper>`` (m,); ``level_ratio``: posterior median variance of the
    coarsest level over the domain's, in the taxonomy model of GREG.
    """

    auxiliary: str = "f"
    levels: tuple[str, ...] = ()

    def __call__(self, draw: Draw) -> dict[str, Any]:
        out = super().__call__(draw)
        words = {"outcome": draw.outcome, "domain": draw.domain, "variance": "smoothed"}
        ht = pb.horvitz_thompson(draw.design, draw.known, **words)
        greg = pb.generalized_regression(
            draw.design, draw.known, auxiliary=[self.auxiliary], **words
        )
        for name, found in (("ht", ht), ("greg", greg)):
            half = 1.959963984540054 * np.sqrt(found.variance)
            out[f"smoothed_{name}_lower"] = found.estimate - half
            out[f"smoothed_{name}_upper"] = found.estimate + half
        if self.levels:
            levels = [*self.levels, "domain"]
            fit = pb.taxonomy_model(f"estimate ~ {self.auxiliary}", greg.to_area(), levels=levels)
            variances = list(fit.model_variance.values())
            out["level_ratio"] = variances[0] / variances[-1]
        return out


@dataclass(frozen=True)
class Setting:
    """One simulation: ``kind`` says which claims are made of it."""

    name: str
    population: FinitePopulation
    plan: SamplingPlan
    procedure: Smoothing
    kind: str


def candidates(auxiliary, *, weak=None, formula=None, taxonomy=True, least=False):
    """HT, GREG, FH without and with covariates, PP-S and PP-TS; PPI and GREG with a weak one."""
    area = {"smoothing": "fay_herriot", "method": "bayes", "finite_population": True}
    greg = {"direct": "greg", "unit_auxiliary": auxiliary}
    link = formula or f"~ {auxiliary}"
    found = [pb.candidate("HT"), pb.candidate("GREG", **greg)]
    if not least:
        found.append(pb.candidate("FH, intercept only", area_formula="~ 1", **area))
        found.append(pb.candidate("FH", area_formula=link, **area))
    found.append(pb.candidate("PP-S", area_formula=link, **greg, **area))
    if taxonomy:
        tree = {**area, "smoothing": "taxonomy"}
        found.append(pb.candidate("PP-TS", area_formula=link, **greg, **tree))
    if weak is not None:
        found.append(pb.candidate("PPI, weak", direct="ppi", unit_auxiliary=weak))
        found.append(pb.candidate("GREG, weak", direct="greg", unit_auxiliary=weak))
    return tuple(found)


def setting(name, population, plan, kind, *, auxiliary, **words):
    """A setting whose taxonomy is the population's own."""
    levels = population.taxonomy
    chosen = candidates(auxiliary, taxonomy=bool(levels), **words)
    procedure = Smoothing(chosen, LEVEL, auxiliary, levels)
    return Setting(name, population, plan, procedure, kind)


INSIDE = sampling_plan("stratified", strata="domain", fraction=0.1)
RANDOM = sampling_plan("simple", fraction=0.1)
DESIGNS = {
    "strata across": sampling_plan("stratified", strata="stratum", fraction=0.1),
    "clusters": sampling_plan("clustered", ids="cluster", fraction=0.1),
    "unequal": sampling_plan("unequal", size="odds", fraction=0.1),
    "Poisson": sampling_plan("poisson", size="odds", fraction=0.1),
}


def builders() -> dict[str, Callable[[str], Setting]]:
    """How every setting is made, by its name."""

    def in_five(name: str) -> Setting:
        plan, kind = (INSIDE, "built") if "inside" in name else (RANDOM, "coverage")
        words = {"auxiliary": "difficulty", "weak": "specialist"}
        return setting(name, verifiable_benchmark(), plan, kind, **words)

    def crossing(name: str) -> Setting:
        plan, kind = (INSIDE, "built") if "inside" in name else (RANDOM, "coverage")
        return setting(name, deployed_service(), plan, kind, auxiliary="judge")

    def wrong(name: str) -> Setting:
        return setting(name, wrong_link(), INSIDE, "coverage", auxiliary="f")

    def alike(name: str) -> Setting:
        if name.startswith("34"):
            population, auxiliary = flat_benchmark(), "difficulty"
        else:
            population, auxiliary = flat_service(), "judge"
        return setting(name, population, INSIDE, "flat", auxiliary=auxiliary, least=True)

    def design(name: str) -> Setting:
        outcome, plan = name.split(", ")
        population = crossed(binary=outcome == "binary")
        return setting(name, population, DESIGNS[plan], "design", auxiliary="f", least=True)

    return {
        **dict.fromkeys(("34 in 5, inside domains", "34 in 5, at random"), in_five),
        **dict.fromkeys(("21 x 3, inside domains", "21 x 3, at random"), crossing),
        "wrong link": wrong,
        **dict.fromkeys(("34 in 5, groups alike", "21 x 3, groups alike"), alike),
        **{f"{y}, {plan}": design for y in ("binary", "skewed") for plan in DESIGNS},
    }


def settings(only: Collection[str] | None = None) -> list[Setting]:
    """The settings of these names; all of them for None."""
    return [make(name) for name, make in builders().items() if only is None or name in only]


def flat_benchmark() -> FinitePopulation:
    """34 task types in 5 benchmarks as in `verifiable_benchmark`, the benchmarks all alike."""
    return _alike(verifiable_benchmark(), Outcome("binary", mean=0.55, domain_sd=0.18), 3)


def flat_service() -> FinitePopulation:
    """63 domains as in `deployed_service`, the systems all alike."""
    outcome = Outcome("score", mean=66.0, domain_sd=6.0, unit_sd=26.0, scale=100.0)
    return _alike(deployed_service(), outcome, 4)


def _alike(like: FinitePopulation, outcome: Outcome, seed: int) -> FinitePopulation:
    """Sizes, groups and the best auxiliary of a population, another outcome."""
    from pybridge.simulate import Auxiliary

    known = like.known
    level = known.taxonomy[0]
    codes, labels = known.group_codes(level)
    strong = {
        "binary": Auxiliary("difficulty", 0.61, 0.90, "share", mean=0.48, between=0.35, sd=0.30),
        "score": Auxiliary("judge", 0.40, 0.90, mean=60.0, between=0.12, sd=20.0),
    }
    return simulate_population(
        known.size.astype(int),
        labels=[str(name) for name in known.domains],
        groups={level: [str(labels[code]) for code in codes]},
        outcome=outcome,
        auxiliaries=[strong[outcome.kind]],
        seed=seed,
    )


def wrong_link(seed: int = 5) -> FinitePopulation:
    """34 domains in 5 groups whose means follow a wave of the covariate, three far off any line."""
    rng = np.random.default_rng(seed)
    sizes = np.maximum(120, np.round(250 * np.exp(0.5 * rng.standard_normal(34)))).astype(int)
    mean_f = rng.uniform(-1.5, 1.5, 34)
    mean = np.sin(2.0 * mean_f) + 0.15 * rng.standard_normal(34)
    mean[rng.choice(34, 3, replace=False)] += 2.0
    code = np.repeat(np.arange(34), sizes)
    own = rng.standard_normal(code.size)
    f = mean_f[code] + own
    y = mean[code] + 0.6 * own + rng.standard_normal(code.size)
    group = np.repeat(np.arange(5), [13, 3, 8, 7, 3])
    table = {"domain": [f"d{c:02d}" for c in code], "group": [f"g{group[c]}" for c in code]}
    units = pd.DataFrame({**table, "f": f, "y": y})
    return finite_population(
        units, outcome="y", domain="domain", auxiliary=["f"], taxonomy=["group", "domain"]
    )


def crossed(*, binary: bool = False, seed: int = 8) -> FinitePopulation:
    """36 domains in 6 groups across 4 strata, clusters of about 5 units, unequal odds.

    The outcome is log-normal inside domains (skewness about 4), or 0 and 1; units of one cluster
    share a sixth of its spread; odds of being drawn grow with the auxiliary variable.
    """
    rng = np.random.default_rng(seed)
    sizes = np.maximum(80, np.round(250 * np.exp(0.5 * rng.standard_normal(36)))).astype(int)
    code = np.repeat(np.arange(36), sizes)
    n = code.size
    cluster = rng.integers(n // 5, size=n)
    f = 0.5 * rng.standard_normal(36)[code] + rng.standard_normal(n)
    shared = 0.4 * rng.standard_normal(n // 5)[cluster]
    level = (0.3 * rng.standard_normal(6))[np.arange(36) // 6] + 0.25 * rng.standard_normal(36)
    latent = level[code] + 0.6 * f + shared + 0.7 * rng.standard_normal(n)
    y = np.exp(0.7 * latent)
    if binary:
        y = (rng.random(n) < 0.1 + 0.8 / (1.0 + np.exp(-1.5 * latent))).astype(float)
    units = pd.DataFrame(
        {
            "domain": [f"d{c:02d}" for c in code],
            "group": [f"g{c // 6}" for c in code],
            "stratum": [f"s{s}" for s in (cluster + code) % 4],
            "cluster": [f"c{c:05d}" for c in cluster],
            "odds": np.exp(0.4 * f),
            "f": f,
            "y": y,
        }
    )
    return finite_population(
        units, outcome="y", domain="domain", auxiliary=["f"], taxonomy=["group", "domain"]
    )
