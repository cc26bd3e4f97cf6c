"""Options of the native Fay-Herriot engine, under the names that emdi has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import numeric_column
from pybridge._options import choose, real_number, whole_number
from pybridge.errors import InputError
from pybridge.smoothing._back_transformation import BACK_TRANSFORMATIONS, TRANSFORMATIONS
from pybridge.smoothing._spec import refuse_options

REPLICATES = 200
_TRANSFORMED = ("backtransformation", "eff_smpsize")


def mse_options(given: Mapping[str, Any], kinds: tuple[str, ...]) -> dict[str, Any]:
    """``mse_type``, and ``B`` where it is a bootstrap.

    Raises
    ------
    InputError
        A kind that the model does not have; replicates without a bootstrap.
    """
    kind = choose("mse_type", given.get("mse_type", kinds[0]), kinds)
    if kind.startswith("boot"):
        return {"mse_type": kind, "B": whole_number("B", given.get("B", REPLICATES), least=2)}
    if given.get("B") is not None:
        raise InputError(
            "B counts the replicates of a bootstrap, and none was asked for",
            code="needless_option",
            field="B",
            expected=" | ".join(f"mse_type={word!r}" for word in kinds if word[:4] == "boot"),
            got=f"mse_type={kind!r}",
        )
    return {"mse_type": kind}


def area_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the model on normal effects: transformations, and how the MSE is found."""
    names = ("transformation", *_TRANSFORMED, "mse_type", "B")
    refuse_options(given, names, engine="native")
    word = choose("transformation", given.get("transformation", "no"), TRANSFORMATIONS)
    if word == "no":
        needless = [name for name in _TRANSFORMED if given.get(name) is not None]
        if needless:
            raise InputError(
                f"{needless[0]} goes with a transformation, and none was asked for",
                code="needless_option",
                field=needless[0],
                expected="transformation='log' | 'arcsin'",
                got="transformation='no'",
            )
        return mse_options(given, ("analytical", "boot", "bootbc"))
    ways = BACK_TRANSFORMATIONS[word]
    way = given.get("backtransformation")
    found: dict[str, Any] = {
        "transformation": word,
        "backtransformation": choose("backtransformation", way or ways[0], ways),
    }
    size = given.get("eff_smpsize")
    if word == "arcsin":
        found["eff_smpsize"] = size
    elif size is not None:
        raise InputError(
            "effective sample sizes go with the arcsine",
            code="needless_option",
            field="eff_smpsize",
            expected="transformation='arcsin'",
            got=f"transformation={word!r}",
        )
    return {**found, **mse_options(given, ("analytical", "boot"))}


def robust_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the robust model: Huber's constant, the correction's, and the MSE."""
    refuse_options(given, ("k", "mult_constant", "mse_type", "B"), engine="native")
    found: dict[str, Any] = {}
    for name, default in (("k", 1.345), ("mult_constant", 1.0)):
        found[name] = real_number(name, given.get(name, default))
        if found[name] <= 0:
            raise InputError(
                f"{name} must be positive",
                code="bad_tuning",
                field=name,
                expected=f"a number of standard deviations, for example {default:g}",
                got=given[name],
            )
    return {**found, **mse_options(given, ("analytical", "pseudo", "boot"))}


def with_sizes(options: Mapping[str, Any], rows: pd.DataFrame, n_domains: int) -> dict[str, Any]:
    """The options with effective sample sizes (m,) for the column that they name.

    Raises
    ------
    InputError
        A column that is not there or not numeric; an array of another length.
    """
    found = dict(options)
    given = found.get("eff_smpsize")
    if given is None:
        return found
    if isinstance(given, str):
        sizes = numeric_column(rows, given, field="eff_smpsize", missing=True)
    else:
        sizes = np.asarray(given, dtype=np.float64)
    if sizes.shape != (n_domains,):
        raise InputError(
            "effective sample sizes do not go with the domains",
            code="bad_shape",
            field="eff_smpsize",
            expected=f"a column, or {n_domains} numbers in the order of the table",
            got=f"shape {sizes.shape}",
        )
    found["eff_smpsize"] = sizes
    return found


def needs_seed(options: Mapping[str, Any]) -> bool:
    """Whether anything is drawn."""
    return "B" in options
