"""The main job on odd taxonomies, odd outcomes and few domains or labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from tests.unit.evaluation_units import STANDARD, direct, evaluate, units


@pytest.fixture(scope="module")
def standard() -> Any:
    return evaluate(units())


# --- odd taxonomies and odd outcomes -----------------------------------------------------------


@pytest.mark.parametrize("taxonomy", [None, [], ["county"], "county"])
def test_no_taxonomy(taxonomy: Any) -> None:
    found = evaluate(units(), taxonomy=taxonomy)
    assert found.selection.candidates == STANDARD[:7] and list(found.aggregates) == ["all"]


@pytest.mark.parametrize("kind", ["one group", "each domain its own", "two levels"])
def test_taxonomies_that_say_little(kind: str) -> None:
    table = units().assign(one="x", own=lambda t: t["county"] + "!")
    levels = {"one group": ["one"], "each domain its own": ["own"], "two levels": ["one", "region"]}
    candidates = "direct" if kind == "two levels" else "standard"  # three levels take a while
    found = evaluate(table, taxonomy=levels[kind], candidates=candidates)
    assert not found.selection.failed
    assert found.selection.candidates == (STANDARD[:4] if kind == "two levels" else STANDARD)
    assert list(found.aggregates) == ["all", *levels[kind]]


def test_another_taxonomy_than_the_populations() -> None:
    table = units()
    sample = table[table["y"].notna()].assign(w=3.0)
    known = pb.population(table, domain="county", auxiliary=["f"], taxonomy=["region"])
    direct(sample, population=known, weights="w", taxonomy=None)
    with pytest.raises(InputError) as caught:
        direct(sample, population=known, weights="w", taxonomy=["state"])
    assert caught.value.code == "conflicting_arguments"


OUTCOMES = {
    "all equal": lambda t: 3.0 + 0 * t["f"],
    "all equal, a tenth": lambda t: 0.1 + 0 * t["f"],
    "all 0": lambda t: 0.0 * t["f"],
    "the auxiliary": lambda t: t["f"],
    "a line in the auxiliary": lambda t: 1.0 + 2.0 * t["f"],
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_outcomes_that_leave_a_model_nothing(kind: str) -> None:
    table = units()
    y = OUTCOMES[kind](table)
    found = evaluate(table.assign(y=y.where(table["y"].notna())))
    assert {"FH-GREG", "PP-S", "PP-TS"} <= set(found.selection.failed)
    assert all("0" in reason for reason in found.selection.failed.values())
    chosen = found.selected
    np.testing.assert_allclose(
        chosen.estimate[:9], y.groupby(table["county"]).mean()[:9], atol=1e-12
    )
    np.testing.assert_array_equal(chosen.mse[:9], 0.0)
    assert "has no score" in found.summary()


@pytest.mark.parametrize("noise", [1e-6, 1e-9, 1e-12, 1e-15])
def test_a_line_in_the_auxiliary_but_for_noise(noise: float) -> None:
    # Sampling variances down to 1e-31: estimates, or the reason why there are none.
    table = units()
    rng = np.random.default_rng(6)
    y = 1.0 + 2.0 * table["f"] + noise * rng.normal(size=len(table))
    found = evaluate(table.assign(y=y.where(table["y"].notna())))
    for fit in found.fits:
        assert np.isfinite(fit.estimate[:9]).all() or found.selection.failed[fit.candidate.name]
    truth = y.groupby(table["county"]).mean()
    np.testing.assert_allclose(found.selected.estimate, truth, atol=10 * noise + 1e-14)
    assert found.summary()


def few_domains(m: int) -> pd.DataFrame:
    table = units()
    county = table["county"].str[1].astype(int)
    return table[county < m]


def test_too_few_domains_for_the_bayesian_candidates() -> None:
    # An intercept and one slope: 3 domains allow REML, 5 are needed for a flat prior.
    for m, failed in ((3, True), (4, True), (5, False)):
        found = evaluate(few_domains(m), taxonomy=None)
        assert found.selection.candidates == STANDARD[:7] and found.population.n_domains == m
        assert ("PP-S" in found.selection.failed) == failed
        assert np.isfinite(found.fit("FH-GREG").estimate).all()
        assert found.fit("FH-GREG").fit_status == "weak_identification"
        if failed:
            fit = found.fit("PP-S")
            assert (fit.fit_status, fit.code) == ("failed", "too_few_domains")
            assert f"{m} labelled domains are too few for 2 coefficients" in fit.message
            status = found.selection.to_frame().set_index("candidate").loc["PP-S", "status"]
            assert status == "failed" and "PP-S has no score" in found.summary()


def test_rare_events() -> None:
    table = units(n=2000)
    rare = (table["y"] > table["y"].quantile(0.97)).astype(float).where(table["y"].notna())
    found = evaluate(table.assign(y=rare))
    assert not found.selection.failed
    assert "constant_outcome" in set(found.fit("PP-S").status)
    assert (found.fit("PP-S").mse > 0).all()


@pytest.mark.parametrize("scale", [1e-40, 1e-12, 1e12, 1e40])
def test_units_of_measurement(standard: Any, scale: float) -> None:
    table = units().assign(y=lambda t: scale * t["y"], f=lambda t: scale * t["f"])
    found = evaluate(table)
    assert found.selection.selected == standard.selection.selected
    for one, other in zip(found.fits, standard.fits):
        np.testing.assert_allclose(one.estimate / scale, other.estimate, rtol=1e-6)
        np.testing.assert_allclose(one.mse / scale**2, other.mse, rtol=1e-5)


def test_far_from_the_origin(standard: Any) -> None:
    # HT moves where the sample's weights do not add up to N; what is regressed keeps its digits.
    table = units().assign(y=lambda t: t["y"] + 1e6, f=lambda t: t["f"] + 1e6)
    found = evaluate(table, reference="greg")
    there = evaluate(units(), reference="greg")
    for name in ("Hájek", "PPI", "GREG"):
        one, other = found.fit(name), there.fit(name)
        np.testing.assert_allclose(one.estimate - 1e6, other.estimate, atol=1e-7)
        np.testing.assert_allclose(one.mse, other.mse, rtol=1e-6)


def test_two_domains_and_one() -> None:
    table = units().assign(county=lambda t: np.where(t["region"] == "r0", "a", "b"))
    found = direct(table, taxonomy=None)
    assert found.population.n_domains == 2
    assert direct(table.assign(county="a"), taxonomy=None).selection.n_domains_scored["db_cv"] == 1
    with pytest.raises(InputError) as caught:
        evaluate(table, taxonomy=None)
    assert caught.value.code == "too_few_domains"
    assert "candidates='direct'" in (caught.value.hint or "")


def test_one_label_a_domain() -> None:
    table = units()
    first = ~table["county"].duplicated()
    found = direct(table.assign(y=table["f"].where(first)))
    chosen = found.selection
    assert chosen.selected == chosen.default == "GREG" and set(chosen.status) == {"not_scored"}
    assert np.isfinite(found.fit("GREG").estimate).all() and not chosen.failed
    assert chosen.not_scored == {"one label": tuple(f"c{i}" for i in range(10))}
    page = found.summary()
    assert "Nothing could be chosen by cross-validation" in page and "10 with one label" in page
    assert "GREG by default" in page and "Chosen" not in page
    assert chosen.indistinguishable() == ("GREG",) and chosen.summary()


def test_everything_known() -> None:
    table = units()
    everything = table.assign(y=table["f"] + 1, w=1.0, N=float(len(table)))
    totals = table.groupby("county", as_index=False).agg(size=("f", "size"), f=("f", "mean"))
    words: dict[str, Any] = dict(population=totals, weights="w", fpc="N", taxonomy=None)
    found = evaluate(everything, **words)
    assert found.selection.default == "GREG" and "all units labelled" in found.summary()
    np.testing.assert_allclose(found.selected.estimate, totals["f"] + 1, rtol=1e-10)


def test_the_scores_are_of_domains_that_have_an_error() -> None:
    table = units()
    whole = table["county"].isin(["c1", "c2"])
    table = table.assign(y=table["y"].where(~whole, table["f"] + 1), known=whole)
    chosen = direct(table, strata="known").selection
    assert chosen.not_scored == {"no labels": ("c9",), "all units labelled": ("c1", "c2")}
    for key, values in chosen.domain_scores.items():
        assert np.isnan(values[:, [1, 2, 9]]).all(), key
    assert chosen.n_domains_scored["db_cv"] == 7


def test_domains_known_whole() -> None:
    table = units()
    whole = table["county"].isin(["c1", "c2"])
    table = table.assign(y=table["y"].where(~whole, table["f"] + 1), known=whole)
    found = evaluate(table, strata="known")
    for name in STANDARD:
        fit = found.fit(name)
        assert fit.status[[1, 2]].tolist() == ["census"] * 2
        np.testing.assert_allclose(fit.mse[[1, 2]], 0.0, atol=1e-25)
        truth = (table["f"] + 1).groupby(table["county"]).mean()
        np.testing.assert_allclose(fit.estimate[[1, 2]], truth[["c1", "c2"]], rtol=1e-10)


def test_clusters_that_are_the_domains() -> None:
    # Each domain lies in one fold wholly: nothing can be scored, and the result says so.
    table = units()
    some = table["county"].isin(["c1", "c3", "c4", "c6", "c7"])
    table = table.assign(y=table["f"].where(some))
    found = direct(table, ids="county")
    assert found.selection.default == "GREG"
    assert found.selection.not_scored["all its labels in one fold"] == tuple(
        f"c{i}" for i in (1, 3, 4, 6, 7)
    )
    with pytest.raises(InputError) as caught:
        pb.select(
            pb.survey_design(table[some].assign(w=2.0), weights="w", ids="county"),
            pb.population(table, domain="county", auxiliary=["f"]),
            [pb.candidate("HT")],
            outcome="y",
        )
    assert caught.value.code == "no_common_domain"
