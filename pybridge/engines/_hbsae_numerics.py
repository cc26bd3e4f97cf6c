"""Where fSAE.Area starts its search, and what it hands on to integrate()."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybridge._options import real_number, whole_number, yes_or_no
from pybridge.errors import InputError

_SUBDIVISIONS = 100  # integrate()'s own


def start(given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """lambda0, the plugged-in variance of method BLUP and where the others' search starts."""
    raw = given["mode"] == "raw"
    if given["lambda0"] is None:
        if method != "BLUP":
            return {}
        raise InputError(
            "method BLUP needs a variance of the area effects",
            code="missing_argument",
            field="lambda0",
            expected="lambda0=a variance of at least 0",
            got=None,
        )
    number = real_number("lambda0", given["lambda0"])
    if method in ("synthetic", "survreg") and not raw:
        raise _no_use("lambda0", "method='BLUP', or 'HB', 'hybrid', 'REML' as a start", method)
    # A search from 0 has no step to take: R stops.
    if not raw and (number < 0 or (number == 0 and method != "BLUP")):
        raise InputError(
            "lambda0 is a variance, and the start of a search must be positive",
            code="bad_variance",
            field="lambda0",
            expected="at least 0" if method == "BLUP" else "above 0",
            got=number,
        )
    return {"lambda0": number}


def integration(given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Arguments of R's integrate() that differ from its own."""
    found: dict[str, Any] = {}
    count = whole_number("subdivisions", given["subdivisions"], least=1)
    if count != _SUBDIVISIONS:
        found["subdivisions"] = count
    if given["abs_tol"] is not None:
        found["abs.tol"] = real_number("abs_tol", given["abs_tol"])
    if not yes_or_no("stop_on_error", given["stop_on_error"]):
        found["stop.on.error"] = False
    if given["mode"] == "raw":
        return found
    for name in found:
        methods = ("HB", "hybrid") if name == "subdivisions" else ("hybrid",)
        if method not in methods:
            raise _no_use(
                name.replace(".", "_"), " | ".join(f"method={m!r}" for m in methods), method
            )
    return found


def _no_use(field: str, expected: str, method: str) -> InputError:
    return InputError(
        f"fSAE.Area has no use of {field} with method {method}",
        code="not_available",
        field=field,
        expected=expected,
        got=f"method={method!r}",
    )
