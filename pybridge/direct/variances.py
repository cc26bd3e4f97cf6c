"""Variances of small domains: smoothed, pooled, or by a generalised variance function.

A direct variance from two or three units is mostly noise, from one unit it does not exist, and
with a binary outcome that is all 0 or all 1 it is 0, which an area-level model takes for
certainty. The rules here replace the variance, never the estimate.

A residual e of a domain splits into its domain mean b_i and the spread s_i² about it, and so does
the design variance of Σ w e / N_i: A_i (s_i² + free_i b_i²) × a design effect, with
A_i = Σ w(w − 1)/N_i² and free_i for how much the domain's sample size varies (0 where it is a
stratum). Both parts are smoothed by empirical Bayes; the design effect is pooled over domains.
Smoothing the sum as if it were all spread fails where the mean is large beside the spread, as for
Horvitz–Thompson of an outcome far from 0.

Heavy tails: an area-level model takes d_i for a number that has nothing to do with θ_i or with the
error of z_i. Of skewed outcomes both is wrong: where the mean is high so is the variance,
Var(z_i | θ_i) = g(θ_i), and a unit that pulls z_i up pulls s_i² up. Low domains then look precise
and drag the model down, with the true variances as with estimated ones; the best linear predictor
of θ_i has E g(θ_i) in the place of g(θ_i). So a domain's own parts of s_i² and of b_i² count less
the more of the noise of s² the tails make: B_i (1 − λ) and (1 − λ) b̃_i² + λ E b², with
λ = (κ − 3)/(κ − 1) within domains (`TailMoments`), 0 for normal outcomes and lighter tails.
"pooled" has B_i = 0 and λ = 0, whatever the tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._record import Record
from pybridge.design.variance import DomainMoments
from pybridge.design.within_tails import residual_products
from pybridge.direct.linear import within_domain
from pybridge.errors import FitError


@dataclass(frozen=True, eq=False, repr=False)
class ElementVariances(Record):
    """Within-domain element variances and covariances of two residuals, one replicate.

    Attributes
    ----------
    mean : numpy.ndarray
        Shape (m, 2), weighted domain means of (HT's y, z's residual).
    matrix : numpy.ndarray
        Shape (m, 2, 2), for the same two; NaN with fewer than two units.
    pooled : numpy.ndarray
        Shape (2, 2), s₀² and its companions, weighted by n_i − 1.
    kurtosis : float
        κ of z's residuals about their domain means, pooled.
    tails : float
        λ, the share of the noise of their variances that their tails make.
    """

    mean: np.ndarray
    matrix: np.ndarray
    pooled: np.ndarray
    kurtosis: float
    tails: float


@dataclass(frozen=True, eq=False, repr=False)
class ModelledVariances(Record):
    """Variance of z and its covariance with HT, for every domain.

    Attributes
    ----------
    variance, covariance_ht, variance_ht : numpy.ndarray
        Shape (m,).
    weight : numpy.ndarray
        Shape (m,), B_i (1 − λ), the part of the domain's own element variance (NaN where the method
        has no such part).
    element : numpy.ndarray
        Shape (m,), the smoothed element variance of z's residual within the domain.
    design_effect : float
        Pooled Σ d_i over what independent draws with these weights would give, of z.
    """

    variance: np.ndarray
    covariance_ht: np.ndarray
    variance_ht: np.ndarray
    weight: np.ndarray
    element: np.ndarray
    design_effect: float


def element_variances(
    moments: DomainMoments, replicate: int, *, score: np.ndarray, scale: np.ndarray
) -> ElementVariances:
    """Element variances of HT's and z's residuals within domains.

    Parameters
    ----------
    moments : DomainMoments
    replicate : int
        Which of the R replicates.
    score : numpy.ndarray
        Shape (m, p), z's score coefficients c_i.
    scale : numpy.ndarray
        Shape (m,), what turns a score into a residual (N_i, or N̂_i for Hájek).
    """
    total, gram = moments.total[replicate], moments.gram[replicate]
    n = moments.n[replicate]
    several = n >= 2
    residual = np.zeros((len(n), 2, total.shape[1]))
    residual[:, 0, :2] = moments.shift[1], 1.0
    residual[:, 1] = score * scale[:, None]
    weight = np.where(total[:, 0] > 0, total[:, 0], np.nan)
    first = np.einsum("map,mp->ma", residual, total) / weight[:, None]
    # About the domain means before the residuals are formed: the constant drops out, and with it
    # the digits that a large mean would cost.
    mean = total[:, 1:] / weight[:, None]
    own = gram[:, 1:, 1:] / weight[:, None, None] - mean[:, :, None] * mean[:, None, :]
    central = np.stack(
        [
            np.stack([within_domain(own, residual[:, a, 1:], residual[:, b, 1:]) for b in (0, 1)])
            for a in (0, 1)
        ]
    ).transpose(2, 0, 1)
    central = np.where(np.eye(2, dtype=bool), np.maximum(central, 0.0), central)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(several, n / (n - 1), np.nan)
    matrix = central * factor[:, None, None]
    degrees = np.where(several, n - 1, 0.0)
    if not several.any():
        nothing = np.full((2, 2), np.nan)
        return ElementVariances(first, np.full_like(matrix, np.nan), nothing, np.nan, 0.0)
    pooled = np.einsum("m,mab->ab", degrees, np.nan_to_num(matrix)) / degrees.sum()
    # Domains with a slope of their own share the average slope here: κ and λ only steer how far the
    # element variances are trusted.
    common = residual[several, 1, 1:].mean(axis=0)
    kurtosis, tails = _kurtosis(moments.fourth, common), moments.tails.share(common)
    return ElementVariances(first, matrix, pooled, kurtosis, tails)


def _kurtosis(fourth: np.ndarray, residual: np.ndarray) -> float:
    """Pooled kurtosis of a residual c'(y, f) about its domain means; 3 where it has no spread."""
    product = residual_products(residual)
    spread = fourth[0, 1:] @ product
    if spread <= 0:
        return 3.0
    return float(max(1.0, product @ fourth[1:, 1:] @ product * fourth[0, 0] / spread**2))


