"""emdi's traps after the fit: benchmark, compare, step, and direct estimates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import emdi
from pybridge.errors import EngineWarning, InputError
from tests.live_r.emdi_tables import MEAN, small


pytestmark = pytest.mark.r("emdi", "sae")


@pytest.fixture(scope="module")
def austria():
    """Districts in the order of emdi's data, which is that of its proximity matrix."""
    whole = datasets.eusilc("population_aggregates")
    return whole.merge(datasets.eusilc("sample_aggregates"), on="Domain")


# ------------------------------------------------------------------------------- after the fit


def test_raking_needs_shares_that_add_up_to_one(austria):
    fit = emdi.fh(*MEAN, austria, "Domain", method="ml")
    share = austria.set_index("Domain")["ratio_n"]
    raw = emdi.benchmark(fit, 20140.09, 2 * share, mode="raw")
    assert abs(float(share @ raw.benchmarked) - 20140.09) > 10000
    guarded = emdi.benchmark(fit, 20140.09, (2 * share).sample(frac=1, random_state=3))
    assert guarded.achieved == pytest.approx(20140.09, rel=1e-12)
    assert any("added up to 2" in line for line in guarded.conditions)
    with pytest.raises(InputError, match="far from"):
        emdi.benchmark(fit, 20140.09 * 94, share * 94)


def test_compare_mixes_scales_and_divides_by_zero(austria):
    words = {"transformation": "log", "backtransformation": "bc_crude"}
    fit = emdi.fh(*MEAN, austria, "Domain", MSE=True, **words)
    found = emdi.compare(fit)
    mean = fit.linear - fit.random_effects
    assert found.correlation == pytest.approx(np.corrcoef(mean, np.log(austria["Mean"]))[0, 1])
    assert abs(found.correlation - found.engine_correlation) > 1e-3
    assert found.conditions
    assert found.degrees_of_freedom == 94
    table = small()
    table.loc[0, "v"] = 0.0
    known = emdi.fh("y ~ x", "v", table, "d", MSE=True)
    found = emdi.compare(known)
    assert np.isnan(found.engine_correlation) and 0 < found.correlation < 1


def test_two_fits_stand_in_r_s_order_of_numbers(plain_r):
    table = small().assign(d=np.arange(20, 0, -1) * 50)
    pair = [emdi.fh(formula, "v", table, "d", mode="raw") for formula in ("y ~ x", "y ~ 1")]
    written = ", ".join(
        f"{name} = c({', '.join(float(v).hex() for v in table[name])})" for name in ("x", "v", "y")
    )
    found = plain_r(
        f"""
        d <- data.frame(d = 20:1 * 50L, {written})
        fits <- lapply(c(y ~ x, y ~ 1), function(f) emdi::fh(f, "v", d, domains = "d"))
        both <- emdi::compare_pred(fits[[1]], fits[[2]])
        show("d", both$Domain); show("second", both[[ncol(both)]])
        """
    )
    both = emdi.compare_pred(*pair)
    assert list(both.domains) == found["d"]
    assert list(both.values[:, -1]) == found["second"]


def test_estimators_of_several_words_are_all_there():
    table = small()
    fit = emdi.fh("y ~ x", "v", table, "d", MSE=True)
    whole = emdi.estimators(fit, MSE=True)
    both = emdi.estimators(fit, ("fh", "Direct"), MSE=True)
    assert both.names == ("Direct", "Direct_MSE", "FH", "FH_MSE") == whole.names
    np.testing.assert_array_equal(both.values, whole.values)
    for wrong in ([], None, 3, "Custom", "Gini"):
        with pytest.raises(InputError) as caught:
            emdi.estimators(fit, wrong)
        assert caught.value.field == "indicator"
    of_units = emdi.direct("y", table, "d", threshold=0.5)
    assert emdi.estimators(of_units, "poverty").names == ("Head_Count", "Poverty_Gap")
    with pytest.raises(InputError):  # which it has none of
        emdi.estimators(of_units, "Custom")


