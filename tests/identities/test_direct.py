"""What must hold of direct estimates whatever the data: orders, parts, names, origins, scales."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.cell_pass import UnitArrays, make_cells, plan_pass, unit_arrays
from pybridge.design.cells import Cells
from pybridge.design.folds import make_folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.design.variance import domain_moments
from pybridge.errors import InputError
from pybridge.tables.population import Population
from pybridge.tables.sample import sample_columns
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


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def same(mine: Any, theirs: Any, rtol: float = RTOL, rtol_variance: float = RTOL_VARIANCE) -> None:
    """All numbers of two records of direct estimates; covariances relative to the variances."""
    np.testing.assert_allclose(mine.estimate, theirs.estimate, rtol=rtol)
    for name in ("variance", "covariance_ht"):
        gap = np.abs(getattr(mine, name) - getattr(theirs, name)) / theirs.variance
        assert gap.max() < rtol_variance, name
    np.testing.assert_array_equal(mine.degrees_of_freedom, theirs.degrees_of_freedom)
    np.testing.assert_array_equal(mine.n_labelled, theirs.n_labelled)


# --- weights, orders, parts --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ht", "hajek", "greg", "greg within"])
def test_weights_times_a_constant(kind: str, method: str) -> None:
    found, c = case(kind), 2.5
    words = {} if kind == "poisson" else {"fpc": None}  # a correction keeps the population's size
    before = found.estimates(method, **words)
    after = found.estimates(method, found.units.assign(w=c * found.units["w"]), **words)
    if method == "ht":
        np.testing.assert_allclose(after.estimate, c * before.estimate, rtol=RTOL)
    elif method == "hajek":
        np.testing.assert_allclose(after.estimate, before.estimate, rtol=RTOL)
    else:
        np.testing.assert_allclose(after.coefficients, before.coefficients, rtol=RTOL)
    if kind != "poisson":  # there the weights are the probabilities, and the variance changes
        factor = {"ht": c**2, "hajek": 1.0}.get(method, c**2)
        np.testing.assert_allclose(after.variance, factor * before.variance, rtol=RTOL_VARIANCE)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_rows_says_nothing(kind: str, method: str) -> None:
    found = case(kind)
    mixed = found.units.sample(frac=1.0, random_state=5)
    same(found.estimates(method, mixed), found.estimates(method))


def test_the_order_of_the_population_says_nothing(kind: str) -> None:
    found = case(kind)
    order = np.random.default_rng(2).permutation(9)
    mixed = found.estimates("greg", totals=found.totals.iloc[order])
    there = found.estimates("greg").to_frame().iloc[order].reset_index(drop=True)
    pd.testing.assert_frame_equal(mixed.to_frame(), there, rtol=1e-10)


def parts_of(found: Case, split: np.ndarray) -> tuple[Cells, Cells]:
    """Cells of the whole sample, and those of its parts added."""
    design, population = found.design(), found.population()
    folds = make_folds(design, 3)
    columns = sample_columns(design.frame, population, outcome="y", domain="d")
    units = unit_arrays(
        design,
        folds,
        domain=columns.domain,
        outcome=columns.outcome,
        auxiliary=columns.auxiliary,
    )
    plan = plan_pass(design, folds, units, n_domains=9, variables=("y", "f", "g"))
    total = None
    for part in np.unique(split):
        keep = split == part
        piece = UnitArrays(
            domain=units.domain[keep],
            stratum=units.stratum[keep],
            psu=None if units.psu is None else units.psu[keep],
            fold=units.fold[keep],
            weight=units.weight[keep],
            outcome=units.outcome[keep],
            auxiliary=tuple(x[keep] for x in units.auxiliary),
        )
        cells = make_cells(piece, plan)
        total = cells if total is None else total + cells
    assert total is not None
    return make_cells(units, plan), total


@pytest.mark.parametrize("n_parts", [2, 7])
@pytest.mark.parametrize("replicates", ["whole", "rest", "fold"])
def test_cells_of_parts_add(kind: str, n_parts: int, replicates: str) -> None:
    # Units are dealt out in turn, so that clusters lie in several parts.
    found = case(kind)
    whole, added = parts_of(found, np.arange(len(found.units)) % n_parts)
    if kind == "clusters":
        psu = found.units["psu"].to_numpy()
        assert (psu[:-1] == psu[1:]).any()
    one, other = domain_moments(whole, replicates), domain_moments(added, replicates)
    for name in ("n", "n_psu", "n_strata"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("total", "gram", "weight_square", "form", "form_with_replacement", "fourth"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert np.abs(mine - theirs).max() <= RTOL * np.abs(theirs).max(), name
    for name in ("fourth", "square", "of_fourth", "of_square"):
        mine, theirs = getattr(one.tails, name), getattr(other.tails, name)
        assert np.abs(mine - theirs).max() <= RTOL_VARIANCE * np.abs(theirs).max(), name
    assert added.outcome_range == whole.outcome_range


def test_cells_of_two_samples_do_not_add() -> None:
    one, _ = parts_of(case("clusters", seed=4), np.zeros(len(case("clusters", seed=4).units)))
    other, _ = parts_of(case("clusters", seed=5), np.zeros(len(case("clusters", seed=5).units)))
    with pytest.raises(InputError) as caught:
        one + other
    assert caught.value.code == "cells_do_not_add"


def test_a_population_in_parts() -> None:
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"d": rng.integers(40, size=900), "f": rng.normal(size=900)})
    table = table.assign(r=table["d"] % 4, g=1e6 + rng.normal(size=900))
    words = dict(domain="d", auxiliary=["f", "g"], taxonomy=["r"])
    whole = pb.population(table, **words)
    pieces = [pb.population(part, **words) for _, part in table.groupby(rng.integers(6, size=900))]
    together = pb.combine_populations(pieces)
    np.testing.assert_array_equal(together.domains, whole.domains)
    np.testing.assert_array_equal(together.size, whole.size)
    np.testing.assert_array_equal(together.groups["r"], whole.groups["r"])
    np.testing.assert_allclose(together.auxiliary_means, whole.auxiliary_means, rtol=1e-13)


# --- designs that are the same -----------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ("simple random", {"strata": None}),
        ("simple random", {"ids": "unit"}),
        ("strata across", {"ids": "unit"}),
        ("domains are strata", {"ids": "unit"}),
        ("strata across", {"fpc": "fraction"}),
        ("clusters", {"fpc": "fraction"}),
        ("strata across", {"weights": None}),
        ("clusters", {"weights": None}),
    ],
)
def test_two_words_for_one_design(method: str, plain: str, words: dict[str, str]) -> None:
    # One stratum is none; units are clusters of one; sizes and fractions say the same.
    found = case(plain)
    first = found.design()
    units = found.units.assign(
        unit=[f"u{i}" for i in range(len(found.units))],
        fraction=first.sampling_fraction[first.stratum],
    )
    same(found.estimates(method, units, **words), found.estimates(method, units))


def test_horvitz_thompson_is_hajek_where_domains_are_strata() -> None:
    found = case("domains are strata")
    same(found.estimates("hajek"), found.estimates("ht"), RTOL, 1e-9)


@pytest.mark.parametrize("columns", [["f"], ["g"], ["f", "g"], ["g", "f"]])
def test_a_formula_is_its_columns(columns: list[str]) -> None:
    found = case("strata across")
    data, words = (found.design(), found.population()), dict(outcome="y", domain="d")
    formula = pb.generalized_regression(*data, formula="~ " + " + ".join(columns), **words)
    same(formula, pb.generalized_regression(*data, auxiliary=columns, **words))


def test_categories_are_their_indicators() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"d": rng.integers(5, size=400), "c": rng.choice([3, 7, 11], size=400)})
    table["y"] = table["c"] + rng.normal(size=400)
    table["c7"], table["c11"] = (table["c"] == 7) * 1.0, (table["c"] == 11) * 1.0
    sample = table.iloc[:80].assign(w=5.0)
    design, words = pb.survey_design(sample, weights="w"), dict(outcome="y", domain="d")
    by_hand = pb.population(table, domain="d", auxiliary=["c7", "c11"])
    formula = pb.population(table, domain="d", formula="~ C(c)")
    same(
        pb.generalized_regression(design, formula, **words),
        pb.generalized_regression(design, by_hand, **words),
    )
    # A sample without one of the categories still has its column.
    rest = sample[sample["c"] != 11]
    design = pb.survey_design(rest, weights="w")
    with pytest.raises(InputError) as caught:
        pb.generalized_regression(design, formula, **words)
    assert caught.value.code == "constant_auxiliary" and "C(c)[T.11]" in str(caught.value)


# --- the whole and its groups ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ht", "hajek", "ppi", "greg"])
@pytest.mark.parametrize("level", [None, "r"])
def test_an_aggregate_is_the_estimate_of_the_larger_domain(
    kind: str, method: str, level: str | None
) -> None:
    found = case(kind)
    group = found.totals["r"] if level else pd.Series("all", index=found.totals.index)
    group_of = dict(zip(found.totals["d"], group))
    N = found.totals["N"]
    large = pd.DataFrame({"N": N, "f": N * found.totals["f"], "g": N * found.totals["g"]})
    large = large.groupby(group.to_numpy()).sum()
    large = large.assign(f=large["f"] / large["N"], g=large["g"] / large["N"], r="x")
    totals = large.rename_axis("d").reset_index()
    units = found.units.assign(d=found.units["d"].map(group_of))
    # The intercept term of a group is that of its domains only where β is one for all: it is.
    theirs = found.estimates(method, units, totals)
    mine = found.estimates(method).aggregate(level)
    np.testing.assert_array_equal(mine.group, totals["d"])
    np.testing.assert_allclose(mine.estimate, theirs.estimate, rtol=RTOL)
    np.testing.assert_allclose(mine.variance, theirs.variance, rtol=RTOL_VARIANCE)
    np.testing.assert_array_equal(mine.degrees_of_freedom, theirs.degrees_of_freedom)
    np.testing.assert_allclose(mine.lower, theirs.lower, rtol=1e-9)
    gap = np.abs(mine.covariance - theirs.covariance()) / theirs.variance.max()
    assert gap.max() < RTOL_VARIANCE


@pytest.mark.parametrize("method", ["ht", "ppi", "greg", "greg within", "greg domain"])
def test_an_aggregate_is_the_weighted_mean_with_the_full_covariance(kind: str, method: str) -> None:
    found = case(kind).estimates(method)
    share = found.size / found.size.sum()
    mine = found.aggregate()
    V = found.covariance()
    np.testing.assert_allclose(mine.estimate[0], share @ found.estimate, rtol=RTOL)
    np.testing.assert_allclose(mine.variance[0], share @ V @ share, rtol=RTOL_VARIANCE)
    np.testing.assert_allclose(np.diag(V), found.variance, rtol=RTOL_VARIANCE)
    assert np.linalg.eigvalsh(V).min() > -1e-12 * np.linalg.eigvalsh(V).max()


@pytest.mark.parametrize("method", ["ht", "hajek", "greg"])
def test_variances_of_more_groups_than_a_covariance_has_room_for(
    kind: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case(kind).estimates(method)
    few = {level: found.aggregate(level) for level in (None, "r", "d")}
    monkeypatch.setattr("pybridge.direct.aggregates.MOST_GROUPS", 0)
    monkeypatch.setattr("pybridge.design.groups._MOST_CELLS", 0)  # sparse from here on
    for level, expected in few.items():
        many = found.aggregate(level)
        assert many.covariance.shape == (0, 0)
        np.testing.assert_allclose(many.variance, expected.variance, rtol=1e-11)
        np.testing.assert_array_equal(many.estimate, expected.estimate)
    scale = np.abs(few["d"].covariance).max()
    if method != "hajek":
        np.testing.assert_allclose(found.covariance(), few["d"].covariance, atol=1e-12 * scale)


# --- origins and scales ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e12])
def test_units_of_measurement(kind: str, method: str, scale: float) -> None:
    found = case(kind)
    columns = ["y", "f", "g"] if method == "ppi" else ["y"]
    units = found.units.assign(**{name: scale * found.units[name] for name in columns})
    totals = found.totals.assign(**{n: scale * found.totals[n] for n in columns if n != "y"})
    mine, theirs = found.estimates(method, units, totals), found.estimates(method)
    np.testing.assert_allclose(mine.estimate, scale * theirs.estimate, rtol=RTOL)
    np.testing.assert_allclose(mine.variance, scale**2 * theirs.variance, rtol=RTOL_VARIANCE)
    np.testing.assert_array_equal(mine.status, theirs.status)


@pytest.mark.parametrize("method", ["greg", "greg within", "greg domain"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_measurement_of_the_auxiliary(kind: str, method: str, scale: float) -> None:
    found = case(kind)
    units = found.units.assign(f=scale * found.units["f"])
    totals = found.totals.assign(f=scale * found.totals["f"])
    same(found.estimates(method, units, totals), found.estimates(method), 1e-11, 1e-9)


@pytest.mark.parametrize("method", ["hajek", "greg", "greg within", "greg domain"])
@pytest.mark.parametrize("origin", [1.0, -1e6])
def test_the_origin_of_the_outcome(kind: str, method: str, origin: float) -> None:
    # Adding a constant moves these estimates by it and leaves their variances, digits included.
    found = case(kind)
    moved = found.estimates(method, found.units.assign(y=found.units["y"] + origin))
    there = found.estimates(method)
    np.testing.assert_allclose(moved.estimate - origin, there.estimate, atol=1e-14 * abs(origin))
    digits = 1e-15 * abs(origin) / there.standard_error.min()
    np.testing.assert_allclose(moved.variance, there.variance, rtol=1e-10 + 10 * digits)


def test_the_origin_of_both_for_a_prediction(kind: str) -> None:
    found, origin = case(kind), 1e6
    units = found.units.assign(y=found.units["y"] + origin, f=found.units["f"] + origin)
    moved = found.estimates("ppi", units, found.totals.assign(f=found.totals["f"] + origin))
    there = found.estimates("ppi")
    np.testing.assert_allclose(moved.estimate - origin, there.estimate, atol=1e-8)
    np.testing.assert_allclose(moved.variance, there.variance, rtol=1e-8)


@pytest.mark.parametrize("variance", ["direct", "smoothed", "pooled"])
def test_variances_keep_their_digits_far_from_the_origin(variance: str) -> None:
    # Where domains are strata the level of y does not enter HT's variance.
    found = case("domains are strata")
    words = dict(outcome="y", domain="d", variance=variance)
    there = pb.horvitz_thompson(found.design(), found.population(), **words)
    units = found.units.assign(y=found.units["y"] + 1e6)
    moved = pb.horvitz_thompson(found.design(units), found.population(), **words)
    np.testing.assert_allclose(moved.variance, there.variance, rtol=1e-8)
    greg = pb.generalized_regression(found.design(), found.population(), **words)
    moved = pb.generalized_regression(found.design(units), found.population(), **words)
    np.testing.assert_allclose(moved.variance, greg.variance, rtol=1e-8)


def test_a_perfect_predictor_leaves_no_variance(kind: str) -> None:
    found = case(kind)
    units = found.units.assign(y=1.0 + 2.0 * found.units["f"])
    greg = found.estimates("greg", units)
    np.testing.assert_array_equal(greg.variance, 0.0)
    np.testing.assert_allclose(greg.estimate, 1.0 + 2.0 * found.totals["f"], rtol=1e-12)


# --- labels ------------------------------------------------------------------------------------


def _number(d: pd.Series) -> pd.Series:
    return d.str[1:].astype(int)


KEYS = {
    "integers": _number,
    "integers far apart": lambda d: _number(d) * 10**15,
    "large unsigned integers": lambda d: _number(d).astype("uint64") + np.uint64(2**63),
    "nullable integers": lambda d: _number(d).astype("Int64"),
    "floats": lambda d: _number(d) / 4,
    "strings": lambda d: d.astype("string"),
    "categories": lambda d: d.astype("category"),
    "categories in another order": lambda d: pd.Series(
        pd.Categorical(d, categories=["unused", *sorted(d.unique())[::-1]])
    ),
    "dates": lambda d: pd.Timestamp("2020-03-01") + pd.to_timedelta(_number(d), "D"),
    "dates of a place": lambda d: pd.Timestamp("2020-03-01", tz="Asia/Seoul")
    + pd.to_timedelta(_number(d), "D"),
    "periods": lambda d: pd.Series(
        pd.PeriodIndex("2020-0" + (1 + _number(d)).astype(str), freq="M")
    ),
    "tuples": lambda d: pd.Series([(x, 1) for x in d]),
    "text and numbers": lambda d: pd.Series([x if x < "d4" else int(x[1:]) for x in d]),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("from_units", [False, True])
def test_the_type_of_the_domain_says_nothing(key: str, from_units: bool) -> None:
    found = case("strata across")
    everyone = pd.DataFrame({"d": np.repeat(found.totals["d"], 3)}).reset_index(drop=True)
    rename = KEYS[key](pd.concat([everyone["d"], found.units["d"]], ignore_index=True))
    units = found.units.reset_index(drop=True).assign(
        d=rename.iloc[len(everyone) :].reset_index(drop=True)
    )
    labels = rename.iloc[: len(everyone)].reset_index(drop=True)
    totals = found.totals.assign(d=labels.iloc[::3].reset_index(drop=True))
    if from_units:
        by_label = everyone.assign(label=labels, x=np.arange(27.0))
        population = pb.population(by_label, domain="label", auxiliary=["x"])
        assert {str(x) for x in population.domains} == {str(x) for x in labels}
        assert population.size.tolist() == [3.0] * 9
        return
    mine = found.estimates("greg", units, totals)
    same(mine, found.estimates("greg"))
    assert [str(x) for x in mine.to_frame()["domain"]] == [str(x) for x in totals["d"]]
