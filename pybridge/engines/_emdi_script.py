"""A fit by emdi as a plain R script, data included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge.engines._emdi_request import FhRequest

_FILES = ("_shared.R", "emdi.R")
_FUNCTION = re.compile(r"^([a-z]\w*) <- function\(", re.MULTILINE)
_WORD = re.compile(r"\b(?:shared|emdi)_\w+\b")


def fh_script(request: FhRequest) -> str:
    """The data, the call of emdi::fh, and what the guarded mode adds to it."""
    head = [
        f"emdi::fh, {request.fixed}, method {request.method}, mode {request.mode}.",
        "Numbers are written in hexadecimal: R reads them to the last bit, which it does not",
        "always do with decimals.",
    ]
    parts = ["".join(f"# {_ascii(line)}\n" for line in head), _data(request)]
    if request.guarded:
        parts += [functions("emdi_object"), _guarded(request)]
    else:
        parts.append(_plain(request))
    parts.append(
        "result <- data.frame(domain = domain, direct = object$ind$Direct,\n"
        "  estimate = as.vector(object$ind$FH))\n"
        "if (!is.null(object$MSE$FH)) result$mse <- as.vector(object$MSE$FH)\n"
        "print(result, digits = 10)\n"
        "print(object$model$variance, digits = 10)\n"
    )
    return "\n".join(parts)


def functions(*roots: str) -> str:
    """The text of these functions of the shims, and of all that they call."""
    known = _known()
    wanted, queue = [], list(roots)
    while queue:
        name = queue.pop(0)
        if name in wanted or name not in known:
            continue
        wanted.append(name)
        queue += _WORD.findall(known[name])
    note = "# What the bridge to Python calls in its guarded mode.\n"
    return note + "".join(known[name] for name in known if name in wanted)


def _known() -> dict[str, str]:
    """Every function of the files: its text with the comment above it."""
    found: dict[str, str] = {}
    for file in _FILES:
        text = (resources.files("pybridge.r") / "shims" / file).read_text(encoding="utf-8")
        for match in _FUNCTION.finditer(text):
            line_end = text.index("\n", match.start())
            one_line = not text[match.start() : line_end].rstrip().endswith(("{", ",", "("))
            end = line_end + 1 if one_line else text.index("\n}\n", match.start()) + 3
            found[match[1]] = text[match.start() : end]
    return found


def _data(request: FhRequest) -> str:
    columns = ",\n".join(
        f"  {r.name(name)} = {_column(column)}" for name, column in request.columns.items()
    )
    text = f"data <- list(\n{columns}\n)\n"
    text += f"domain <- {r.vector(r.text(str(label)) for label in request.domains)}\n"
    if request.proximity is not None:
        text += f"corMatrix <- {matrix(request.proximity)}\n"
    if request.errors is not None:
        shape = ", ".join(map(str, request.errors.shape))
        flat = r.vector(map(r.number, request.errors.ravel(order="F")))
        text += f"Ci <- array({flat},\n  c({shape}))\n"
    return text


def _column(column: Any) -> str:
    if isinstance(column, Mapping):
        codes = r.vector(map(r.number, column["codes"]))
        return f"list(codes = {codes},\n    levels = {r.value(list(column['levels']))})"
    return r.column(column)


def matrix(values: np.ndarray) -> str:
    """A matrix, column by column."""
    flat = r.vector(map(r.number, values.ravel(order="F")))
    return f"matrix({flat},\n  nrow = {values.shape[0]})"


def _arguments(request: FhRequest) -> list[str]:
    return [
        f"{name} = {_argument(name, value)}"
        for name, value in request.arguments.items()
        if value is not None or name == "seed"
    ]


def _argument(name: str, value: Any) -> str:
    return f"{value}L" if name in ("seed", "maxit") and value is not None else r.value(value)


def _plain(request: FhRequest) -> str:
    """The call as an R user writes it."""
    words = [f"fixed = {request.code}", "combined_data = combined_data"]
    if request.proximity is not None:
        words.append("corMatrix = corMatrix")
    if request.errors is not None:
        words.append("Ci = Ci")
    words += _arguments(request)
    return (
        f'{_factors(request)}combined_data <- structure(data, class = "data.frame",\n'
        "  row.names = seq_along(data[[1L]]))\n"
        'RNGkind("Mersenne-Twister", "Inversion", "Rejection")\n'
        "object <- emdi::fh(\n  " + ",\n  ".join(words) + "\n)\n"
    )


def _factors(request: FhRequest) -> str:
    text = ""
    for name, column in request.columns.items():
        if isinstance(column, Mapping):
            place = f"data${r.name(name)}"
            text += (
                f"{place} <- structure(as.integer({place}$codes) + 1L, levels = {place}$levels,\n"
                '  class = "factor")\n'
            )
    return text


def _guarded(request: FhRequest) -> str:
    words = [
        "data = data",
        f"fixed = {r.text(request.code)}",
        f"outcome = {r.text(request.outcome)}",
        f"arguments = list({', '.join(_arguments(request))})",
        "guarded = TRUE",
        f"unit = {r.number(request.unit)}",
        f"exact = {r.value(request.exact)}",
    ]
    if request.proximity is not None:
        words.append("proximity = corMatrix")
    if request.errors is not None:
        words += ["errors = as.vector(Ci)", "errors_dim = dim(Ci)"]
    if request.covariates_unit is not None:
        words.append(f"covariates_unit = {r.value(list(request.covariates_unit))}")
    return (
        f"request <- list(\n  {f',{chr(10)}  '.join(words)}\n)\n" "object <- emdi_object(request)\n"
    )


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii").replace("\n", " ")
