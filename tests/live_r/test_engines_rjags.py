"""JAGS under its own name: the same draws as plain R, diagnostics, a seed that is known."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.engines import rjags
from pybridge.errors import EngineError, EngineWarning, InputError
from validation.cases.taxonomy import load_taxonomy

pytestmark = pytest.mark.r("rjags", "coda")

NORMAL = (
    "model { for (i in 1:n) { y[i] ~ dnorm(mu, tau) } "
    "mu ~ dnorm(0, 1.0E-6) tau ~ dgamma(0.01, 0.01) }"
)
DATA = {"y": np.array([4.1, 5.3, 3.9, 6.0, 4.4, 5.1, 4.8, 5.9]), "n": 8}
FEW = {"n_adapt": 200, "n_burn": 300, "n_iter": 400}


def test_the_draws_are_those_of_plain_r(plain_r):
    code = f"""
    y <- c({', '.join(map(repr, DATA['y'].tolist()))})
    inits <- lapply(1:4, function(c) list(mu = 1, .RNG.name = "base::Mersenne-Twister",
      .RNG.seed = 7 + c))
    model <- rjags::jags.model(textConnection("{NORMAL}"), list(y = y, n = 8), inits,
      n.chains = 4, n.adapt = 200, quiet = TRUE)
    update(model, 300, progress.bar = "none")
    draws <- rjags::coda.samples(model, c("mu", "tau"), 800, thin = 2, progress.bar = "none")
    all <- as.matrix(draws)
    show("mean", colMeans(all)); show("sd", apply(all, 2, sd))
    show("lower", apply(all, 2, quantile, probs = 0.05))
    show("r_hat", coda::gelman.diag(draws, autoburnin = FALSE, multivariate = FALSE)$psrf[, 1])
    show("size", coda::effectiveSize(draws))
    """
    plain = plain_r("loadNamespace('coda')\n" + code)
    words = {**FEW, "n_iter": 800}
    fit = rjags.coda_samples(
        NORMAL, DATA, ["mu", "tau"], thin=2, seed=7, inits={"mu": 1}, level=0.9, **words
    )
    assert list(fit.parameters) == ["mu", "tau"] and fit.n_draws == 1600
    names = {"mean": "mean", "sd": "standard_deviation", "lower": "lower", "r_hat": "r_hat"}
    names["size"] = "effective_size"
    for theirs, ours in names.items():
        np.testing.assert_allclose(fit.table[ours], plain[theirs], rtol=1e-14, err_msg=theirs)
    np.testing.assert_array_equal(fit.table["mean"], plain["mean"])
    error = fit.table["standard_deviation"] / np.sqrt(fit.table["effective_size"])
    np.testing.assert_allclose(fit.table["monte_carlo_error"], error, rtol=1e-14)


def test_starting_values_and_generators_for_each_chain(plain_r, tmp_path):
    generators = ["base::Wichmann-Hill", "base::Super-Duper"]
    inits = [
        {"mu": 1.0, "tau": 2, ".RNG.name": generators[0], ".RNG.seed": 3},
        {"mu": 5.0, ".RNG.name": generators[1], ".RNG.seed": 4},
    ]
    code = f"""
    loadNamespace("coda")
    y <- c({', '.join(map(repr, DATA['y'].tolist()))})
    inits <- list(list(mu = 1, tau = 2, .RNG.name = "{generators[0]}", .RNG.seed = 3),
      list(mu = 5, .RNG.name = "{generators[1]}", .RNG.seed = 4))
    model <- rjags::jags.model(textConnection("{NORMAL}"), list(y = y, n = 8), inits,
      n.chains = 2, n.adapt = 0, quiet = TRUE)
    draws <- rjags::coda.samples(model, "mu", 101, thin = 3, progress.bar = "none")
    show("draws", as.matrix(draws))
    """
    words = {"n_iter": 101, "thin": 3, "n_chains": 2, "n_adapt": 0, "inits": inits}
    for mode in ("raw", "guarded"):
        fit = rjags.coda_samples(NORMAL, DATA, ["mu"], mode=mode, **words)
        kept = fit.to_rds(tmp_path / f"{mode}.rds")
        assert fit.provenance.seed is None and fit.n_draws == 66
        code += f'show("{mode}", as.matrix(readRDS("{kept}")))\n'
        code += f'local({{{fit.r_script()}\nshow("{mode}", as.matrix(draws))}})\n'
    plain = plain_r(code)
    for mode in ("raw", "guarded"):
        assert plain[mode] == 2 * plain["draws"]
    assert fit.table["mean"][0] == pytest.approx(np.mean(plain["draws"]), rel=1e-14)


def test_nodes_that_miss_values_are_left_out_or_kept():
    model = NORMAL.replace("mu ~", "z[2] <- mu z[3] <- 2 * mu mu ~")
    names = {}
    for kept in (True, False):
        fit = rjags.coda_samples(model, DATA, ["z", "mu"], seed=1, na_rm=kept, **FEW)
        names[kept] = list(fit.parameters)
    assert names[True] == ["mu", "z[2]", "z[3]"] and names[False] == ["mu", "z[1]", "z[2]", "z[3]"]
    np.testing.assert_array_equal(np.isnan(fit.table["mean"]), [False, True, False, False])
    assert fit.status == "converged" and fit.worst_r_hat < 1.05


def test_odd_starting_values_are_refused():
    words = {"seed": None, **FEW}
    for inits, code in (
        ([{"mu": 1}], "wrong_length"),
        ({"mu": 1, ".RNG.name": 3}, "bad_name"),
        ({"mu": "one"}, "not_numeric"),
        ("mu", "wrong_length"),
        ([1, 2, 3, 4], "not_a_mapping"),
    ):
        with pytest.raises(InputError) as caught:
            rjags.coda_samples(NORMAL, DATA, ["mu"], inits=inits, **words)
        assert caught.value.code == code and caught.value.field == "inits"
    with pytest.raises(InputError) as caught:
        own = {".RNG.name": "base::Wichmann-Hill", ".RNG.seed": 1}
        rjags.coda_samples(NORMAL, DATA, ["mu"], inits=own, **{**words, "seed": 2})
    assert caught.value.code == "both_given"


def test_the_script_and_the_object_have_the_same_draws(plain_r, tmp_path):
    case = load_taxonomy("groups34")
    fits = {
        "normal": rjags.coda_samples(NORMAL, DATA, ["mu"], seed=2, **FEW),
        "taxonomy": rjags.taxonomy(
            case.table, "estimate ~ x2", "variance", case.levels, seed=3, **FEW
        ),
    }
    code = "loadNamespace('coda')\n"
    for name, fit in fits.items():
        kept = fit.to_rds(tmp_path / f"{name}.rds")
        code += f'local({{\n{fit.r_script()}\nshow("{name}", colMeans(as.matrix(draws)))\n}})\n'
        code += f'x <- readRDS("{kept}"); show("{name}_kept", colMeans(as.matrix(x)))\n'
        code += "invisible(capture.output(print(summary(x))))\n"
    plain = plain_r(code)
    for name, fit in fits.items():
        for key in (name, f"{name}_kept"):
            np.testing.assert_array_equal(plain[key], fit.table["mean"])


def test_the_taxonomy_s_draws_are_those_of_taxonomy_model():
    case = load_taxonomy("gaps60")
    settings = {"n_adapt": 200, "n_burn": 300}
    fit = rjags.taxonomy(
        case.table, "estimate ~ x2", "variance", case.levels, seed=3, n_iter=400, **settings
    )
    model = pb.taxonomy_model(
        case.formula,
        case.table,
        levels=case.levels,
        engine="rjags",
        seed=3,
        n_draws=400,
        **settings,
    )
    frame = model.to_frame()
    theta = fit.of("theta").set_index("parameter")
    rows = theta.loc[[f"theta[{label}]" for label in frame["domain"]]]
    np.testing.assert_allclose(rows["mean"], frame["estimate"], rtol=1e-12)
    np.testing.assert_allclose(rows["standard_deviation"] ** 2, frame["mse"], rtol=1e-10)
    np.testing.assert_allclose(rows["lower"], frame["lower"], rtol=1e-12)
    medians = fit.of("sigma2").set_index("parameter")["median"]
    for name, value in model.model_variance.items():
        assert medians[f"sigma2[{name}]"] == pytest.approx(value, rel=1e-12)
    groups = model.effects("region")
    effects = fit.of("v").set_index("parameter")["mean"]
    ours = effects.loc[[f"v[region: {label}]" for label in groups["region"]]]
    np.testing.assert_allclose(ours, groups["effect"], rtol=1e-10)
    assert list(fit.of("beta")["parameter"]) == ["beta[(Intercept)]", "beta[x2]"]


def test_a_prior_of_one_s_own():
    case = load_taxonomy("groups34")
    words = {"levels": case.levels, "seed": 1, **FEW}
    tight = rjags.taxonomy(
        case.table, "estimate ~ x2", "variance", shape=[50.0, 50.0], scale=[5.0, 10.0], **words
    )
    medians = tight.of("sigma2")["median"].to_numpy()
    np.testing.assert_allclose(medians, [0.1, 0.2], rtol=0.2)


def test_chains_that_have_not_met_are_named():
    case = load_taxonomy("groups34")
    words = {"n_iter": 30, "n_burn": 0, "n_adapt": 50, "seed": 1}
    fit = rjags.taxonomy(case.table, "estimate ~ x2", "variance", case.levels, **words)
    assert fit.status == "not_converged" and "effective size below 200" in fit.summary()
    raw = rjags.taxonomy(case.table, "estimate ~ x2", "variance", case.levels, mode="raw", **words)
    assert raw.status == "converged"
    np.testing.assert_array_equal(raw.table["mean"], fit.table["mean"])
    one = rjags.coda_samples(NORMAL, DATA, ["mu"], n_chains=1, n_iter=1000, seed=1)
    assert np.isnan(one.worst_r_hat) and any("one chain" in line for line in one.conditions)


def test_the_seed_is_always_known_guarded():
    first = rjags.coda_samples(NORMAL, DATA, ["mu"], **FEW)
    assert first.provenance.seed is not None
    again = rjags.coda_samples(NORMAL, DATA, ["mu"], seed=first.provenance.seed, **FEW)
    assert again == first and pickle.loads(pickle.dumps(first)) == first
    assert rjags.coda_samples(NORMAL, DATA, ["mu"], **FEW) != first
    # JAGS takes the clock's where nothing is said.
    assert rjags.coda_samples(NORMAL, DATA, ["mu"], mode="raw", **FEW).provenance.seed is None


WRONG = {
    "dnoorm": {"model": NORMAL.replace("dnorm(mu", "dnoorm(mu")},
    "syntax error": {"model": NORMAL.replace("dnorm(mu,", "dnorm(mu")},
    "Unknown variable nu": {"model": NORMAL.replace("dnorm(mu", "dnorm(nu")},
    "No valid monitors": {"variable_names": ["nobody"]},
}


@pytest.mark.parametrize("mode", ["raw", "guarded"])
@pytest.mark.parametrize("words", WRONG)
def test_a_model_that_jags_cannot_read_is_an_error(words, mode):
    call = {"model": NORMAL, "data": DATA, "variable_names": ["mu"], **WRONG[words]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        with pytest.raises(EngineError, match=words):
            rjags.coda_samples(**call, seed=1, mode=mode, **FEW)


def test_numbers_that_a_node_cannot_have_are_a_status():
    wrong = "model { y ~ dunif(0, m)\n m ~ dunif(0, 1) }"
    with pytest.raises(EngineError, match="inconsistent"):
        rjags.coda_samples(wrong, {"y": 2.0}, ["m"], mode="raw", seed=1, **FEW)
    fit = rjags.coda_samples(wrong, {"y": 2.0}, ["m"], seed=1, **FEW)
    assert fit.status == "failed" and fit.n_draws == 0
    assert np.isnan(fit.smallest_effective_size) and "0 draws" in fit.summary()
    assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["status"] == "failed"


def test_what_the_taxonomy_refuses_after_r_has_read_the_formula():
    case = load_taxonomy("groups34")
    table = case.table

    def refused(code, table=table, formula="estimate ~ x2", levels=case.levels, **words):
        with pytest.raises(InputError) as caught:
            rjags.taxonomy(table, formula, "variance", levels, **words)
        assert caught.value.code == code and caught.value.field and caught.value.expected

    refused("bad_variance", table.assign(variance=table["variance"].where(table.index > 0, 0.0)))
    refused("taxonomy_not_nested", levels=["domain", "region"])
    refused("no_levels", levels=[])
    refused("duplicate_domain", pd.concat([table, table.head(1)]))
    refused("bad_prior", shape=[1.0, -1.0])
    refused("bad_prior", scale=[[1.0, 1.0]])
    refused("collinear_covariates", table.assign(x9=table["x2"] * 2), "estimate ~ x2 + x9")
    refused("too_few_domains", table.head(4), levels=["domain"])


def test_draws_without_a_seed_do_not_go_back_to_r(plain_r, tmp_path):
    fit = rjags.coda_samples(NORMAL, DATA, ["mu"], mode="raw", n_chains=1, **FEW)
    for call in (fit.r_script, lambda: fit.to_rds(tmp_path / "draws.rds"), fit.crosscheck):
        with pytest.raises(InputError) as caught:
            call()
        assert (caught.value.code, caught.value.field) == ("no_seed", "seed")
        assert "seed=" in caught.value.hint
    own = {"mu": 1.0, ".RNG.name": "base::Wichmann-Hill", ".RNG.seed": 3}
    for words in ({"seed": 5}, {"inits": own}):
        known = rjags.coda_samples(NORMAL, DATA, ["mu"], mode="raw", n_chains=1, **words, **FEW)
        kept = known.to_rds(tmp_path / "draws.rds")
        found = plain_r(
            f'{known.r_script()}\nshow("script", colMeans(as.matrix(draws)))\n'
            f'show("kept", colMeans(as.matrix(readRDS("{kept}"))))\n'
        )
        assert found["script"] == found["kept"] == list(known.table["mean"])
