"""emdi's traps with keys, matrices and the order of rows, and in bootstraps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import emdi
from pybridge.errors import InputError
from pybridge.r import call_many
from tests.live_r.emdi_tables import MEAN, both, small


pytestmark = pytest.mark.r("emdi", "sae")


@pytest.fixture(scope="module")
def austria():
    """Districts in the order of emdi's data, which is that of its proximity matrix."""
    whole = datasets.eusilc("population_aggregates")
    return whole.merge(datasets.eusilc("sample_aggregates"), on="Domain")


@pytest.fixture(scope="module")
def neighbours(austria):
    labels = austria["Domain"]
    return pd.DataFrame(datasets.eusilc_proximity(), index=labels, columns=labels)


def errors_of(table):
    errors = np.zeros((2, 2, len(table)))
    errors[1, 1] = table["Var_Cash"]
    return errors


def test_errors_of_covariates_are_matched_to_their_domains(austria):
    table = austria.copy()
    table.loc[[0, 1], ["Mean", "Var_Mean"]] = np.nan
    last = pd.concat([table.iloc[2:], table.iloc[:2]])
    words = {"method": "me", "vardir": "Var_Mean", "domains": "Domain", "fixed": "Mean ~ Cash"}
    raw = emdi.fh(combined_data=table, Ci=errors_of(table), mode="raw", **words)
    right = emdi.fh(combined_data=last, Ci=errors_of(last), mode="raw", **words)
    assert abs(raw.model_variance / right.model_variance - 1) > 1e-4
    first = emdi.fh(combined_data=table, Ci=errors_of(table), **words)
    again = emdi.fh(combined_data=last, Ci=errors_of(last), **words)
    assert first.model_variance == pytest.approx(again.model_variance, rel=1e-12)
    np.testing.assert_allclose(first.estimate[2:], again.estimate[:-2], rtol=1e-12)
    assert list(first.domains) == list(table["Domain"])
    by_label = {
        label: matrix for label, matrix in zip(table["Domain"], np.moveaxis(errors_of(table), 2, 0))
    }
    keyed = emdi.fh(combined_data=table, Ci=dict(reversed(by_label.items())), **words)
    np.testing.assert_array_equal(keyed.estimate, first.estimate)


def test_the_measurement_error_model_depends_on_the_units_of_covariates(austria):
    words = {"method": "me", "vardir": "Var_Mean", "domains": "Domain", "fixed": "Mean ~ Cash"}
    thousands = austria.assign(
        Cash=austria["Cash"] / 4096, Var_Cash=austria["Var_Cash"] / 4096**2
    )
    found = {}
    for mode in ("raw", "guarded"):
        for name, table in (("units", austria), ("thousands", thousands)):
            found[mode, name] = emdi.fh(
                combined_data=table, Ci=errors_of(table), mode=mode, **words
            )
    raw, other = found["raw", "units"], found["raw", "thousands"]
    assert raw.model_variance == pytest.approx(42938143.2121, rel=1e-10)
    assert abs(raw.coefficients[0]) < 0.01 and other.coefficients[0] > 2000
    assert abs(raw.model_variance / other.model_variance - 1) > 0.01
    for name in ("units", "thousands"):
        fit = found["guarded", name]
        assert fit.model_variance == pytest.approx(42234540.1029528, rel=1e-8)
        assert fit.exact["model_variance"] == pytest.approx(42234540.1029528, rel=1e-12)
        np.testing.assert_allclose(
            fit.coefficients,
            found["guarded", "units"].coefficients * [1, 4096 ** (name != "units")],
            rtol=1e-6,
        )


def test_rows_sorted_by_name_no_longer_fit_the_matrix(austria, neighbours, plain_r):
    code = """
suppressMessages(library(emdi))
data(eusilcA_smpAgg); data(eusilcA_popAgg); data(eusilcA_prox)
invisible(Sys.setlocale("LC_COLLATE", "C"))
data <- combine_data(eusilcA_popAgg, "Domain", eusilcA_smpAgg, "Domain")
fit <- fh(Mean ~ cash + self_empl, "Var_Mean", data, "Domain", correlation = "spatial",
  corMatrix = eusilcA_prox)
show("rho", fit$model$variance$correlation)
"""
    words = {"method": "reml", "correlation": "spatial"}
    mixed = austria.sort_values("Domain").reset_index(drop=True)  # by code point, as in C
    assert (mixed["Domain"] != austria["Domain"]).sum() == 24
    wrong = emdi.fh(*MEAN, mixed, "Domain", corMatrix=neighbours.to_numpy(), mode="raw", **words)
    assert plain_r(code)["rho"][0] == pytest.approx(wrong.spatial_correlation, rel=1e-9)
    assert wrong.spatial_correlation == pytest.approx(-0.2506751, rel=1e-6)
    right = emdi.fh(*MEAN, austria, "Domain", corMatrix=neighbours.to_numpy(), mode="raw", **words)
    assert right.spatial_correlation == pytest.approx(-0.322272733286, rel=1e-9)
    shuffled = neighbours.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    keyed = emdi.fh(*MEAN, mixed, "Domain", corMatrix=shuffled, **words)
    assert keyed.spatial_correlation == pytest.approx(-0.3222727, rel=1e-4)
    assert not hasattr(emdi, "combine_data")


