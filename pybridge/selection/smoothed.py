"""Candidates that smooth: the area-level problems of the whole sample and without each fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge.design.variance import DomainMoments
from pybridge.direct.linear import DirectRequest, LinearEstimates, within_domain
from pybridge.direct.variances import ModelledVariances, modelled_variances
from pybridge.errors import FitError
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import Replicates, direct_request
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.tables.area import check_counts
from pybridge.tables.area_formula import area_covariates, parse_area_formula
from pybridge.tables.population import Population

# A column for the left-hand side, which the population's own table does not have.
_LEFT = "direct_estimate_"


@dataclass(frozen=True)
class SmoothingProblem:
    """An area-level problem as an engine takes it, and what its sampling variances are made of.

    Attributes
    ----------
    area : AreaProblem
        Sampling variances d, or d + c where the candidate asks for finite domains.
    variance, spread : numpy.ndarray
        Shape (m,), d and c = s²/N_i, how far the mean of N_i units scatters by itself.
    """

    area: AreaProblem
    variance: np.ndarray
    spread: np.ndarray


# Direct inputs by what they are made from, for candidates that share them.
Known = dict[Any, list[tuple[np.ndarray, np.ndarray, np.ndarray] | FitError]]


def area_problems(
    candidate: Candidate,
    replicates: Replicates,
    *,
    whole: bool = True,
    known: Known | None = None,
) -> list[SmoothingProblem | FitError]:
    """The whole sample's problem, where it is wanted, then that of the sample without each fold.

    ``known`` keeps direct inputs for the next candidate of the same replicates. Where the sample
    without a fold has no variance to learn from, the error stands in the problem's place.

    Raises
    ------
    FitError
        The whole sample has none.
    """
    x = _covariates(candidate.area_formula or "~ 1", replicates)
    known = {} if known is None else known
    key = candidate.direct, candidate.unit_auxiliary, candidate.slope, candidate.variance
    if key not in known:
        known[key] = _direct_inputs(candidate, replicates, whole)
    out: list[SmoothingProblem | FitError] = []
    for inputs in known[key]:
        if isinstance(inputs, FitError):
            out.append(inputs)
            continue
        z, d, c = inputs
        inside = d + c if candidate.finite_population else d
        area = AreaProblem(z, np.where(np.isnan(z), np.nan, inside), x)
        out.append(SmoothingProblem(area, d, c))
    return out


def _direct_inputs(
    candidate: Candidate, replicates: Replicates, whole: bool
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray] | FitError]:
    """Direct estimates z (m,), NaN where there is none, their variances d, and spreads c."""
    population = replicates.population
    request, ht = direct_request(candidate, population), DirectRequest("ht")
    out: list[tuple[np.ndarray, np.ndarray, np.ndarray] | FitError] = []
    parts = [replicates.sample.whole] if whole else []
    for moments in (*parts, replicates.rest):
        z, base = replicates.linear(request, moments), replicates.linear(ht, moments)
        for r in range(moments.n_replicates):
            try:
                d, c = _sampling_variance(candidate, moments, r, z, base, population.size)
            except FitError as error:
                if moments is replicates.sample.whole:
                    raise
                out.append(error)
                continue
            seen = (moments.n[r] > 0) & np.isfinite(d)
            out.append((np.where(seen, z.estimate[r], np.nan), d, c))
    return out


def _covariates(formula: str, replicates: Replicates) -> np.ndarray:
    """The area-level design matrix (m, p) over the population's table of domains."""
    population = replicates.population
    table = population.to_frame().assign(**{_LEFT: 1.0})
    parsed = parse_area_formula(f"{_LEFT} {formula}", table)
    sampled = replicates.sample.whole.n[0] > 0
    _, x = area_covariates(parsed, table, sampled=sampled, labels=population.domains)
    check_counts(n_sampled=int(sampled.sum()), n_coefficients=x.shape[1])
    return _well_scaled(x)


def _well_scaled(x: np.ndarray) -> np.ndarray:
    """The same regression (m, p) with columns of like size, about their means where there is a 1.

    Estimates do not depend on how covariates are measured, but R's ``solve`` in sae calls a design
    singular whose columns differ by many powers of ten, or lie far from 0.
    """
    if (x == 1.0).all(axis=0).any():
        mean = np.where((x == x[0]).all(axis=0), 0.0, x.mean(axis=0))
        x = x - mean
    size = np.abs(x).max(axis=0)
    return np.asarray(x / np.where(size > 0, size, 1.0))


def _sampling_variance(
    candidate: Candidate,
    moments: DomainMoments,
    replicate: int,
    z: LinearEstimates,
    base: LinearEstimates,
    size: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Sampling variances d (m,), and the spread c = s²/N_i (m,) of a finite domain's mean."""
    score = z.score[replicate]
    scale = moments.total[replicate, :, 0] if candidate.direct == "hajek" else size
    scale = np.where(scale > 0, scale, np.nan)
    found = modelled_variances(
        "smoothed" if candidate.variance in ("direct", "gvf") else candidate.variance,
        moments,
        replicate,
        score=score,
        score_ht=base.score[replicate],
        scale=scale,
        size=size,
    )
    d = _variance_of(candidate, moments, replicate, z, base, found, scale=scale, size=size)
    return d, found.element / size


def _variance_of(
    candidate: Candidate,
    moments: DomainMoments,
    replicate: int,
    z: LinearEstimates,
    base: LinearEstimates,
    found: ModelledVariances,
    *,
    scale: np.ndarray,
    size: np.ndarray,
) -> np.ndarray:
    score = z.score[replicate]
    if candidate.variance == "direct":
        return within_domain(moments.form[replicate], score, score)
    if candidate.variance == "gvf":
        return modelled_variances(
            "gvf",
            moments,
            replicate,
            score=score,
            score_ht=base.score[replicate],
            scale=scale,
            mean=z.estimate[replicate],
            size=size,
        ).variance
    return found.variance


def taxonomy_codes(population: Population) -> tuple[np.ndarray, ...]:
    """Codes of the levels, coarse to fine; the domain itself is the last one."""
    levels = (*population.taxonomy, population.domain)
    return tuple(population.group_codes(level)[0] for level in levels)
