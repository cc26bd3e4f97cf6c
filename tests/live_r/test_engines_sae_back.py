"""Records of sae: back to R as objects and scripts, labels of any kind, frozen, the same again."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge import datasets
from pybridge.engines import sae
from pybridge.engines._r_formula import FUNCTIONS
from pybridge.errors import EngineError, EngineWarning, InputError
from pybridge.r import call_many
from tests.live_r.sae_rings import area, ring
from validation.cases.fay_herriot import load


pytestmark = pytest.mark.r("sae")


ODD = ["가 나", 'a "b"', "c\\d", "NA", "007", "if", "🌱", "line\nbreak", "x'y", "é", "", "plain"]


def units():
    table = datasets.cornsoybean().drop(index=32)
    means = datasets.cornsoybean_means().iloc[:, [0, 4, 5]]
    means.columns = ["County", "CornPix", "SoyBeansPix"]
    sizes = datasets.cornsoybean_means().iloc[:, [0, 3]].set_axis(["County", "N"], axis=1)
    return table, means, sizes


@pytest.fixture(scope="module")
def spacetime():
    table = datasets.spacetime()
    ids = table["Area"].unique()
    w = pd.DataFrame(datasets.spacetime_proximity(), index=ids, columns=ids)
    return table.sample(frac=1, random_state=1), w


@pytest.fixture(scope="module")
def records(spacetime):
    """One record of each kind, and the units where it has any."""
    table, w = spacetime
    corn, means, sizes = units()
    kept = area()
    estimates = sae.direct(corn, "CornHec", "County", domsize=sizes)
    return {
        "mseFH": (sae.mseFH(kept, "y ~ x", "d", domain="name"), None),
        "fh": (pb.fay_herriot("y ~ x", kept, variance="d", domain="name"), None),
        "pbmseSFH": (
            sae.pbmseSFH(kept, "y ~ x", "d", ring(kept["name"]), B=2, domain="name", seed=5),
            None,
        ),
        "eblupSTFH": (
            sae.eblupSTFH(table, "Y ~ X1 + X2", "Var", w, domain="Area", time="Time"),
            None,
        ),
        "pbmseBHF": (
            sae.pbmseBHF(corn, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes, B=2),
            corn,
        ),
        "direct": (estimates, corn),
    }


def test_objects_of_r_are_read_printed_and_are_the_same_numbers(records, plain_r, tmp_path):
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    raw = sae.mseFH(milk, "yi ~ as.factor(MajorArea)", "var", mode="raw")
    code = (
        f'x <- readRDS("{raw.to_rds(tmp_path / "with a space.rds")}")\n'
        "data(milk, package = 'sae'); milk$var <- milk$SD^2\n"
        "y <- sae::mseFH(yi ~ as.factor(MajorArea), var, data = milk)\n"
        'show("same", identical(x$mse, y$mse) && identical(x$est$fit, y$est$fit))\n'
    )
    code += "quiet <- function(x) invisible(capture.output(print(x), str(x), summary(x)))\n"
    places = {
        "fh": "$mse",
        "mseFH": "$mse",
        "pbmseSFH": "$mse$msebc",
        "eblupSTFH": "$eblup",
        "pbmseBHF": "$mse$mse",
        "direct": "$Direct",
    }
    for name, (fit, data) in records.items():
        path = tmp_path / f"{name}.rds"
        found = fit.to_rds(path) if data is None else fit.to_rds(path, data)
        assert found == path.resolve() and path.stat().st_size > 0
        code += f'x <- readRDS("{path}"); quiet(x); show("{name}", x{places[name]})\n'
        if name == "eblupSTFH":
            code += 'show("rows", paste(attr(x, "rows")$domain, attr(x, "rows")$time))\n'
    plain = plain_r(code)
    assert plain["same"] == [1.0]  # raw: the object of the plain call, nothing added
    ours = {
        "fh": records["fh"][0].fit.mse,
        "mseFH": records["mseFH"][0].mse,
        "pbmseSFH": records["pbmseSFH"][0].mse_corrected,
        "eblupSTFH": records["eblupSTFH"][0].value["eblup"],
        "pbmseBHF": records["pbmseBHF"][0].mse,
        "direct": records["direct"][0].value["Direct"],
    }
    for name, values in ours.items():
        np.testing.assert_array_equal(values, plain[name])
    fit = records["eblupSTFH"][0]
    pairs = zip(fit.domains[fit.order], fit.times[fit.order])
    assert plain["rows"] == [f"{domain} {time}" for domain, time in pairs]


def test_units_are_not_kept_and_must_be_the_same_again(records, tmp_path):
    fit, corn = records["pbmseBHF"]
    assert "data" not in fit.inputs and len(pickle.dumps(fit)) < 20_000
    with pytest.raises(InputError) as caught:
        fit.to_rds(tmp_path / "x.rds")
    assert caught.value.code == "missing_argument"
    with pytest.raises(InputError) as caught:
        fit.r_script(data=corn.iloc[::-1])
    assert caught.value.code == "other_units"
    assert "pbmseBHF" in fit.r_script(data=corn.assign(another=1))


def test_a_record_of_a_failure_says_so_again(tmp_path):
    kept = area()
    fit = sae.eblupSFH(kept, "y ~ x", "d", ring(kept["name"]), MAXITER=1, domain="name")
    assert fit.status == "not_converged"
    with pytest.raises(EngineError):
        fit.to_rds(tmp_path / "x.rds")


def test_labels_of_any_kind_come_back_and_reach_r_in_any_locale(tmp_path):
    kept = area(ODD)
    w = ring(ODD).sample(frac=1, random_state=1)
    fit = sae.mseSFH(kept, "y ~ x", "d", w, domain="name")
    assert list(fit.to_frame()["domain"]) == ODD
    script = tmp_path / "script.R"
    fit.r_script(script)
    assert script.read_text(encoding="utf-8").isascii()
    code = (
        f'source("{script}"); cat("\\nBYTES", nchar(result$domain, "bytes"), sum(fit$mse), "\\n")'
    )
    done = subprocess.run(
        ["Rscript", "-e", code],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        timeout=120,
        check=True,
    )
    (line,) = [x for x in done.stdout.decode("utf-8", "replace").splitlines() if "BYTES" in x]
    words = line.split()[1:]
    assert [int(n) for n in words[:-1]] == [len(label.encode()) for label in ODD]
    assert float(words[-1]) == pytest.approx(fit.mse.sum(), rel=1e-6)


def test_labels_of_units_come_back():
    corn, means, sizes = units()
    names = dict(zip(range(1, 13), ODD))
    corn, means, sizes = (t.assign(County=t["County"].map(names)) for t in (corn, means, sizes))
    direct = sae.direct(corn, "CornHec", "County", domsize=sizes.iloc[::-1])
    assert list(direct.domains) == ODD[::-1]
    assert list(direct.domain_status[::-1][:3]) == ["single_unit"] * 3
    formula = "CornHec ~ CornPix + SoyBeansPix"
    with pytest.raises(InputError, match="without text"):
        sae.eblupBHF(corn, formula, "County", means, sizes)
    corn, means, sizes = (t.replace({"County": {"": "e"}}) for t in (corn, means, sizes))
    fit = sae.eblupBHF(corn, formula, "County", means, sizes)
    assert list(fit.domains) == [label or "e" for label in ODD]
    plain = sae.eblupBHF(*units_call())
    np.testing.assert_allclose(fit.estimate, plain.estimate, rtol=1e-8)


def units_call():
    corn, means, sizes = units()
    return corn, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes


def test_records_are_frozen_equal_and_picklable(records):
    for name, (fit, _) in records.items():
        if name == "fh":
            continue
        again = pickle.loads(pickle.dumps(fit))
        assert again == fit and type(again) is type(fit)
        with pytest.raises(AttributeError):
            fit.status = "failed"
        with pytest.raises(ValueError, match="read-only"):
            fit.estimate[0] = 0.0
        json.dumps(fit.to_dict())
        assert fit.request.function in fit.summary()
        frame = fit.to_frame()
        assert {"domain", "estimate", "level", "status"} <= set(frame.columns)
        assert fit.provenance.packages["sae"] == "1.3" and fit.provenance.r


def test_a_function_leaves_the_random_stream_of_r_and_numpy_alone():
    before = np.random.get_state()[1].copy()
    kept = area()
    words = {"domain": "name", "B": 2, "seed": 5}
    first = sae.pbmseSFH(kept, "y ~ x", "d", ring(kept["name"]), **words)
    sae.eblupFH(kept, "y ~ x", "d", B=3, seed=9)
    second = sae.pbmseSFH(kept, "y ~ x", "d", ring(kept["name"]), **words)
    np.testing.assert_array_equal(first.mse, second.mse)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_r_refuses_what_it_cannot_parse_before_sae_is_called():
    kept = area()
    for formula in ("y ~ x +", "y ~ (x", "y ~ x ~ x * ", "y ~ 3 x"):
        with pytest.raises(InputError) as caught:
            sae.mseFH(kept, formula, "d", mode="raw")
        assert caught.value.code == "bad_formula" and caught.value.field == "formula"
    with pytest.raises(InputError, match="contrasts"):
        sae.mseFH(kept.assign(g="one"), "y ~ g", "d")


@pytest.mark.parametrize(
    "text",
    [
        "y ~ system('true')",
        "y ~ base::system('true')",
        "y ~ x; system('true')",
        "{system('true'); y ~ x}",
        "y ~ (function() x)()",
        "y ~ x$y",
        "y ~ x[[1]]",
        "y ~ T <- x",
        "y ~ z",
        "system('true')",
    ],
)
def test_r_looks_through_a_formula_before_it_is_anything_else(text):
    # The same check once more on R's side, on what R parsed, should text ever get that far.
    inputs = {"formula": text, "functions": list(FUNCTIONS), "data": {"y": [1.0], "x": [1.0]}}
    (reply,) = call_many("sae_design", [inputs], packages=("sae",))
    assert reply.error is not None and "shared_refusal" in reply.error["class"]


def test_factors_and_functions_of_r():
    kept = area().assign(g=pd.Categorical(list("uvwuvwuvwuvw"), categories=list("wvu")))
    fit = sae.mseFH(kept, "y ~ g + log1p(I(x^2)) + poly(x, 2)", "d")
    terms = ["(Intercept)", "gv", "gu", "log1p(I(x^2))", "poly(x, 2)1", "poly(x, 2)2"]
    assert list(fit.coefficients["term"]) == terms
    other = sae.mseFH(kept.assign(g=kept["g"].astype(str)), 'y ~ relevel(factor(g), "w")', "d")
    assert list(other.coefficients["term"])[1:] == [
        'relevel(factor(g), "w")u',
        'relevel(factor(g), "w")v',
    ]


@pytest.mark.parametrize("function", ["eblupFH", "mseFH"])
def test_the_object_of_a_solution_at_0_holds_it_as_sae_would(function, plain_r, tmp_path):
    case = load("at_zero")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        fit = getattr(sae, function)(case.frame(), case.formula, "variance", method="FH")
    # The same form and names as an object of sae's own.
    usual = getattr(sae, function)(case.frame(), case.formula, "variance", method="ML")
    fit.r_script(tmp_path / "script.R")
    found = plain_r(
        f"""
