"""Candidates that smooth: one area-level fit on the whole sample, one without each fold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge.design.variance import DomainMoments
from pybridge.direct.estimates import domain_statuses
from pybridge.direct.linear import DirectRequest, LinearEstimates, within_domain
from pybridge.direct.variances import ModelledVariances, modelled_variances
from pybridge.errors import FitError, InputError, PybridgeError
from pybridge.selection.candidates import Candidate
from pybridge.selection.finite import finite_domains
from pybridge.selection.fits import CandidateFit, Replicates, direct_request, failed_fit
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.tables.area import check_counts, check_variances
from pybridge.tables.area_formula import area_covariates, parse_area_formula
from pybridge.tables.population import Population

# Samples that leave a model nothing to do (all outcomes equal, a perfect predictor): the candidate
# fails with the reason, the direct estimates stand.
_NOTHING_TO_SMOOTH = ("all_variances_zero", "degenerate")
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


def area_problems(candidate: Candidate, replicates: Replicates) -> list[SmoothingProblem]:
    """The whole sample's problem, then that of the sample without each fold."""
    population = replicates.population
    x = _covariates(candidate.area_formula or "~ 1", replicates)
    request, ht = direct_request(candidate, population), DirectRequest("ht")
    out: list[SmoothingProblem] = []
    for moments in (replicates.sample.whole, replicates.rest):
        z, base = replicates.linear(request, moments), replicates.linear(ht, moments)
        for r in range(moments.n_replicates):
            d, c = _sampling_variance(candidate, moments, r, z, base, population.size)
            seen = (moments.n[r] > 0) & np.isfinite(d)
            estimate = np.where(seen, z.estimate[r], np.nan)
            inside = d + c if candidate.finite_population else d
            area = AreaProblem(estimate, np.where(seen, inside, np.nan), x)
            out.append(SmoothingProblem(area, d, c))
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
    found = modelled_variances(
        "smoothed" if candidate.variance in ("direct", "gvf") else candidate.variance,
        moments,
        replicate,
        score=score,
        score_ht=base.score[replicate],
        scale=np.where(scale > 0, scale, np.nan),
    )
    return _variance_of(candidate, moments, replicate, z, base, found), found.element / size


def _variance_of(
    candidate: Candidate,
    moments: DomainMoments,
    replicate: int,
    z: LinearEstimates,
    base: LinearEstimates,
    found: ModelledVariances,
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
            scale=np.ones(len(score)),
            mean=z.estimate[replicate],
        ).variance
    return found.variance


def fit_sae(
    candidates: Sequence[Candidate],
    problems: dict[str, list[SmoothingProblem]],
    replicates: Replicates,
) -> dict[str, CandidateFit]:
    """All fits of all candidates of one method in one call to R."""
    from pybridge.smoothing._sae import fit_many

    out = {}
    for method in dict.fromkeys(item.method for item in candidates):
        group = [item for item in candidates if item.method == method]
        flat = [problem.area for item in group for problem in problems[item.name]]
        fits = fit_many(flat, method=method, level=replicates.level, return_errors=True)
        count = replicates.rest.n_replicates + 1
        for i, item in enumerate(group):
            own = fits[i * count : (i + 1) * count]
            out[item.name] = _assemble(item, problems[item.name], own, replicates)
    return out


def fit_native(
    candidate: Candidate, problems: list[SmoothingProblem], replicates: Replicates
) -> CandidateFit:
    fits: list[Any] = []
    for r, problem in enumerate(problems):
        try:
            fits.append(_one_native(candidate, problem.area, replicates, quantiles=r == 0))
        except (InputError, FitError) as error:
            fits.append(error)
    return _assemble(candidate, problems, fits, replicates)


def _one_native(
    candidate: Candidate, problem: AreaProblem, replicates: Replicates, *, quantiles: bool
) -> Any:
    seen = ~np.isnan(problem.estimate)
    check_variances(problem.variance[seen], labels=replicates.population.domains[seen])
    arrays: dict[str, Any] = {
        "estimate": problem.estimate,
        "variance": problem.variance,
        "covariates": problem.covariates,
        "level": replicates.level,
    }
    if candidate.smoothing == "taxonomy":
        from pybridge.smoothing._taxonomy import fit_taxonomy_bayes

        return fit_taxonomy_bayes(
            levels=taxonomy_codes(replicates.population), quantiles=quantiles, **arrays
        )
    if candidate.method == "bayes":
        from pybridge.smoothing._bayes import fit_area_model_bayes

        return fit_area_model_bayes(quantiles=quantiles, **arrays)
    from pybridge.smoothing._area_model import fit_area_model

    return fit_area_model(method=candidate.method, **arrays)


def taxonomy_codes(population: Population) -> tuple[np.ndarray, ...]:
    """Codes of the levels, coarse to fine; the domain itself is the last one."""
    levels = (*population.taxonomy, population.domain)
    return tuple(population.group_codes(level)[0] for level in levels)


def _assemble(
    candidate: Candidate,
    problems: list[SmoothingProblem],
    fits: Sequence[Any],
    replicates: Replicates,
) -> CandidateFit:
    """One record from the whole sample's fit and the folds' fits (or their errors)."""
    if isinstance(fits[0], InputError) and fits[0].code not in _NOTHING_TO_SMOOTH:
        raise fits[0]  # what was asked for cannot be had from any sample of these domains
    if isinstance(fits[0], Exception) or fits[0].status == "failed":
        return failed_fit(candidate, replicates, _reason(fits[0]))
    versions = dict(getattr(fits[0], "versions", {}))
    if candidate.finite_population:
        fits = [_finite(fit, problem) for fit, problem in zip(fits, problems)]
    whole = fits[0]
    m = replicates.population.n_domains
    rest = np.full((len(fits) - 1, m), np.nan)
    said: list[str] = [str(text) for text in getattr(whole, "conditions", ())]
    for k, fit in enumerate(fits[1:]):
        if isinstance(fit, Exception) or fit.status == "failed":
            said.append(f"without fold {k + 1}: {_reason(fit)}")
        else:
            rest[k] = fit.estimate
    return CandidateFit(
        candidate=candidate,
        estimate=whole.estimate,
        mse=whole.mse,
        lower=whole.lower,
        upper=whole.upper,
        shrinkage=whole.shrinkage,
        derivative=whole.derivative,
        status=_smoothed_statuses(whole, problems[0].area, replicates),
        rest=rest,
        fit_status=whole.status,
        model_variance=float(whole.model_variance),
        spread=problems[0].spread,
        conditions=tuple(said),
        versions=versions,
    )


def _finite(fit: Any, problem: SmoothingProblem) -> Any:
    if isinstance(fit, Exception) or fit.status == "failed":
        return fit
    return finite_domains(
        fit, estimate=problem.area.estimate, variance=problem.variance, spread=problem.spread
    )


def _smoothed_statuses(fit: Any, problem: AreaProblem, replicates: Replicates) -> np.ndarray:
    status = np.array(domain_statuses(replicates.sample), dtype=object)
    with np.errstate(invalid="ignore"):
        status[(status == "ok") & (fit.mse < 0)] = "negative_mse"
    status[np.isnan(problem.estimate)] = "out_of_sample"
    return status


def _reason(fit: Any) -> str:
    if isinstance(fit, PybridgeError):
        return re.sub(r"^problem \d+: ", "", fit.message)  # of a batch
    if isinstance(fit, Exception):
        return str(fit)
    return "; ".join(str(text) for text in getattr(fit, "conditions", ())) or "the fit failed"
