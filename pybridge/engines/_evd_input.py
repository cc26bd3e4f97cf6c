"""Arguments of evd's functions: checked, named as in R, and in R's units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import choose, real_number, whole_number, yes_or_no
from pybridge.engines._tail_request import control_list, positive, search_method
from pybridge.errors import InputError

MODELS = ("gpd", "pp")
PARAMETERS = ("loc", "scale", "shape", "rlevel")
# What has the scores' units.
_IN_UNITS = ("threshold", "ulow", "loc", "scale", "rlevel")


def scaled(name: str, value: Any, unit: float) -> Any:
    """An argument, or parameter, of evd in R's units."""
    if name == "start":
        return {word: scaled(word, item, unit) for word, item in value.items()}
    return value / unit if name in _IN_UNITS else value


def cluster_arguments(given: Mapping[str, Any], *, threshold: Any) -> dict[str, Any]:
    """r, ulow and rlow, which say where a cluster ends."""
    ulow = given["ulow"]
    if not (isinstance(ulow, float) and ulow == -math.inf):
        ulow = real_number("ulow", ulow)
    if np.any(ulow > np.asarray(threshold)):
        raise InputError(
            "ulow, below which a cluster ends sooner, lies above the threshold",
            code="bad_lower_threshold",
            field="ulow",
            expected="at most the threshold",
            got=ulow,
        )
    return {
        "r": whole_number("r", given["r"], least=1),
        "ulow": ulow,
        "rlow": whole_number("rlow", given["rlow"], least=1),
    }


def fit_arguments(given: Mapping[str, Any], *, n: int, threshold: float) -> dict[str, Any]:
    """fpot's arguments by its own names, in the user's units; those left at their default out."""
    model = choose("model", given["model"], MODELS)
    found: dict[str, Any] = {"model": model} if model != "gpd" else {}
    if given["npp"] is not None:
        found["npp"] = positive("npp", given["npp"])
    if yes_or_no("cmax", given["cmax"]):
        found["cmax"] = True
        found.update(cluster_arguments(given, threshold=threshold))
    if given["mper"] is not None:
        found["mper"] = _period(given["mper"], model)
    names = {"gpd": ("scale", "shape"), "pp": ("loc", "scale", "shape")}[model]
    if "mper" in found:
        names = ("rlevel", "shape")
    found.update(_held(given, names, threshold))
    free = [name for name in names if name not in found]
    if given["start"] is not None:
        found["start"] = _start(given["start"], free)
    for name, word in (("std_err", "std.err"), ("corr", "corr"), ("warn_inf", "warn.inf")):
        default = name != "corr"
        if yes_or_no(name, given[name]) != default:
            found[word] = not default
    method = search_method(given["method"], mode=given["mode"])
    if method != "BFGS":
        found["method"] = method
    found["control"] = control_list(given["control"])
    for name in ("lower", "upper"):
        if given[name] is not None:
            found[name] = _box(name, given[name], free, method)
    return {name: value for name, value in found.items() if value is not None}


def _period(value: Any, model: str) -> float:
    if model == "pp":
        raise InputError(
            "a point process has no return level among its parameters",
            code="illegal_combination",
            field="mper",
            expected="model='gpd' with mper, or model='pp' without",
            got=value,
        )
    endless = isinstance(value, float) and value == math.inf
    return math.inf if endless else positive("mper", value)


def _held(given: Mapping[str, Any], names: tuple[str, ...], threshold: float) -> dict[str, float]:
    held = {}
    for name in PARAMETERS:
        if given.get(name) is None:
            continue
        if name not in names:
            raise InputError(
                f"the model has no parameter {name} to hold",
                code="unknown_parameter",
                field=name,
                expected=" or ".join(names),
                got=given[name],
            )
        value = real_number(name, given[name])
        if name == "scale":
            value = positive(name, value)
        if name == "rlevel" and value <= threshold:
            raise InputError(
                "a return level lies above the threshold",
                code="below_threshold",
                field=name,
                expected=f"more than {threshold:g}",
                got=value,
            )
        held[name] = value
    if len(held) == len(names):
        raise InputError(
            "every parameter is held: there is nothing to estimate",
            code="nothing_to_estimate",
            field=names[-1],
            expected=f"at most {len(names) - 1} of {', '.join(names)}",
            got=", ".join(held),
        )
    return held


def _start(value: Any, free: list[str]) -> dict[str, float]:
    if not isinstance(value, Mapping) or set(value) != set(free):
        raise InputError(
            "start must name every parameter that is estimated, and no other",
            code="bad_start",
            field="start",
            expected=", ".join(free),
            got=", ".join(map(str, value)) if isinstance(value, Mapping) else value,
        )
    return {name: real_number(f"start[{name}]", value[name]) for name in value}


def _box(name: str, value: Any, free: list[str], method: str) -> np.ndarray:
    ends = number_vector(name, np.atleast_1d(value))
    if method not in ("L-BFGS-B", "Brent") or ends.size not in (1, len(free)):
        raise InputError(
            f"{name} belongs to the methods L-BFGS-B and Brent, a number a parameter",
            code="illegal_combination",
            field=name,
            expected=f"{len(free)} numbers, with method L-BFGS-B (Brent with one parameter)",
            got=f"{ends.size} numbers with method {method}",
        )
    return ends
