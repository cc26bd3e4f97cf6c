"""What the records of evd's, ismev's and evir's functions share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._files import need_parent, write_text
from pybridge._record import Record, plain
from pybridge.engines._engine_request import refuse_redrawn
from pybridge.engines._tail_request import TailRequest, hand_on
from pybridge.provenance import Provenance, provenance
from pybridge.r import Reply

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck


def _holds(word: str, item: Any) -> bool:
    """Whether a word stands anywhere in nested mappings and lists."""
    if isinstance(item, Mapping):
        return any(_holds(word, part) for part in item.values())
    if isinstance(item, (list, tuple)):
        return any(_holds(word, part) for part in item)
    return isinstance(item, str) and item == word


@dataclass(frozen=True, eq=False, repr=False)
class TailRecord(Record):
    """What every record of a function of evd, ismev or evir holds.

    Attributes
    ----------
    request : TailRequest
        Function, R's own arguments, mode, level, time limit.
    shim : str
        The R function of pybridge that made the call.
    inputs : mapping
        What it was given.
    value : mapping
        What R's function returned, under R's own names, in the user's units.
    status : str
        ``converged``, ``not_converged``, ``weak_identification`` (fewer than 10 exceedances),
        ``nonregular`` (shape of at most -1/2), ``infeasible`` (no maximum above shape -1),
        ``degenerate`` (ties, or errors not to be trusted) or ``failed``.
    engine_status : str
        R's own word.
    conditions : tuple of str
        What R said, and what was found about its answer.
    provenance : Provenance
    """

    request: TailRequest
    shim: str
    inputs: Mapping[str, Any]
    value: Mapping[str, Any]
    status: str
    engine_status: str
    conditions: tuple[str, ...]
    provenance: Provenance

    def r_script(self, path: str | os.PathLike[str] | None = None) -> str:
        """A complete R script, data included, that gives the same numbers under plain Rscript.

        It leaves R's answer, in the user's units, in ``result``.

        Parameters
        ----------
        path : path, optional
            Where to write it too.

        Raises
        ------
        InputError
            ``no_seed`` after simulated annealing, which draws at random.
        """
        from pybridge.engines._tail_script import tail_script

        self._need_seed()
        text = tail_script(self.shim, self.request, self.inputs)
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | os.PathLike[str], data: Any = None) -> Path:
        """Save the object that R's function returns, for ``readRDS()``.

        R is asked again with the same inputs. The object of a guarded call is that of scores
        divided by ``unit``, a power of two, which is kept in its element (or attribute) ``unit``;
        a guarded fit of ismev has, in its element ``user``, the record's own coefficients ``mle``,
        ``se`` and ``cov``: its others are about the covariates' centres.

        Parameters
        ----------
        path : path
        data : None
            The record holds what R needs; there is nothing to add.

        Raises
        ------
        InputError
            ``no_seed`` after simulated annealing, which draws at random.
        """
        from pybridge.engines._tail_request import ask

        self._need_seed()
        place = need_parent(path)
        ask(self.shim, {**self.inputs, "file": str(place)}, self.request)
        return place

    def _need_seed(self) -> None:
        if _holds("SANN", [self.request.arguments, self.inputs]):
            refuse_redrawn(
                "optim's simulated annealing searched",
                hint="Any other method of optim goes the same way each time.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        held = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}
        del held["inputs"]
        return {**held, "table": plain(self.to_frame().to_dict("list"))}


@dataclass(frozen=True, eq=False, repr=False)
class TailFit(TailRecord):
    """A fit with parameters.

    Attributes
    ----------
    log_likelihood : float
        In the user's units; NaN where there is no fit.
    n_exceedances : int
        Exceedances, or clusters of them.
    exact : mapping
        Guarded: the parameters at the exact optimum, ``log_likelihood`` there,
        ``log_likelihood_at_engine`` and ``shortfall``, by how much R's answer is below.
    as_given : mapping
        Where a guarded fit asked R once more, from the exact optimum: the parameters and the
        log-likelihood of R's first answer.
    """

    log_likelihood: float
    n_exceedances: int
    exact: Mapping[str, Any]
    as_given: Mapping[str, Any]

    def _parameters(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Names, estimates (p,) and standard errors (p,)."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """One row a parameter: estimate, standard_error, lower, upper, level, exact, status.

        The intervals are normal, from the standard errors.
        """
        names, estimate, error = self._parameters()
        lower, upper = bands(estimate, error, self.request.level)
        return pd.DataFrame(
            {
                "parameter": names,
                "estimate": np.array(estimate),
                "standard_error": np.array(error),
                "lower": lower,
                "upper": upper,
                "level": self.request.level,
                "exact": [self.exact.get(name, math.nan) for name in names],
                "status": self.status,
            }
        )

    def summary(self) -> str:
        """The fit as text."""
        lines = [
            self.request.summary(),
            f"{self.n_exceedances} exceedances; status {self.status} "
            f"({self.request.package}: {self.engine_status})",
            self.to_frame().drop(columns=["level", "status"]).to_string(index=False),
            f"log-likelihood {self.log_likelihood:.6f}",
        ]
        return "\n".join([*lines, *self.conditions])

    def crosscheck(self) -> FitCrosscheck:
        """The same model by every engine that has it, guarded and raw: do they agree, and where
        do they part from the exact optimum.

        Raises
        ------
        InputError
            Where there is no exact optimum to hold them against; ``no_seed`` after simulated
            annealing, which draws at random.
        """
        from pybridge.crosscheck.exceedances import crosscheck_exceedances

        self._need_seed()
        return crosscheck_exceedances(self)


@dataclass(frozen=True, eq=False, repr=False)
class TailTable(TailRecord):
    """Values that R would draw, as a table.

    Attributes
    ----------
    table : mapping of str to numpy.ndarray
        The columns, all of one length.
    """

    table: Mapping[str, np.ndarray]

    def to_frame(self) -> pd.DataFrame:
        """The values as a table."""
        return pd.DataFrame({name: np.array(column) for name, column in self.table.items()})

    def summary(self) -> str:
        """The call, the table and what was said."""
        lines = [self.request.summary(), self.to_frame().to_string(index=False, max_rows=20)]
        return "\n".join([*lines, *self.conditions])


def common(
    asked: TailRequest,
    shim: str,
    inputs: Mapping[str, Any],
    reply: Reply,
    *,
    status: str = "converged",
    engine_status: str = "successful",
    notes: Iterable[str] = (),
    value: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The fields of every record; R's warnings become Python's."""
    hand_on(reply, asked.package)
    return {
        "request": asked,
        "shim": shim,
        "inputs": inputs,
        "value": dict(reply.value if value is None else value),
        "status": status,
        "engine_status": "error" if reply.error else engine_status,
        "conditions": (*said(reply), *notes),
        "provenance": made_by(asked, reply),
    }


def made_by(asked: TailRequest, reply: Reply) -> Provenance:
    """Who computed, with which versions and options."""
    return provenance(
        asked.package,
        asked.function,
        options={**asked.arguments, "mode": asked.mode, "level": asked.level},
        versions=reply.versions,
    )


def said(reply: Reply) -> tuple[str, ...]:
    """R's own words, for the record; what evd and ismev print of their progress left out."""
    from pybridge.engines._engine_request import said as words

    noise = ('R printed: [1] "profiling', "R printed: If routine fails")
    return tuple(line for line in words(reply) if not line.startswith(noise))


def bands(estimate: np.ndarray, error: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of normal intervals, (k,) each."""
    from statistics import NormalDist

    reach = NormalDist().inv_cdf(0.5 + level / 2.0) * error
    return estimate - reach, estimate + reach
