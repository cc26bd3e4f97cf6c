"""Candidates: which estimators compete, described before anything is computed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from pybridge._checks import listed, name_list
from pybridge._options import DIRECT_VARIANCES, choose
from pybridge._record import Record
from pybridge.direct.slopes import check_slope
from pybridge.errors import InputError

DIRECT = ("ht", "hajek", "ppi", "greg")
SMOOTHING = ("fay_herriot", "taxonomy")
_ENGINES = {"fay_herriot": ("native", "sae"), "taxonomy": ("native",)}
_METHODS = {
    ("fay_herriot", "native"): ("REML", "ML", "FH", "PR", "bayes"),
    ("fay_herriot", "sae"): ("REML", "ML", "FH"),
    ("taxonomy", "native"): ("bayes",),
}


@dataclass(frozen=True, eq=False, repr=False)
class Candidate(Record):
    """One estimator that `select` may choose.

    Attributes
    ----------
    name : str
        Its name in every result.
    direct : str
        "ht", "hajek", "ppi" or "greg": the estimate, or the input of the smoothing.
    smoothing : str or None
        None, "fay_herriot" or "taxonomy".
    unit_auxiliary : tuple of str
        Auxiliary variables of PPI or GREG.
    area_formula : str or None
        Right-hand side of the area-level model, over the population's table of domains.
    slope : object
        GREG's slope, as in `generalized_regression`.
    engine, method : str
        Who smooths, and how.
    variance : str
        Sampling variances that go into the model.
    finite_population : bool
        Whether the domain mean may differ from the model's by s²/N_i more.
    function : callable or None
        A user's estimator ``f(sample, population) -> (m,)`` instead of all that.
    """

    name: str
    direct: str = "ht"
    smoothing: str | None = None
    unit_auxiliary: tuple[str, ...] = ()
    area_formula: str | None = None
    slope: Any = "pooled"
    engine: str = "native"
    method: str = "REML"
    variance: str = "smoothed"
    finite_population: bool = False
    function: Callable[..., Any] | None = None

    def summary(self) -> str:
        """One line."""
        if self.function is not None:
            return f"{self.name}: a function of the sample"
        unit = f" with {', '.join(self.unit_auxiliary)}" if self.unit_auxiliary else ""
        text = f"{self.name}: {self.direct}{unit}"
        if self.smoothing:
            text += f", smoothed by {self.smoothing} ({self.area_formula}), "
            text += f"{self.engine} {self.method}"
            text += ", finite population" if self.finite_population else ""
        return text


def candidate(
    name: str,
    *,
    direct: str = "ht",
    smoothing: str | None = None,
    unit_auxiliary: str | Sequence[str] | None = None,
    area_formula: str | None = None,
    slope: Any = "pooled",
    engine: str = "native",
    method: str | None = None,
    variance: str = "smoothed",
    finite_population: bool = False,
    function: Callable[..., Any] | None = None,
) -> Candidate:
    """Describe a candidate.

    Parameters
    ----------
    name : str
        Its name in every result.
    direct : {"ht", "hajek", "ppi", "greg"}
    smoothing : {None, "fay_herriot", "taxonomy"}
    unit_auxiliary : str or list of str, optional
        Auxiliary variables of PPI (one) or GREG.
    area_formula : str, optional
        Right-hand side of the area-level model, ``"~ f"``; intercept only by default.
    slope : "pooled", "within", "domain" or numbers
        GREG's slope.
    engine : {"native", "sae"}
        Who fits the area-level model.
    method : str, optional
        "REML", "ML", "FH", "PR" or "bayes"; by default REML for Fay–Herriot, bayes for the
        taxonomy model.
    variance : {"smoothed", "pooled", "gvf", "direct"}
        Sampling variances that go into the model.
    finite_population : bool
        Let the mean of a domain's N_i units differ from the area-level model by the further
        variance s²/N_i of its own units. In domains of few units the intervals of the plain model
        are too narrow; see `pybridge.selection.finite`.
    function : callable, optional
        ``f(sample, population) -> array (m,)`` in the order of ``population.domains``, or a Series
        labelled by domains; ``sample`` has a column ``weight``. Called on the whole sample, then
        once a fold on the re-weighted sample without it.

    Raises
    ------
    InputError
        Words that are not there, combinations that an engine does not have.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            "a candidate needs a name", code="bad_name", field="name", expected="text", got=name
        )
    if function is not None:
        if not callable(function):
            raise InputError(
                f"the function of candidate {name!r} cannot be called",
                code="wrong_type",
                field="function",
                expected="f(sample, population) -> array",
                got=type(function).__name__,
            )
        return Candidate(name=name, function=function, method="function")
    choose("direct", direct, DIRECT)
    choose("variance", variance, DIRECT_VARIANCES)
    names = name_list("unit_auxiliary", unit_auxiliary)
    _check_auxiliary(name, direct, names)
    if direct == "greg":
        slope = check_slope(slope, len(names))
    if smoothing is None:
        return Candidate(name=name, direct=direct, unit_auxiliary=names, slope=slope, method=direct)
    choose("smoothing", smoothing, SMOOTHING)
    choose("engine", engine, _ENGINES[smoothing])
    word = method or ("bayes" if smoothing == "taxonomy" else "REML")
    choose("method", word, _METHODS[smoothing, engine])
    return Candidate(
        name=name,
        direct=direct,
        smoothing=smoothing,
        unit_auxiliary=names,
        area_formula=area_formula or "~ 1",
        slope=slope,
        engine=engine,
        method=word,
        variance=variance,
        finite_population=bool(finite_population),
    )


