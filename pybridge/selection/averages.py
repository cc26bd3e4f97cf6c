"""From scores per domain to the choice: averages over the domains that all candidates share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pybridge._checks import listed
from pybridge.design.folds import Folds
from pybridge.direct.estimates import domain_statuses
from pybridge.errors import InputError
from pybridge.selection.auxiliary import AuxiliaryRelations
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import CandidateFit, Replicates
from pybridge.selection.options import SelectionOptions
from pybridge.selection.record import Selection
from pybridge.selection.reference import Reference
from pybridge.selection.scores import mean_and_error
from pybridge.selection.scoring import Scores
from pybridge.selection.splits import most_in_a_domain

_NEED_HOLD_OUTS = ("naive", "adjusted")


@dataclass(frozen=True, eq=False)
class Scored:
    """Everything that a selection is made from."""

    candidates: tuple[Candidate, ...]
    fits: tuple[CandidateFit, ...]
    scores: Scores
    replicates: Replicates
    reference: Reference
    options: SelectionOptions
    folds: Folds
    level: float
    auxiliary: AuxiliaryRelations | None


def common_domains(values: np.ndarray) -> np.ndarray:
    """The scores (C, m) where every candidate that is scored anywhere has one; NaN elsewhere.

    What is nowhere scored (a fold without a fit; SURE of a function, which has no derivative)
    takes nothing from the others.
    """
    alive = np.isfinite(values).any(axis=1)
    if not alive.any():
        return np.full(values.shape, np.nan)
    return np.where(np.isfinite(values[alive]).all(axis=0), values, np.nan)


def mean_of_splits(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Scores averaged over repeated splits, each where all candidates share the domain.

    A domain of few labels may lie in one fold wholly in some of the splits: the others score it.
    """
    stacked = np.stack(tables)
    known = np.isfinite(stacked)
    count = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.where(count > 0, count, 1), np.nan)


def mean_scores(parts: Sequence[Scores]) -> Scores:
    """All scores averaged over repeated splits."""
    if len(parts) == 1:
        return parts[0]

    def mean(tables: list[np.ndarray]) -> np.ndarray:
        return mean_of_splits([common_domains(table) for table in tables])

    first = parts[0]
    return Scores(
        tables={key: mean([part.tables[key] for part in parts]) for key in first.tables},
        by_reference={
            name: {key: mean([part.by_reference[name][key] for part in parts]) for key in tables}
            for name, tables in first.by_reference.items()
        },
        pairs=(
            mean_of_splits([part.pairs[0] for part in parts]),
            mean_of_splits([part.pairs[1] for part in parts]),
        ),
    )


def averaged(found: Scored, *, may_default: bool = False) -> Selection:
    """Average over the domains that every candidate with a fit was scored on.

    Parameters
    ----------
    found : Scored
    may_default : bool
        Where no domain can be scored, name a default candidate instead of raising.
    """
    key, fits = found.options.key, found.fits
    common = {name: common_domains(values) for name, values in found.scores.tables.items()}
    failed = {
        fit.candidate.name: _why_unscored(fit, found.options)
        for fit, values in zip(fits, common[key])
        if not np.isfinite(values).any()
    }
    means = {name: [mean_and_error(row) for row in rows] for name, rows in common.items()}
    counts = {name: int(np.isfinite(rows).any(axis=0).sum()) for name, rows in common.items()}
    default, notes = "", _notes(found)
    if counts[key] == 0:
        default = _default(found) if may_default else ""
        why = _nothing_scored(found, failed)
        if not default:
            raise why
        notes = (f"{why.message}: {why.got}", *notes)
        failed = {n: text for n, text in failed.items() if _has_failed(_fit(fits, n))}
    difference, error = _differences(common[key], [value for value, _ in means[key]])
    return Selection(
        candidates=tuple(item.name for item in found.candidates),
        score=key,
        scores={name: np.array([v for v, _ in rows]) for name, rows in means.items()},
        standard_errors={name: np.array([e for _, e in rows]) for name, rows in means.items()},
        domain_scores=common,
        n_domains_scored=counts,
        difference=difference,
        difference_standard_error=error,
        reference=found.reference.chosen.name,
        reference_variances=found.reference.variance_sums,
        domains=found.replicates.population.domains,
        not_scored=_reasons(common[key], found),
        failed=failed,
        n_folds=found.folds.n_folds,
        repetitions=found.options.repetitions,
        covariance=found.options.covariance,
        size_corrected=found.options.size_corrected,
        notes=notes,
        level=found.level,
        by_reference={
            name: {score: _means_and_errors(values) for score, values in tables.items()}
            for name, tables in found.scores.by_reference.items()
        },
        pair_difference=found.scores.pairs[0],
        pair_bound=found.scores.pairs[1],
        auxiliary=found.auxiliary,
        default=default,
    )


def _means_and_errors(values: np.ndarray) -> np.ndarray:
    return np.array([mean_and_error(row) for row in common_domains(values)])


