"""``crosscheck()`` of fits by sae and emdi under their own names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge import datasets
from pybridge.engines import emdi, sae
from pybridge.errors import InputError

pytestmark = pytest.mark.r("sae", "emdi", "metafor")

FORMULA = "yi ~ as.factor(MajorArea)"


@pytest.fixture(scope="module")
def milk():
    table = datasets.milk()
    return table.assign(d=table["SD"] ** 2)[::-1]


def numbers(found):
    return {answer.producer: dict(answer.numbers) for answer in found.answers}


@pytest.mark.parametrize("function", ["eblupFH", "mseFH"])
def test_sae_beside_all_others(milk, function):
    fit = getattr(sae, function)(milk, FORMULA, "d", domain="SmallArea")
    found = fit.crosscheck()
    assert found.agrees, found.sentence
    own = numbers(found)["sae guarded"]["model_variance"]
    assert own == pytest.approx(fit.model_variance, rel=1e-9)
    expected = pb.fay_herriot(
        "yi ~ C(MajorArea)", milk, variance="d", domain="SmallArea", engine="sae"
    ).crosscheck()
    assert {*numbers(found)} == {*numbers(expected)} >= {"native", "sae raw", "emdi raw", "metafor"}
    for name, values in numbers(expected).items():
        assert numbers(found)[name]["model_variance"] == pytest.approx(
            values["model_variance"], rel=1e-6
        )


def test_a_fit_that_stopped_short_is_named(milk):
    fit = sae.eblupFH(milk, FORMULA, "d", PRECISION=0.5, mode="raw", domain="SmallArea")
    found = fit.crosscheck()
    assert not found.agrees and "sae raw" in found.sentence
    assert numbers(found)["sae raw"]["model_variance"] == pytest.approx(fit.model_variance)


@pytest.mark.parametrize("method", ["reml", "ml", "ampl", "amrl_yl"])
def test_emdi_beside_all_others(milk, method):
    fit = emdi.fh(FORMULA, "d", milk, "SmallArea", method=method)
    found = fit.crosscheck()
    assert found.agrees, found.sentence
    own = numbers(found)["emdi guarded"]["model_variance"]
    assert own == pytest.approx(fit.model_variance, rel=1e-9)
    assert "native" in numbers(found)


def test_emdi_with_domains_out_of_the_sample(milk):
    table = milk.assign(MajorArea=milk["MajorArea"].astype("category"))
    table.loc[table.index[:3], "yi"] = np.nan
    found = emdi.fh("yi ~ MajorArea", "d", table, "SmallArea", method="ml").crosscheck()
    assert {"native", "emdi guarded", "emdi raw"} <= {*numbers(found)}
    # emdi's own MSE of such a domain lacks a term, with ML.
    parted = found.table.to_frame().query("verdict == 'PART'")
    assert set(zip(parted["producer"], parted["quantity"])) <= {("emdi raw", "mse")}


@pytest.fixture(scope="module")
def grapes():
    table = datasets.grapes().assign(place=[f"p{k}" for k in range(274)])[:60]
    near = np.abs(np.subtract.outer(np.arange(60), np.arange(60))) == 1
    w = near / near.sum(axis=1, keepdims=True)
    return table, pd.DataFrame(w, index=table["place"], columns=table["place"])


def test_spatial_fits_beside_the_highest_likelihood(grapes):
    table, w = grapes
    formula, words = "grapehect ~ area + workdays", {"method": "ML"}
    fit = sae.eblupSFH(table, formula, "var", w, domain="place", **words)
    found = fit.crosscheck()
    assert {"exact", "sae guarded", "emdi guarded"} <= {*numbers(found)}
    own = numbers(found)["sae guarded"]
    assert own["correlation"] == pytest.approx(fit.spatial_correlation, abs=1e-6)
    again = emdi.fh(
        formula, "var", table, "place", method="ml", correlation="spatial", corMatrix=w
    ).crosscheck()
    assert numbers(again)["exact"] == pytest.approx(numbers(found)["exact"], rel=1e-6)


def test_models_that_nobody_else_has_are_refused(milk, grapes):
    log = emdi.fh(
        FORMULA,
        "d",
        milk,
        "SmallArea",
        transformation="log",
        backtransformation="bc_crude",
    )
    with pytest.raises(InputError) as error:
        log.crosscheck()
    assert error.value.code == "not_available"
