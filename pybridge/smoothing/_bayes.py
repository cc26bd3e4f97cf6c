"""The Bayesian area-level model by one-dimensional quadrature, native and exact."""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge._record import Record
from pybridge.smoothing._bayes_input import checked_arrays, need_enough
from pybridge.smoothing._bayes_mixture import LIGHTEST, mixture_intervals
from pybridge.smoothing._bayes_quadrature import BLOCK_ELEMENTS, Nodes, integrate
from pybridge.smoothing._bayes_units import WorkingUnits


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AreaPosterior(Record):
    """Posterior of the area-level model under flat priors on the coefficients and the variance.

    Attributes
    ----------
    model_variance : float
        Posterior median of the model variance.
    model_variance_mean : float
        Its posterior mean; NaN for m <= p + 4 labelled domains, where it is infinite.
    coefficients : (p,)
        Posterior means of the coefficients.
    coefficient_covariance : (p, p)
        Their posterior covariance; NaN for m <= p + 4.
    estimate, mse : (m,)
        Posterior means and variances of the domain means; the variance of a domain without
        labels is NaN for m <= p + 4.
    shrinkage : (m,)
        Posterior mean of variance / (variance + d_i): the weight of the direct estimate.
    synthetic : (m,)
        Posterior mean of x_i'beta.
    derivative : (m,)
        d estimate_i / d direct estimate_i = posterior variance / d_i, exactly; 1 for a census,
        0 without labels.
    lower, upper : (m,)
        Quantiles of the exact mixture; NaN where they were not asked for.
    status : str
        ``converged``, or ``weak_identification`` for m <= p + 5.
    """

    model_variance: float
    model_variance_mean: float
    coefficients: np.ndarray
    coefficient_covariance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    shrinkage: np.ndarray
    synthetic: np.ndarray
    derivative: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: str


def fit_area_model_bayes(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    level: float = 0.95,
    quantiles: bool = True,
) -> AreaPosterior:
    """Posterior of theta_i = x_i'beta + v_i from z_i ~ N(theta_i, d_i), v_i ~ N(0, s).

    Flat priors on beta and on s, as in ``hbsae::fSAE.Area``. One-dimensional quadrature over s,
    relative accuracy about 1e-9, O(m) memory.

    Parameters
    ----------
    estimate : (m,)
        Direct estimates z_i; NaN for a domain without labels, which gets its prediction.
    variance : (m,)
        Sampling variances d_i >= 0, finite where there is an estimate; 0 for a census.
    covariates : (m, p)
        Covariates x_i of every domain, with the column of ones if there is to be an intercept.
    level : float
        Mass of the intervals.
    quantiles : bool
        False leaves the intervals out, which is faster.

    Raises
    ------
    InputError
        ``too_few_domains`` for m <= p + 2 labelled domains, where the posterior does not exist;
        ``collinear_covariates``; ``degenerate`` where no variation is left to estimate from.

    References
    ----------
    Rao and Molina (2015), Small Area Estimation, chapter 10. Datta and Smith (2003), Journal of
    Statistical Planning and Inference 112, on when the posterior exists.
    """
    z, d, x = checked_arrays(estimate, variance, covariates)
    seen = ~np.isnan(z)
    need_enough(int(seen.sum()), x.shape[1])
    frame = WorkingUnits.of(z=z[seen], d=d[seen], x=x[seen])
    nodes = integrate(frame.data, low=frame.low, high=frame.high)
    return _posterior(frame, nodes, z, d, x, level=level, quantiles=quantiles)


