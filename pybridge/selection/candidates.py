"""Candidates: which estimators compete, described before anything is computed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from pybridge._checks import listed, name_list
from pybridge._options import DIRECT_VARIANCES, choose, yes_or_no
from pybridge._record import Record
from pybridge.direct.slopes import check_slope
from pybridge.errors import InputError
from pybridge.selection.engines import SMOOTHING, checked_options, method_of

DIRECT = ("ht", "hajek", "ppi", "greg")


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
    options : mapping
        The engine's own options, by its own names; a taxonomy's ``prior`` too.
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
    options: Mapping[str, Any] = field(default_factory=dict)

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
            text += "".join(f", {name}={value}" for name, value in self.options.items())
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
    **engine_options: Any,
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
    engine : {"native", "sae", "emdi", "hbsae"} or {"native", "metafor", "rjags"}
        Who fits the Fay–Herriot model, or the taxonomy model.
    method : str, optional
        In the engine's own words, in upper or lower case; by default REML, or "bayes" where the
        engine has it only and for the native taxonomy model.
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
    **engine_options
        The engine's own options, by its own names (``MAXITER``, ``tol``, ``n_draws``, …), and
        ``prior`` for a Bayesian taxonomy model.

    Raises
    ------
    InputError
        Words that are not there, combinations and options that an engine does not have.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            "a candidate needs a name", code="bad_name", field="name", expected="text", got=name
        )
    if smoothing is None and engine_options:
        raise InputError(
            f"candidate {name!r} has no model that could have options",
            code="unknown_option",
            field=next(iter(engine_options)),
            expected="smoothing= beside them",
            got=listed(engine_options),
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
    word = method_of(smoothing, engine, method)
    return Candidate(
        name=name,
        direct=direct,
        smoothing=smoothing,
        unit_auxiliary=names,
        area_formula=_right_side(area_formula),
        slope=slope,
        engine=engine,
        method=word,
        variance=variance,
        finite_population=yes_or_no("finite_population", finite_population),
        options=checked_options(smoothing, engine, word, engine_options),
    )


def _right_side(formula: str | None) -> str:
    """An area-level formula without a left side, which is the candidate's own direct estimate."""
    if formula is None or formula == "":
        return "~ 1"
    if isinstance(formula, str) and formula.lstrip().startswith("~"):
        return formula
    raise InputError(
        "the area-level formula needs '~' and covariates, and nothing before",
        code="bad_formula",
        field="area_formula",
        expected="'~ f' or '~ f + C(g)'",
        got=formula,
        hint="What is smoothed is the candidate's direct estimate.",
    )


def _check_auxiliary(name: str, direct: str, names: tuple[str, ...]) -> None:
    wrong = {
        "ht": len(names) > 0,
        "hajek": len(names) > 0,
        "ppi": len(names) != 1,
        "greg": len(names) == 0,
    }
    if wrong[direct]:
        expected = {"ppi": "exactly one", "greg": "at least one"}.get(direct, "no")
        raise InputError(
            f"candidate {name!r}: {direct} takes {expected} unit-level auxiliary variable",
            code="wrong_auxiliary",
            field="unit_auxiliary",
            expected="none" if expected == "no" else expected,
            got=listed(names) or "none",
        )


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


def auxiliary_formula(names: Sequence[str]) -> str:
    """The right-hand side of an area-level model with these columns."""
    return "~ " + " + ".join(_quoted(name) for name in names)


def _quoted(name: str) -> str:
    """A column's name as a patsy term, whatever characters it holds."""
    # Python reads identifiers in their normal form, and patsy calls its own column Intercept.
    plain = name.isidentifier() and unicodedata.normalize("NFKC", name) == name
    return name if plain and not iskeyword(name) and name != "Intercept" else f"Q({name!r})"
