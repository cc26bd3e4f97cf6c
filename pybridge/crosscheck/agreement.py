"""What a comparison gives: rows, and the table of them with its counts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from pybridge._record import Record

AGREE, PART, NOT_POSSIBLE = "agree", "PART", "not possible"


@dataclass(frozen=True, eq=False, repr=False)
class AgreementRow(Record):
    """One quantity of one case, of two producers.

    Attributes
    ----------
    case, quantity : str
    producer, against : str
        Who gave the first value and who the second.
    value, reference : float
        The two numbers; of a vector, those that lie furthest apart.
    key : str
        Which element of the vector that is (a domain); "" for a single number.
    n_values : int
        How many numbers were compared.
    difference : float
        The largest difference, in ``unit``.
    unit : str
    tolerance : float
        In the same unit.
    reason : str
        Of the tolerance; of a comparison that was not possible, why not.
    verdict : str
        ``agree``, ``PART`` or ``not possible``.
    """

    case: str
    quantity: str
    producer: str
    against: str
    value: float = math.nan
    reference: float = math.nan
    key: str = ""
    n_values: int = 0
    difference: float = math.nan
    unit: str = ""
    tolerance: float = math.nan
    reason: str = ""
    verdict: str = NOT_POSSIBLE

    def summary(self) -> str:
        """One line."""
        what = f"{self.case}, {self.quantity}" + (f" of {self.key}" if self.key else "")
        if self.verdict == NOT_POSSIBLE:
            return f"{what}: {self.producer} with {self.against} not possible: {self.reason}"
        return (
            f"{what}: {self.producer} {self.value:.10g}, {self.against} {self.reference:.10g}, "
            f"apart by {self.difference:.3g} {self.unit} (at most {self.tolerance:g}: "
            f"{self.reason}): {self.verdict}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class AgreementTable(Record):
    """All comparisons of a run.

    Attributes
    ----------
    rows : tuple of AgreementRow
    """

    rows: tuple[AgreementRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def count(self, verdict: str) -> int:
        """Rows with this verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def n_made(self) -> int:
        """Comparisons that were made."""
        return len(self.rows) - self.n_not_possible

    @property
    def n_failed(self) -> int:
        """Comparisons in which the two lie further apart than the tolerance."""
        return self.count(PART)

    @property
    def n_not_possible(self) -> int:
        """Comparisons for which one side gave no number, with the reason."""
        return self.count(NOT_POSSIBLE)

    @property
    def agrees(self) -> bool:
        """Whether something was compared and nothing parts."""
        return self.n_made > 0 and self.n_failed == 0

    def having(self, verdict: str) -> tuple[AgreementRow, ...]:
        """The rows with this verdict."""
        return tuple(row for row in self.rows if row.verdict == verdict)

    def to_frame(self) -> pd.DataFrame:
        """One row a comparison, columns as the attributes of `AgreementRow`."""
        names = list(AgreementRow.__dataclass_fields__)
        return pd.DataFrame({n: [getattr(row, n) for row in self.rows] for n in names})

    def counts(self) -> str:
        """The counts in one line."""
        return (
            f"{self.n_made} comparisons made, {self.n_failed} failed, "
            f"{self.n_not_possible} not possible"
        )

    def summary(self) -> str:
        """What parts, and the counts."""
        lines = [row.summary() for row in self.having(PART)]
        return "\n".join([*lines, self.counts()])

    def text(self) -> str:
        """The whole table for reading, the reasons once each below it."""
        reasons: dict[str, int] = {}
        lines = []
        case = None
        for row in self.rows:
            if row.case != case:
                lines += ["", row.case]
                case = row.case
            lines.append("  " + _line(row, reasons))
        lines += ["", "Why these tolerances:"]
        lines += [f"  [{number}] {reason}" for reason, number in reasons.items()]
        return "\n".join(lines[1:] if lines[0] == "" else lines)


def joined(tables: Iterable[AgreementTable]) -> AgreementTable:
    """One table of several."""
    return AgreementTable(tuple(row for table in tables for row in table.rows))


def _line(row: AgreementRow, reasons: dict[str, int]) -> str:
    quantity = row.quantity
    if row.n_values > 1:
        quantity += f" ({row.n_values}, worst {row.key})" if row.key else f" ({row.n_values})"
    if row.verdict == NOT_POSSIBLE:
        return f"{quantity:<38} {row.producer} | {row.against}: not possible: {row.reason}"
    number = reasons.setdefault(row.reason, len(reasons) + 1)
    return (
        f"{quantity:<38} {row.producer:>16} {row.value:<18.12g} {row.against:>16} "
        f"{row.reference:<18.12g} {row.difference:9.2g} {row.unit:<15} "
        f"<= {row.tolerance:<7.2g} [{number}] {row.verdict}"
    )
