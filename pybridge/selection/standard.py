"""The candidates that are compared where the user names none."""

from __future__ import annotations

from collections.abc import Sequence

from pybridge._checks import name_list
from pybridge._options import choose, yes_or_no
from pybridge.errors import InputError
from pybridge.selection.candidates import Candidate, auxiliary_formula, candidate

STANDARD_ENGINES = ("sae", "emdi", "native")


def standard_candidates(
    auxiliary: str | Sequence[str],
    *,
    taxonomy: bool = True,
    engine: str = "sae",
    prediction: str | None = None,
) -> tuple[Candidate, ...]:
    """The estimators that pybridge compares by default.

    Parameters
    ----------
    auxiliary : str or list of str
        Unit-level auxiliary variables; their domain means enter the area-level models.
    taxonomy : bool
        Whether there are levels above the domain, for TFH and PP-TS.
    engine : {"sae", "emdi", "native"}
        Who fits the frequentist Fay–Herriot models.
    prediction : str, optional
        The auxiliary variable on the outcome's scale, for PPI; by default the only one, none
        where there are several.

    Returns
    -------
    tuple of Candidate
        HT, Hájek, PPI, GREG; FH and FH-GREG by REML on ``engine``, R's numbers as they are; PP-S,
        TFH and PP-TS, Bayesian and native, for finite domains.
    """
    names = name_list("auxiliary", auxiliary)
    if not names:
        raise InputError(
            "the standard candidates need an auxiliary variable",
            code="missing_argument",
            field="auxiliary",
            expected="at least one",
            got="none",
        )
    taxonomy = yes_or_no("taxonomy", taxonomy)
    formula = auxiliary_formula(names)
    on_scale = prediction or (names[0] if len(names) == 1 else None)
    found = [candidate("HT"), candidate("Hájek", direct="hajek")]
    if on_scale:
        found.append(candidate("PPI", direct="ppi", unit_auxiliary=on_scale))
    found.append(candidate("GREG", direct="greg", unit_auxiliary=names))

    def smoothed(
        name: str, smoothing: str, direct: str, who: str, how: str, finite: bool = False
    ) -> Candidate:
        return candidate(
            name,
            direct=direct,
            smoothing=smoothing,
            unit_auxiliary=names if direct == "greg" else None,
            area_formula=formula,
            engine=who,
            method=how,
            finite_population=finite,
        )

    choose("engine", engine, STANDARD_ENGINES)
    found.append(smoothed("FH", "fay_herriot", "ht", engine, "REML"))
    found.append(smoothed("FH-GREG", "fay_herriot", "greg", engine, "REML"))
    found.append(smoothed("PP-S", "fay_herriot", "greg", "native", "bayes", True))
    if taxonomy:
        found.append(smoothed("TFH", "taxonomy", "ht", "native", "bayes", True))
        found.append(smoothed("PP-TS", "taxonomy", "greg", "native", "bayes", True))
    return tuple(found)
