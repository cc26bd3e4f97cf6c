"""Generalised variance functions: against least squares of its own, and at its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb

SIZE = 200


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    d = np.repeat([f"d{i:02d}" for i in range(20)], SIZE)
    f = rng.normal(size=len(d)) + np.repeat(np.arange(20) / 10, SIZE)
    return pd.DataFrame({"d": d, "f": f, "y": 2 + f + rng.normal(size=len(d))})


def sample(counts: list[int]) -> pd.DataFrame:
    table = frame()
    table = table[table.groupby("d").cumcount() < np.repeat(counts, SIZE)]
    n = table.groupby("d")["y"].transform("size")
    return table.assign(w=SIZE / n, N=float(SIZE))


COUNTS = [200, 199, 1, 0, *range(5, 37, 2)]


def estimated(method: Any, table: pd.DataFrame, **words: Any) -> pd.DataFrame:
    design = pb.survey_design(table, weights="w", strata="d", fpc="N", lonely_psu="remove")
    population = pb.population(frame(), domain="d", auxiliary="f")
    if method is pb.generalized_regression:
        words["auxiliary"] = ["f"]
    return method(design, population, outcome="y", domain="d", **words).to_frame()


@pytest.mark.parametrize("method", [pb.horvitz_thompson, pb.hajek, pb.generalized_regression])
def test_element_variances_by_least_squares(method: Any) -> None:
    table = sample(COUNTS)
    direct = estimated(method, table)
    found = estimated(method, table, variance="gvf")
    n = np.array(COUNTS, dtype=float)
    use = (n >= 2) & (n < SIZE)
    with np.errstate(divide="ignore"):
        factor = 1 / n - 1 / SIZE
        x = np.log(np.clip(n, n[use].min(), n[use].max()))
    mean = np.clip(direct["estimate"], direct["estimate"][use].min(), direct["estimate"][use].max())
    columns = np.column_stack([np.ones(20), x, mean, mean**2])
    y = np.log(direct["variance"][use] / factor[use])
    beta = np.linalg.solve(columns[use].T @ columns[use], columns[use].T @ y)
    fitted = np.exp(columns @ beta) * np.where(n > 0, factor, np.nan)
    fitted *= direct["variance"][use].sum() / fitted[use].sum()
    np.testing.assert_allclose(found["variance"], fitted, rtol=1e-8, atol=1e-18)
    np.testing.assert_array_equal(found["estimate"], direct["estimate"])


def test_nothing_is_left_to_estimate_in_a_census() -> None:
    direct = estimated(pb.generalized_regression, sample(COUNTS))
    found = estimated(pb.generalized_regression, sample(COUNTS), variance="gvf")
    assert found["status"][0] == "census"
    assert found["variance"][0] == found["covariance_ht"][0] == 0
    assert 0.5 < found["variance"][1] / direct["variance"][1] < 2
    assert np.isnan(found["variance"][3])


def test_sizes_and_means_far_beyond_the_fitted_ones_do_not_explode() -> None:
    # 199 units of 200, and one unit, where the fit has seen 8 to 10.
    counts = [199, 1, *[8, 9, 10] * 6]
    table = sample(counts)
    # Of binary answers that are all equal no variance is seen: the first domain is not fitted.
    table["y"] = np.where(table["d"] == "d00", 1.0, (table["y"] > 3) * 1.0)
    found = estimated(pb.hajek, table, variance="gvf")["variance"]
    element = found / (1 / np.array(counts) - 1 / SIZE)
    assert element[:2].between(element[2:].min() / 2, element[2:].max() * 2).all()


def test_weights_of_hajek_need_not_sum_to_the_domain() -> None:
    table = sample(COUNTS)
    one = estimated(pb.hajek, table, variance="gvf")
    other = estimated(pb.hajek, table.assign(w=table["w"] / 9), variance="gvf")
    np.testing.assert_allclose(other["variance"], one["variance"], rtol=1e-8, atol=1e-15)


def test_small_parts_of_domains_follow_the_regression_of_log_d() -> None:
    table = sample([10, 12, *range(6, 42, 2)]).assign(N=1e9)
    table["w"] = 1e9 / table.groupby("d")["y"].transform("size")
    population = pd.DataFrame({"d": frame()["d"].unique(), "N": 1e9})
    population = pb.population(population, domain="d", size="N")
    design = pb.survey_design(table, weights="w", strata="d", fpc="N")
    d, found = (
        pb.hajek(design, population, outcome="y", domain="d", variance=v).to_frame()
        for v in ("direct", "gvf")
    )
    mean = d["estimate"].to_numpy()
    columns = np.column_stack([np.ones(20), np.log(d["n_labelled"]), mean, mean**2])
    beta = np.linalg.solve(columns.T @ columns, columns.T @ np.log(d["variance"]))
    fitted = np.exp(columns @ beta)
    expected = fitted * d["variance"].sum() / fitted.sum()
    np.testing.assert_allclose(found["variance"], expected, rtol=1e-6)
