"""Published values: what was printed, and what each producer gives today."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pybridge.crosscheck.agreement import AgreementRow, AgreementTable
from pybridge.crosscheck.comparer import ALL_QUANTITIES, compare
from pybridge.crosscheck.tolerances import KEPT, Tolerance
from pybridge.errors import PybridgeError, PybridgeWarning
from validation.cases.published import PUBLISHED, UNREACHABLE, last_digit, poverty
from validation.suites.plain_r import PlainR
from validation.suites.published_producers import (
    PRODUCERS,
    Producer,
    poverty_by_sae,
    poverty_natively,
)

_POVERTY = "published poverty in the Spanish provinces"


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    named = [f"published {item.name}" for item in PUBLISHED]
    return [*named, _POVERTY, *(f"published {name}" for name in UNREACHABLE)]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return ()


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    rows: list[AgreementRow] = []
    for item in PUBLISHED:
        case = f"published {item.name}"
        if case in chosen:
            for producer, (ask, tolerance) in PRODUCERS[item.name].items():
                rows += _compared(case, item.printed, producer, ask, tolerance)
    if _POVERTY in chosen:
        rows += _poverty_rows()
    for name, why in UNREACHABLE.items():
        case = f"published {name}"
        if case in chosen:
            words = {"quantity": ALL_QUANTITIES, "producer": "any", "against": "printed"}
            rows.append(AgreementRow(case=case, reason=why, **words))
    return AgreementTable(tuple(rows))


def _compared(
    case: str,
    printed: Mapping[str, tuple[str, ...]],
    producer: str,
    ask: Producer,
    tolerance: Tolerance,
) -> list[AgreementRow]:
    found, why_not = _answer(ask)
    if why_not:
        words = {"quantity": ALL_QUANTITIES, "producer": producer, "against": "printed"}
        return [AgreementRow(case=case, reason=why_not, **words)]
    return [
        compare(
            case=case,
            quantity=quantity,
            producer=producer,
            values=found[quantity],
            against="printed",
            reference=[float(text) for text in texts],
            tolerance=tolerance,
            unit=[last_digit(text) for text in texts],
        )
        for quantity, texts in printed.items()
        if quantity in found
    ]


def _answer(ask: Producer) -> tuple[Mapping[str, Any], str]:
    """What a producer says, or why it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PybridgeWarning)
            return ask(), ""
    except PybridgeError as error:
        return {}, error.message
    except (ImportError, AttributeError) as error:
        return {}, f"the package has no such function yet ({error})"


def _poverty_rows() -> list[AgreementRow]:
    """All provinces: sae's direct, synthetic and composite estimates; the direct ones natively."""
    table = poverty().set_index("Province")
    rows = []
    for producer, ask in {"sae guarded": poverty_by_sae, "native": poverty_natively}.items():
        found, why_not = _answer(ask)
        words = {"case": _POVERTY, "producer": producer, "against": "printed"}
        if why_not:
            rows.append(AgreementRow(**words, quantity=ALL_QUANTITIES, reason=why_not))
            continue
        for quantity, values in found.items():
            if quantity == "Province":
                continue
            rows.append(
                compare(
                    **words,
                    quantity=quantity,
                    values=pd.Series(values, index=found["Province"]).reindex(table.index),
                    reference=table[quantity],
                    tolerance=KEPT,
                    keys=list(table.index),
                )
            )
    return rows


assert set(PRODUCERS) == {item.name for item in PUBLISHED}
