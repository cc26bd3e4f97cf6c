"""A Fay-Herriot fit as a plain R script, data included."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import numpy as np

from pybridge.engines._sae_script import sae_script
from pybridge.errors import InputError
from pybridge.smoothing._hbsae_script import posterior_script
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import AreaTable

# sae's relative change at which its scoring has the optimum to nearly all digits of a double.
TIGHT = {"MAXITER": 1000, "PRECISION": 1e-13, "B": 0}


def fay_herriot_script(spec: FayHerriotSpec, area: AreaTable) -> str:
    """The script: data, the call of sae::mseFH, and what the guarded mode adds to it.

    Of the Bayesian model the call of hbsae::fSAE.Area.
    """
    if spec.method == "bayes":
        return posterior_script(spec, area)
    if spec.method not in ("REML", "ML", "FH"):
        raise InputError(
            f"R's sae has no method {spec.method!r}, so there is no script with the same numbers",
            code="not_available",
            field="method",
            expected="REML | ML | FH | bayes",
            got=spec.method,
        )
    options = spec.options if spec.engine == "sae" else TIGHT
    sampled = area.sampled
    parts = [_head(spec, area), _data(area, sampled), _call(spec, options)]
    guarded = spec.engine == "native" or spec.mode == "guarded"
    if guarded and spec.method == "FH":
        parts.append(_SHIM_NOTE + _shim("sae_fh_zero_is_root") + _shim("sae_fh_at_zero") + _ZERO)
    parts.append(_RESULT)
    if not sampled.all():
        parts.append(_outside(spec, area, ~sampled))
    parts.append("print(result, digits = 10)\nprint(fit$est$fit)\n")
    return "\n".join(parts)


def finite_script(
    spec: FayHerriotSpec, area: AreaTable, wide: AreaTable, spread: np.ndarray
) -> str:
    """The model's script, with variances d + s²/N, and the means of the finite domains from it."""
    if spec.engine not in ("sae", "native") or spec.method == "bayes":
        raise InputError(
            "a script for finite domains is there for sae's fits, and for native ones like them",
            code="not_available",
            field="engine",
            expected="sae | native",
            got=spec.engine,
        )
    seen = area.sampled
    text = fay_herriot_script(spec, wide)
    return (
        text.replace("print(result, digits = 10)\n", "")
        + "\n# The means of the finite domains: z and the model's mean by their precisions.\n"
        f"seen <- {_numbers(seen.astype(float))} == 1\n"
        f"d <- {_numbers(np.where(seen, area.variance, 0.0))}\n"
        f"spread <- {_numbers(spread)}\n" + _FINITE
    )


_FINITE = """\
total <- ifelse(d + spread > 0, d + spread, 1)
own <- ifelse(seen, ifelse(d == 0, 1, spread / total), 0)
model <- ifelse(seen, ifelse(d == 0, 0, d / total), 1)
z <- ifelse(seen, result$direct, 0)
result$estimate <- own * z + model * result$estimate
result$mse <- ifelse(seen, own * d + model^2 * result$mse, result$mse + spread)
print(result, digits = 10)
"""


def spatial_script(spec: FayHerriotSpec, area: AreaTable, exact: Mapping[str, Any]) -> str:
    """The call of sae::mseSFH, with the options that it was made with."""
    from pybridge.smoothing._sae_spatial import call_of

    asked, inputs = call_of(area, spec, exact)
    return sae_script(asked, inputs, {"domain": list(map(str, area.domains))})


def _head(spec: FayHerriotSpec, area: AreaTable) -> str:
    lines = [
        f"Fay-Herriot model {area.formula}, method {spec.method}, by sae::mseFH.",
        "Numbers are written in hexadecimal: R reads them to the last bit, which it does not",
        "always do with decimals.",
    ]
    if spec.engine == "native":
        lines.append("The fit was native; sae comes to the same optimum with a tight PRECISION.")
        if "B" in spec.options:
            lines.append("Its mean squared errors were bootstrapped; those here are analytic.")
    return "".join(f"# {_ascii(line)}\n" for line in lines)


