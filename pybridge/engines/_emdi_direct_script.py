"""A call of emdi::direct as a plain R script, units included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybridge import _r_text as r


def direct_script(inputs: Mapping[str, Any]) -> str:
    """The units, the call of emdi::direct as an R user writes it, and its numbers.

    Parameters
    ----------
    inputs : mapping
        What crossed to R: ``smp_data``, ``arguments`` and ``X_calib``, None where R does not
        calibrate.
    """
    said = [f"{name} = {_argument(name, value)}" for name, value in inputs["arguments"].items()]
    parts = [
        "# emdi::direct",
        *r.EXACT_NUMBERS,
        f"smp_data <- {r.frame(inputs['smp_data'])}",
    ]
    if inputs["X_calib"] is not None:
        parts.append(f"X_calib <- {r.matrix(inputs['X_calib'])}")
        said.append("X_calib = X_calib")
    call = ",\n  ".join(["smp_data = smp_data", *said])
    parts += [
        'RNGkind("Mersenne-Twister", "Inversion", "Rejection")',
        f"object <- emdi::direct(\n  {call}\n)",
        "print(object$ind, digits = 10)",
        "if (!is.null(object$MSE)) print(object$MSE, digits = 10)",
    ]
    return "\n".join(parts) + "\n"


def _argument(name: str, value: Any) -> str:
    if name == "custom_indicator":
        made = (f"{r.text(key)} = {_function(text)}" for key, text in value.items())
        return f"list({', '.join(made)})"
    if name == "threshold" and isinstance(value, str):
        return _function(value)
    if name in ("seed", "B") and value is not None:
        return f"{value}L"
    return r.value(value)


def _function(text: str) -> str:
    """A user's R function: as it is, or as text that any locale reads."""
    return text if text.isascii() else f"eval(str2lang({r.text(text)}))"
