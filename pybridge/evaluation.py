"""The main job: from a table of units to every estimate and the one to report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import name_list, numeric_column
from pybridge.report.record import Evaluation
from pybridge._options import check_level, choose, whole_number
from pybridge.design.from_units import Prepared, prepare_units
from pybridge.direct.estimates import direct_estimates
from pybridge.errors import InputError
from pybridge.provenance import Provenance, provenance
from pybridge.selection.auxiliary import Sets, read_sets, with_sets
from pybridge.selection.candidates import Candidate, checked_candidates
from pybridge.selection.options import SelectionOptions
from pybridge.selection.select import SelectionRun, run_selection
from pybridge.selection.standard import STANDARD_ENGINES, standard_candidates
from pybridge.tables.population import Population

__all__ = ["Evaluation", "evaluate"]

_SCORING = ("score", "reference", "covariance", "size_corrected", "split", "repetitions")

CANDIDATE_SETS = ("standard", "direct")


def evaluate(
    sample_or_frame: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    outcome: str,
    domain: str,
    auxiliary: str | Sequence[str] | None = None,
    taxonomy: str | Sequence[str] | None = None,
    population: Population | pd.DataFrame | None = None,
    weights: str | None = None,
    strata: str | None = None,
    ids: str | None = None,
    fpc: str | None = None,
    pps: str | None = None,
    lonely_psu: str = "fail",
    candidates: str | Sequence[Candidate] = "standard",
    engine: str = "sae",
    auxiliary_sets: Sets | None = None,
    score: str = "db-cv",
    reference: str = "auto",
    covariance: str = "jackknife",
    size_corrected: bool = False,
    split: float = 0.5,
    repetitions: int = 1,
    folds: int | Any | None = None,
    level: float = 0.95,
    seed: int = 1,
    announce: Callable[[str], None] | None = None,
) -> Evaluation:
    """Estimate every domain by every candidate, and choose among them.

    Parameters
    ----------
    sample_or_frame : pandas.DataFrame or iterable of them
        All units, the outcome empty where a unit has no label; or, with ``population``, the
        labelled sample. Chunks of a large table may be given one by one.
    outcome, domain : str
        Columns.
    auxiliary : str or list of str
        Columns known on every unit; their domain means enter PPI, GREG and the area-level models.
        Those of ``auxiliary_sets`` by default.
    taxonomy : str or list of str, optional
        Columns of levels above the domain, coarse to fine; the domain may close the list.
    population : Population or pandas.DataFrame, optional
        Domain sizes and auxiliary means where units without label are not given: a table with a
        row a domain and a column ``size`` (or ``N``), or unit records without such a column.
    weights, strata, ids, fpc, pps, lonely_psu
        The design, as in `survey_design`. Without weights, and with all units given, they are
        N_h/n_h inside strata, with the finite population correction; this is said first.
    candidates : {"standard", "direct"} or sequence of Candidate
        "direct" leaves the smoothing out.
    engine : {"sae", "emdi", "native"}
        Who fits the frequentist Fay–Herriot models. Without R, "native".
    auxiliary_sets : mapping of str to list of str, optional
        Sets of auxiliary variables to compare: the candidates stand once with each, as
        "GREG [name]".
    score, reference, covariance, size_corrected, split, repetitions, folds, seed
        As in `select`.
    level : float
        Confidence level.
    announce : callable, optional
        Told what is being done, one line a step.

    Returns
    -------
    Evaluation
        Where no domain can be scored (one label each, domains that are primary units) the
        estimates are there all the same, the selection says why nothing was chosen, and names a
        default.

    Raises
    ------
    InputError
        Before any engine runs: columns that are missing or hold what they must not, domains that
        do not fit, fewer domains than coefficients, a design without variance.
    EngineUnavailable
        ``engine="sae"`` or ``"emdi"`` without R, rpy2 or the package.
    """
    say = announce or (lambda text: None)
    check_level(level)
    whole_number("seed", seed, least=0)
    choose("engine", engine, STANDARD_ENGINES)
    sets = read_sets(auxiliary_sets)
    names = _all_names(auxiliary, sets)
    options = SelectionOptions(
        score=score,
        reference=reference,
        covariance=covariance,
        size_corrected=size_corrected,
        split=split,
        repetitions=repetitions,
        seed=seed,
    )
    design_words: dict[str, Any] = {
        "weights": weights,
        "strata": strata,
        "ids": ids,
        "fpc": fpc,
        "pps": pps,
        "lonely_psu": lonely_psu,
    }
    prepared = prepare_units(
        sample_or_frame,
        population=population,
        outcome=outcome,
        domain=domain,
        auxiliary=names,
        taxonomy=taxonomy,
        **design_words,
    )
    _announce(prepared, say)
    chosen = _candidates(candidates, prepared, outcome, names, engine, sets)
    _need_engines(chosen)
    words: dict[str, Any] = {"outcome": outcome, "domain": domain, "level": level}
    try:
        run = run_selection(
            prepared.design,
            prepared.population,
            chosen,
            options,
            sets=sets,
            announce=say,
            may_default=True,
            folds=folds,
            **words,
        )
    except InputError as error:
        raise _with_way_out(error, candidates) from error
    say(_outcome(run))
    asked = {
        **words,
        **design_words,
        "auxiliary": names,
        "auxiliary_sets": {name: list(columns) for name, columns in sets.items()},
        **{name: getattr(options, name) for name in _SCORING},
        "folds": run.folds.n_folds if folds is None or np.ndim(folds) == 0 else "given",
    }
    return _record(run, prepared, level, _made_by(run, engine, asked, seed))


def _made_by(run: SelectionRun, engine: str, asked: dict[str, Any], seed: int) -> Provenance:
    asked["taxonomy"] = run.sample.population.taxonomy
    asked["candidates"] = [fit.candidate.summary() for fit in run.fits]
    versions = {name: text for fit in run.fits for name, text in fit.versions.items()}
    return provenance(engine=engine, method="evaluate", options=asked, seed=seed, versions=versions)


def _all_names(
    auxiliary: str | Sequence[str] | None, sets: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """All auxiliary variables, those of the sets too."""
    names = name_list("auxiliary", auxiliary)
    return tuple(dict.fromkeys([*names, *(name for columns in sets.values() for name in columns)]))


def _outcome(run: SelectionRun) -> str:
    found = run.selection
    if found.default:
        return f"no domain could be scored; by default: {found.default}"
    return f"scored {len(found.candidates)} candidates; chosen: {found.selected}"


def _record(
    run: SelectionRun, prepared: Prepared, level: float, provenance: Provenance
) -> Evaluation:
    """The selection's run with the means of groups and the whole, by its reference."""
    direct = direct_estimates(run.sample, run.reference_request, level=level)
    aggregates = {"all": direct.aggregate()}
    for name in run.sample.population.taxonomy:
        aggregates["level all" if name == "all" else name] = direct.aggregate(name)
    return Evaluation(
        sample=run.sample,
        fits=run.fits,
        selection=run.selection,
        aggregates=aggregates,
        aggregate_by=run.selection.reference,
        assumptions=prepared.assumptions,
        level=level,
        provenance=provenance,
    )