def modelled_variances(
    method: str,
    moments: DomainMoments,
    replicate: int,
    *,
    score: np.ndarray,
    score_ht: np.ndarray,
    scale: np.ndarray,
    size: np.ndarray,
    mean: np.ndarray | None = None,
) -> ModelledVariances:
    """Variances of z by a model for the element variances, with the covariance with HT.

    Parameters
    ----------
    method : {"smoothed", "pooled", "gvf"}
    moments, replicate, score, scale
        As in `element_variances`.
    score_ht : numpy.ndarray
        Shape (m, p), HT's score coefficients.
    size : numpy.ndarray
        Shape (m,), N_i.
    mean : numpy.ndarray, optional
        Shape (m,), the estimates, for ``gvf``.

    Returns
    -------
    ModelledVariances
        NaN in domains without units. The matrix of (HT, z) stays positive semidefinite.

    Raises
    ------
    FitError
        Too few domains with at least two units to learn a variance from.
    """
    n = moments.n[replicate]
    form = moments.form[replicate]
    element = element_variances(moments, replicate, score=score, scale=scale)
    if np.isnan(element.kurtosis):
        raise FitError(
            "no domain has two labelled units, so there is no variance to learn from",
            code="too_few_labels",
            field="variance",
            expected="a domain with at least two labelled units",
            got=f"{int(n.sum())} units in {int((n > 0).sum())} domains",
        )
    direct = np.stack([np.maximum(within_domain(form, c, c), 0.0) for c in (score_ht, score)])
    # A_i = Σ w (w − 1) / N_i². For Hájek of the weights w N_i / Σ w: its own need not sum to N_i,
    # and no multiple of them changes its variance.
    total = moments.total[replicate][:, 0]
    factor = (moments.weight_square[replicate] - total * (scale / size)) / scale**2
    factor = np.where(n > 0, np.maximum(factor, 0.0), np.nan)
    if method == "gvf":
        assert mean is not None
        variance = _generalised_variance_function(n, mean, direct[1], factor)
        ratio = np.sqrt(variance / np.where(direct[1] > 0, direct[1], np.nan))
        covariance = within_domain(form, score_ht, score) * ratio
        covariance = np.where(variance == 0, 0.0, covariance)
        nothing = np.full(len(n), np.nan)
        return ModelledVariances(variance, covariance, direct[0], nothing, nothing, np.nan)
    several = n >= 2
    own = method == "smoothed"
    weight = _trust(n, element) if own else np.zeros(len(n))
    kept = np.where(several[:, None, None], element.matrix, 0.0) * weight[:, None, None]
    spread = kept + (1.0 - weight)[:, None, None] * element.pooled
    # How much of a squared domain mean enters d_i: 0 where n_i is fixed, about 1 in a domain that
    # is a small part of its strata.
    free = form[:, 0, 0] / scale**2
    free = np.divide(free, factor, out=np.zeros_like(free), where=factor > 0)
    effect = _design_effects(direct, factor, free, element, n)
    means = _squared_means(element.mean, spread, n, tails=element.tails if own else 0.0)
    square = spread + free[:, None, None] * means
    matrix = square * factor[:, None, None] * np.sqrt(np.outer(effect, effect))
    matrix = np.where((n > 0)[:, None, None], matrix, np.nan)
    return ModelledVariances(
        variance=matrix[:, 1, 1],
        covariance_ht=matrix[:, 0, 1],
        variance_ht=matrix[:, 0, 0],
        weight=weight,
        element=spread[:, 1, 1],
        design_effect=float(effect[1]),
    )


