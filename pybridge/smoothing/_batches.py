"""Several problems in one round trip to R, for adapters whose engine takes tables one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge.errors import EngineError, InputError, PybridgeError
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.tables.area import AreaTable

if TYPE_CHECKING:
    from pybridge.r import Reply


def numbered_table(problem: AreaProblem) -> AreaTable:
    """Arrays as a table of numbered domains."""
    z, d, x = (
        np.asarray(array, dtype=np.float64)
        for array in (problem.estimate, problem.variance, problem.covariates)
    )
    names = tuple(f"x{j + 1}" for j in range(x.shape[1]))
    return AreaTable(
        formula="estimate ~ 0 + " + " + ".join(names),
        outcome="estimate",
        variance_name="variance",
        domain_name="domain",
        domains=np.arange(len(z)).astype(object),
        estimate=z,
        variance=d,
        covariates=x,
        covariate_names=names,
    )


def numbered_levels(codes: Sequence[np.ndarray]) -> TaxonomyLevels:
    """Codes of nested levels, coarse to fine, as a taxonomy of numbered groups."""
    return TaxonomyLevels(
        names=tuple(f"level{place + 1}" for place in range(len(codes))),
        codes=tuple(np.asarray(code, dtype=np.intp) for code in codes),
        labels=tuple(np.arange(int(code.max()) + 1).astype(object) for code in codes),
    )


def in_one_call(
    problems: Sequence[AreaProblem],
    *,
    inputs: Callable[[AreaTable], dict[str, Any]],
    call: Callable[[list[dict[str, Any]]], list[Reply]],
    read: Callable[[AreaTable, Reply], Any],
) -> list[Any]:
    """The answer to every problem, or the error in its place.

    Parameters
    ----------
    problems : sequence of AreaProblem
    inputs : callable
        The named list for R; an InputError of it stands for its problem.
    call : callable
        All named lists to R in one round trip.
    read : callable
        R's reply as a fit.
    """
    tables = [numbered_table(problem) for problem in problems]
    found: list[Any] = []
    asked: list[tuple[int, dict[str, Any]]] = []
    for k, table in enumerate(tables):
        try:
            asked.append((k, inputs(table)))
            found.append(None)
        except InputError as error:
            found.append(error)
    if not asked:
        return found
    for (k, _), reply in zip(asked, call([item for _, item in asked])):
        found[k] = _read(tables[k], reply, read)
    return found


def _read(table: AreaTable, reply: Reply, read: Callable[[AreaTable, Reply], Any]) -> Any:
    if reply.error is not None:
        return EngineError(
            f"R stopped in one fit of the batch, calling {reply.error.get('call')}",
            code="r_error",
            field="engine",
            expected="an answer from R",
            got=reply.error.get("message"),
            hint="The same table by fay_herriot alone says what to look for.",
        )
    try:
        return read(table, reply)
    except PybridgeError as error:
        return error
