"""sae's traps with tables of units: direct, pssynt, ssd, nested errors, criteria, keys."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import sae
from pybridge.errors import EngineError, EngineWarning, InputError
from pybridge.smoothing._area_model import fit_area_model
from tests.live_r.sae_tables import correlated, ring


pytestmark = pytest.mark.r("sae")


@pytest.fixture(scope="module")
def spacetime():
    table = datasets.spacetime()
    ids = table["Area"].unique()
    return table, pd.DataFrame(datasets.spacetime_proximity(), index=ids, columns=ids)


def units():
    draw = np.random.default_rng(3)
    domain = np.repeat(["a", "b", "c"], [20, 30, 1])
    return pd.DataFrame(
        {
            "domain": domain,
            "y": draw.normal(10, 1, 51),
            "w": draw.uniform(2, 4, 51),
            "g": np.tile(["u", "v", "w"], 17),
        }
    )


SIZES = pd.DataFrame({"domain": ["c", "b", "a", "d"], "N": [10.0, 100.0, 70.0, 5.0]})


def test_direct_says_which_estimator_it_is():
    # With weights it is sum(w y)/N, not the weighted mean of other packages' functions of the name.
    table = units()
    fit = sae.direct(table, "y", "domain", "w", SIZES)
    assert fit.estimator == (
        "Horvitz-Thompson mean with known domain size, sum(w y)/N, without replacement"
    )
    a = table[table["domain"] == "a"]
    assert fit.estimate[2] == pytest.approx((a["y"] * a["w"]).sum() / 70, rel=1e-14)
    assert fit.estimate[2] < 0.95 * np.average(a["y"], weights=a["w"]) or (
        fit.estimate[2] > 1.05 * np.average(a["y"], weights=a["w"])
    )
    assert "Horvitz-Thompson" in fit.provenance.method and "Horvitz" in fit.summary()


def test_labels_survive_direct():
    table = units()
    four = pd.CategoricalDtype(list("abcd"))
    factor, sizes = table.astype({"domain": four}), SIZES.astype({"domain": four})
    raw = sae.direct(factor, "y", "domain", "w", sizes, mode="raw")
    # A factor and a domain without units: sae returns the factor's codes for labels.
    assert set(map(str, raw.domains)) <= {"1", "2", "3", "4"}
    fit = sae.direct(table, "y", "domain", "w", SIZES)
    assert list(fit.domains) == ["c", "b", "a", "d"]
    assert list(fit.domain_status) == ["single_unit", "ok", "ok", "out_of_sample"]
    assert list(fit.n_labelled) == [1, 30, 20, 0] and np.isnan(fit.estimate[3])
    as_factor = sae.direct(factor, "y", "domain", "w", sizes)
    np.testing.assert_array_equal(as_factor.estimate, fit.estimate)


def test_columns_of_domsize_are_two():
    table = units()
    wide = SIZES.assign(region="r")
    for bad in (wide.assign(M=1.0).drop(columns="region"), SIZES[["domain"]]):
        with pytest.raises(InputError) as caught:
            sae.direct(table, "y", "domain", "w", bad)
        assert caught.value.code == "not_two_columns"
    swapped = SIZES[["N", "domain"]]
    with pytest.raises(EngineError, match="not defined in population"):
        sae.direct(table, "y", "domain", "w", swapped, mode="raw")
    # By name the domains are found wherever they stand.
    fit = sae.direct(table, "y", "domain", "w", swapped)
    np.testing.assert_array_equal(
        fit.estimate, sae.direct(table, "y", "domain", "w", SIZES).estimate
    )


def test_rows_without_a_value_are_not_dropped_in_silence():
    table = units()
    table.loc[3, "y"] = np.nan
    raw = sae.direct(table, "y", "domain", "w", SIZES, mode="raw")
    assert raw.n_labelled[0] == 19
    with pytest.raises(InputError) as caught:
        sae.direct(table, "y", "domain", "w", SIZES)
    assert caught.value.code == "missing_values" and "silently" in caught.value.hint


STRATA = pd.DataFrame(
    {"domain": ["a", "b", "c"], "u": [30, 40, 1], "v": [20, 30, 8], "w": [20, 30, 1]}
)


def test_codes_of_post_strata_must_be_columns():
    table = units()
    wrong = STRATA.rename(columns={"u": "U", "v": "V", "w": "W"})
    with pytest.warns(EngineWarning, match="not defined in population post-strata"):
        raw = sae.pssynt(table, "y", "w", "g", wrong, mode="raw")
    assert (raw.estimate == 0).all()
    with pytest.raises(InputError) as caught:
        sae.pssynt(table, "y", "w", "g", wrong)
    assert caught.value.code == "unknown_post_stratum"
    extra = STRATA.assign(z=[10, 10, 10])
    raw = sae.pssynt(table, "y", "w", "g", extra, mode="raw")
    fit = sae.pssynt(table, "y", "w", "g", STRATA)
    assert (raw.estimate < fit.estimate).all()  # a stratum without units counts as 0, silently
    with pytest.raises(InputError, match="post-strata"):
        sae.pssynt(table, "y", "w", "g", extra)
    numbers = table.assign(g=table["g"].map({"u": 1, "v": 2, "w": 3}))
    coded = STRATA.set_axis(["domain", 1, 2, 3], axis=1)
    np.testing.assert_array_equal(sae.pssynt(numbers, "y", "w", "g", coded).estimate, fit.estimate)


def test_ssd_takes_the_estimates_whatever_the_table():
    table, sizes = units(), SIZES[:3]
    direct = sae.direct(table, "y", "domain", "w", sizes)
    synthetic = sae.pssynt(table, "y", "w", "g", STRATA)
    fit = sae.ssd(table, "domain", "w", sizes, direct, synthetic)
    weight = fit.weight[list(fit.domains).index("a")]
    assert 0 < weight < 1 and fit.domain_status[0] == "single_unit"
    own = sae.direct(table, "y", "domain", "w", sizes, mode="raw")
    all_of_it = pd.DataFrame({name: list(column) for name, column in own.value.items()})
    words = {"mode": "raw"}
    raw = sae.ssd(table, "domain", "w", sizes, all_of_it, synthetic, **words)
    composed = weight * 20 + (1 - weight) * synthetic.estimate[0]
    assert raw.estimate[list(raw.domains).index("a")] == pytest.approx(composed)  # sample size
    with pytest.raises(InputError) as caught:
        sae.ssd(table, "domain", "w", sizes, all_of_it, synthetic)
    assert caught.value.code == "not_two_columns"
    two = all_of_it[["Domain", "Direct"]]
    np.testing.assert_array_equal(
        sae.ssd(table, "domain", "w", sizes, two, synthetic).estimate, fit.estimate
    )


def test_a_domain_without_units_gets_the_synthetic_estimate():
    table = units()
    direct = sae.direct(table, "y", "domain", "w", SIZES)
    strata = pd.concat([STRATA, pd.DataFrame({"domain": ["d"], "u": [2], "v": [2], "w": [1]})])
    synthetic = sae.pssynt(table, "y", "w", "g", strata)
    raw = sae.ssd(table, "domain", "w", SIZES, direct, synthetic, mode="raw")
    assert np.isnan(raw.estimate[list(raw.domains).index("d")])
    fit = sae.ssd(table, "domain", "w", SIZES, direct, synthetic)
    assert fit.estimate[3] == synthetic.estimate[3] and fit.weight[3] == 0
    assert any("without units: d" in line for line in fit.conditions)


# --- criteria under REML -------------------------------------------------------------------------


def test_criteria_are_those_of_the_ordinary_likelihood():
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    fit = sae.eblupFH(milk, "yi ~ as.factor(MajorArea)", "var")
    native = fit_area_model(
        estimate=milk["yi"].to_numpy(),
        variance=milk["var"].to_numpy(),
        covariates=pd.get_dummies(milk["MajorArea"]).to_numpy(dtype=float),
    )
    assert fit.criteria["AIC"] == pytest.approx(-2 * native.log_likelihood + 2 * 5, abs=1e-4)
    assert fit.exact["restricted_log_likelihood"] == pytest.approx(
        native.restricted_log_likelihood, rel=1e-9
    )
    assert abs(fit.log_likelihood - fit.exact["restricted_log_likelihood"]) > 2
    assert "(ordinary)" in fit.summary()


def corn():
    counties = datasets.cornsoybean_means().rename(
        columns={"CountyIndex": "County", "MeanCornPixPerSeg": "CornPix"}
    )
    counties = counties.rename(columns={"MeanSoyBeansPixPerSeg": "SoyBeansPix"})
    return datasets.cornsoybean().drop(index=32), counties, counties[["County", "PopnSegments"]]


def test_means_by_name_not_by_position():
    units, means, sizes = corn()
    formula = "CornHec ~ CornPix + SoyBeansPix"
    fit = sae.eblupBHF(units, formula, "County", means, sizes)
    swapped = means[["County", "SoyBeansPix", "CornPix"]]
    np.testing.assert_array_equal(
        sae.eblupBHF(units, formula, "County", swapped, sizes).estimate, fit.estimate
    )
    raw = sae.eblupBHF(units, formula, "County", swapped, sizes, mode="raw")
    assert np.abs(raw.estimate - fit.estimate).min() > 1  # silently
    with pytest.raises(InputError) as caught:
        sae.eblupBHF(units, formula, "County", swapped.drop(columns="CornPix"), sizes)
    assert caught.value.code == "missing_column"


def test_a_collinear_covariate_is_refused_before_lme4_drops_it():
    units, means, sizes = corn()
    units = units.assign(twice=2.0 * units["CornPix"])
    means = means.assign(twice=2.0 * means["CornPix"])
    formula = "CornHec ~ CornPix + twice + SoyBeansPix"
    columns = means[["County", "CornPix", "twice", "SoyBeansPix"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        raw = sae.eblupBHF(units, formula, "County", columns, sizes, mode="raw")
    right = sae.eblupBHF(units, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes)
    assert np.abs(raw.estimate - right.estimate).max() > 10  # the coefficients are recycled
    with pytest.raises(InputError) as caught:
        sae.eblupBHF(units, formula, "County", means, sizes)
    assert caught.value.code == "collinear_covariates"


def test_a_selected_domain_without_units_is_synthetic():
    units, means, sizes = corn()
    units = units[units["County"] != 4]
    with pytest.warns(EngineWarning, match="zero sample size") as caught:
        fit = sae.eblupBHF(
            units, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes, selectdom=[4, 12, 1]
        )
    assert [warning.filename for warning in caught] == [__file__]  # the caller's own line
    assert list(fit.domain_status) == ["out_of_sample", "ok", "ok"]
    beta = fit.coefficients["estimate"].to_numpy()
    x = means.set_index("County").loc[4, ["CornPix", "SoyBeansPix"]].to_numpy(dtype=float)
    assert fit.estimate[0] == pytest.approx(beta[0] + x @ beta[1:], rel=1e-12)


# --- keys ----------------------------------------------------------------------------------------


def test_a_permuted_table_beside_an_unlabelled_matrix():
    table, w = correlated(30, 0.7, seed=5), ring(30)
    mixed = np.random.default_rng(1).permutation(30)
    right = sae.eblupSFH(table, "y ~ x", "d", w)
    raw = sae.eblupSFH(table.iloc[mixed], "y ~ x", "d", w.to_numpy(), mode="raw")
    assert abs(raw.spatial_correlation - right.spatial_correlation) > 0.2  # silently
    fit = sae.eblupSFH(table.iloc[mixed], "y ~ x", "d", w)
    np.testing.assert_allclose(fit.estimate, right.estimate[mixed], rtol=1e-8)
    with pytest.raises(InputError) as caught:
        sae.eblupSFH(table.iloc[mixed], "y ~ x", "d", w.to_numpy())
    assert caught.value.code == "unlabelled_proximity"


def test_domains_without_an_estimate_are_refused_with_who_can(spacetime):
    table = correlated(20, 0.0, seed=2)
    table.loc[4, "y"] = np.nan
    with pytest.raises(EngineError, match="NA values"):
        sae.mseFH(table, "y ~ x", "d", mode="raw")
    with pytest.raises(InputError) as caught:
        sae.mseFH(table, "y ~ x", "d")
    assert caught.value.code == "out_of_sample"
    assert "native" in caught.value.hint and "emdi" in caught.value.hint


def test_a_negative_variance_gives_a_negative_mse_as_it_is():
    table = correlated(20, 0.0, seed=2)
    table.loc[4, "d"] = -0.001
    assert (sae.mseFH(table, "y ~ x", "d", mode="raw").mse < 0).any()
    with pytest.raises(InputError) as caught:
        sae.mseFH(table, "y ~ x", "d")
    assert caught.value.code == "negative_variance"


def test_one_post_stratum_is_refused_where_sae_returns_na():
    table = units().assign(g="u")
    sizes = pd.DataFrame({"domain": ["a", "b", "c"], "u": [70.0, 100.0, 10.0]})
    raw = sae.pssynt(table, "y", "w", "g", sizes, mode="raw")
    assert np.isnan(raw.estimate).all()
    with pytest.raises(InputError) as caught:
        sae.pssynt(table, "y", "w", "g", sizes)
    assert caught.value.code == "one_post_stratum" and caught.value.field == "domsizebyps"
