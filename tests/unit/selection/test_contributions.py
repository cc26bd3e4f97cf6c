"""The table from HT to PP-TS: its rows, its arithmetic, and that each piece counts."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError

STEPS = ["HT", "FH, intercept only", "FH", "PP-S", "PP-TS"]


def problem(seed=1, m=24, per=80, taxonomy=True, share=0.25, unlabelled=()):
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(m), per)
    group = domain % 4
    f = rng.normal(size=len(domain)) + 0.8 * rng.normal(size=m)[domain]
    y = 3 + 1.5 * f + 0.8 * rng.normal(size=4)[group] + rng.normal(size=len(domain)) * 0.7
    units = pd.DataFrame({"d": [f"d{i:02d}" for i in domain], "g": group, "f": f, "y": y})
    words = {"taxonomy": ["g"]} if taxonomy else {}
    population = pb.population(units, domain="d", auxiliary=["f"], **words)
    truth = units.groupby("d")["y"].mean()
    label = (rng.random(len(units)) < share) & ~units["d"].isin(list(unlabelled))
    sample = units[label].assign(w=len(units) / label.sum())
    return pb.survey_design(sample, weights="w"), population, truth


@pytest.fixture(scope="module")
def found():
    design, population, truth = problem()
    return pb.contributions(design, population, outcome="y", domain="d", truth=truth)


def test_the_rows(found):
    table = found.to_frame()
    assert list(table["step"]) == STEPS
    assert list(table["brings"])[1:] == [
        *("smoothing", "domain-level auxiliary", "unit-level auxiliary", "taxonomy"),
    ]
    assert (
        list(table.columns)
        == (
            "step brings n_domains mean_mse rmse mean_width mse_reduction width_reduction "
            "total_mse_reduction model_variance mean_shrinkage status true_rmse true_mse_reduction "
            "coverage coverage_standard_error"
        ).split()
    )
    assert (table["n_domains"] == 24).all() and (table["status"].iloc[1:] == "converged").all()


def test_the_arithmetic(found):
    table, rows = found.to_frame(), found.per_domain
    assert len(rows) == 5 * 24
    for step, part in rows.groupby("step"):
        row = table[table["step"] == step].iloc[0]
        assert row["mean_mse"] == pytest.approx(part["mse"].mean())
        assert row["rmse"] == pytest.approx(np.sqrt(part["mse"].mean()))
        assert row["mean_width"] == pytest.approx((part["upper"] - part["lower"]).mean())
        error = part["estimate"] - part["truth"]
        assert row["true_rmse"] == pytest.approx(np.sqrt((error**2).mean()))
        inside = (part["lower"] <= part["truth"]) & (part["truth"] <= part["upper"])
        assert row["coverage"] == pytest.approx(inside.mean())
    mse = table["mean_mse"].to_numpy()
    np.testing.assert_allclose(table["mse_reduction"].iloc[1:], 1 - mse[1:] / mse[:-1])
    np.testing.assert_allclose(table["total_mse_reduction"], 1 - mse / mse[0])


def test_steps_are_the_candidates_of_the_selection(found):
    design, population, _ = problem()
    candidates = [c for c in pb.standard_candidates("f", engine="native") if "PP" in c.name]
    run = pb.evaluate(
        design.frame,
        outcome="y",
        domain="d",
        auxiliary="f",
        population=population,
        weights="w",
        candidates=[pb.candidate("HT"), *candidates],
    )
    for name in ("PP-S", "PP-TS"):
        step = found.steps[STEPS.index(name)]
        np.testing.assert_allclose(step.estimate, run.fit(name).estimate, rtol=1e-10)
        np.testing.assert_allclose(step.mse, run.fit(name).mse, rtol=1e-10)
    np.testing.assert_allclose(found.steps[0].estimate, run.fit("HT").estimate, rtol=1e-12)


def test_each_piece_counts_where_it_is_there(found):
    table = found.to_frame().set_index("step")
    assert (table["mse_reduction"].iloc[1:] > 0.05).all()
    assert table.loc["PP-S", "mse_reduction"] > 0.3
    assert table.loc["PP-TS", "mse_reduction"] > 0.05
    assert table["true_rmse"].iloc[-1] < 0.5 * table["true_rmse"].iloc[0]


def test_without_truth_and_without_taxonomy():
    design, population, _ = problem(taxonomy=False)
    found = pb.contributions(design, population, outcome="y", domain="d", auxiliary="f")
    table = found.to_frame()
    assert list(table["step"]) == STEPS[:4] and "true_rmse" not in table
    assert "no taxonomy" in found.summary() and "true RMSE" not in found.summary()


def test_domains_without_labels_are_estimated_but_not_compared():
    design, population, truth = problem(unlabelled=("d03", "d11"))
    found = pb.contributions(design, population, outcome="y", domain="d", truth=truth)
    assert (found.to_frame()["n_domains"] == 22).all()
    rows = found.per_domain
    absent = rows["domain"].isin(["d03", "d11"])
    assert rows.loc[absent & (rows["step"] != "HT"), "estimate"].notna().all()


def test_too_few_domains_for_a_model_is_said_and_the_others_stand():
    design, population, _ = problem(m=4)
    found = pb.contributions(design, population, outcome="y", domain="d")
    table = found.to_frame().set_index("step")
    assert table.loc["FH", "status"] == "failed" and np.isnan(table.loc["FH", "rmse"])
    assert np.isfinite(table.loc["FH, intercept only", "rmse"])
    assert "FH failed: " in found.summary()


def test_the_record(found):
    assert pickle.loads(pickle.dumps(found)) == found
    json.dumps(found.to_dict(), allow_nan=False)
    text = found.summary()
    assert all(name in text for name in STEPS) and "24 of 24 domains" in text
    assert "standard error of" in text


def test_the_truth_in_any_form(found):
    design, population, truth = problem()
    words = {"outcome": "y", "domain": "d"}
    for form in (truth.sample(frac=1.0, random_state=2), dict(truth), truth.to_numpy()):
        assert pb.contributions(design, population, truth=form, **words) == found
    for bad in (truth.iloc[1:], truth.to_numpy()[1:], "high", np.full(24, np.nan)):
        with pytest.raises(InputError) as caught:
            pb.contributions(design, population, truth=bad, **words)
        assert caught.value.code == "bad_truth" and caught.value.field == "truth"


def test_no_auxiliary():
    design, population, _ = problem()
    bare = pb.population(population.to_frame(), domain="d", size="size")
    with pytest.raises(InputError) as caught:
        pb.contributions(design, bare, outcome="y", domain="d")
    assert caught.value.code == "missing_argument" and caught.value.field == "auxiliary"


def test_the_figure(found):
    ax = found.plot()
    assert len(ax.patches) == 5
    texts = [text.get_text() for text in ax.texts]
    assert len(texts) == 4 and all("MSE" in text for text in texts)
    assert found.plot(ax) is ax


def test_what_is_no_design_and_no_population():
    design, population, _ = problem()
    for given, field in (((population, design), "design"), ((design, design), "population")):
        with pytest.raises(InputError) as caught:
            pb.contributions(*given, outcome="y", domain="d")
        assert (caught.value.code, caught.value.field) == ("wrong_type", field)