def _check_auxiliary(name: str, direct: str, names: tuple[str, ...]) -> None:
    wrong = {
        "ht": len(names) > 0,
        "hajek": len(names) > 0,
        "ppi": len(names) != 1,
        "greg": len(names) == 0,
    }
    if wrong[direct]:
        expected = {"ppi": "exactly one", "greg": "at least one"}.get(direct, "none")
        raise InputError(
            f"candidate {name!r}: {direct} takes {expected} unit-level auxiliary variable",
            code="wrong_auxiliary",
            field="unit_auxiliary",
            expected=expected,
            got=listed(names) or "none",
        )


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
    engine : {"sae", "native"}
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
    formula = "~ " + " + ".join(_quoted(name) for name in names)
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

    found.append(smoothed("FH", "fay_herriot", "ht", engine, "REML"))
    found.append(smoothed("FH-GREG", "fay_herriot", "greg", engine, "REML"))
    found.append(smoothed("PP-S", "fay_herriot", "greg", "native", "bayes", True))
    if taxonomy:
        found.append(smoothed("TFH", "taxonomy", "ht", "native", "bayes", True))
        found.append(smoothed("PP-TS", "taxonomy", "greg", "native", "bayes", True))
    return tuple(found)


def _quoted(name: str) -> str:
    """A column's name as a patsy term, whatever characters it holds."""
    # Python reads identifiers in their normal form, and patsy calls its own column Intercept.
    plain = name.isidentifier() and unicodedata.normalize("NFKC", name) == name
    return name if plain and not iskeyword(name) and name != "Intercept" else f"Q({name!r})"


def checked_candidates(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """A non-empty tuple of candidates with names of their own."""
    if isinstance(candidates, Candidate) or not isinstance(candidates, Iterable):
        candidates = (candidates,)
    given = tuple(candidates)
    if not given:
        raise InputError(
            "there is no candidate to choose from",
            code="no_candidate",
            field="candidates",
            expected="at least one candidate",
            got="none",
        )
    wrong = [item for item in given if not isinstance(item, Candidate)]
    if wrong:
        raise InputError(
            "candidates come from pybridge.candidate(...) or standard_candidates(...)",
            code="wrong_type",
            field="candidates",
            expected="Candidate",
            got=type(wrong[0]).__name__,
        )
    names = [item.name for item in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"two candidates have the name {listed(twice)}",
            code="duplicate_name",
            field="candidates",
            expected="names of their own",
            got=listed(names),
        )
    return given