def _data(area: AreaTable, sampled: np.ndarray) -> str:
    names = ", ".join(map(_text, area.covariate_names))
    return (
        f"domain <- {_texts(area.domains[sampled])}\n"
        f"estimate <- {_numbers(area.estimate[sampled])}\n"
        f"variance <- {_numbers(area.variance[sampled])}\n"
        f"X <- matrix({_numbers(area.covariates[sampled].ravel(order='F'))},\n"
        f"  ncol = {area.covariates.shape[1]}, dimnames = list(NULL, c({names})))\n"
    )


def _call(spec: FayHerriotSpec, options: Any) -> str:
    seed = ""
    if spec.seed is not None:
        seed = f'set.seed({spec.seed}L, "Mersenne-Twister", "Inversion", "Rejection")\n'
    return (
        f"{seed}fit <- sae::mseFH(estimate ~ X - 1, variance, method = {_text(spec.method)},\n"
        f"  MAXITER = {options['MAXITER']}, PRECISION = {_number(options['PRECISION'])}, "
        f"B = {options['B']})\n"
        "beta <- if (fit$est$fit$convergence) fit$est$fit$estcoef$beta\n"
        "refvar <- as.numeric(fit$est$fit$refvar)\n"
        "eblup <- as.vector(fit$est$eblup)\n"
        "mse <- fit$mse\n"
    )


_SHIM_NOTE = "# Where the iteration for the moment equation fails because its solution is 0.\n"
_ZERO = """\
if (!fit$est$fit$convergence && sae_fh_zero_is_root(estimate, X, variance)) {
  zero <- sae_fh_at_zero(estimate, X, variance)
  beta <- zero$beta
  refvar <- 0
  eblup <- zero$eblup
  mse <- zero$mse
}
"""
_RESULT = "result <- data.frame(domain = domain, direct = estimate, estimate = eblup, mse = mse)\n"


def _outside(spec: FayHerriotSpec, area: AreaTable, absent: np.ndarray) -> str:
    """Domains without a direct estimate: x'beta and its mean squared error."""
    place = np.argsort(np.concatenate([np.flatnonzero(~absent), np.flatnonzero(absent)])) + 1
    return (
        "# Domains without a direct estimate, which sae does not predict.\n"
        + _shim("sae_fh_outside")
        + f"outside <- matrix({_numbers(area.covariates[absent].ravel(order='F'))},\n"
        f"  ncol = {area.covariates.shape[1]})\n"
        f"added <- data.frame(domain = {_texts(area.domains[absent])}, direct = NA_real_,\n"
        "  estimate = NA_real_, mse = NA_real_)\n"
        "if (!is.null(beta)) {\n"
        f"  more <- sae_fh_outside(X, variance, outside, beta, refvar, {_text(spec.method)})\n"
        "  added$estimate <- more$synthetic_outside\n"
        "  added$mse <- more$mse_outside\n"
        "}\n"
        f"result <- rbind(result, added)[{_numbers(place)}, ]\n"
    )


def _shim(name: str) -> str:
    """The text of one function of sae.R, which the bridge itself calls."""
    text = (resources.files("pybridge.r") / "shims" / "sae.R").read_text(encoding="utf-8")
    start = text.index(f"\n{name} <- function") + 1
    return text[start : text.index("\n}\n", start) + 3]


def _number(value: float) -> str:
    value = float(value)
    if math.isnan(value):
        return "NA_real_"
    if value.is_integer() and abs(value) < 2**53:
        return f"{value:.0f}" if value or math.copysign(1, value) > 0 else "-0"
    return value.hex()


def _wrap(items: Iterable[str]) -> str:
    """``c(…)`` over several lines: R's parser has a limit on the length of one."""
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > 90:
            lines.append(line)
            line = ""
        line += item + ", "
    return "c(" + "\n  ".join([*lines, line]).rstrip(", ") + ")"


def _numbers(values: Iterable[float]) -> str:
    return _wrap(map(_number, values))


def _texts(values: Iterable[Any]) -> str:
    return _wrap(_text(str(value)) for value in values)


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii").replace("\n", " ")


def _text(text: str) -> str:
    """An R string that a parser in any locale reads the same."""
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        elif ord(char) <= 0xFF:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(f"\\u{{{ord(char):x}}}" if ord(char) <= 0xFFFF else f"\\U{{{ord(char):x}}}")
    return '"' + "".join(out) + '"'