x <- readRDS("{fit.to_rds(tmp_path / "fit.rds")}")
y <- readRDS("{usual.to_rds(tmp_path / "usual.rds")}")
source("{tmp_path / "script.R"}")
attr(x, "rows") <- attr(y, "rows") <- NULL
show("script", identical(x, fit))
est <- if (is.null(x$est)) x else x$est
show("eblup", est$eblup); show("beta", est$fit$estcoef$beta); show("refvar", est$fit$refvar)
show("goodness", est$fit$goodness); show("terms", rownames(est$fit$estcoef))
if (!is.null(x$mse)) show("mse", x$mse)
other <- if (is.null(y$est)) y else y$est
show("form", identical(attributes(est$eblup), attributes(other$eblup)))
show("form", identical(dimnames(est$fit$estcoef), dimnames(other$fit$estcoef)))
show("form", identical(names(est$fit$goodness), names(other$fit$goodness)))
"""
    )
    assert fit.status == "boundary" and found["script"] == [1.0] and found["form"] == [1.0] * 3
    np.testing.assert_array_equal(found["eblup"], fit.estimate)
    np.testing.assert_array_equal(found["beta"], fit.coefficients["estimate"])
    np.testing.assert_array_equal(found["goodness"], list(fit.criteria.values()))
    prefix = "X" if function == "mseFH" else ""
    assert found["refvar"] == [0.0]
    assert found["terms"] == [prefix + term for term in fit.coefficients["term"]]
    if function == "mseFH":
        np.testing.assert_array_equal(found["mse"], fit.mse)


@pytest.mark.parametrize("engine", ["sae", "native"])
def test_so_does_that_of_fay_herriot(engine, plain_r, tmp_path):
    case = load("at_zero")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        words = {"variance": "variance", "method": "FH", "engine": engine}
        fit = pb.fay_herriot(case.formula, case.frame(), **words)
        path = fit.to_rds(tmp_path / "fit.rds")
    fit.r_script(tmp_path / "script.R")
    found = plain_r(
        f"""