def _with_way_out(error: InputError, candidates: str | Sequence[Candidate]) -> InputError:
    """The same error; where the models need more domains, with what works without them."""
    if error.code != "too_few_domains" or candidates != "standard":
        return error
    facts = error.facts()
    direct = "candidates='direct' (--candidates direct) leaves the models out."
    facts["hint"] = f"{facts['hint'] or ''} {direct}".strip()
    return InputError(error.message, **facts)


def _announce(prepared: Prepared, say: Callable[[str], None]) -> None:
    """What was assumed first, then what there is."""
    for text in prepared.assumptions:
        say(text)
    design, known = prepared.design, prepared.population
    say(
        f"{design.n_units:,} labelled of {known.n_units:,.0f} units in {known.n_domains} domains; "
        + design.summary()
    )


def _candidates(
    candidates: str | Sequence[Candidate],
    prepared: Prepared,
    outcome: str,
    auxiliary: tuple[str, ...],
    engine: str,
    sets: Mapping[str, tuple[str, ...]],
) -> tuple[Candidate, ...]:
    if not isinstance(candidates, str):
        chosen = checked_candidates(candidates)
        return checked_candidates(with_sets(chosen, sets)) if sets else chosen
    choose("candidates", candidates, CANDIDATE_SETS)

    def standard(names: tuple[str, ...]) -> tuple[Candidate, ...]:
        on_scale = _on_scale(prepared.design.frame, outcome, names)
        found = standard_candidates(
            names,
            taxonomy=bool(prepared.population.taxonomy),
            engine=engine,
            prediction=on_scale,
        )
        kept = [item for item in found if on_scale or item.direct != "ppi"]
        return tuple(item for item in kept if candidates == "standard" or item.smoothing is None)

    if not sets:
        return standard(auxiliary)
    found: dict[tuple[Any, ...], Candidate] = {}
    for label, names in sets.items():
        for item in standard(names):
            own = item.unit_auxiliary or item.area_formula
            name = f"{item.name} [{label}]" if own else item.name
            # PPI takes one variable, which two sets may share.
            what = (item.direct, item.unit_auxiliary, item.smoothing, item.area_formula)
            found.setdefault((*what, item.method), replace(item, name=name))
    return checked_candidates(tuple(found.values()))


def _on_scale(sample: pd.DataFrame, outcome: str, auxiliary: tuple[str, ...]) -> str | None:
    """The first auxiliary variable that could be a prediction of the outcome as it stands.

    Its mean within two standard deviations of the outcome's, its spread between a quarter and four
    times the outcome's: anything else would make PPI absurd, not merely weak.
    """
    y = numeric_column(sample, outcome, field="outcome")
    for name in auxiliary:
        if name not in sample.columns:  # a formula's column; any other is missed by the pass
            continue
        f = numeric_column(sample, name, field="auxiliary")
        with np.errstate(all="ignore"):
            near = abs(f.mean() - y.mean()) <= 2 * y.std()
            if near and 0.25 <= f.std() / y.std() <= 4.0:
                return name
    return None


def _need_engines(candidates: Sequence[Candidate]) -> None:
    """Fail before any work where an engine is missing."""
    engines = dict.fromkeys(item.engine for item in candidates if item.smoothing)
    for package in engines:
        if package != "native":
            from pybridge.engines.availability import need_engine

            need_engine(package, instead="engine='native' (on the command line --engine native)")
