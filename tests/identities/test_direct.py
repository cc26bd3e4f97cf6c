"""What must hold of direct estimates whatever the data: orders, parts, names, origins, scales."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.cell_pass import UnitArrays, make_cells, plan_pass, unit_arrays
from pybridge.design.cells import Cells
from pybridge.design.folds import make_folds
from pybridge.design.variance import domain_moments
from pybridge.errors import InputError
from pybridge.tables.sample import sample_columns
from tests.identities.direct_cases import Case, KINDS, METHODS, RTOL, RTOL_VARIANCE, case, same


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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