def test_shares_with_a_label_twice_are_refused():
    fit = emdi.fh("y ~ x", "v", small(), "d")
    share = pd.Series(1.0, index=[*fit.domains, fit.domains[0]])
    with pytest.raises(InputError) as caught:
        emdi.benchmark(fit, 1.0, share)
    assert caught.value.code == "bad_share" and str(fit.domains[0]) in caught.value.got
    with pytest.raises(InputError):
        emdi.benchmark(fit, 1.0, np.ones(20), overwrite="no")


def test_step_has_the_criteria_of_the_fit_and_method_ml(austria):
    fit = emdi.fh(*MEAN, austria, "Domain", method="ml")
    with pytest.raises(InputError) as caught:
        emdi.step(fit, criteria="AICc")
    assert caught.value.code == "missing_criterion" and "B=(50, 50)" in caught.value.hint
    with pytest.raises(InputError) as caught:
        emdi.step(emdi.fh(*MEAN, austria, "Domain"))
    assert caught.value.got == "reml"
    same = emdi.step(fit)
    assert same.fixed == "Mean ~ cash + self_empl" and same.start == same.end
    wide = emdi.step(
        fit,
        scope={"lower": "~ 1", "upper": "~ cash + self_empl + rent"},
        direction="both",
        criteria="BIC",
        combined_data=austria,
        trace=True,
    )
    assert "rent" in wide.fixed and wide.end < wide.start and wide.path
    assert wide.fit.criteria["BIC"] == wide.end


def units(missing=()):
    table = datasets.eusilc("sample").iloc[:150].copy()
    table.loc[table.index[list(missing)], "eqIncome"] = np.nan
    return table


def test_direct_refuses_missing_outcomes():
    words = {"y": "eqIncome", "smp_domains": "district", "weights": "weight", "threshold": 1e4}
    with pytest.warns(EngineWarning, match="only quantiles"):
        raw = emdi.direct(smp_data=units([3]), mode="raw", **words)
    assert np.isnan(raw.estimate[:, 0]).any()
    with pytest.raises(InputError) as caught:
        emdi.direct(smp_data=units([3]), **words)
    assert caught.value.code == "missing_values" and "na_rm" in caught.value.expected
    found = emdi.direct(smp_data=units([3]), na_rm=True, **words)
    assert np.isfinite(found.estimate[:, 0]).all() and found.n_labelled.sum() == 149


def test_direct_with_one_unit_and_with_negative_incomes():
    table = units()
    table["eqIncome"] = table["eqIncome"].to_numpy(copy=True)
    first = table["district"].iloc[0]
    table = pd.concat([table, table.iloc[[0]].assign(district="alone")])
    table.loc[table["district"] == first, "eqIncome"] -= 25000.0
    words = {"y": "eqIncome", "smp_domains": "district", "threshold": 1e4, "var": True, "B": 3}
    with pytest.warns(EngineWarning, match="at least one bootstrap failed") as caught:
        raw = emdi.direct(smp_data=table, mode="raw", **words)
        guarded = emdi.direct(smp_data=table, **words)
    assert {warning.filename for warning in caught} == {__file__}
    assert guarded.replicates.min() < 3
    k, gini = list(raw.domains).index("alone"), raw.names.index("Gini")
    assert raw.variance[k, 0] < 1e-6
    alone = list(guarded.domains).index("alone")
    assert np.isnan(guarded.variance[alone]).all() and guarded.domain_status[alone] == "single_unit"
    wrong = raw.estimate[list(raw.domains).index(first), gini]
    assert not 0 <= wrong <= 1
    assert np.isnan(guarded.estimate[list(guarded.domains).index(first), gini])
    assert list(guarded.domains) == list(dict.fromkeys(table["district"]))


def test_direct_does_not_use_its_design():
    words = {"y": "eqIncome", "smp_domains": "district", "weights": "weight", "threshold": 1e4}
    plain = emdi.direct(smp_data=units(), var=True, B=3, **words)
    with_design = emdi.direct(smp_data=units(), var=True, B=3, design="state", **words)
    np.testing.assert_array_equal(plain.variance, with_design.variance)
    assert any("does not use it" in line for line in with_design.conditions)
