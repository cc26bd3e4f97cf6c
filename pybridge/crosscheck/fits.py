"""One fit by every engine that can do it: the record, and the sentence that sums it up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from pybridge._record import Record
from pybridge.crosscheck.agreement import NOT_POSSIBLE, PART, AgreementRow, AgreementTable
from pybridge.crosscheck.tolerances import STANDARD_ERROR

# Differences of a criterion below this are rounding: neither answer is nearer to the optimum.
_LEVEL = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class EngineAnswer(Record):
    """What one engine answered.

    Attributes
    ----------
    producer : str
        Engine and mode, ``"sae guarded"``.
    status : str
        In the words used everywhere; ``"error"`` where the engine stopped.
    numbers : mapping of str to float
        Parameters of the model, by name.
    criterion : float
        What the method maximises, at these parameters, computed natively; NaN where there is none.
    conditions : tuple of str
        What the engine said.
    """

    producer: str
    status: str
    numbers: Mapping[str, float]
    criterion: float = math.nan
    conditions: tuple[str, ...] = ()

    @property
    def has_numbers(self) -> bool:
        """Whether there is anything to compare."""
        return any(math.isfinite(value) for value in self.numbers.values())

    def summary(self) -> str:
        """One line."""
        numbers = ", ".join(f"{name} {value:.8g}" for name, value in self.numbers.items())
        return f"{self.producer} ({self.status}): {numbers}"


@dataclass(frozen=True, eq=False, repr=False)
class FitCrosscheck(Record):
    """The same fit by every engine that can do it, and whether they agree.

    Attributes
    ----------
    subject : str
        What was fitted.
    answers : tuple of EngineAnswer
    table : AgreementTable
        The comparisons, each engine with the exact one.
    criterion_name : str
        What the method maximises, for example ``"restricted log-likelihood"``; "" for none.
    unavailable : mapping of str to str
        Engines that could do it and could not be asked, with the reason.
    """

    subject: str
    answers: tuple[EngineAnswer, ...]
    table: AgreementTable
    criterion_name: str = ""
    unavailable: Mapping[str, str] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether at least two engines gave numbers and nothing parts."""
        return self.table.agrees

    @property
    def nearest(self) -> tuple[str, ...]:
        """The producers nearest to the optimum, by the criterion; empty where there is none."""
        heights = {a.producer: a.criterion for a in self.answers if math.isfinite(a.criterion)}
        best = max(heights.values(), default=math.nan)
        return tuple(name for name, value in heights.items() if best - value <= _LEVEL)

    def lacking(self, producer: str) -> float:
        """How far below the best criterion this producer ended; NaN where there is none."""
        heights = {a.producer: a.criterion for a in self.answers}
        known = [value for value in heights.values() if math.isfinite(value)]
        return max(known) - heights[producer] if known else math.nan

    @property
    def sentence(self) -> str:
        """Whether the engines agree, where they part, and which is nearer to the optimum."""
        with_numbers = [a.producer for a in self.answers if a.has_numbers]
        parts = [_agreement_in_words(self.table, with_numbers)]
        silent = [f"{a.producer} ({a.status})" for a in self.answers if not a.has_numbers]
        if silent:
            parts.append(f"No numbers from {_and(silent)}.")
        if self.criterion_name and len(with_numbers) > 1:
            parts.append(self._nearest_in_words())
        reasons: dict[str, list[str]] = {}
        for engine, why in self.unavailable.items():
            reasons.setdefault(why.rstrip("."), []).append(engine)
        parts += [f"{_and(names)} could not be asked: {why}." for why, names in reasons.items()]
        return " ".join(part for part in parts if part)

    def _nearest_in_words(self) -> str:
        nearest = self.nearest
        others = [a for a in self.answers if a.has_numbers and a.producer not in nearest]
        if not nearest or not others:
            return ""
        short = _and([f"{a.producer} by {self.lacking(a.producer):.3g}" for a in others])
        return (
            f"Nearest to the optimum {'is' if len(nearest) == 1 else 'are'} {_and(nearest)}; "
            f"below in {self.criterion_name}: {short}."
        )

    def to_frame(self) -> pd.DataFrame:
        """One row an engine and mode: producer, status, its numbers, criterion, agrees."""
        parted = {row.producer for row in self.table.having(PART)}
        compared = {row.producer for row in self.table.rows if row.verdict != NOT_POSSIBLE}
        compared |= {row.against for row in self.table.rows if row.verdict != NOT_POSSIBLE}
        rows = []
        for answer in self.answers:
            agrees = answer.producer in compared and answer.producer not in parted
            row: dict[str, Any] = {
                "producer": answer.producer,
                "status": answer.status,
                **answer.numbers,
            }
            if self.criterion_name:
                row["criterion"] = answer.criterion
                row["below_best"] = self.lacking(answer.producer)
            rows.append({**row, "agrees": agrees})
        return pd.DataFrame(rows)

    def summary(self) -> str:
        """The sentence, the answers, and the largest difference of every quantity."""
        lines = [f"Cross-check: {self.subject}", self.sentence, ""]
        lines.append(
            self.to_frame().to_string(index=False, float_format=lambda value: f"{value:.8g}")
        )
        if self.table.rows:
            lines += ["", self.table.text(), "", self.table.counts()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for ``json``."""
        return {**super().to_dict(), "agrees": self.agrees, "sentence": self.sentence}


def _agreement_in_words(table: AgreementTable, producers: Sequence[str]) -> str:
    if not table.n_made:
        why = f"only {producers[0]} gave numbers" if producers else "no engine gave numbers"
        if len(producers) > 1:
            why = f"there is no exact answer to hold {_and(producers)} against"
        return f"Nothing was compared: {why}."
    parted = table.having(PART)
    if not parted:
        made = [row for row in table.rows if row.verdict != NOT_POSSIBLE]
        worst = max(made, key=_strain)
        return f"{_and(producers)} agree: at most {_gap(worst)} apart ({_what(worst)})."
    named: dict[tuple[Any, ...], list[str]] = {}
    for producer in dict.fromkeys(row.producer for row in parted):
        own = [row for row in parted if row.producer == producer]
        worst = max([r for r in own if r.unit == STANDARD_ERROR] or own, key=_strain)
        where = tuple(dict.fromkeys(row.quantity for row in own))
        # Two modes of an engine that say the same share a sentence.
        facts = (worst.against, where, _what(worst), worst.value, worst.reference, _gap(worst))
        named.setdefault(facts, []).append(producer)
    return " ".join(_parting(facts, producers) for facts, producers in named.items())


def _parting(facts: tuple[Any, ...], producers: Sequence[str]) -> str:
    against, where, what, value, reference, gap = facts
    verb = "parts" if len(producers) == 1 else "part"
    return (
        f"{_and(producers)} {verb} from {against} in {_and(where)}, most in {what}: "
        f"{value:.6g} against {reference:.6g}, {gap} apart."
    )


def _strain(row: AgreementRow) -> float:
    """Difference over tolerance: what makes differences in several units comparable."""
    if row.tolerance > 0:
        return row.difference / row.tolerance
    return math.inf if row.difference > 0 else 0.0


def _gap(row: AgreementRow) -> str:
    return f"{row.difference:.2g} {row.unit}"


def _what(row: AgreementRow) -> str:
    return row.quantity + (f" of {row.key}" if row.key else "")


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