def _differences(scores: np.ndarray, means: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Each score less the best one's, paired over domains, and its standard error, (C,)."""
    if not np.isfinite(means).any():
        return np.full(len(means), np.nan), np.full(len(means), np.nan)
    best = int(np.nanargmin(means))
    paired = [mean_and_error(row - scores[best]) for row in scores]
    error = [0.0 if i == best else e for i, (_, e) in enumerate(paired)]
    return np.array([value for value, _ in paired]), np.array(error)


def _fit(fits: Sequence[CandidateFit], name: str) -> CandidateFit:
    return next(fit for fit in fits if fit.candidate.name == name)


def _has_failed(fit: CandidateFit) -> bool:
    """Whether there is more to say than that no domain can be scored."""
    by_function = fit.candidate.function is not None
    return fit.fit_status == "failed" or (by_function and bool(fit.conditions))


def _default(found: Scored) -> str:
    """The candidate to name where nothing can be scored; "" where none has estimates.

    With labels so few a model is what makes estimates of them, best on GREG, whose variances are
    the smaller ones; then the direct estimators, from what uses most of the sample. Where every
    labelled domain is known whole, a direct estimator is all that it takes.
    """
    order = {"greg": 0, "hajek": 1, "ppi": 2, "ht": 3}
    sample = found.replicates.sample
    labelled = sample.whole.n[0] > 0
    known = bool((domain_statuses(sample)[labelled] == "census").all())

    def preference(fit: CandidateFit) -> tuple[bool, bool, int]:
        item = fit.candidate
        direct = (item.smoothing is None) != known
        place = 9 if item.function is not None else order[item.direct]
        return direct, not item.finite_population, place

    usable = [fit for fit in found.fits if np.isfinite(fit.estimate).any()]
    return min(usable, key=preference).candidate.name if usable else ""


def _nothing_scored(found: Scored, failed: Mapping[str, str]) -> InputError:
    most = int(found.replicates.sample.whole.n[0].max())
    reasons = _reasons(np.full((1, found.replicates.population.n_domains), np.nan), found)
    why = "; ".join(f"{len(domains)} with {text}" for text, domains in reasons.items())
    broken = {n: text for n, text in failed.items() if _has_failed(_fit(found.fits, n))}
    return InputError(
        "there is no domain on which every candidate could be scored by cross-validation",
        code="no_common_domain",
        field="candidates",
        expected="a domain with labels in every training part",
        got=f"{len(found.candidates)} candidates, {found.replicates.population.n_domains} domains, "
        f"at most {most} labels in one, {found.folds.n_folds} folds ({why})",
        hint="More labels a domain, fewer folds, or fewer candidates."
        + (f" Failed: {broken}" if broken else ""),
    )


def _why_unscored(fit: CandidateFit, options: SelectionOptions) -> str:
    """The reason of a failed fit, or of the folds that could not be fitted."""
    if fit.fit_status == "failed":
        return fit.message
    folds = [text for text in fit.conditions if text.startswith("without ")]
    if folds:
        return folds[0]
    linearised = options.key == "sure" or options.covariance == "linearised"
    if linearised and not np.isfinite(fit.derivative).any():
        return (
            "its derivative is not known, which this score needs: DB-CV with the jackknife does not"
        )
    return "no domain can be scored by this score"


def _reasons(scores: np.ndarray, found: Scored) -> dict[str, tuple[str, ...]]:
    """Why domains were not scored, a domain under its first reason only."""
    left = ~np.isfinite(scores).any(axis=0)
    replicates = found.replicates
    n = replicates.sample.whole.n[0]
    tests = {
        "no labels": n == 0,
        "all units labelled": domain_statuses(replicates.sample) == "census",
        "one label": n == 1,
        "all its labels in one fold": (replicates.rest.n == 0).any(axis=0),
    }
    if found.options.key in _NEED_HOLD_OUTS:
        tests["a fold that holds none of its labels"] = (replicates.fold.n == 0).any(axis=0)
    values = found.scores.tables[found.options.key]
    for fit, row in zip(found.fits, values):
        if np.isfinite(row).any():
            tests[f"no estimate of {fit.candidate.name}"] = ~np.isfinite(row)
    tests["no score"] = np.ones(len(n), dtype=bool)
    out = {}
    for reason, applies in tests.items():
        here = left & applies
        left = left & ~applies
        if here.any():
            out[reason] = tuple(str(label) for label in replicates.population.domains[here])
    return out


def _notes(found: Scored) -> tuple[str, ...]:
    notes = []
    folds, (most, things) = found.folds, most_in_a_domain(found.replicates.sample)
    if folds.pooled:
        notes.append(
            f"Strata that some of the {folds.n_folds} folds miss, pooled for naive CV's hold-outs: "
            + listed(folds.pooled, most=20)
        )
    if folds.n_folds > most:
        notes.append(
            f"No naive CV and no Dong–Li: no domain has a label in each of {folds.n_folds} folds "
            f"({things} in one domain: at most {most})"
        )
    return tuple(notes)
