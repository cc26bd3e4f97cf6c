"""Two answers to one question, compared in the unit of the tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import (
    AGREE,
    NOT_POSSIBLE,
    PART,
    AgreementRow,
    AgreementTable,
)
from pybridge.crosscheck.tolerances import (
    BITS,
    LAST_DIGIT,
    LOG_LIKELIHOOD,
    RELATIVE,
    STANDARD_ERROR,
    Tolerance,
)

# Of a number that is known without error (a domain observed in full), a standard error of 0 would
# make rounding infinite: no standard error counts as less than this share of the number itself.
LEAST_STANDARD_ERROR = 1e-4

ALL_QUANTITIES = "all quantities"

Question = tuple[str, str]  # case, quantity


@dataclass(frozen=True)
class Answers:
    """What one producer says.

    Attributes
    ----------
    producer : str
    values : mapping of (case, quantity)
        Numbers or vectors; NaN where the producer says that there is no number.
    absent : mapping of case to str
        Why it says nothing to a case; "" stands for every case.
    """

    producer: str
    values: Mapping[Question, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    def why_absent(self, case: str) -> str:
        """The reason, or "" where none was given."""
        return self.absent.get(case, "") or self.absent.get("", "")


@dataclass(frozen=True)
class Pairing:
    """Which producer is held against which other one, and how closely.

    Attributes
    ----------
    producer, against : str
    tolerances : mapping of quantity to Tolerance
        A quantity that is not named here is not compared.
    """

    producer: str
    against: str
    tolerances: Mapping[str, Tolerance]


def compare(
    *,
    case: str,
    quantity: str,
    producer: str,
    values: Any,
    against: str,
    reference: Any,
    tolerance: Tolerance,
    unit: Any = None,
    keys: Sequence[Any] | None = None,
) -> AgreementRow:
    """Compare two answers.

    Parameters
    ----------
    values, reference : float or (k,) array
        NaN on both sides is agreement that there is no number; NaN on one side is not.
    tolerance : Tolerance
    unit : float or (k,) array, optional
        Standard errors, for a tolerance in these; a unit of the last digit, for ``last
        digits``; for a relative tolerance the least scale (none: the larger of the numbers).
    keys : sequence of k, optional
        Names of the elements.
    """
    a = np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()
    b = np.atleast_1d(np.asarray(reference, dtype=np.float64)).ravel()
    words: dict[str, Any] = {
        "case": case,
        "quantity": quantity,
        "producer": producer,
        "against": against,
    }
    if a.shape != b.shape or a.size == 0:
        text = f"{a.size} numbers against {b.size}"
        return AgreementRow(**words, n_values=a.size, reason=text, verdict=PART)
    gaps = differences(a, b, tolerance=tolerance, unit=unit)
    worst = int(np.argmax(gaps))
    return AgreementRow(
        **words,
        value=float(a[worst]),
        reference=float(b[worst]),
        key=str(keys[worst]) if keys is not None and a.size > 1 else "",
        n_values=a.size,
        difference=float(gaps[worst]),
        unit=tolerance.unit,
        tolerance=tolerance.limit,
        reason=tolerance.reason,
        verdict=AGREE if gaps[worst] <= tolerance.limit else PART,
    )


def differences(
    a: np.ndarray, b: np.ndarray, *, tolerance: Tolerance, unit: Any = None
) -> np.ndarray:
    """Differences (k,) of two vectors (k,) in the tolerance's unit; infinite where one is NaN."""
    if tolerance.unit == BITS:
        gaps = representable_apart(a, b)
    else:
        scale = _scale(a, b, tolerance.unit, unit)
        with np.errstate(invalid="ignore", divide="ignore"):
            gaps = (a - b) / scale if tolerance.one_sided else np.abs(a - b) / scale
        gaps = np.where(a == b, 0.0, gaps)
    gaps = np.where(np.isnan(a) & np.isnan(b), 0.0, gaps)
    return np.where(np.isnan(a) != np.isnan(b), np.inf, gaps)


