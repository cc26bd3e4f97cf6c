"""Who computed a tail fit, with what: engine, versions, options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._record import FrozenMapping, Record
from pybridge._version import __version__


@dataclass(frozen=True, eq=False, repr=False)
class TailProvenance(Record):
    """Engine, method, mode, versions and options of one fit.

    Attributes
    ----------
    engine, method, mode : str
    versions : FrozenMapping
        Of pybridge and numpy, and of R and its packages where R computed.
    options : FrozenMapping
        As the user gave them.
    """

    engine: str
    method: str
    mode: str
    versions: FrozenMapping
    options: FrozenMapping


def provenance(
    *,
    engine: str,
    method: str,
    mode: str,
    versions: Iterable[tuple[str, str]] = (),
    options: Mapping[str, Any] | None = None,
) -> TailProvenance:
    """The provenance of one fit; ``versions`` are those of R and its packages."""
    known = {"pybridge": __version__, "numpy": np.__version__, **dict(versions)}
    return TailProvenance(engine, method, mode, FrozenMapping(known), FrozenMapping(options or {}))