def _posterior(
    frame: WorkingUnits,
    nodes: Nodes,
    z: np.ndarray,
    d: np.ndarray,
    x: np.ndarray,
    *,
    level: float,
    quantiles: bool,
) -> AreaPosterior:
    """Back to the user's units, in-sample and out-of-sample domains together."""
    m, p = int((~np.isnan(z)).sum()), x.shape[1]
    seen = ~np.isnan(z)
    census = seen & (d == 0.0)
    scale = frame.scale
    design = x @ frame.turn
    regression = x @ frame.offset
    # A domain without labels is one with infinite sampling variance.
    noise = np.where(seen, d / scale / scale, np.inf)
    answer = np.where(seen, (z - regression) / scale, 0.0)
    gamma, centre, spread, ratio = _moments(nodes, answer, noise, design)
    beta, covariance = _coefficients(nodes)
    if m <= p + 4:
        covariance = np.full((p, p), np.nan)
        spread = np.where(seen, spread, np.nan)
    lower = upper = np.full(z.size, np.nan)
    if quantiles:
        lower, upper = _intervals(nodes, answer, noise, design, centre, spread, level)
    mse = spread * scale * scale
    return AreaPosterior(
        model_variance=nodes.median * scale * scale,
        model_variance_mean=nodes.mean * scale * scale,
        coefficients=frame.offset + scale * (frame.turn @ beta),
        coefficient_covariance=frame.turn @ covariance @ frame.turn.T * scale * scale,
        estimate=np.where(census, z, regression + scale * centre),
        mse=mse,
        shrinkage=gamma,
        synthetic=regression + scale * (design @ beta),
        derivative=np.where(seen, ratio, 0.0),
        lower=np.where(census, z, regression + scale * lower),
        upper=np.where(census, z, regression + scale * upper),
        status="weak_identification" if m <= p + 5 else "converged",
    )


def _moments(
    nodes: Nodes, z: np.ndarray, d: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Posterior means of gamma and theta, variance of theta, and the variance over d.

    With r = 1 - gamma, theta | s has mean z - r (z - x'beta) and variance gamma d + r^2 x'Vx.
    """
    size = z.size
    gamma, shift, inner = np.zeros(size), np.zeros(size), np.zeros(size)
    second = np.zeros(size)
    near = int(np.argmax(nodes.weight))
    reference = None
    block = max(1, BLOCK_ELEMENTS // size)
    order = np.roll(np.arange(nodes.weight.size), -near)
    for start in range(0, order.size, block):
        pick = order[start : start + block]
        weight = nodes.weight[pick]
        share, mean, leverage = _given(nodes, pick, z, d, x)
        gamma += weight @ share
        inner += weight @ leverage
        if reference is None:
            reference = mean[0].copy()
        mean -= reference
        shift += weight @ mean
        second += weight @ (mean * mean)
    assert reference is not None
    between = np.maximum(second - shift * shift, 0.0)
    observed = np.isfinite(d)
    finite = np.where(observed, d, 0.0)
    unlabelled = np.dot(nodes.weight, nodes.variance)
    spread = np.where(observed, finite * gamma, unlabelled) + inner + between
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(finite > 0.0, gamma + (inner + between) / finite, 1.0)
    return gamma, reference + shift, spread, ratio


def _given(
    nodes: Nodes, pick: np.ndarray, z: np.ndarray, d: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For chosen nodes (K): gamma (K, m), mean of theta (K, m), r^2 x'Vx (K, m)."""
    s = nodes.variance[pick, None]
    share = s / (s + d)
    rest = 1.0 - share
    with np.errstate(invalid="ignore"):
        small = d / (s + d)
    rest = np.where(np.isfinite(d), small, rest)
    regression = nodes.coefficients[pick] @ x.T
    mean = share * z + rest * regression
    leverage = np.zeros_like(mean)
    for row in range(x.shape[1]):
        leverage += (nodes.root[pick, row] @ x.T) ** 2
    leverage *= rest * rest
    return share, mean, leverage


def _coefficients(nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of the coefficients."""
    mean = nodes.weight @ nodes.coefficients
    away = nodes.coefficients - mean
    covariance = np.einsum("k,kri,krj->ij", nodes.weight, nodes.root, nodes.root)
    return mean, covariance + (nodes.weight[:, None] * away).T @ away


def _intervals(
    nodes: Nodes,
    z: np.ndarray,
    d: np.ndarray,
    x: np.ndarray,
    centre: np.ndarray,
    spread: np.ndarray,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the mixture over the nodes, without the nodes that cannot matter."""
    pick = np.flatnonzero(nodes.weight > LIGHTEST)
    weight = nodes.weight[pick] / nodes.weight[pick].sum()
    observed = np.isfinite(d)

    def components(part: slice) -> tuple[np.ndarray, np.ndarray]:
        share, mean, leverage = _given(nodes, pick, z[part], d[part], x[part])
        own = np.where(observed[part], d[part], 0.0) * share
        own += np.where(observed[part], 0.0, nodes.variance[pick, None])
        # A census has no spread at all: a token width keeps the arithmetic defined.
        return mean, np.sqrt(np.maximum(own + leverage, 1e-300))

    return mixture_intervals(components, weight=weight, mean=centre, variance=spread, level=level)
