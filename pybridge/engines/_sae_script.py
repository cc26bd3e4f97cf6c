"""A call of sae as a plain R script, data included, the way an R user would write it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge.engines._engine_request import EngineRequest

# Arguments of sae that are columns of `data`, and those that are tables of their own.
_COLUMNS = ("vardir", "y", "dom", "sweight", "ps")
_TABLES = ("meanxpop", "popnsize", "domsize", "domsizebyps", "direct", "synthetic")

_HEAD = """\
# {call}
# Numbers are written in hexadecimal: R reads them to the last bit, which it does not always do
# with decimals. Random numbers depend on the seed below, and linear algebra on R's BLAS.
"""

# Labels as their places in sorted order, as the guarded mode sends them.
_CODES = """\
# sae makes a matrix of domains and means where there is one covariate: no text for domains.
labels <- sort(
  unique(c(data${dom}, meanxpop[[1]], popnsize[[1]], selectdom)), method = "radix"
)
data$.domain. <- match(data${dom}, labels)
meanxpop[[1]] <- match(meanxpop[[1]], labels)
popnsize[[1]] <- match(popnsize[[1]], labels)
selectdom <- match(selectdom, labels)
"""


def sae_script(
    asked: EngineRequest,
    inputs: Mapping[str, Any],
    labels: Mapping[str, Any] | None,
    *,
    at_zero: bool = False,
) -> str:
    """The script; it leaves R's answer in ``fit``.

    Parameters
    ----------
    asked : EngineRequest
    inputs : mapping
        As the shim got them.
    labels : mapping or None
        What the rows are, where the answer is by rows.
    at_zero : bool
        Whether the moment equation has its solution at 0, where sae does not get.
    """
    parts = [_HEAD.format(call=r.ascii_line(asked.summary()))]
    if inputs.get("columns"):
        parts.append(_columns(inputs["columns"]))
    parts.append(f"data <- {r.frame(inputs['data'])}\n")
    if inputs.get("proxmat") is not None:
        parts.append(_matrix("proxmat", np.asarray(inputs["proxmat"])))
    for name in _TABLES:
        if inputs.get(name) is not None:
            parts.append(f"{name} <- {r.frame(inputs[name])}\n")
    if inputs.get("selectdom") is not None:
        parts.append(f"selectdom <- {r.column(inputs['selectdom'])}\n")
    if inputs.get("coded"):
        parts.append(_CODES.format(dom=r.name(inputs["dom"])))
        inputs = {**inputs, "dom": ".domain."}
    if asked.seed is not None:
        parts.append(f'set.seed({asked.seed}L, "Mersenne-Twister", "Inversion", "Rejection")\n')
    parts.append(_call(asked, inputs))
    if at_zero:
        parts.append(_at_zero(inputs))
    if inputs.get("coded"):
        parts.append(_own_function("sae_unit.R", "sae_unit_relabel"))
        parts.append("fit <- sae_unit_relabel(fit, labels)\n")
    parts.append(_tail(asked, labels))
    return "".join(parts)


def _columns(made_up: Mapping[str, str]) -> str:
    """What the made-up names stand for: R shows it with ``print(columns)`` in any script."""
    words = ", ".join(f"{r.name(name)} = {r.text(column)}" for name, column in made_up.items())
    return "# Names that columns have here, and what they stand for.\n" f"columns <- c({words})\n"


def _call(asked: EngineRequest, inputs: Mapping[str, Any]) -> str:
    words = [str(inputs["formula"])] if inputs.get("formula") else []
    for name in _COLUMNS:
        if inputs.get(name) is not None:
            words.append(f"{name} = {r.name(inputs[name])}")
    for name in ("proxmat", *_TABLES, "selectdom"):
        if inputs.get(name) is not None:
            words.append(f"{name} = {name}")
    for name, value in inputs["options"].items():
        if value is not None:
            words.append(f"{name} = {r.value(value)}")
    return f"fit <- sae::{asked.function}(\n  " + ",\n  ".join([*words, "data = data"]) + "\n)\n"


def _own_function(file: str, name: str) -> str:
    """The text of one function of the bridge's own in R."""
    text = (resources.files("pybridge.r") / "shims" / file).read_text(encoding="utf-8")
    start = text.index(f"\n{name} <- function") + 1
    return text[start : text.index("\n}\n", start) + 3]


def _at_zero(inputs: Mapping[str, Any]) -> str:
    """What the guarded mode puts in place of sae's NA; the functions are the bridge's own."""
    vardir = f"data${r.name(inputs['vardir'])}"
    return (
        "\n# The iteration for the moment equation fails, because its solution is 0.\n"
        + _own_function("sae.R", "sae_fh_at_zero")
        + _own_function("sae.R", "sae_fh_put_zero")
        + f"fit <- sae_fh_put_zero(fit, {inputs['formula']}, {vardir}, data)\n"
    )


def _tail(asked: EngineRequest, labels: Mapping[str, Any] | None) -> str:
    if labels is None:
        return "print(fit)\n"
    rows = ", ".join(f"{name} = {r.column(column)}" for name, column in labels.items())
    if asked.function.startswith("eblup"):
        return (
            f"result <- data.frame({rows},\n  estimate = as.vector(fit$eblup))\n"
            "print(result, digits = 10)\nprint(fit$fit)\n"
        )
    return (
        f"result <- data.frame({rows},\n  estimate = as.vector(fit$est$eblup), mse = fit$mse)\n"
        "print(result, digits = 10)\nprint(fit$est$fit)\n"
    )


def _matrix(name: str, matrix: np.ndarray) -> str:
    """A matrix by what is not 0 in it."""
    rows, columns = np.nonzero(matrix)
    places = f"{r.vector(map(r.number, rows + 1))},\n  {r.vector(map(r.number, columns + 1))}"
    return (
        f"{name} <- matrix(0, {matrix.shape[0]}, {matrix.shape[1]})\n"
        f"{name}[cbind({places})] <-\n  {r.vector(map(r.number, matrix[rows, columns]))}\n"
    )
