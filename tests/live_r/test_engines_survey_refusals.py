"""What R's survey passes over or stops at: refused, or named, before it is asked."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines import survey
from pybridge.errors import EngineError, InputError
from tests.live_r.survey_designs import DESIGNS, TOTALS, api_tables, designs


pytestmark = pytest.mark.r("survey")


@pytest.fixture(scope="module")
def tables():
    return api_tables()


@pytest.fixture(scope="module", params=["raw", "guarded"])
def known(request, tables):
    return designs(tables, request.param)


def test_what_r_passes_over_is_refused(known):
    d = known
    cases = [
        (survey.svyratio, ("~api00", "~api99", d["clus1"]), {"separate": True}, "not_available"),
        (
            survey.svyratio,
            ("~api00", "~api99", d["strat"]),
            {"separate": True, "na_rm": True},
            "not_available",
        ),
        (survey.svymean, ("~api00", d["strat"]), {"deff": "with"}, "unknown_option"),
        (survey.svyby, ("~api00", "~stype", d["strat"]), {"vartype": "sd"}, "unknown_option"),
        (survey.svyby, ("~api00", "~stype", d["strat"]), {"vartype": ()}, "unknown_option"),
        (survey.svyby, ("~api00", "~stype", d["strat"]), {"vartype": 3}, "unknown_option"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"subset": "~ ell"}, "bad_formula"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"subset": "system('a')"}, "unknown_function"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"subset": "nobody > 1"}, "missing_column"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"variance": "mu"}, "not_available"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"start": [np.nan, 1]}, "missing_values"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"maxit": 0}, "bad_count"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"contrasts": {}}, "not_a_mapping"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"contrasts": {"a": "b"}}, "unknown_option"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"weights": 2.0}, "bad_formula"),
        (survey.svyglm, ("api00 ~ ell", d["strat"]), {"na_action": "skip"}, "unknown_option"),
    ]
    for call, given, words, code in cases:
        with pytest.raises(InputError) as caught:
            call(*given, **words)
        assert caught.value.code == code, (call.__name__, words)


def test_calibrations_that_r_does_not_make_are_refused(tables):
    design = designs(tables, "guarded")["clus1"]
    cases = [
        ({"calfun": "logit"}, "missing_argument"),
        ({"calfun": "sinh"}, "missing_argument"),
        ({"trim": (0.9, 1.1)}, "not_available"),
        ({"calfun": "raking", "trim": (2, 1)}, "bad_interval"),
        ({"bounds": (1, 2, 3)}, "bad_interval"),
        ({"bounds": 3}, "bad_interval"),
        ({"bounds": (np.ones(3), np.ones(3))}, "bad_interval"),
        ({"epsilon": 0}, "bad_tolerance"),
        ({"epsilon": {"api99": 1e-3}}, "unknown_total"),
        ({"variance": [1.0, 2.0, 3.0]}, "wrong_length"),
        ({"aggregate_stage": 2}, "bad_count"),
        ({"stage": 2}, "bad_count"),
        ({"sparse": "no"}, "not_a_bool"),
    ]
    for words, code in cases:
        with pytest.raises(InputError) as caught:
            survey.calibrate(design, "~api99", TOTALS, **words)
        assert caught.value.code == code, words


def test_influence_of_a_regression_stops_r_where_it_does(known, plain_r):
    code = DESIGNS + "x <- try(svyglm(api00 ~ ell, strat, influence = TRUE), silent = TRUE)\n"
    stops = plain_r(code + 'show("stops", inherits(x, "try-error"))')["stops"] == [1.0]
    if stops:  # survey 4.1-1 compares where it should assign
        with pytest.raises(EngineError, match="estfun"):
            survey.svyglm("api00 ~ ell", known["strat"], influence=True)
    else:
        fit = survey.svyglm("api00 ~ ell", known["strat"], influence=True)
        assert fit.influence.shape == (200, 2)


def test_collinear_terms_that_r_leaves_out_are_named(tables):
    table = tables["apistrat"].assign(twice=lambda t: 2 * t["ell"]).rename(columns={"twice": "둘"})
    design = survey.svydesign(1, table, strata="stype", weights="pw")
    fit = survey.svyglm("api00 ~ ell + `둘`", design)
    assert list(fit.names) == ["(Intercept)", "ell"] and fit.covariance.shape == (2, 2)
    assert any("collinear" in line and "둘" in line for line in fit.conditions)
