"""What smoothing must hold, by simulation: coverage, orders of errors, levels without variation.

A claim fails where the number lies on the wrong side of its bound by more than two Monte Carlo
errors. The study `validation/studies/smoothing_coverage.py` takes more samples and prints more.
"""

from __future__ import annotations

from pybridge.crosscheck.agreement import AGREE, PART, AgreementRow, AgreementTable
from validation.studies._smoothing import builders, settings
from validation.studies._smoothing_claims import Claim, simulate
from validation.suites.plain_r import PlainR

_PREFIX = "smoothing, "
_REPETITIONS = 60


def case_names() -> list[str]:
    """One case a simulated population and sample."""
    return [_PREFIX + name for name in builders()]


def scripts(chosen: set[str]) -> list[str]:
    """No script of R."""
    return []


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """Every claim of the chosen settings as a row."""
    rows = []
    for one in settings([name[len(_PREFIX) :] for name in chosen]):
        found = simulate(one, repetitions=_REPETITIONS)[1]
        rows += [_row(one.name, item) for item in found]
    return AgreementTable(tuple(rows))


def _row(setting: str, item: Claim) -> AgreementRow:
    nearest = item.nearest
    return AgreementRow(
        case=_PREFIX + setting,
        quantity=item.claim,
        producer="simulation",
        against="claim",
        value=item.value,
        reference=nearest,
        n_values=_REPETITIONS,
        difference=abs(item.value - nearest) / item.error if item.error > 0 else 0.0,
        unit="Monte Carlo errors",
        tolerance=2.0,
        reason=f"{item.bound}, within the simulation's own error" + item.note,
        verdict=AGREE if item.holds else PART,
    )