def _squared_means(
    mean: np.ndarray, spread: np.ndarray, n: np.ndarray, *, tails: float
) -> np.ndarray:
    """E[b_i b_i'] of the domains' mean residuals (m, 2, 2), by empirical Bayes.

    ``mean`` (m, 2) is noisy with covariance spread_i / n_i; squaring it would count the noise. The
    part ``tails`` of it is what all domains have in common, centre centre' + prior.
    """
    seen = n > 0
    noise = np.where(seen[:, None, None], spread, 0.0) / np.where(seen, n, 1.0)[:, None, None]
    z = np.where(seen[:, None], mean, 0.0)
    precision = np.where(seen, n, 0.0)
    centre = precision @ z / precision.sum()
    away = np.where(seen[:, None], z - centre, 0.0)
    raw = np.einsum("m,ma,mb->ab", precision, away, away)
    prior = (raw - np.einsum("m,mab->ab", precision, noise)) / precision.sum()
    values, vectors = np.linalg.eigh(prior)
    prior = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(np.maximum(np.diag(prior), 0.0))
    top = np.where(scale > 0, scale**2, 0.0)
    trust = top / np.where(top + noise[:, [0, 1], [0, 1]] > 0, top + noise[:, [0, 1], [0, 1]], 1.0)
    best = centre + trust * away
    left = np.sqrt(1.0 - trust)
    own = best[:, :, None] * best[:, None, :] + left[:, :, None] * prior * left[:, None, :]
    return (1.0 - tails) * own + tails * (np.outer(centre, centre) + prior)


def _design_effects(
    direct: np.ndarray,
    factor: np.ndarray,
    free: np.ndarray,
    element: ElementVariances,
    n: np.ndarray,
) -> np.ndarray:
    """Pooled design effects (2,) of HT and z, over domains with at least two units.

    What the direct variances are above those of independent draws with the same weights, which the
    sample's own moments make Σ A_i [(1 − free_i/n_i) s_i² + free_i b_i²].
    """
    several = n >= 2
    own = np.einsum("maa->am", element.matrix)
    inside = np.maximum(1.0 - free / np.where(several, n, 2.0), 0.0)
    simple = factor * (inside * own + free * element.mean.T**2)
    top = np.where(several, direct, 0.0).sum(axis=1)
    bottom = np.where(several, simple, 0.0).sum(axis=1)
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 1.0)


def _trust(n: np.ndarray, element: ElementVariances) -> np.ndarray:
    """B_i (1 − λ), B_i of linear empirical Bayes on the element variances; 0 below two units."""
    several = n >= 2
    own = element.matrix[:, 1, 1]
    pooled = element.pooled[1, 1]
    safe = np.where(several, n, 2.0)
    noise = pooled**2 * (2.0 / (safe - 1) + (element.kurtosis - 3.0) / safe)
    noise = np.maximum(noise, 0.0)
    degrees = np.where(several, n - 1, 0.0)
    excess = np.where(several, (own - pooled) ** 2 - noise, 0.0)
    between = max(0.0, (degrees * excess).sum() / degrees.sum())
    if between == 0.0:
        return np.zeros(len(n))
    return np.where(several, (1.0 - element.tails) * between / (between + noise), 0.0)


def _generalised_variance_function(
    n: np.ndarray, mean: np.ndarray, direct: np.ndarray, factor: np.ndarray
) -> np.ndarray:
    """log d_i / A_i on log n_i, the mean and its square, by least squares and bias-corrected.

    ``factor`` (m,) is A_i, (1 − f_i)/n_i in simple random samples: nothing is left to estimate, and
    d_i is 0, where every unit is in the sample. As log n_i is a regressor, this is the regression
    of log d_i where samples are small parts of their domains. Beyond the n_i and the means that the
    fit has seen it stays constant: a line and a parabola in logs know no bounds.
    """
    # Weights of N/n are 1 to rounding only.
    factor = np.where(factor * np.maximum(n, 1.0) > 1e-12, factor, 0.0 * factor)
    use = (n >= 2) & (direct > 0) & (factor > 0) & np.isfinite(mean)
    if use.sum() < 6:
        raise FitError(
            "a generalised variance function needs six domains with a positive direct variance",
            code="too_few_domains",
            field="variance",
            expected="at least 6 domains with two or more labelled units and some unlabelled",
            got=int(use.sum()),
            hint="variance='smoothed' or 'pooled' works with fewer.",
        )
    centre, spread = mean[use].mean(), mean[use].std()
    z = (mean - centre) / (spread if spread > 0 else 1.0)
    count = np.log(np.where(n > 0, n, np.nan))
    z, count = (np.clip(x, x[use].min(), x[use].max()) for x in (z, count))
    columns = np.column_stack([np.ones_like(z), count, z, z**2])
    beta = np.linalg.lstsq(columns[use], np.log(direct[use] / factor[use]), rcond=None)[0]
    fitted = factor * np.exp(columns @ beta)
    # exp of a mean log is too small a mean: scaled so that the totals agree.
    return fitted * direct[use].sum() / fitted[use].sum()
