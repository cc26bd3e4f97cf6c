"""What is known of a fit, as much as emdi's functions of a fit look at, and who may pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybridge.engines._emdi_direct_record import EmdiDirect
from pybridge.engines._emdi_record import EmdiFit
from pybridge.errors import InputError
from pybridge.provenance import Provenance, provenance
from pybridge.r import Reply


def light(one: EmdiFit | EmdiDirect) -> dict[str, Any]:
    """As much of a record as emdi's functions look at."""
    domain = [str(label) for label in one.domains]
    if isinstance(one, EmdiDirect):
        return {
            "class": "direct",
            "domain": domain,
            "names": list(one.names),
            "estimate": one.estimate,
            "variance": one.variance,
        }
    has_mse = bool(one.request.arguments["MSE"])
    gamma = np.where(one.out_of_sample, np.nan, one.shrinkage)
    return {
        "class": "fh",
        "domain": domain,
        "direct": one.direct,
        "estimate": one.estimate,
        "out": one.out_of_sample.astype(np.float64),
        "direct_variance": np.where(one.out_of_sample, np.nan, one.direct_variance),
        "mse": one.mse if has_mse else None,
        "gamma": None if np.isnan(gamma).all() else gamma,
        "random_effects": one.random_effects[~one.out_of_sample],
    }


def made_by(function: str, reply: Reply, options: dict[str, Any]) -> Provenance:
    return provenance("emdi", function, options=options, versions=reply.versions)


def need_fit(object: Any) -> EmdiFit:
    found = need_record("object", object)
    if not isinstance(found, EmdiFit):
        raise bad_object("object", object, "a fit by pybridge.engines.emdi.fh")
    if found.status == "failed":
        raise bad_object("object", object, "a fit that did not fail")
    return found


def need_record(field: str, object: Any) -> Any:
    """A record of emdi; a FayHerriotFit by engine 'emdi' holds one."""
    inner = getattr(getattr(object, "fit", None), "engine_fit", None)
    found = object if inner is None else inner
    if not isinstance(found, (EmdiFit, EmdiDirect)):
        raise bad_object(field, object, "a record of pybridge.engines.emdi")
    return found


def bad_object(field: str, object: Any, expected: str) -> InputError:
    return InputError(
        f"{field} is nothing that emdi can use",
        code="bad_object",
        field=field,
        expected=expected,
        got=type(object).__name__,
    )


def need_mse(field: str, one: Any) -> None:
    """InputError where a record holds no mean squared errors; emdi drops them on benchmarking."""
    if isinstance(one, EmdiDirect):
        known = one.variance is not None
    else:
        known = isinstance(one, EmdiFit) and bool(one.request.arguments["MSE"])
    if not known:
        raise InputError(
            f"{field} holds no mean squared errors",
            code="missing_mse",
            field=field,
            expected="fh(..., MSE=True), or direct(..., var=True)",
            got=type(one).__name__,
        )