x <- readRDS("{path}"); show("object", x$est$eblup); show("object", x$mse)
source("{tmp_path / "script.R"}"); show("script", result$estimate); show("script", result$mse)
show("columns", attr(x, "columns")); show("terms", rownames(x$est$fit$estcoef))
"""
    )
    ours = np.concatenate([fit.fit.estimate, fit.fit.mse])
    assert fit.model_variance == 0 and np.isfinite(ours).all()
    np.testing.assert_allclose(found["object"], ours, rtol=1e-9)
    np.testing.assert_allclose(found["script"], ours, rtol=1e-9)
    assert found["columns"] == list(fit.area.covariate_names)
    assert found["terms"] == [f"Xx{k + 1}" for k in range(len(found["columns"]))]


def test_made_up_names_of_columns_are_explained(plain_r, tmp_path):
    kept = area().rename(columns={"y": "if", "x": "소득 1", "d": "var"})
    corn, means, sizes = units()
    new = {"CornHec": "옥 수", "CornPix": "corn pix", "County": "군"}
    corn, means, sizes = (table.rename(columns=new) for table in (corn, means, sizes))
    formula = "`옥 수` ~ `corn pix` + SoyBeansPix"
    fits = {
        "mse": (sae.mseFH(kept, "`if` ~ `소득 1`", "var"), None, ["if", "소득 1"]),
        "spatial": (
            sae.mseSFH(kept, "`if` ~ `소득 1`", "var", ring(range(12))),
            None,
            ["if", "소득 1"],
        ),
        "bhf": (
            sae.eblupBHF(corn, formula, "군", means, sizes),
            corn,
            ["옥 수", "corn pix", "군"],
        ),
        "raw": (sae.direct(corn, "옥 수", "군", domsize=sizes, mode="raw"), corn, ["옥 수", "군"]),
        "plain": (sae.mseFH(area(), "y ~ x", "d"), None, []),
    }
    code = ""
    for name, (fit, data, _) in fits.items():
        words = {} if data is None else {"data": data}
        path = fit.to_rds(tmp_path / f"{name}.rds", **words)
        assert fit.r_script(tmp_path / f"{name}.R", **words).isascii()
        code += f"""
columns <- NULL; source("{tmp_path / name}.R"); x <- readRDS("{path}")
show("same", identical(attr(x, "columns"), columns))
show("{name}", if (is.null(columns)) "none" else columns)
if (!is.null(columns)) show("known", all(names(columns) %in% names(data)))
"""
    found = plain_r(code)
    assert found["same"] == [1.0] * 5 and found["known"] == [1.0] * 4
    for name, (_, _, columns) in fits.items():
        assert found[name] == (columns or ["none"])
