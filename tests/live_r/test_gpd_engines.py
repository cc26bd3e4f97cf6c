"""evd and ismev through the bridge: to the bit what R gives, guarded near the exact maximum."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from pybridge.errors import EngineWarning, InputError
from pybridge.tails._distribution import draw
from pybridge.tails.generalized_pareto import fit_many, generalized_pareto
from pybridge.tails.scan import tail_scan
from validation.cases.gpd import answers, cases, scores

pytestmark = pytest.mark.r

# Another BLAS or libm gives other last digits than those of the goldens.
LAST_DIGITS = 1e-9


def sample(shape: float, n: int, seed: int = 1, scale: float = 1.0) -> np.ndarray:
    return draw(rng=np.random.default_rng(seed), size=(n,), shape=shape, scale=scale)


@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
@pytest.mark.parametrize("engine", ["evd", "ismev"])
@pytest.mark.parametrize(("name", "threshold"), cases())
def test_both_modes_are_the_plain_scripts_answers(name: str, threshold: float, engine: str) -> None:
    x = scores(name)
    for mode, variant in (("raw", "default"), ("guarded", "tight")):
        golden = answers(name, engine)[threshold, variant]
        fit = generalized_pareto(x, threshold=threshold, engine=engine, mode=mode)
        if "error" in golden:
            assert fit.status == "failed" and np.isnan(fit.shape)
            assert fit.engine_status == "error" and "stopped" in fit.conditions[0]
            continue
        assert fit.shape == pytest.approx(golden["shape"], rel=LAST_DIGITS)
        assert fit.scale == pytest.approx(golden["scale"], rel=LAST_DIGITS)
        assert -fit.log_likelihood == pytest.approx(golden["nllh"], rel=LAST_DIGITS)
        assert fit.n_exceedances == golden["n_exceedances"]
        assert fit.exceedance_rate == pytest.approx(golden["rate"])
        if fit.status == "converged":
            assert fit.shape_standard_error == pytest.approx(golden["shape_se"], rel=1e-7)
            assert fit.covariance[0, 1] == pytest.approx(golden["covariance"], rel=1e-7)


@pytest.mark.parametrize("engine", ["evd", "ismev"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("shape", [-0.35, 0.0, 0.3, 0.8])
def test_guarded_fits_are_exact_to_five_digits_in_any_units(
    engine: str, scale: float, shape: float
) -> None:
    x = sample(shape, 250, seed=2, scale=scale)
    fit = generalized_pareto(x, threshold=0.0, engine=engine)
    assert fit.status == "converged"
    assert fit.shape == pytest.approx(fit.exact_shape, abs=1e-5)
    assert fit.scale == pytest.approx(fit.exact_scale, rel=1e-5)


def errors_by_differences(x: np.ndarray, scale: float, shape: float) -> np.ndarray:
    """Standard errors of (scale, shape) from differences of the log-likelihood, written out."""

    def loss(theta: np.ndarray) -> float:
        s, k = theta * (scale, shape)
        return float(len(x) * np.log(s) + (1 + 1 / k) * np.log1p(k * x / s).sum())

    step, at = 1e-4 * np.eye(2), np.ones(2)
    second = [
        [
            (loss(at + a + b) - loss(at + a - b) - loss(at - a + b) + loss(at - a - b)) / 4e-8
            for b in step
        ]
        for a in step
    ]
    return np.sqrt(np.diag(np.linalg.inv(second))) * np.abs([scale, shape])


@pytest.mark.parametrize("engine", ["evd", "ismev"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("shape", "n", "seed"), [(1.3, 1000, 1), (1.6, 100, 2), (3.0, 400, 3)])
def test_guarded_fits_of_heavy_tails_have_right_standard_errors(
    engine: str, unit: float, shape: float, n: int, seed: int, tmp_path: Path
) -> None:
    x = sample(shape, n, seed=seed, scale=unit)
    fit = generalized_pareto(x, threshold=0.0, engine=engine)
    assert fit.status == "converged"
    assert fit.shape == pytest.approx(fit.exact_shape, abs=1e-5)
    expected = errors_by_differences(x / unit, fit.scale / unit, fit.shape) * (unit, 1.0)
    found = fit.scale_standard_error, fit.shape_standard_error
    assert found == pytest.approx(expected, rel=1e-3)
    assert any("too heavy for the mean" in text for text in fit.conditions)
    script = tmp_path / "fit.R"
    script.write_text(fit.r_script() + 'cat(sprintf("%a", result), sep = " ")\n')
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, check=True)
    bits = [float.fromhex(word) for word in done.stdout.splitlines()[-1].split()]
    assert bits == [fit.scale, fit.shape, *found, -fit.log_likelihood]


@pytest.mark.parametrize("shape", [2.0, 3.0])
def test_standard_errors_of_r_that_are_not_to_be_trusted_are_named(shape: float) -> None:
    x = sample(shape, 500, seed=4, scale=1e-4)
    fit = generalized_pareto(x, threshold=0.0, engine="ismev", siginit=1e-4, shinit=shape)
    assert fit.status == "converged" and not any("standard errors" in t for t in fit.conditions)
    raw = generalized_pareto(
        x, threshold=0.0, engine="ismev", mode="raw", siginit=1e-4, shinit=shape, reltol=1e-14
    )
    assert raw.status == "degenerate" and np.isnan(raw.scale_standard_error)
    assert any("are not those of the exact information" in text for text in raw.conditions)


@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
@pytest.mark.parametrize("engine", ["evd", "ismev"])
@pytest.mark.parametrize(
    ("x", "status"),
    [
        ([0.3, 0.5, 0.6], "too_few"),
        (np.full(30, 2.0), "degenerate"),
        (np.repeat([1.0, 2.0], 20), "degenerate"),
        (np.linspace(0.5, 1.0, 100), "infeasible"),
        (sample(-1.2, 300), "infeasible"),
    ],
)
def test_r_s_word_of_success_is_not_the_verdict(engine: str, x, status: str) -> None:
    for mode in ("guarded", "raw"):
        fit = generalized_pareto(x, threshold=0.0, engine=engine, mode=mode)
        assert fit.status == status and not fit.usable
        assert np.isnan(fit.covariance).all()


def test_a_raw_fit_in_small_units_is_found_out() -> None:
    fit = generalized_pareto(sample(0.1, 300, scale=1e-5), threshold=0.0, engine="evd", mode="raw")
    assert fit.engine_status == "successful" and fit.status == "not_converged"
    assert fit.exact_log_likelihood - fit.log_likelihood > 0.1


def test_many_fits_go_in_one_round_trip_and_an_error_stays_with_its_own() -> None:
    x, y = sample(0.2, 200), scores("huge_units")
    tasks = [(x, {"threshold": 0.0}), (y, {"threshold": 0.0}), (x, {"quantile": 0.5})]
    fits = fit_many(tasks, engine="evd", mode="raw", options={})
    assert [fit.status for fit in fits] == ["converged", "failed", "converged"]
    alone = generalized_pareto(x, quantile=0.5, engine="evd", mode="raw")
    assert fits[2].shape == alone.shape


def test_r_s_warnings_become_warnings_and_stay_on_the_record() -> None:
    with pytest.warns(EngineWarning, match="evd: optimization may not have succeeded"):
        fit = generalized_pareto(
            sample(0.2, 100), threshold=0.0, engine="evd", control={"maxit": 1}
        )
    assert fit.status == "not_converged" and fit.engine_status == "iteration limit reached"
    assert any("may not have succeeded" in text for text in fit.conditions)


def test_options_reach_r_and_unknown_ones_are_refused() -> None:
    x = sample(0.2, 200, scale=50.0)
    start = {"scale": 40.0, "shape": 0.1}
    for mode in ("guarded", "raw"):
        words = {"engine": "evd", "mode": mode, "method": "ML"}
        fit = generalized_pareto(x, threshold=0.0, start=start, **words)
        assert fit.shape == pytest.approx(fit.exact_shape, abs=1e-3)
        assert dict(fit.provenance.options["start"]) == start
    fit = generalized_pareto(x, threshold=0.0, engine="ismev", siginit=40.0, shinit=0.2)
    assert fit.shape == pytest.approx(fit.exact_shape, abs=1e-5)
    for engine, word in (("evd", "ydat"), ("ismev", "sigl"), ("evd", "cmax")):
        with pytest.raises(InputError) as caught:
            generalized_pareto(x, threshold=0.0, engine=engine, **{word: 1})
        assert caught.value.code == "unknown_option" and caught.value.field == word


def test_provenance_names_r_and_the_package() -> None:
    made_by = generalized_pareto(sample(0.2, 100), threshold=0.0).provenance
    assert made_by.engine == "evd" and made_by.r and "evd" in made_by.packages


def test_the_default_engine_is_evd_and_the_scan_uses_it_too() -> None:
    x = sample(0.2, 1000)
    scan = tail_scan(x, quantiles=[0.8, 0.9])
    assert scan.engine == "evd"
    assert scan.shape[0] == generalized_pareto(x, quantile=0.8).shape


def test_engines_agree_in_the_cross_check() -> None:
    check = generalized_pareto(sample(0.2, 300), threshold=0.0, engine="native").crosscheck()
    assert check.agrees and len(check.to_frame()) == 5
    assert "native, evd guarded, evd raw, ismev guarded and ismev raw agree" in check.sentence


@pytest.mark.parametrize(
    ("engine", "mode"),
    [
        ("evd", "raw"),
        ("evd", "guarded"),
        ("ismev", "raw"),
        ("ismev", "guarded"),
        ("native", "guarded"),
    ],
)
def test_the_script_gives_the_same_numbers_to_the_bit(
    engine: str, mode: str, tmp_path: Path
) -> None:
    x = scores("danish")
    fit = generalized_pareto(x, threshold=10.0, engine=engine, mode=mode)
    script = tmp_path / "fit.R"
    fit.r_script(script, data=x if mode == "raw" else None)
    done = subprocess.run(
        ["Rscript", "--vanilla", str(script)], capture_output=True, text=True, check=True
    )
    printed = [float(word) for word in done.stdout.split() if word[0].isdigit() or word[0] == "-"]
    scale, shape = printed[:2]
    tolerance = 1e-6 if engine == "native" else 0.0
    assert shape == pytest.approx(fit.shape, abs=tolerance)
    assert scale == pytest.approx(fit.scale, abs=tolerance * 10)


@pytest.mark.parametrize("engine", ["evd", "ismev", "native"])
def test_the_saved_object_is_r_s_own(engine: str, tmp_path: Path) -> None:
    fit = generalized_pareto(scores("danish"), threshold=10.0, engine=engine)
    fit.to_rds(tmp_path / "fit.rds")
    shape = "fit$mle[2]" if engine == "ismev" else 'fit$param[["shape"]]'
    code = (
        f'fit <- readRDS("{tmp_path / "fit.rds"}"); cat(class(fit)[1], sprintf("%.12f", {shape}))'
    )
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", code], capture_output=True, text=True, check=True
    )
    kind, value = done.stdout.split()
    assert kind == ("gpd.fit" if engine == "ismev" else "pot")
    assert float(value) == pytest.approx(fit.shape, abs=1e-6)


def test_a_raw_script_needs_the_scores() -> None:
    fit = generalized_pareto(sample(0.2, 100), threshold=0.0, engine="evd", mode="raw")
    with pytest.raises(InputError) as caught:
        fit.r_script()
    assert caught.value.code == "data_needed"
    weighted = generalized_pareto(sample(0.2, 100), threshold=0.0, engine="native", method="PWM")
    with pytest.raises(InputError, match="PWM"):
        weighted.r_script()
