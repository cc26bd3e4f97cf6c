"""Direct estimates of odd domains: statuses, missing numbers, intervals, refused options."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pybridge as pb
from pybridge.errors import FitError, InputError

FUNCTIONS = {
    "ht": pb.horvitz_thompson,
    "hajek": pb.hajek,
    "ppi": pb.prediction_powered,
    "greg": pb.generalized_regression,
}


def sample() -> pd.DataFrame:
    """Ten labels in "many", two equal ones in "equal", one in "one", all of "census", none more."""
    rng = np.random.default_rng(2)
    d = ["many"] * 10 + ["equal"] * 2 + ["one"] + ["census"] * 4
    f = rng.normal(size=17)
    table = pd.DataFrame({"d": d, "f": f, "y": 1 + f + rng.normal(size=17), "w": 5.0, "h": "rest"})
    table.loc[table["d"] == "equal", "y"] = 3.0
    table.loc[table["d"] == "census", ["w", "h", "N"]] = 1.0, "census", 4.0
    return table.fillna({"N": 65.0})


def totals() -> pd.DataFrame:
    domains = ["none", "many", "equal", "one", "census"]
    census = sample().query("d == 'census'")["f"].mean()
    f = [0.4, 0.1, -0.2, 0.0, census]
    return pd.DataFrame({"d": domains, "N": [7, 50, 10, 5, 4], "f": f, "r": list("aabbb")})


def population() -> Any:
    return pb.population(totals(), domain="d", size="N", auxiliary_means=["f"], taxonomy=["r"])


def estimates(method: str, **words: Any) -> Any:
    design = pb.survey_design(sample(), weights="w", strata="h", fpc="N")
    return FUNCTIONS[method](design, population(), outcome="y", **words)


def code_of(call: Any, *arguments: Any, **words: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **words)
    return caught.value.code


# --- statuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FUNCTIONS)
def test_every_domain_stays_with_its_status(method: str) -> None:
    frame = estimates(method).to_frame().set_index("domain")
    assert frame["status"].to_dict() == {
        "none": "out_of_sample",
        "many": "ok",
        "equal": "constant_outcome",
        "one": "single_unit",
        "census": "census",
    }
    assert frame["n_labelled"].tolist() == [0, 10, 2, 1, 4]
    assert frame.loc["census", "variance"] == 0.0
    assert frame.loc["census", "estimate"] == pytest.approx(
        sample().query("d == 'census'")["y"].mean(), rel=1e-12
    )


def test_a_domain_without_labels() -> None:
    for method in ("ht", "hajek"):
        row = estimates(method).to_frame().iloc[0]
        assert np.isnan(row[["estimate", "variance", "lower", "upper"]].astype(float)).all()
    assert estimates("ppi").estimate[0] == 0.4
    greg = estimates("greg")
    intercept, slope = greg.coefficients[0]
    assert greg.estimate[0] == pytest.approx(intercept + slope * 0.4, rel=1e-14)
    assert np.isnan(greg.variance[0]) and np.isnan(greg.lower[0])


def test_a_domain_with_one_label() -> None:
    hajek = estimates("hajek")
    assert hajek.estimate[3] == pytest.approx(sample().query("d == 'one'")["y"].iloc[0], rel=1e-14)
    assert np.isnan(hajek.variance[3]) and np.isnan(hajek.upper[3])
    smoothed = estimates("hajek", variance="smoothed")
    assert smoothed.variance[3] > 0 and smoothed.estimate[3] == hajek.estimate[3]
    assert estimates("ht").variance[3] > 0


@pytest.mark.parametrize("variance", ["smoothed", "pooled"])
@pytest.mark.parametrize("method", FUNCTIONS)
def test_equal_labels_get_a_variance_and_the_estimate_stays(method: str, variance: str) -> None:
    plain, modelled = estimates(method), estimates(method, variance=variance)
    np.testing.assert_array_equal(modelled.estimate, plain.estimate)
    assert modelled.variance[2] > 0
    assert modelled.variance_method == variance and variance in modelled.summary()
    assert np.isnan(modelled.variance[0]) and modelled.variance[4] == 0.0


def test_intervals_are_students() -> None:
    found = estimates("hajek", level=0.9)
    # Ten units in one stratum; two; four; the single unit and the empty domain have none.
    np.testing.assert_array_equal(found.degrees_of_freedom[1:], [9, 1, 1, 3])
    half = stats.t.ppf(0.95, 9) * np.sqrt(found.variance[1])
    assert found.upper[1] - found.estimate[1] == pytest.approx(half, rel=1e-10)
    assert found.level == 0.9 and set(found.to_frame()["level"]) == {0.9}


def test_proportions_outside_the_range_are_flagged_and_not_clipped() -> None:
    table = sample().assign(y=lambda t: (t["d"] == "many") * 1.0, w=6.0)
    design = pb.survey_design(table, weights="w")
    found = pb.horvitz_thompson(design, population(), outcome="y")
    assert found.estimate[1] == pytest.approx(1.2) and found.outside_range.tolist()[1]
    assert "outside [0, 1], not clipped: 1 domains" in found.summary()
    assert not estimates("ht").outside_range.any()


def test_a_mean_of_0_has_no_cv() -> None:
    table = sample().assign(y=np.r_[[1.0, -1.0] * 5, np.ones(7)])
    found = pb.hajek(pb.survey_design(table, weights="w"), population(), outcome="y")
    assert found.estimate[1] == 0.0 and np.isnan(found.cv[1]) and found.standard_error[1] > 0


def test_a_record() -> None:
    found = estimates("greg")
    assert pickle.loads(pickle.dumps(found)) == found
    assert found != estimates("ht")
    assert "working model: intercept" in found.summary()
    assert found.to_dict()["estimate"][1] == found.estimate[1]


# --- groups ------------------------------------------------------------------------------------


def test_groups_and_the_whole() -> None:
    found = estimates("ppi").aggregate("r").to_frame()
    assert found["group"].tolist() == ["a", "b"] and found["size"].tolist() == [57.0, 19.0]
    # The domain without labels enters group a with its prediction.
    N, y = totals()["N"], np.r_[0.4, estimates("ppi").estimate[1:]]
    assert found["estimate"][0] == pytest.approx((N[:2] @ y[:2]) / 57, rel=1e-12)
    assert estimates("ppi").aggregate().to_frame()["group"].tolist() == ["all"]
    assert code_of(estimates("ht").aggregate, "region") == "unknown_level"


def test_a_group_without_labels() -> None:
    table = totals().assign(r=["z", "a", "a", "a", "a"])
    known = pb.population(table, domain="d", size="N", auxiliary_means=["f"], taxonomy=["r"])
    design = pb.survey_design(sample(), weights="w", strata="h", fpc="N")
    for method, expected in (("ht", np.nan), ("hajek", np.nan), ("ppi", 0.4)):
        group = FUNCTIONS[method](design, known, outcome="y").aggregate("r")
        np.testing.assert_equal(group.estimate[1], expected)
        assert group.status.tolist() == ["ok", "out_of_sample"]
        assert np.isnan(group.variance[1])


# --- slopes and options ------------------------------------------------------------------------


def test_a_domain_fits_its_own_slope_where_it_can() -> None:
    found = estimates("greg", slope="domain")
    assert found.own_slope.tolist() == [False, True, False, False, True]
    inside = sample().query("d == 'many'")
    slope, intercept = np.polyfit(inside["f"], inside["y"], 1)
    np.testing.assert_allclose(found.coefficients[1], [intercept, slope], rtol=1e-10)
    np.testing.assert_array_equal(found.coefficients[2], estimates("greg").coefficients[0])
    assert "2 domains with their own" in found.summary()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (dict(slope="best"), "unknown_option"),
        (dict(slope=None), "not_a_number"),
        (dict(slope=np.nan), "not_a_number"),
        (dict(slope=[1.0, 2.0]), "wrong_length"),
        (dict(auxiliary=["g"]), "unknown_auxiliary"),
        (dict(auxiliary=["f", "f"]), "duplicate_name"),
        (dict(formula="~ g"), "unknown_auxiliary"),
        (dict(variance="best"), "unknown_option"),
        (dict(level=95), "bad_level"),
        (dict(engine="SAS"), None),
        (dict(outcome="z"), "missing_column"),
        (dict(domain="county"), "missing_column"),
    ],
)
def test_options_that_cannot_be(words: dict[str, Any], code: str | None) -> None:
    design = pb.survey_design(sample(), weights="w")
    found = code_of(pb.generalized_regression, design, population(), **{"outcome": "y", **words})
    assert code is None or found == code


def test_arguments_in_the_wrong_order() -> None:
    design = pb.survey_design(sample(), weights="w")
    for call in FUNCTIONS.values():
        assert code_of(call, population(), design, outcome="y") == "wrong_type"
        assert code_of(call, sample(), population(), outcome="y") == "wrong_type"


def test_which_variable_predicts() -> None:
    design = pb.survey_design(sample().assign(g=1.0), weights="w")
    two = pb.population(totals().assign(g=0.5), domain="d", size="N", auxiliary_means=["f", "g"])
    assert code_of(pb.prediction_powered, design, two, outcome="y") == "missing_argument"
    assert code_of(pb.prediction_powered, design, two, outcome="y", prediction="h") == (
        "unknown_auxiliary"
    )
    none = pb.population(totals(), domain="d", size="N")
    assert code_of(pb.generalized_regression, design, none, outcome="y") == "missing_argument"
    assert code_of(pb.generalized_regression, design, two, outcome="y") == "constant_auxiliary"


def test_outcomes_missing_in_the_sample() -> None:
    table = sample()
    table.loc[3, "y"] = np.nan
    design = pb.survey_design(table, weights="w")
    assert code_of(pb.hajek, design, population(), outcome="y") == "missing_values"
    design = pb.survey_design(table.assign(y=np.nan), weights="w")
    assert code_of(pb.hajek, design, population(), outcome="y") == "no_labels"


def test_variances_that_cannot_be_modelled() -> None:
    table = sample().drop_duplicates("d")
    design = pb.survey_design(table, weights="w")
    with pytest.raises(FitError) as caught:
        pb.horvitz_thompson(design, population(), outcome="y", variance="smoothed")
    assert caught.value.code == "too_few_labels"
    with pytest.raises(FitError) as caught:
        estimates("ht", variance="gvf")
    assert caught.value.code == "too_few_domains"


def test_no_sum_over_nothing_by_einsum(monkeypatch: pytest.MonkeyPatch) -> None:
    # There numpy 1.24 reads memory beyond the arrays: estimates were NaN in some processes.
    original = np.einsum

    def checked(words: str, *arrays: Any, **options: Any) -> Any:
        assert all(np.asarray(array).size for array in arrays), words
        return original(words, *arrays, **options)

    monkeypatch.setattr(np, "einsum", checked)
    for method in FUNCTIONS:
        for variance in ("direct", "smoothed"):
            estimates(method, variance=variance).aggregate("r")
    none = pb.population(totals(), domain="d", size="N")
    design = pb.survey_design(sample(), weights="w")
    found = pb.select(design, none, [pb.candidate("HT")], outcome="y", folds=2)
    assert found.selected == "HT"
