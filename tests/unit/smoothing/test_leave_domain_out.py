"""Predictions without the own label, by algebra and reweighting, are those of honest refits."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.smoothing._leave_out_bayes import leave_out_area, leave_out_taxonomy
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.taxonomy import taxonomy_model

M = 16
GROUP = np.repeat([0, 1, 2], [8, 3, 5])
LIKELIHOOD = ("REML", "ML", "FH", "PR")


def table(seed=1, spread=1.0, outlier=0.0, outside=(), census=()):
    """Domains in three groups, with an outlying domain, some without labels or observed in full."""
    rng = np.random.default_rng(seed)
    d = rng.uniform(0.3, 2.0, M)
    x = rng.normal(size=M)
    theta = 3 + x + 0.8 * rng.normal(size=3)[GROUP] + np.sqrt(spread) * rng.normal(size=M)
    z = theta + np.sqrt(d) * rng.normal(size=M)
    z[5] += outlier
    d[list(census)] = 0.0
    z[list(outside)] = d[list(outside)] = np.nan
    names = [f"d{i:02d}" for i in range(M)]
    groups = [f"g{g}" for g in GROUP]
    columns = {"domain": names, "group": groups, "estimate": z, "variance": d, "x": x}
    return pd.DataFrame(columns)


def honest(frame, fit):
    """A row a labelled domain: estimate, mse, lower, upper of the fit without its label."""
    rows = []
    for i in np.flatnonzero(frame["estimate"].notna()):
        alone = frame.copy()
        alone.loc[i, "estimate"] = np.nan
        row = fit(alone).to_frame().iloc[i]
        assert row["status"] == "out_of_sample"
        rows.append(row[["estimate", "mse", "lower", "upper"]].astype(float))
    return pd.DataFrame(rows).to_numpy()


def close(found, wanted, rtol, labels=("prediction", "mse", "lower", "upper")):
    size = np.sqrt(wanted[:, 1])
    for place, name in enumerate(labels):
        mine, theirs = found[name].to_numpy(), wanted[:, place]
        scale = wanted[:, 1] if name == "mse" else size
        np.testing.assert_array_less(np.abs(mine - theirs) / scale, rtol, err_msg=name)


@pytest.mark.parametrize("method", LIKELIHOOD)
@pytest.mark.parametrize(
    "words",
    [{}, {"spread": 0.0, "seed": 3}, {"outlier": 12.0}, {"outside": [2, 9]}, {"census": [4]}],
    ids=["plain", "no spread", "outlier", "unlabelled", "census"],
)
def test_fay_herriot_by_likelihood_and_moments(method, words):
    frame = table(**words)

    def fit(area):
        return fay_herriot("estimate ~ x", area, engine="native", method=method)

    found = fit(frame).leave_domain_out()
    close(found.to_frame(), honest(frame, fit), 1e-7)


def test_variances_far_apart_and_several_maxima():
    frame = table(seed=8)
    frame["variance"] = 10.0 ** np.linspace(-6, 3, M)
    for method in LIKELIHOOD:

        def fit(area):
            return fay_herriot("estimate ~ x", area, engine="native", method=method)

        close(fit(frame).leave_domain_out().to_frame(), honest(frame, fit), 1e-6)


@pytest.mark.parametrize(
    "words",
    [{}, {"spread": 0.0, "seed": 3}, {"outlier": 30.0}, {"outside": [2, 9]}, {"census": [4]}],
    ids=["plain", "no spread", "outlier", "unlabelled", "census"],
)
def test_fay_herriot_bayes(words):
    frame = table(**words)

    def fit(area):
        return fay_herriot("estimate ~ x", area, engine="native", method="bayes")

    found = fit(frame).leave_domain_out()
    close(found.to_frame(), honest(frame, fit), 1e-6)
    assert (found.numbers.n_refitted > 0) == ("outlier" in words)


def test_predictive_densities_multiply_in_any_order():
    frame = table()
    words = {
        "estimate": frame["estimate"].to_numpy(),
        "variance": frame["variance"].to_numpy(),
        "covariates": np.column_stack([np.ones(M), frame["x"]]),
    }
    found = leave_out_area(**words, level=0.95)
    # p(z_3 | rest, z_7) p(z_7 | rest) = p(z_7 | rest, z_3) p(z_3 | rest).
    first = leave_out_area(**{k: np.delete(v, 3, axis=0) for k, v in words.items()}, level=0.95)
    second = leave_out_area(**{k: np.delete(v, 7, axis=0) for k, v in words.items()}, level=0.95)
    one = found.log_density[3] + first.log_density[6]
    other = found.log_density[7] + second.log_density[3]
    assert one == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("method", ["AMRL", "AMPL_YL"])
def test_adjusted_likelihoods_by_fitting_again(method):
    frame = table(spread=0.0, seed=3)

    def fit(area):
        return fay_herriot("estimate ~ x", area, engine="native", method=method)

    found = fit(frame).leave_domain_out()
    assert found.numbers.n_refitted == M
    close(found.to_frame(), honest(frame, fit), 1e-9)


@pytest.mark.parametrize("method", ["REML", "bayes"])
def test_means_of_finite_domains(method):
    frame = table(outside=[2]).assign(N=np.linspace(3, 40, M), s2=1.5)
    words = {"engine": "native", "method": method}
    words |= {"finite_population": "N", "element_variance": "s2"}

    def fit(area):
        return fay_herriot("estimate ~ x", area, **words)

    found = fit(frame).leave_domain_out()
    close(found.to_frame(), honest(frame, fit), 1e-6)
    size = found.to_frame()["mse"] + found.direct_variance
    np.testing.assert_allclose(found.numbers.spread, size, rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"method": "reblup", "k": 1.345}, "method"),
        ({"transformation": "log"}, "transformation"),
    ],
)
def test_models_that_cannot_be_refitted_say_so(words, field):
    frame = table()
    frame["estimate"] = np.exp(0.1 * frame["estimate"])
    fit = fay_herriot("estimate ~ x", frame, engine="native", **words)
    with pytest.raises(InputError) as caught:
        fit.leave_domain_out()
    assert caught.value.code == "not_available" and caught.value.field == field
    found = fit.diagnostics()
    assert np.isfinite(found.brown_statistic) and np.isfinite(found.marginal_r2)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_taxonomy_bayes(depth):
    frame = table(outside=[2, 12])
    frame["sub"] = [f"{g}{i % 2}" for i, g in enumerate(frame["group"])]
    levels = {1: ["domain"], 2: ["group", "domain"], 3: ["group", "sub", "domain"]}[depth]
    whole = taxonomy_model("estimate ~ x", frame, levels=levels)

    def fit(area):
        return taxonomy_model("estimate ~ x", area, levels=levels, prior=whole.prior)

    found = whole.leave_domain_out()
    close(found.to_frame(), honest(frame, fit), {1: 1e-6, 2: 1e-5, 3: 5e-4}[depth])


def test_taxonomy_with_an_outlier_is_fitted_again_there():
    frame = table(outlier=25.0)
    whole = taxonomy_model("estimate ~ x", frame, levels=["group", "domain"])

    def fit(area):
        return taxonomy_model("estimate ~ x", area, levels=["group", "domain"], prior=whole.prior)

    found = whole.leave_domain_out()
    assert found.numbers.n_refitted > 0
    close(found.to_frame(), honest(frame, fit), 1e-5)


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_taxonomy_by_likelihood(method):
    frame = table(outside=[2])

    def fit(area):
        return taxonomy_model("estimate ~ x", area, levels=["group", "domain"], method=method)

    close(fit(frame).leave_domain_out().to_frame(), honest(frame, fit), 1e-6)


def test_coarser_effects_are_used():
    """A domain among high siblings is predicted high."""
    frame = table(spread=0.1)
    frame["estimate"] += np.where(frame["group"] == "g1", 8.0, 0.0)
    tree = taxonomy_model("estimate ~ x", frame, levels=["group", "domain"]).leave_domain_out()
    flat = fay_herriot("estimate ~ x", frame, engine="native", method="bayes").leave_domain_out()
    inside = (frame["group"] == "g1").to_numpy()
    assert (tree.prediction[inside] > flat.prediction[inside] + 2.0).all()
    assert tree.log_density > flat.log_density + 5.0


def test_more_than_three_levels_by_draws():
    frame = pd.concat([table(seed=s) for s in (1, 2)], ignore_index=True)
    frame["domain"] = [f"d{i:02d}" for i in range(2 * M)]
    frame["a"] = np.arange(2 * M) // M
    frame["b"] = [f"{a}{g}" for a, g in zip(frame["a"], frame["group"])]
    frame["c"] = [f"{b}{i % 2}" for i, b in enumerate(frame["b"])]
    levels = ["a", "b", "c", "domain"]
    deep = taxonomy_model("estimate ~ x", frame, levels=levels, seed=4)
    found = deep.leave_domain_out().to_frame()
    for i in (3, 20):
        alone = frame.copy()
        alone.loc[i, "estimate"] = np.nan
        fit = taxonomy_model("estimate ~ x", alone, levels=levels, prior=deep.prior, seed=5)
        row = fit.to_frame().iloc[i]
        assert found["prediction"][i] == pytest.approx(
            row["estimate"], abs=0.15 * row["standard_error"]
        )
        assert found["standard_error"][i] == pytest.approx(row["standard_error"], rel=0.15)


def test_units_do_not_matter():
    frame = table()
    for factor in (1e-6, 1e6):
        scaled = frame.assign(
            estimate=factor * frame["estimate"], variance=factor**2 * frame["variance"]
        )
        for method in ("REML", "bayes"):
            mine, other = (
                fay_herriot("estimate ~ x", area, engine="native", method=method).leave_domain_out()
                for area in (frame, scaled)
            )
            np.testing.assert_allclose(other.prediction, factor * mine.prediction, rtol=1e-7)
            np.testing.assert_allclose(other.standardised_error, mine.standardised_error, 1e-6)
            shift = -M * np.log(factor)
            assert other.log_density == pytest.approx(mine.log_density + shift, abs=1e-6)


def test_a_domain_that_alone_holds_a_coefficient_is_not_scored():
    frame = table()
    frame["own"] = (np.arange(M) == 4).astype(float)
    for method in ("REML", "bayes"):
        fit = fay_herriot("estimate ~ x + own", frame, engine="native", method=method)
        found = fit.leave_domain_out()
        assert np.isnan(found.prediction[4]) and np.isfinite(np.delete(found.prediction, 4)).all()
        assert found.n_scored == M - 1 and "d04" in found.summary()


def test_the_record():
    found = fay_herriot("estimate ~ x", table(outlier=9.0), engine="native").leave_domain_out(
        level=0.9
    )
    assert pickle.loads(pickle.dumps(found)) == found
    frame = found.to_frame()
    assert (
        list(frame.columns)
        == (
            "domain direct direct_variance prediction mse standard_error lower upper level "
            "standardised_error probability covered log_density"
        ).split()
    )
    assert found.level == 0.9 and found.coverage == frame["covered"].mean()
    assert found.coverage_standard_error == pytest.approx(np.sqrt(0.9 * 0.1 / M))
    assert found.root_mean_square == pytest.approx(
        np.sqrt((frame["standardised_error"] ** 2).mean())
    )
    text = found.summary()
    assert "90 % predictive intervals" in text and "d05" in text
    narrow = found.to_frame()
    size = frame["mse"] + frame["direct_variance"]
    np.testing.assert_allclose(
        narrow["standardised_error"], (frame["direct"] - frame["prediction"]) / np.sqrt(size)
    )


def test_too_narrow_intervals_are_said():
    """A covariate that separates most domains, and a few that are nowhere near it."""
    rng = np.random.default_rng(2)
    n = 200
    frame = pd.DataFrame(
        {"estimate": rng.standard_t(1.2, n), "variance": 1e-4, "x": 1.0 * rng.normal(size=n)}
    )
    found = fay_herriot("estimate ~ x", frame, engine="native").leave_domain_out()
    assert "as long as" in found.summary()  # far tails widen the spread: nothing is too narrow
    object.__setattr__(found.numbers, "probability", np.where(np.arange(n) < 40, 0.0, 0.5))
    assert "too narrow" in found.summary()


@pytest.mark.parametrize("method", ["REML", "bayes"])
def test_too_few_to_leave_one_out(method):
    least = 3 if method == "REML" else 5
    frame = table().iloc[:least]
    fit = fay_herriot("estimate ~ x", frame, engine="native", method=method)
    with pytest.raises(InputError) as caught:
        fit.leave_domain_out()
    assert caught.value.code == "too_few_domains"


def test_a_level_that_is_none():
    with pytest.raises(InputError):
        fay_herriot("estimate ~ x", table(), engine="native").leave_domain_out(level=95)


def test_infinite_variances_are_nan_and_still_scored():
    frame = table().iloc[:7]  # six others, two coefficients: the mean of s is infinite
    found = fay_herriot("estimate ~ x", frame, engine="native", method="bayes").leave_domain_out()
    assert np.isnan(found.standard_error).all() and np.isnan(found.root_mean_square)
    assert np.isfinite(found.probability).all() and np.isfinite(found.log_density)


def test_arrays_without_a_fit():
    frame = table()
    prior = TaxonomyPrior(shape=1.0, scale=0.1)
    words = {
        "estimate": frame["estimate"].to_numpy(),
        "variance": frame["variance"].to_numpy(),
        "covariates": np.column_stack([np.ones(M), frame["x"]]),
        "levels": [GROUP, np.arange(M)],
        "prior": prior,
        "level": 0.95,
    }
    found = leave_out_taxonomy(**words)
    alone = words["estimate"].copy()
    alone[0] = np.nan
    fit = fit_taxonomy_bayes(**{**words, "estimate": alone})
    assert found.prediction[0] == pytest.approx(fit.estimate[0], rel=1e-6)
