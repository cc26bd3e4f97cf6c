"""The main job: from a table of units to every estimate and the one to report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, name_list, need_columns, need_frame
from pybridge._options import check_level, choose, whole_number
from pybridge._record import Record
from pybridge.design.survey_design import SurveyDesign, survey_design
from pybridge.direct.aggregates import AggregateEstimates
from pybridge.direct.estimates import direct_estimates
from pybridge.direct.inputs import DomainSample
from pybridge.errors import InputError
from pybridge.provenance import Provenance, provenance
from pybridge.selection.candidates import Candidate, checked_candidates, standard_candidates
from pybridge.selection.fits import CandidateFit
from pybridge.selection.record import Selection
from pybridge.selection.select import SelectionOptions, run_selection
from pybridge.tables.population import Population
from pybridge.tables.population import population as describe_population
from pybridge.tables.units import assume_weights, split_units

CANDIDATE_SETS = ("standard", "direct")
EVALUATION_ENGINES = ("sae", "native")
SIZE_NAMES = ("size", "N", "n_units", "N_i")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Record):
    """Estimates of every candidate, the selection, and where all of it came from.

    Attributes
    ----------
    sample : DomainSample
        Cells and population; no units.
    fits : tuple of CandidateFit
        Every candidate on the whole sample and in every fold.
    selection : Selection
    aggregates : mapping of str to AggregateEstimates
        "all" and every level of the taxonomy, by the direct estimator named ``aggregate_by``,
        with design-based intervals from the full covariance.
    aggregate_by : str
    assumptions : tuple of str
        What was assumed because it was not said, first of all the weights.
    level : float
    provenance : Provenance
    """

    sample: DomainSample
    fits: tuple[CandidateFit, ...]
    selection: Selection
    aggregates: Mapping[str, AggregateEstimates]
    aggregate_by: str
    assumptions: tuple[str, ...]
    level: float
    provenance: Provenance

    @property
    def population(self) -> Population:
        """The population that was estimated."""
        return self.sample.population

    @property
    def selected(self) -> CandidateFit:
        """The chosen candidate's fit."""
        return self.fit(self.selection.selected)

    def fit(self, name: str) -> CandidateFit:
        """A candidate's fit by its name."""
        for item in self.fits:
            if item.candidate.name == name:
                return item
        raise InputError(
            f"there is no candidate {name!r}",
            code="unknown_candidate",
            field="name",
            expected=listed((f.candidate.name for f in self.fits), most=12),
            got=name,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate × domain: estimate, interval, status."""
        return pd.concat([self._rows(fit) for fit in self.fits], ignore_index=True)

    def _rows(self, fit: CandidateFit) -> pd.DataFrame:
        population = self.population
        table: dict[str, Any] = {"candidate": fit.candidate.name}
        table["domain"] = population.domains
        table.update({level: population.groups[level] for level in population.taxonomy})
        error = np.sqrt(np.where(fit.mse >= 0, fit.mse, np.nan))
        table.update(
            n_labelled=self.sample.whole.n[0].astype(np.int64),
            size=population.size,
            estimate=fit.estimate,
            standard_error=error,
            cv=error / np.abs(np.where(fit.estimate == 0, np.nan, fit.estimate)),
            lower=fit.lower,
            upper=fit.upper,
            level=self.level,
            shrinkage=fit.shrinkage,
            status=fit.status,
            selected=fit.candidate.name == self.selection.selected,
        )
        return pd.DataFrame(table)

    def summary(self) -> str:
        """The page that a person reads first."""
        from pybridge.report.text import evaluation_text

        return evaluation_text(self)

    def plot(self, axes: Any = None) -> Any:
        """Domain estimates with intervals, and reported errors of all candidates.

        Returns the matplotlib Axes (two of them).
        """
        from pybridge.report.figures import evaluation_figure

        return evaluation_figure(self, axes)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole report as one HTML page, figure included."""
        from pybridge.report.page import evaluation_page

        target = Path(path)
        target.write_text(evaluation_page(self), encoding="utf-8")
        return target

    def write(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write estimates.csv, selection.csv, provenance.json, report.html and figure.png.

        The figure, and the page that holds it, are left out where matplotlib is missing.
        """
        from pybridge.report.files import write_evaluation

        return write_evaluation(self, folder)


def evaluate(
    sample_or_frame: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    outcome: str,
    domain: str,
    auxiliary: str | Sequence[str],
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
    reference: str = "auto",
    folds: int | Any = 5,
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
    engine : {"sae", "native"}
        Who fits the frequentist Fay–Herriot models. Without R, "native".
    reference, folds, seed
        As in `select`.
    level : float
        Confidence level.
    announce : callable, optional
        Told what is being done, one line a step.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        Before any engine runs: columns that are missing or hold what they must not, domains that
        do not fit, fewer domains than coefficients, a design without variance.
    EngineUnavailable
        ``engine="sae"`` without R, rpy2 or sae.
    """
    say = announce or (lambda text: None)
    check_level(level)
    whole_number("seed", seed, least=0)
    choose("engine", engine, EVALUATION_ENGINES)
    names = name_list("auxiliary", auxiliary)
    options = SelectionOptions(reference=reference, seed=seed)
    prepared = prepare_units(
        sample_or_frame,
        population=population,
        outcome=outcome,
        domain=domain,
        auxiliary=names,
        taxonomy=taxonomy,
        weights=weights,
        strata=strata,
        ids=ids,
        fpc=fpc,
        pps=pps,
        lonely_psu=lonely_psu,
    )
    for text in prepared.assumptions:
        say(text)
    design, known = prepared.design, prepared.population
    say(
        f"{design.n_units:,} labelled of {known.n_units:,.0f} units in {known.n_domains} domains; "
        + design.summary()
    )
    chosen = _candidates(candidates, prepared, outcome, names, engine)
    _need_engines(chosen)
    run = run_selection(
        design,
        known,
        chosen,
        options,
        outcome=outcome,
        domain=domain,
        folds=folds,
        level=level,
        announce=say,
    )
    say(f"scored {len(chosen)} candidates by cross-validation; chosen: {run.selection.selected}")
    by, aggregates = _aggregates(run.sample, run.reference_request, run.selection, level)
    return Evaluation(
        sample=run.sample,
        fits=run.fits,
        selection=run.selection,
        aggregates=aggregates,
        aggregate_by=by,
        assumptions=prepared.assumptions,
        level=level,
        provenance=provenance(
            engine=engine,
            method="evaluate",
            options={
                "outcome": outcome,
                "domain": domain,
                "auxiliary": names,
                "taxonomy": known.taxonomy,
                "weights": weights,
                "strata": strata,
                "ids": ids,
                "fpc": fpc,
                "pps": pps,
                "lonely_psu": lonely_psu,
                "candidates": [item.summary() for item in chosen],
                "reference": reference,
                "folds": folds if isinstance(folds, (int, np.integer)) else "given",
                "level": level,
            },
            seed=seed,
        ),
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """The labelled sample's design, the population, and what was assumed about them."""

    design: SurveyDesign
    population: Population
    assumptions: tuple[str, ...]


def prepare_units(
    given: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    population: Population | pd.DataFrame | None,
    outcome: str,
    domain: str,
    auxiliary: Sequence[str],
    taxonomy: str | Sequence[str] | None = None,
    weights: str | None = None,
    strata: str | None = None,
    ids: str | None = None,
    fpc: str | None = None,
    pps: str | None = None,
    lonely_psu: str = "fail",
) -> Prepared:
    """Population, labelled sample and design, whichever way they were given; see `evaluate`."""
    chunks = [given] if isinstance(given, pd.DataFrame) else given
    assumptions: tuple[str, ...] = ()
    names = name_list("auxiliary", tuple(auxiliary))
    levels = name_list("taxonomy", taxonomy)
    if population is None:
        units = split_units(
            chunks,
            outcome=outcome,
            domain=domain,
            auxiliary=names,
            taxonomy=levels,
            strata=strata,
            ids=ids,
        )
        known, labelled = units.population, units.labelled
        _need_unlabelled(known, labelled)
        if weights is None and fpc is None:
            assumed = assume_weights(units, strata=strata, ids=ids)
            labelled, weights, fpc = assumed.labelled, assumed.weights, assumed.fpc
            assumptions = (assumed.words,)
    else:
        known = _known(population, domain, names, levels)
        labelled = _labelled(chunks, outcome)
    design = survey_design(
        labelled,
        weights=weights,
        strata=strata,
        ids=ids,
        fpc=fpc,
        pps=pps,
        lonely_psu=lonely_psu,
    )
    return Prepared(design, known, assumptions)


def _need_unlabelled(known: Population, labelled: pd.DataFrame) -> None:
    if len(labelled) >= known.n_units:
        raise InputError(
            "every unit has an outcome, so there is nothing to estimate",
            code="nothing_unlabelled",
            field="population",
            expected="units without an outcome, or the population's sizes and means",
            got=f"{len(labelled)} units, all labelled",
            hint="If these are the sample only, give the population too (--population FILE).",
        )


def _labelled(chunks: Iterable[pd.DataFrame], outcome: str) -> pd.DataFrame:
    tables = [need_frame("sample", chunk) for chunk in chunks]
    sample = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
    need_columns(sample, [outcome], field="outcome")
    labelled = sample[sample[outcome].notna()]
    if len(labelled) == 0:
        raise InputError(
            f"no unit has an outcome in {outcome!r}",
            code="no_labels",
            field="outcome",
            expected="at least one labelled unit",
            got="every value missing",
        )
    return labelled


def _known(
    population: Population | pd.DataFrame,
    domain: str,
    auxiliary: tuple[str, ...],
    taxonomy: tuple[str, ...],
) -> Population:
    if isinstance(population, Population):
        return population
    need_frame("population", population)
    size = next((name for name in SIZE_NAMES if name in population.columns), None)
    if size is None:
        return describe_population(
            population, domain=domain, auxiliary=auxiliary, taxonomy=taxonomy
        )
    return describe_population(
        population, domain=domain, size=size, auxiliary_means=auxiliary, taxonomy=taxonomy
    )


def _candidates(
    candidates: str | Sequence[Candidate],
    prepared: Prepared,
    outcome: str,
    auxiliary: tuple[str, ...],
    engine: str,
) -> tuple[Candidate, ...]:
    if not isinstance(candidates, str):
        return checked_candidates(candidates)
    choose("candidates", candidates, CANDIDATE_SETS)
    found = standard_candidates(
        auxiliary,
        taxonomy=bool(prepared.population.taxonomy),
        engine=engine,
        prediction=_on_scale(prepared.design.frame, outcome, auxiliary),
    )
    if not _on_scale(prepared.design.frame, outcome, auxiliary):
        found = tuple(item for item in found if item.direct != "ppi")
    if candidates == "direct":
        found = tuple(item for item in found if item.smoothing is None)
    return found


def _on_scale(sample: pd.DataFrame, outcome: str, auxiliary: tuple[str, ...]) -> str | None:
    """The first auxiliary variable that could be a prediction of the outcome as it stands.

    Its mean within two standard deviations of the outcome's, its spread between a quarter and four
    times the outcome's: anything else would make PPI absurd, not merely weak.
    """
    y = sample[outcome].to_numpy(dtype=np.float64)
    spread = y.std()
    for name in auxiliary:
        need_columns(sample, [name], field="auxiliary")
        if not pd.api.types.is_numeric_dtype(sample[name].dtype):
            continue
        f = sample[name].to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            near = abs(f.mean() - y.mean()) <= 2 * spread
            if near and 0.25 <= f.std() / spread <= 4.0:
                return name
    return None


def _need_engines(candidates: Sequence[Candidate]) -> None:
    """Fail before any work where an engine is missing."""
    if any(item.smoothing and item.engine == "sae" for item in candidates):
        from pybridge.engines.availability import need_engine

        need_engine("sae", instead="engine='native' (on the command line --engine native)")


def _aggregates(
    sample: DomainSample, request: Any, selection: Selection, level: float
) -> tuple[str, dict[str, AggregateEstimates]]:
    """The whole and every group, by the reference of the selection (a direct estimator)."""
    direct = direct_estimates(sample, request, level=level)
    levels: list[str | None] = [None, *sample.population.taxonomy]
    return selection.reference, {name or "all": direct.aggregate(name) for name in levels}
