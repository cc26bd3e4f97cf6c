"""Calibration and post-stratification of a design for R's survey, checked before R is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import (
    listed,
    need_columns,
    need_frame,
    number_vector,
    numeric_column,
    real_array,
)
from pybridge._options import choose, real_number, whole_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import FUNCTIONS, read_one_sided
from pybridge.engines._sae_input import column_values
from pybridge.engines._survey_design import SvyDesign, design_request, need_design, positive, side
from pybridge.engines._survey_units import (
    check_strata,
    check_variables,
    refuse_overflow,
    units_for_r,
)
from pybridge.errors import InputError

CALFUNS = ("linear", "raking", "logit", "sinh")


def calibrate(
    design: SvyDesign,
    formula: str,
    population: Mapping[Any, Any],
    *,
    aggregate_stage: int | None = None,
    stage: int = 0,
    variance: Sequence[float] | None = None,
    bounds: tuple[Any, Any] | None = None,
    calfun: str = "linear",
    maxit: int = 50,
    epsilon: float | Mapping[str, float] = 1e-7,
    force: bool = False,
    trim: tuple[float, float] | None = None,
    bounds_const: bool = False,
    sparse: bool = False,
) -> SvyDesign:
    """The design calibrated to population totals by survey::calibrate (GREG for ``linear``).

    Parameters
    ----------
    design : SvyDesign
    formula : str
        Auxiliary variables, ``"~ x + g"``.
    population : mapping of str to float
        Totals by the names of R's model matrix: ``"(Intercept)"``, ``"x"``, ``"gB"`` ... Guarded,
        other names are refused with those that are wanted; R warns and puts them into an order, or
        takes them by position. With ``stage``, such a mapping for each cluster, by its label.
    aggregate_stage : int, optional
        The stage within which the new weights are constant.
    stage : int
        0, or the stage whose clusters are calibrated each to totals of its own (linear, without
        bounds). A cluster of the second stage is named by the labels of both, ``(a, b)``.
    variance : sequence of float, optional
        What the working variance is proportional to: (n,) one a unit, or (p,) coefficients of the
        auxiliary variables.
    bounds : pair, optional
        Of the ratios of new and old weights: two numbers (infinite ones are no bound), or two
        sequences (n,).
    calfun : {"linear", "raking", "logit", "sinh"}
    maxit : int
    epsilon : float or mapping of str to float
        Relative error of the totals at which R stops, for all or by the names of ``population``.
    force : bool
        Whether R goes on with the best weights where it does not reach the totals.
    trim : pair of float, optional
        Between which the ratios of weights are cut after the calibration.
    bounds_const : bool
        Whether ``bounds`` are of the new weights themselves.
    sparse : bool
        Whether R holds the auxiliary variables as a sparse matrix.

    Raises
    ------
    InputError

    Notes
    -----
    R's ``verbose`` prints the steps only, and is not here.
    """
    need_design(design)
    n = len(design.frame)
    read_one_sided(formula, design.frame, field="formula")
    by_cluster = whole_number("stage", stage, least=0) > 0
    totals = _clusters(design, stage, population) if by_cluster else {None: _named(population)}
    options: dict[str, Any] = {
        "calfun": choose("calfun", calfun, CALFUNS),
        "maxit": whole_number("maxit", maxit, least=1),
        "epsilon": _epsilon(epsilon),
        "force": yes_or_no("force", force),
    }
    for name, value in (("bounds.const", bounds_const), ("sparse", sparse)):
        if yes_or_no(name.replace(".", "_"), value):
            options[name] = True
    if by_cluster:
        options["stage"] = stage
    if bounds is not None:
        options["bounds"] = _bounds(bounds, n)
    if trim is not None:
        options["trim"] = _pair("trim", trim)
    if variance is not None:
        options["variance"] = number_vector("variance", variance)
    if aggregate_stage is not None:
        options["aggregate.stage"] = whole_number("aggregate_stage", aggregate_stage, least=1)
    if design.mode == "guarded":
        _refuse_words(design, options)
        totals = _in_order(design, formula, totals, options)
    _order_epsilon(options, next(iter(totals.values())))
    step = {"call": "calibrate", "formula": formula, "population": totals, "options": options}
    return replace(design, steps=(*design.steps, step))


def postStratify(
    design: SvyDesign, strata: str, population: pd.DataFrame, *, partial: bool = False
) -> SvyDesign:
    """The design post-stratified to known counts by survey::postStratify.

    Parameters
    ----------
    design : SvyDesign
    strata : str
        Formula or name of the post-strata.
    population : pandas.DataFrame
        The columns of the post-strata and ``Freq``, the population's counts.
    partial : bool
        Whether post-strata without units are passed over.
    """
    need_design(design)
    options = {"partial": yes_or_no("partial", partial)}
    formula = side("strata", strata)
    columns = read_one_sided(formula, design.frame, field="strata").columns
    need_frame("population", population)
    need_columns(population, [*columns, "Freq"], field="population")
    counts = numeric_column(population, "Freq", field="population")
    if design.mode == "guarded":
        if (counts < 0).any():
            raise InputError(
                "the population's counts must not be negative",
                code="bad_size",
                field="population",
                expected="counts of at least 0 in Freq",
                got=f"rows {listed(np.flatnonzero(counts < 0))} (counted from 0)",
            )
        check_strata(design, columns, population, partial=partial)
    # As the units cross: R finds the rows of the population by the text of their values.
    table = {name: column_values(population[name], integers=True) for name in columns}
    table["Freq"] = column_values(population["Freq"])
    step = {"call": "postStratify", "formula": formula, "population": table, "options": options}
    return replace(design, steps=(*design.steps, step))


def _named(population: Any) -> dict[str, float]:
    if not isinstance(population, (Mapping, pd.Series)) or not len(population):
        raise InputError(
            "population must give a total by the name of each auxiliary variable",
            code="not_a_mapping",
            field="population",
            expected="{'(Intercept)': N, 'x': total of x}",
            got=type(population).__name__,
        )
    return {str(name): real_number("population", value) for name, value in population.items()}


def _clusters(design: SvyDesign, stage: int, population: Any) -> dict[Any, dict[str, float]]:
    """Totals of the clusters of one stage, in the order in which R meets them."""
    columns = read_one_sided(design.formulas["ids"], design.frame, field="ids").columns
    if stage > len(columns):
        raise InputError(
            f"the design has {len(columns)} stages",
            code="bad_count",
            field="stage",
            expected=f"at most {len(columns)}",
            got=stage,
        )
    rows = design.frame[list(columns[:stage])].itertuples(index=False, name=None)
    labels = list(dict.fromkeys(row[0] if stage == 1 else row for row in rows))
    given = population if isinstance(population, (Mapping, pd.Series)) else {}
    if set(labels) != set(given.keys()):
        raise InputError(
            "population must have totals for each cluster of the sample",
            code="unknown_total",
            field="population",
            expected=f"a mapping by {listed(labels)}",
            got=listed(given.keys()) if len(given) else type(population).__name__,
        )
    return {label: _named(given[label]) for label in labels}


def _epsilon(epsilon: Any) -> Any:
    if isinstance(epsilon, Mapping):
        return {str(name): positive("epsilon", value) for name, value in epsilon.items()}
    return positive("epsilon", epsilon)


def _need_names(what: str, field: str, given: Iterable[str], known: Iterable[str]) -> None:
    """InputError unless both are the same names, in whatever order."""
    if set(given) != set(known):
        raise InputError(
            what,
            code="unknown_total",
            field=field,
            expected=listed(known, most=20),
            got=listed(given, most=20),
        )


def _order_epsilon(options: dict[str, Any], totals: Mapping[str, float]) -> None:
    """Tolerances by name in the order of the totals; R takes them by position."""
    given = options["epsilon"]
    if not isinstance(given, Mapping):
        return
    _need_names("epsilon must have the names of the totals", "epsilon", given, totals)
    options["epsilon"] = np.array([given[name] for name in totals])


def _pair(field: str, given: Any) -> np.ndarray:
    """Two numbers in order, infinite ones too."""
    found = real_array(field, given)
    if found.shape == (2,) and found[0] <= found[1]:
        return found
    raise InputError(
        f"{field} must be two numbers, the lower one first",
        code="bad_interval",
        field=field,
        expected="(lower, upper)",
        got=given,
    )


def _bounds(given: Any, n: int) -> Any:
    """R's bounds: two numbers, or two vectors (n,) as R's list of lower and upper."""
    try:
        two = len(given) == 2 and not isinstance(given, (str, bytes, Mapping))
    except TypeError:
        two = False
    if not two or all(np.ndim(part) == 0 for part in given):
        return _pair("bounds", given)
    ends = [np.broadcast_to(real_array("bounds", part), np.shape(part) or (n,)) for part in given]
    if any(end.shape != (n,) for end in ends) or not (ends[0] <= ends[1]).all():
        raise InputError(
            "bounds must be two numbers, or two for each unit, the lower ones first",
            code="bad_interval",
            field="bounds",
            expected=f"shapes ({n},)",
            got=f"shapes {ends[0].shape} and {ends[1].shape}",
        )
    return {"lower": np.array(ends[0]), "upper": np.array(ends[1])}


def _refuse_words(design: SvyDesign, options: Mapping[str, Any]) -> None:
    """What R would pass over in silence, or stop at when it estimates."""
    bounds = options.get("bounds", np.array([-np.inf, np.inf]))
    ends = np.concatenate(list(bounds.values())) if isinstance(bounds, Mapping) else bounds
    if options["calfun"] in ("logit", "sinh") and not np.isfinite(ends).all():
        raise InputError(
            f"calfun={options['calfun']!r} needs bounds",
            code="missing_argument",
            field="bounds",
            expected="two finite numbers about 1, for example (0.5, 2)",
            got=options.get("bounds"),
        )
    plain = options["calfun"] == "linear" and not np.isfinite(ends).any()
    if "stage" in options and (not plain or "trim" in options or "aggregate.stage" in options):
        raise InputError(
            "clusters are calibrated by the linear function without bounds, R leaves stage out",
            code="not_available",
            field="stage",
            expected="calfun='linear', no bounds, trim or aggregate_stage",
            got=f"calfun={options['calfun']!r}",
        )
    if plain and "trim" in options:
        raise InputError(
            "R does not trim linear calibration without bounds: it passes trim over",
            code="not_available",
            field="trim",
            expected="bounds, or another calfun",
            got="calfun='linear' without bounds",
            hint="bounds=(-1e9, 1e9) takes R's other way, whose weights are trimmed.",
        )
    if "aggregate.stage" in options:
        columns = read_one_sided(design.formulas["ids"], design.frame, field="ids").columns
        whole_number(
            "aggregate_stage", options["aggregate.stage"], least=1, most=max(len(columns), 1)
        )


def _in_order(
    design: SvyDesign, formula: str, totals: Mapping[Any, Mapping[str, float]], options: Any
) -> dict[Any, dict[str, float]]:
    """The totals in the order of the model matrix, whose names they must have."""
    read = read_one_sided(formula, design.frame, field="formula")
    _refuse_gaps(design, read.columns)
    check_variables(design.frame, read.columns, field="formula")
    asked = design_request(design, "calibrate", level=0.95, time_limit=None)
    inputs = {
        "formula": read.code,
        "functions": list(FUNCTIONS),
        "data": units_for_r(design.frame, read.names, guarded=True),
    }
    reply = requests.ask("survey_terms", inputs, asked)
    refuse_overflow(reply, design)
    terms = list(reply.value["terms"])
    shown = [read.label(term) for term in terms]
    what = "population totals must have the names of the auxiliary variables in R"
    for given in totals.values():
        _need_names(what, "population", given, shown)
    variance = options.get("variance")
    if variance is not None:
        if variance.shape not in ((len(terms),), (len(design.frame),)):
            raise InputError(
                "variance must be a number for each auxiliary variable, or for each unit",
                code="wrong_length",
                field="variance",
                expected=f"{len(terms)} or {len(design.frame)} numbers",
                got=f"shape {variance.shape}",
            )
    if isinstance(options["epsilon"], Mapping):
        _order_epsilon(options, dict.fromkeys(shown, 0.0))
    return {
        label: {term: given[name] for term, name in zip(terms, shown)}
        for label, given in totals.items()
    }


def _refuse_gaps(design: SvyDesign, columns: Sequence[str]) -> None:
    for column in columns:
        gaps = design.frame[column].isna().to_numpy()
        if gaps.any():
            raise InputError(
                f"the auxiliary variable {column!r} is missing in {int(gaps.sum())} units",
                code="missing_values",
                field="formula",
                expected="a value in every row",
                got=f"rows {listed(np.flatnonzero(gaps))} (counted from 0)",
            )