def _scale(a: np.ndarray, b: np.ndarray, kind: str, unit: Any) -> np.ndarray:
    larger = np.maximum(np.abs(a), np.abs(b))
    if kind == LOG_LIKELIHOOD:
        return np.ones_like(a)
    if kind == RELATIVE:
        return larger if unit is None else np.fmax(np.broadcast_to(unit, a.shape), larger)
    if unit is None:
        raise ValueError(f"a tolerance in {kind} needs the unit")
    given = np.broadcast_to(np.asarray(unit, dtype=np.float64), a.shape)
    if kind == LAST_DIGIT:
        return given
    assert kind == STANDARD_ERROR
    return np.fmax(given, LEAST_STANDARD_ERROR * larger)


def representable_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many float64 numbers lie between two (k,): 0 where they are the same to the last bit."""
    # In this order the bits of a double count upwards; -0 falls on 0.
    left, right = (
        np.where(bits < 0, np.int64(-(2**63)) - bits, bits)
        for bits in (np.ascontiguousarray(x).view(np.int64) for x in (a, b))
    )
    # Far apart, where the signs differ, int64 would overflow and digits do not matter.
    far = np.abs(left.astype(np.float64) - right.astype(np.float64))
    near = np.abs(left - right).astype(np.float64)
    return np.where((left < 0) == (right < 0), near, far)


def compare_producers(
    answers: Sequence[Answers],
    pairings: Sequence[Pairing],
    *,
    units: Mapping[Question, Any] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
) -> AgreementTable:
    """Every pairing over every case that either of the two has, in the order of the cases.

    Parameters
    ----------
    answers : sequence of Answers
        One a producer.
    pairings : sequence of Pairing
    units : mapping of (case, quantity)
        As in :func:`compare`.
    keys : mapping of case
        Names of the elements of vectors as long as this sequence.

    Returns
    -------
    AgreementTable
        A comparison that a producer is absent from without having said why is a failed one:
        nothing drops out in silence.
    """
    known = {item.producer: item for item in answers}
    cases = dict.fromkeys(case for item in answers for case, _ in item.values)
    cases.update(dict.fromkeys(case for item in answers for case in item.absent if case))
    rows: list[AgreementRow] = []
    for case in cases:
        for pairing in pairings:
            rows += _rows(case, pairing, known, units or {}, (keys or {}).get(case))
    return AgreementTable(tuple(rows))


def _rows(
    case: str,
    pairing: Pairing,
    known: Mapping[str, Answers],
    units: Mapping[Question, Any],
    keys: Sequence[Any] | None,
) -> list[AgreementRow]:
    first, second = known[pairing.producer], known[pairing.against]
    words = {"case": case, "producer": first.producer, "against": second.producer}
    asked = [
        name
        for name in pairing.tolerances
        if (case, name) in first.values or (case, name) in second.values
    ]
    if not asked:
        silent = [side for side in (first, second) if side.why_absent(case)]
        return [_missing(silent[0], ALL_QUANTITIES, words)] if silent else []
    for side in (first, second):
        if not any((case, name) in side.values for name in asked):
            return [_missing(side, ALL_QUANTITIES, words)]
    rows = []
    for name in asked:
        lacking = [side for side in (first, second) if (case, name) not in side.values]
        if lacking:
            rows.append(_missing(lacking[0], name, words))
            continue
        values = first.values[case, name]
        named = keys if keys is not None and len(keys) == np.size(values) else None
        rows.append(
            compare(
                quantity=name,
                values=values,
                reference=second.values[case, name],
                tolerance=pairing.tolerances[name],
                unit=units.get((case, name)),
                keys=named,
                **words,
            )
        )
    return rows


def _missing(side: Answers, quantity: str, words: Mapping[str, Any]) -> AgreementRow:
    why = side.why_absent(words["case"])
    if why:
        return AgreementRow(**words, quantity=quantity, reason=why, verdict=NOT_POSSIBLE)
    text = f"{side.producer} gave no answer and did not say why"
    return AgreementRow(**words, quantity=quantity, reason=text, verdict=PART)
