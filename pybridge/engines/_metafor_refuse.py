"""What metafor::rma.mv would stop at with other words, or mend: terms, matrices, optimisers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge.engines._matrices import need_covariance, need_symmetric
from pybridge.engines._r_formula import RFormula
from pybridge.errors import InputError

_METHODS = ("Nelder-Mead", "BFGS", "CG", "L-BFGS-B", "SANN", "Brent")
_OPTIMIZERS = (
    *("optim", "nlminb", "uobyqa", "newuoa", "bobyqa", "nloptr", "nlm", "hjk", "nmk", "mads"),
    *("ucminf", "lbfgsb3c", "subplex", "BBoptim", "optimParallel", *_METHODS),
)
_INTERCEPTS = re.compile(r"~1\|")
# R's words where the numbers are at fault, not the call: such a fit is a status.
NUMERICAL = re.compile(
    r"converge|during the optimization|[Cc]holeski|positive definite|initial values|full rank"
    r"|singular|[Hh]essian"
)


def check_call(read: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """InputError for terms, known correlations and optimisers that rma.mv does not take."""
    _check_terms(read["random"])
    control = inputs["options"].get("control") or {}
    for name, words in (("optimizer", _OPTIMIZERS), ("optmethod", _METHODS)):
        given = control.get(name)
        # R completes words that are cut short.
        if given is not None and not any(word.startswith(str(given)) for word in words):
            raise InputError(
                f"metafor has no {name} of this name",
                code="unknown_option",
                field="control",
                expected=f"{name}: {' | '.join(words)}",
                got=given,
            )


def _check_terms(terms: Sequence[RFormula]) -> None:
    structured = 0
    for term in terms:
        code = term.code.replace(" ", "")
        inner, bar, outer = code.partition("|")
        slopes = not _INTERCEPTS.match(code)
        structured += slopes
        fault = ""
        if not bar or not outer:
            fault = "has no grouping factor after a bar"
        elif ":" in code:
            fault = "joins factors by a colon"
        elif slopes and "/" in code:
            fault = "nests the outer factor of a term with an inner one"
        if fault:
            raise InputError(
                f"a random term {fault}",
                code="bad_formula",
                field="random",
                expected="'~ 1 | region', '~ 1 | region/county' or '~ inner | outer'",
                got=term.text,
                hint="Of joint factors make one column." if ":" in code else None,
            )
    if structured > 2:
        raise InputError(
            "metafor takes two terms with an inner factor at most",
            code="too_many_terms",
            field="random",
            expected="up to two of the form '~ inner | outer'",
            got=f"{structured} of them",
        )


def check_matrices(inputs: Mapping[str, Any], rows: np.ndarray, labels: np.ndarray) -> None:
    """InputError for V, W and R where they are no matrices of covariances, weights, correlations.

    Parameters
    ----------
    rows : (m,) of bool
        Those that are fitted; ``labels`` (m,) are theirs and the others'.
    """
    if inputs["matrix"] is not None:
        V = np.asarray(inputs["matrix"])[np.ix_(rows, rows)]
        need_covariance(V, "V", labels[rows])
    if inputs["W"] is not None:
        _check_weights(np.asarray(inputs["W"]), rows, labels)
    for name, item in (inputs["R"] or {}).items():
        _check_correlations(name, item, inputs, rows)


def _check_weights(W: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> None:
    if W.ndim == 2:
        need_symmetric(W[np.ix_(rows, rows)], "W", labels[rows])
        return
    bad = rows & ~((W >= 0) & np.isfinite(W))
    if bad.any() or not W[rows].any():
        raise InputError(
            "weights must be finite numbers of at least 0, and not all 0",
            code="bad_weight",
            field="W",
            expected="a weight for every row",
            got=f"others in {listed(labels[bad])}" if bad.any() else "0 in every row",
        )


def _check_correlations(
    name: str, item: Mapping[str, Any], inputs: Mapping[str, Any], rows: np.ndarray
) -> None:
    """One of the matrices in R, as rma.mv looks it up."""
    factors = [code.replace(" ", "").partition("|")[2] for code in inputs["random"]]
    plain_name = name.replace(" ", "")
    if not any(plain_name in _nested(factor) for factor in factors):
        raise InputError(
            "there is no random factor of this name, so that R would disregard the matrix",
            code="unknown_factor",
            field="R",
            expected=f"names of random factors: {', '.join(factors) or 'none'}",
            got=name,
        )
    labels = np.array(item["labels"], dtype=object)
    need_covariance(np.asarray(item["matrix"]), "R", labels)
    groups = _groups(inputs["data"].get(name), rows)
    absent = [group for group in groups if group not in set(item["labels"])]
    if absent:
        raise InputError(
            f"the correlations of {name!r} lack groups that the table has",
            code="unknown_group",
            field="R",
            expected="a row and a column for every group",
            got=f"not there: {listed(np.array(absent, dtype=object))}",
        )


def _nested(factor: str) -> list[str]:
    """The factors that R makes of one term: a, a/b, a/b/c."""
    parts = factor.split("/")
    return ["/".join(parts[: k + 1]) for k in range(len(parts))]


def _groups(column: Any, rows: np.ndarray) -> list[str]:
    """The groups as R writes them; none where that is not plain (numbers, joint factors)."""
    if isinstance(column, Mapping):
        codes = np.asarray(column["codes"])[rows].astype(np.intp)
        return [str(column["levels"][code]) for code in np.unique(codes[codes >= 0])]
    if column is None or np.asarray(column).dtype != object:
        return []
    return list(dict.fromkeys(str(value) for value in np.asarray(column)[rows]))
