"""The protocol: every value that a verdict depends on, and its digest."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd

from pybridge._record import Record, plain
from pybridge.protocol._schema import KEYS
from pybridge.tails.planning import required_exceedances
from pybridge.tails.transforms import Transform

if TYPE_CHECKING:
    from pybridge.protocol.registration import Registration


@dataclass(frozen=True, eq=False, repr=False)
class Protocol(Record):
    """What was planned. ``load_protocol`` makes it from a file, ``make_protocol`` from values.

    Attributes
    ----------
    format, title, models, scorers, seed
        ``pairs`` is "all" or a tuple of pairs of models.
    quantile, engine
        Of the tail.
    kind, edge, epsilon, scale, shift
        Of the transform.
    replicates, level, pairing, equivalence_scale
        Of the bootstrap.
    mean_margin, tail_margin, tail_quantile, difference, power, alpha, planning_shape, fit_alpha,
    fit_method, fit_replicates, half_width, points, tolerance, floor
        Of the gates and criteria.
    scan_quantiles
    overrides : mapping
        For some scorers, other values by "section.key".
    source : str
        The file it came from, "" without one; not part of the digest.
    """

    format: int
    title: str
    models: tuple[str, ...]
    scorers: tuple[str, ...]
    pairs: str | tuple[tuple[str, str], ...]
    seed: int
    quantile: float
    engine: str
    kind: str
    edge: str
    epsilon: float
    scale: float
    shift: float
    replicates: int
    level: float
    pairing: str
    equivalence_scale: str
    mean_margin: float
    tail_margin: float
    tail_quantile: float
    difference: float
    power: float
    alpha: float
    planning_shape: float
    fit_alpha: float
    fit_method: str
    fit_replicates: int
    half_width: float
    points: int
    tolerance: float | str
    floor: float
    scan_quantiles: tuple[float, ...]
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = ""

    @property
    def transform(self) -> Transform:
        return Transform(self.kind, self.edge, self.epsilon, self.scale, self.shift)

    @property
    def model_pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of models, each once."""
        if isinstance(self.pairs, str):
            return tuple(itertools.combinations(self.models, 2))
        return self.pairs

    @property
    def required_exceedances(self) -> int:
        """N* of G3."""
        return required_exceedances(
            self.difference, shape=self.planning_shape, power=self.power, alpha=self.alpha
        )

    def for_scorer(self, scorer: str) -> Protocol:
        """The protocol with the values of one scorer in place."""
        places = {key.place: key.field for key in KEYS}
        changed = {places[place]: value for place, value in self.overrides.get(scorer, {}).items()}
        return replace(self, **changed, overrides={})

    def canonical(self) -> dict[str, Any]:
        """Every value by section and key, in the file's words; what the digest is of."""
        out: dict[str, Any] = {}
        for key in KEYS:
            place = out.setdefault(key.section, {}) if key.section else out
            place[key.name] = plain(getattr(self, key.field))
        out["scorer"] = plain(self.overrides)
        return out

    def sha256(self) -> str:
        """Digest of the canonical form: the same for the same values, whatever the layout."""
        return canonical_sha256(self.canonical())

    def register(self, path: str | PathLike[str] | None = None, *, now: Any = None) -> Registration:
        """Write the canonical form with its digest and the date; see ``registration``."""
        from pybridge.protocol.registration import register

        return register(self, path, now=now)

    def to_frame(self) -> pd.DataFrame:
        """One row a key."""
        rows = [(key.place, plain(getattr(self, key.field)), key.comment) for key in KEYS]
        return pd.DataFrame(rows, columns=["key", "value", "meaning"])

    def summary(self) -> str:
        lines = [f"Protocol {self.title!r}, SHA-256 {self.sha256()}"]
        lines += [f"  {key.place} = {plain(getattr(self, key.field))!r}" for key in KEYS]
        lines.append(f"  N* of G3: {self.required_exceedances} exceedances a model")
        return "\n".join(lines)


def canonical_sha256(values: Mapping[str, Any]) -> str:
    """SHA-256 of JSON with sorted keys and no spaces; it depends on no other library's layout."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
