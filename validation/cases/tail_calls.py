"""The calls of evd's, ismev's and evir's functions that r_reference/tail_*.R answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from validation.cases.gpd import GOLDEN, scores

# file of answers -> its script
FILES = {
    "rain__evd": "tail_evd.R",
    "rain__ismev": "tail_ismev.R",
    "trend__ismev": "tail_ismev.R",
    "danish__evir": "tail_evir.R",
}
Key = tuple[str, str, str]

FPOT: dict[str, dict[str, Any]] = {
    "default": {},
    "corr": {"corr": True},
    "start": {"start": {"scale": 8.0, "shape": 0.1}},
    "nelder": {"method": "Nelder-Mead"},
    "box": {"method": "L-BFGS-B", "lower": [1.0, -0.4], "upper": [50.0, 1.0]},
    "control": {"control": {"reltol": 1e-12}},
    "without_errors": {"std_err": False},
    "scale_held": {"scale": 8.0},
    "shape_held": {"shape": 0.0},
    "clusters": {"cmax": True, "r": 3},
    "clusters_low": {"cmax": True, "r": 5, "ulow": 10.0, "rlow": 2},
    "level": {"mper": 100.0, "npp": 365},
    "level_held": {"mper": 100.0, "npp": 365, "rlevel": 100.0},
    "level_clusters": {"mper": 100.0, "npp": 365, "cmax": True, "r": 3},
    "process": {"model": "pp", "npp": 365},
    "process_held": {"model": "pp", "npp": 365, "loc": 40.0},
    "process_clusters": {"model": "pp", "npp": 365, "cmax": True, "r": 3},
}
GPD_FIT: dict[str, dict[str, Any]] = {
    "default": {},
    "tight": {"reltol": 1e-14},
    "bfgs": {"method": "BFGS", "siginit": 7.0, "shinit": 0.2},
}
TREND: dict[str, dict[str, Any]] = {
    "scale": {"sigl": "year"},
    "scale_exp": {"sigl": "year", "siglink": "exp"},
    "both": {"sigl": "year", "shl": "group", "siglink": "exp"},
    "own_link": {"shl": "group", "shlink": "function(x) 1 / (1 + exp(-x))"},
}


def trend() -> pd.DataFrame:
    """Scores (n = 800) with the covariates year and group."""
    return pd.read_csv(GOLDEN / "inputs" / "tail_trend.csv", float_precision="round_trip")


def calls(mode: str) -> dict[Key, Callable[[], Any]]:
    """(file, R's function, setting) -> the bridge's call of it."""
    return {**_evd_calls(mode), **_ismev_calls(mode), **_evir_calls(mode)}


def _evd_calls(mode: str) -> dict[Key, Callable[[], Any]]:
    evd, x, file = pb.engines.evd, scores("rain"), "rain__evd"

    def fit(name: str) -> Any:
        return evd.fpot(x, 30.0, mode=mode, **FPOT[name])

    found: dict[Key, Callable[[], Any]] = {
        (file, "fpot", name): partial(fit, name) for name in FPOT
    }
    found[file, "profile", "default"] = lambda: evd.profile(fit("default"))
    found[file, "profile", "shape"] = lambda: evd.profile(
        fit("default"), which="shape", conf=0.99, mesh=0.01
    )
    found[file, "profile", "level"] = lambda: evd.profile(fit("level"))
    found[file, "confint", "default"] = lambda: evd.confint(fit("default"), level=0.9)
    drawn: dict[tuple[str, str], dict[str, Any]] = {
        ("tcplot", "gpd"): {"tlim": (10, 40), "nt": 5},
        ("tcplot", "pp"): {"tlim": (10, 40), "model": "pp", "npp": 365, "nt": 4},
        ("tcplot", "pscale"): {"tlim": (10, 40), "pscale": True, "nt": 4, "conf": 0.9},
        ("tcplot", "clusters"): {"tlim": (20, 40), "cmax": True, "r": 3, "nt": 3},
        ("mrlplot", "plain"): {"tlim": (5, 60), "nt": 12},
        ("mrlplot", "pscale"): {"tlim": (5, 40), "pscale": True, "nt": 6},
        ("exiplot", "runs"): {"tlim": (5, 60), "r": 3, "nt": 8},
        ("exiplot", "intervals"): {"tlim": (5, 60), "r": 0, "nt": 8},
        ("clusters", "runs"): {"u": 40.0, "r": 3},
        ("clusters", "low"): {"u": 30.0, "r": 5, "ulow": 10.0, "rlow": 2},
        ("clusters", "largest"): {"u": 30.0, "r": 3, "cmax": True},
        ("exi", "runs"): {"u": 30.0, "r": 3},
        ("exi", "intervals"): {"u": 30.0, "r": 0},
    }
    for (call, setting), words in drawn.items():
        found[file, call, setting] = partial(getattr(evd, call), x, mode=mode, **words)
    for shape in (-0.4, 0.0, 0.3):
        words = {"scale": 2.0, "shape": shape, "mode": mode}
        places, shares = [0.1, 0.5, 1, 3, 10], [0.001, 0.5, 0.9, 0.999]
        found[file, "dgpd", f"{shape:g}"] = partial(evd.dgpd, places, **words)
        found[file, "pgpd", f"{shape:g}"] = partial(evd.pgpd, places, **words)
        found[file, "qgpd", f"{shape:g}"] = partial(evd.qgpd, shares, loc=1.0, **words)
    return found


def _ismev_calls(mode: str) -> dict[Key, Callable[[], Any]]:
    ismev, x, file = pb.engines.ismev, scores("rain"), "rain__ismev"
    found: dict[Key, Callable[[], Any]] = {
        (file, "gpd.fit", name): partial(ismev.gpd_fit, x, 30.0, mode=mode, **words)
        for name, words in GPD_FIT.items()
    }
    varying = np.resize([25.0, 30.0], x.size)
    found[file, "gpd.fit", "varying"] = partial(ismev.gpd_fit, x, varying, mode=mode)
    found[file, "pp.fit", "default"] = partial(ismev.pp_fit, x, 30.0, mode=mode)
    found[file, "pp.fit", "started"] = partial(
        ismev.pp_fit, x, 30.0, muinit=40.0, siginit=9.0, shinit=0.2, mode=mode
    )
    found[file, "gpd.fitrange", "plain"] = partial(
        ismev.gpd_fitrange, x, 10.0, 40.0, nint=4, mode=mode
    )

    def of_fit(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        return lambda: function(ismev.gpd_fit(x, 30.0, mode=mode), *arguments)

    found[file, "gpd.prof", "plain"] = of_fit(ismev.gpd_prof, 100, 75.0, 200.0)
    found[file, "gpd.profxi", "plain"] = of_fit(ismev.gpd_profxi, -0.1, 0.6)
    found[file, "gpd.diag", "plain"] = of_fit(ismev.gpd_diag)
    found[file, "mrl.plot", "plain"] = partial(ismev.mrl_plot, x, nint=6, mode=mode)
    table = trend()
    covariates = table[["year", "group"]]
    for name, words in TREND.items():
        found["trend__ismev", "gpd.fit", name] = partial(
            ismev.gpd_fit, table["score"], 10.0, ydat=covariates, mode=mode, **words
        )
    return found


def _evir_calls(mode: str) -> dict[Key, Callable[[], Any]]:
    settings: dict[str, dict[str, Any]] = {
        "u10": {"threshold": 10.0},
        "u20": {"threshold": 20.0},
        "u10 expected": {"threshold": 10.0, "information": "expected"},
        "u10 pwm": {"threshold": 10.0, "method": "pwm"},
        "nextremes 109": {"nextremes": 109},
    }
    return {
        ("danish__evir", "gpd", name): partial(
            pb.engines.evir.gpd, scores("danish"), mode=mode, **words
        )
        for name, words in settings.items()
    }


def label(key: Key) -> str:
    """The case's name."""
    return f"tail functions {key[0].partition('__')[2]} {key[1]} {key[2]}"


@lru_cache(maxsize=8)
def _table(path: Path) -> pd.DataFrame:
    text = {name: str for name in ("call", "setting", "quantity", "key", "value")}
    return pd.read_csv(path, dtype=text, keep_default_na=False)


def answers(key: Key, folder: Path = GOLDEN) -> dict[str, np.ndarray]:
    """Plain R's answers to one call, by quantity."""
    table = _table(folder / f"tail_{key[0]}.csv")
    table = table[(table["call"] == key[1]) & (table["setting"] == key[2])]
    if table.empty:
        raise KeyError(key)
    return {
        str(name): np.array([float(word) if word else np.nan for word in rows["value"]])
        for name, rows in table.groupby("quantity", sort=False)
    }


def numbers_of(record: Any) -> dict[str, np.ndarray]:
    """The bridge's numbers of a call, in the user's units, by R's names."""
    function = record.request.function
    if function == "fpot":
        return _of_fpot(record)
    if function in ("profile", "confint"):
        return _of_intervals(record)
    if function in ("gpd.fit", "pp.fit"):
        return {
            "mle": np.array(record.estimate),
            "se": record.standard_errors,
            "cov": record.covariance.ravel(order="F"),
            "nllh": np.array([-record.log_likelihood]),
            "nexc": np.array([record.n_exceedances], dtype=float),
            "conv": np.array(record.value["conv"]),
        }
    if function == "gpd":
        with np.errstate(invalid="ignore"):
            errors = np.sqrt(np.diag(record.covariance))
        return {
            "par.ests": np.array([record.shape, record.scale]),
            "par.ses": errors,
            "varcov": record.covariance.ravel(order="F"),
            "nllh": np.array([-record.log_likelihood]),
            "n.exceed": np.array([record.n_exceedances], dtype=float),
            "threshold": np.array([record.threshold]),
        }
    if function == "gpd.diag":
        return {name: np.array(value) for name, value in record.value.items()}
    return _of_table(function, record)


def _of_fpot(record: Any) -> dict[str, np.ndarray]:
    found = {
        "param": np.array(list(record.param.values())),
        "nllh": np.array([-record.log_likelihood]),
        "nhigh": np.array([record.n_exceedances], dtype=float),
        "pat": np.array(record.value["pat"]),
    }
    errors = np.array(list(record.standard_errors.values()))
    if np.isfinite(errors).any():
        found["std.err"] = errors
        found["var.cov"] = record.covariance.ravel(order="F")
    return found


def _of_intervals(record: Any) -> dict[str, np.ndarray]:
    table = record.to_frame()
    found = {side: table[side].to_numpy(copy=True) for side in ("lower", "upper")}
    for name, curve in getattr(record, "curves", {}).items():
        for word, column in zip(record.columns[name], curve.T):
            found[f"{name} {word}"] = np.array(column)
    return found


def _of_table(function: str, record: Any) -> dict[str, np.ndarray]:
    table: Mapping[str, np.ndarray] = record.table
    if function == "tcplot":
        names = {"loc": "locs", "scale": "scales", "modified_scale": "scales", "shape": "shapes"}
        sides = np.array([table[side] for side in ("lower", "estimate", "upper")])
        words = list(dict.fromkeys(table["parameter"]))
        return {names[w]: sides[:, table["parameter"] == w].ravel() for w in words}
    if function == "mrlplot":
        sides = np.concatenate([table[side] for side in ("lower", "estimate", "upper")])
        return {"x": table["threshold"], "y": sides}
    if function == "exiplot":
        return {"x": table["threshold"], "y": table["extremal_index"]}
    if function == "clusters":
        found = {"value": table["value"], "acs": np.array([record.mean_size])}
        largest = record.request.arguments.get("cmax", False)
        return {"value": found["value"]} if largest else {**found, "cluster": table["cluster"]}
    if function == "gpd.fitrange":
        half = len(table["threshold"]) // 2
        columns = {"mle": "estimate", "se": "standard_error", "ci.low": "lower", "ci.up": "upper"}
        found = {own: table[name] for own, name in columns.items()}
        return {"thresholds": table["threshold"][:half], **found}
    if function in ("gpd.prof", "gpd.profxi"):
        x, curve = table.values()
        return {"x": x, "profile": curve, "cut": np.array([record.cut])}
    if function == "mrl.plot":
        names = {"u": "threshold", "mean": "estimate", "lower": "lower", "upper": "upper"}
        return {own: table[name] for own, name in names.items()}
    return {name: table[name] for name in ("extremal_index", "value") if name in table}
