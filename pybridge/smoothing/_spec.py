"""What was asked of an area-level model, beside the table: one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pybridge._record import Record
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class FayHerriotSpec(Record):
    """The request.

    Attributes
    ----------
    engine, method, mode : str
        In the words of `fay_herriot`, the method in the engine's own case.
    level : float
    seed : int or None
    options : mapping
        The engine's own options, under its own names, completed with their defaults.
    correlation : str or None
        ``"spatial"`` or ``"spatio-temporal"`` where domain effects are correlated.
    proximity : numpy.ndarray or None
        Shape (m, m) then, rows and columns in the order in which the table names its m domains.
    """

    engine: str
    method: str
    mode: str = "guarded"
    level: float = 0.95
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    correlation: str | None = None
    proximity: np.ndarray | None = None

    def summary(self) -> str:
        """One line."""
        options = ", ".join(f"{name}={value}" for name, value in shown(self.options).items())
        correlated = "" if self.correlation is None else f", {self.correlation} correlation"
        return f"engine {self.engine}, method {self.method}, mode {self.mode}{correlated}" + (
            f", {options}" if options else ""
        )


def shown(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options to be read: arrays by their shape."""
    return {
        name: f"array of shape {value.shape}" if isinstance(value, np.ndarray) else value
        for name, value in options.items()
    }


def refuse_options(given: Mapping[str, Any], allowed: tuple[str, ...], *, engine: str) -> None:
    """InputError for options that the engine does not have."""
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise InputError(
            f"engine {engine!r} has no option {', '.join(unknown)}",
            code="unknown_option",
            field=unknown[0],
            expected=", ".join(allowed) or "no further options",
            got=", ".join(unknown),
        )
