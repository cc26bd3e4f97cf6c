"""Volunteers' outcomes as an auxiliary: what it predicts, and that estimates stay design-based."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.direct.self_selected import self_selected_auxiliary, volunteers_predict
from pybridge.errors import InputError


def units(seed: int = 1, n: int = 1200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    domain = np.array([f"d{i}" for i in range(6)])[rng.integers(6, size=n)]
    x = rng.normal(size=n)
    y = 2 + x + 0.7 * pd.factorize(domain, sort=True)[0] + rng.normal(size=n)
    came = rng.random(n) < np.where(y < 3, 0.5, 0.2)
    return pd.DataFrame(
        {"d": domain, "x": x, "y": y, "came": came, "rating": np.where(came, y, np.nan)},
        index=np.arange(n) + 100,
    )


def test_volunteers_keep_their_outcome_and_others_get_a_prediction() -> None:
    table = units()
    found = self_selected_auxiliary(table, outcome="rating", predictors="x", domain="d")
    assert found.index.equals(table.index)
    assert found["volunteered"].tolist() == table["came"].astype(float).tolist()
    came = table["came"]
    pd.testing.assert_series_equal(
        found["volunteer_prediction"][came], table["y"][came], check_names=False
    )
    others = np.corrcoef(found["volunteer_prediction"][~came], table["y"][~came])[0, 1]
    assert others > 0.7


def test_predictions_against_a_plain_computation() -> None:
    table = units(seed=2)
    came = table["came"].to_numpy()
    design = np.column_stack([np.ones(len(table)), table["x"]])
    code = pd.factorize(table["d"], sort=True)[0]
    found = volunteers_predict(outcome=table["rating"].to_numpy(), design=design, domain=code)
    beta = np.linalg.solve(design[came].T @ design[came], design[came].T @ table["y"][came])
    residual = table["y"].to_numpy() - design @ beta
    n = np.array([(code[came] == i).sum() for i in range(6)])
    mean = np.array([residual[came & (code == i)].mean() for i in range(6)])
    inside = sum(((residual[came & (code == i)] - mean[i]) ** 2).sum() for i in range(6))
    inside /= n.sum() - 6
    between = ((n * mean**2).sum() - 5 * inside) / (n.sum() - (n**2).sum() / n.sum())
    expected = design @ beta + (n / (n + inside / between) * mean)[code]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_units_of_measurement_do_not_matter() -> None:
    table = units()
    one = self_selected_auxiliary(table, outcome="rating", predictors="x", domain="d")
    scaled = table.assign(x=1e9 * table["x"], rating=1e-6 * table["rating"])
    other = self_selected_auxiliary(scaled, outcome="rating", predictors="x", domain="d")
    np.testing.assert_allclose(
        1e6 * other["volunteer_prediction"], one["volunteer_prediction"], rtol=1e-9
    )


def test_a_domain_without_volunteers_gets_the_common_line() -> None:
    table = units()
    table.loc[table["d"] == "d0", "rating"] = np.nan
    found = self_selected_auxiliary(table, outcome="rating", predictors="x", domain="d")
    plain = self_selected_auxiliary(table, outcome="rating", predictors="x")
    here = table["d"] == "d0"
    pd.testing.assert_frame_equal(found[here], plain[here])
    assert not found[~here].equals(plain[~here])


def test_estimates_with_volunteers_are_unbiased_and_vary_less() -> None:
    table = units(n=3000)
    extra = pb.self_selected_auxiliary(table, outcome="rating", predictors="x", domain="d")
    table = table.join(extra)
    both = ["volunteered", "volunteer_prediction"]
    known = pb.population(table, domain="d", auxiliary=[*both, "x"])
    truth = table.groupby("d")["y"].mean().to_numpy()
    rng, errors = np.random.default_rng(3), []
    for _ in range(150):
        sample = table.iloc[rng.choice(len(table), 300, replace=False)].assign(N=len(table))
        design = pb.survey_design(sample, fpc="N")
        errors.append(
            [
                pb.generalized_regression(design, known, auxiliary=names).estimate - truth
                for names in (both, ["x"])
            ]
        )
    found = np.array(errors)
    mean, spread = found.mean(axis=0), found.std(axis=0)
    assert (np.abs(mean[0]) < 3.5 * spread[0] / np.sqrt(150) + 0.01).all()
    assert (spread[0] ** 2).mean() < 0.85 * (spread[1] ** 2).mean()
    volunteers = table[table["came"]].groupby("d")["y"].mean().to_numpy() - truth
    assert (volunteers < -0.1).all()


@pytest.mark.parametrize(
    "words, code",
    [
        ({"outcome": "nothing"}, "missing_column"),
        ({"outcome": "empty"}, "too_few_outcomes"),
        ({"outcome": "few", "predictors": "x"}, "too_few_outcomes"),
        ({"outcome": "rating", "predictors": "gaps"}, "missing_values"),
        ({"outcome": "rating", "domain": "nowhere"}, "missing_column"),
    ],
)
def test_what_cannot_be_used_is_refused(words: dict[str, Any], code: str) -> None:
    table = units().assign(empty=np.nan, gaps=np.nan)
    table["few"] = np.where(np.arange(len(table)) < 2, 1.0, np.nan)
    with pytest.raises(InputError) as raised:
        self_selected_auxiliary(table, **words)
    assert raised.value.code == code