def test_spatial_tests_match_labels(austria, neighbours):
    mixed = austria.sort_values("Domain")
    shuffled = neighbours.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    by_label = emdi.spatialcor_tests(mixed.set_index("Domain")["Mean"], shuffled)
    assert by_label.values[1] == pytest.approx(0.6238681, rel=1e-6)
    wrong = emdi.spatialcor_tests(mixed["Mean"], neighbours.to_numpy(), mode="raw")
    assert wrong.values[1] > 0.8
    with pytest.raises(InputError, match="labels"):
        emdi.spatialcor_tests(mixed["Mean"].to_numpy(), neighbours)


def test_a_matrix_without_labels_is_refused(austria, neighbours):
    words = {"method": "reml", "correlation": "spatial"}
    with pytest.raises(InputError) as caught:
        emdi.fh(*MEAN, austria, "Domain", corMatrix=neighbours.to_numpy(), **words)
    assert caught.value.code == "unlabelled_proximity" and "raw" in caught.value.hint


def test_domains_without_estimate_are_cut_from_the_matrix(austria, neighbours):
    table = austria.copy()
    table.loc[[3, 50], ["Mean", "Var_Mean"]] = np.nan
    fit = emdi.fh(*MEAN, table, "Domain", correlation="spatial", corMatrix=neighbours, MSE=True)
    kept = [k for k in range(94) if k not in (3, 50)]
    cut = neighbours.iloc[kept, kept]
    cut = cut.div(cut.sum(axis=1), axis=0)
    alone = emdi.fh(*MEAN, table.iloc[kept], "Domain", correlation="spatial", corMatrix=cut)
    assert fit.spatial_correlation == pytest.approx(alone.spatial_correlation, rel=1e-9)
    assert np.isfinite(fit.mse).all() and (fit.mse[[3, 50]] > fit.model_variance).all()
    said = " ".join(fit.conditions)
    assert "cut from W" in said and "scaled to add up to 1" in said


def test_the_order_of_rows_matters_little(austria):
    mixed = austria.sort_values("Domain")
    for mode in ("raw", "guarded"):
        fits = [emdi.fh(*MEAN, t, "Domain", method="ml", mode=mode) for t in (austria, mixed)]
        assert fits[0].model_variance == pytest.approx(fits[1].model_variance, rel=1e-5)


# ------------------------------------------------------------------------------------- bootstraps


def test_replicates_that_fail_are_counted(austria, neighbours):
    words = {"correlation": "spatial", "MSE": True, "mse_type": "spatialparboot", "B": 3}
    part = austria.iloc[:20]
    matrix = neighbours.iloc[:20, :20]
    good = emdi.fh(*MEAN, part, "Domain", corMatrix=matrix, **words)
    assert good.replicates[1] == 3
    short = emdi.fh(*MEAN, part, "Domain", corMatrix=matrix, maxit=2, **words)
    assert short.engine_status == short.status == "not_converged"
    assert short.replicates[0] < 3
    assert any("dropped" in line for line in short.conditions)


def test_the_random_stream_of_r_is_put_back(austria):
    def draws():
        return call_many("selftest_random", [{"seed": None}])[0].value["draws"]

    call_many("selftest_random", [{"seed": 5}])
    before = draws()
    emdi.fh(*MEAN, austria.iloc[:20], "Domain", B=(2, 3), mode="raw")
    np.testing.assert_array_equal(draws(), before)


def test_seeds_give_the_same_and_other_numbers():
    words = {"transformation": "log", "backtransformation": "bc_crude"}
    table = small(seed=2)
    table["y"] = np.exp(table["y"] / 4)
    table["v"] = (table["y"] * 0.2) ** 2
    table["n"] = 50.0
    fits = [
        emdi.fh("y ~ x", "v", table, "d", B=(2, 5), seed=seed).criteria["AICb1"]
        for seed in (123, 123, 7)
    ]
    assert fits[0] == fits[1] != fits[2]
    assert emdi.fh("y ~ x", "v", table, "d", **words).provenance.seed == 123


def test_the_tuning_constant_is_heard(austria):
    part = austria.iloc[:30]
    found = [emdi.fh(*MEAN, part, "Domain", method="reblup", k=k).model_variance for k in (1, 3)]
    assert abs(found[0] / found[1] - 1) > 0.01


def test_robust_fits_depend_on_the_units(austria):
    large = austria.assign(Mean=austria["Mean"] * 1024, Var_Mean=austria["Var_Mean"] * 1024.0**2)
    words = {"vardir": "Var_Mean", "domains": "Domain", "fixed": MEAN[0], "method": "reblup"}
    raw = emdi.fh(combined_data=large, mode="raw", **words).model_variance / 1024**2
    guarded = emdi.fh(combined_data=large, **words).model_variance / 1024**2
    same = emdi.fh(combined_data=austria, **words).model_variance
    assert raw < 1 and guarded == pytest.approx(same, rel=1e-12)
    assert guarded == pytest.approx(1321242, rel=1e-3)  # with tol = 1e-12


@pytest.mark.parametrize("method", ["reblup", "me"])
def test_the_limit_of_iterations_is_passed_over_in_silence(austria, method):
    words = {"fixed": "Mean ~ Cash", "vardir": "Var_Mean", "domains": "Domain", "maxit": 1}
    more = {"Ci": errors_of(austria)} if method == "me" else {}
    raw, guarded = both(combined_data=austria, method=method, **words, **more)
    assert raw.status == "converged" and raw.engine_status == "no flag"
    assert guarded.status == "not_converged"
    assert abs(raw.model_variance / guarded.exact["model_variance"] - 1) > 0.05
    assert any("emdi stopped at" in line or "emdi ended at" in line for line in guarded.conditions)
