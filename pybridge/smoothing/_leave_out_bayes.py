"""Leave-one-domain-out predictions of the Bayesian area and taxonomy models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pybridge.smoothing._bayes_input import need_enough
from pybridge.smoothing._bayes_quadrature import BLOCK_ELEMENTS, integrate
from pybridge.smoothing._bayes_units import WorkingUnits
from pybridge.smoothing._leave_out_arrays import LeftOut, filled, in_units, without_leverage
from pybridge.smoothing._leave_out_mixture import Block, Predictions, predict, without_own
from pybridge.smoothing._taxonomy import sampled
from pybridge.smoothing._taxonomy_lattice import integrate as integrate_lattice
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_problem import Problem
from pybridge.smoothing._taxonomy_quantiles import leaf_predictions
from pybridge.smoothing._taxonomy_tree import build_tree

# Nodes lighter than this, relative to the heaviest, are the edge of their rule; a domain whose
# reweighted nodes put more than the second number there is fitted again.
_EDGE_OF_LINE, _MOST_ON_LINE = 1e-13, 1e-9
_EDGE_OF_LATTICE, _MOST_ON_LATTICE = 1e-7, 1e-6


def leave_out_area(
    *, estimate: np.ndarray, variance: np.ndarray, covariates: np.ndarray, level: float
) -> LeftOut:
    """Predictions of every domain by the Bayesian area model (flat priors) of the others.

    Parameters
    ----------
    estimate, variance : (n,)
        Direct estimates and sampling variances of the labelled domains.
    covariates : (n, p)
    level : float
        Mass of the intervals.

    Returns
    -------
    LeftOut
        Equal to a fit without the domain's label, but for rounding.
    """
    n, p = covariates.shape
    need_enough(n - 1, p)
    usable = without_leverage(covariates)
    frame = WorkingUnits.of(z=estimate, d=variance, x=covariates)
    nodes = integrate(frame.data, low=frame.low, high=frame.high)
    data = frame.data
    thin = nodes.weight < _EDGE_OF_LINE * nodes.weight.max()

    def blocks() -> Iterator[Block]:
        z, d, x = data.z[usable], data.d[usable], data.x[usable]
        count = max(1, BLOCK_ELEMENTS // max(1, z.size))
        for start in range(0, nodes.weight.size, count):
            part = slice(start, start + count)
            weight = 1.0 / (nodes.variance[part, None] + d)
            leverage = np.zeros_like(weight)
            for row in range(p):
                leverage += (nodes.root[part, row] @ x.T) ** 2
            pulled = weight * (z - nodes.coefficients[part] @ x.T)
            yield without_own(
                log_weight=np.log(nodes.weight[part]),
                pulled=pulled,
                own=weight,
                share=1.0 - weight * leverage,
                thin=thin[part],
            )

    found = predict(
        blocks,
        estimate=data.z[usable],
        variance=data.d[usable],
        n_nodes=nodes.weight.size,
        level=level,
    )
    out = filled(usable, in_units(found, frame.scale, (covariates @ frame.offset)[usable]))

    def again(i: int) -> Predictions:
        return _area_without(i, estimate, variance, covariates, level)

    return _mended(out, usable, found.edge > _MOST_ON_LINE, again, n > p + 5)


def _area_without(
    i: int, estimate: np.ndarray, variance: np.ndarray, covariates: np.ndarray, level: float
) -> Predictions:
    """The honest fit without domain i, and its prediction."""
    rest = np.arange(estimate.size) != i
    frame = WorkingUnits.of(z=estimate[rest], d=variance[rest], x=covariates[rest])
    nodes = integrate(frame.data, low=frame.low, high=frame.high)
    x, regression = covariates[i] @ frame.turn, covariates[i] @ frame.offset
    z, d = (estimate[i] - regression) / frame.scale, variance[i] / frame.scale**2
    mean = nodes.coefficients @ x
    spread = nodes.variance + np.square(nodes.root @ x).sum(axis=1) + d
    block = Block(
        log_weight=np.log(nodes.weight),
        residual=(z - mean)[:, None],
        spread=spread[:, None],
        thin=np.zeros((mean.size, 1), dtype=bool),
    )
    found = predict(
        lambda: iter([block]),
        estimate=np.array([z]),
        variance=np.array([d]),
        n_nodes=mean.size,
        level=level,
        reweighted=False,
    )
    return in_units(found, frame.scale, np.array([regression]))


def leave_out_taxonomy(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    prior: TaxonomyPrior,
    level: float,
    seed: int | None = None,
    n_draws: int = 1000,
) -> LeftOut:
    """Predictions of every labelled domain by the Bayesian taxonomy model of the others.

    The coarser levels' effects, as the group's other domains give them, are in the predictions.

    Parameters
    ----------
    estimate, variance, covariates, levels
        As in `fit_taxonomy_bayes`; NaN where a domain has no labels.
    prior : TaxonomyPrior
        The same for all.
    level : float
    seed, n_draws
        For more than three levels: draws of the sampler stand in for the quadrature's nodes.
    """
    labelled = np.flatnonzero(~np.isnan(estimate))
    need_enough(labelled.size - 1, covariates.shape[1])
    usable = without_leverage(covariates[labelled])
    rows = labelled[usable]
    problem = Problem.of(
        z=estimate, d=variance, x=covariates, tree=build_tree(list(levels)), prior=prior
    )
    variances, weight, thin = _nodes(problem, seed, n_draws)
    found = _reweighted(problem, rows, variances, weight, thin, level)
    out = filled(usable, in_units(found, problem.scale, problem.regression[rows]))
    exists = _variance_exists(problem, labelled)

    def again(place: int) -> Predictions:
        alone = np.where(np.arange(estimate.size) == labelled[place], np.nan, estimate)
        return _taxonomy_without(
            labelled[place], alone, estimate, variance, covariates, levels, prior, level
        )

    wide = found.edge > _MOST_ON_LATTICE
    if problem.shape.size > 3:
        wide = np.zeros_like(wide)
    return _mended(out, usable, wide, again, exists)


def _nodes(
    problem: Problem, seed: int | None, n_draws: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances (K, R), weights (K,), and which nodes are at the edge."""
    if problem.shape.size > 3:
        _, variances, weight = sampled(problem, seed=seed, n_draws=n_draws)
        return variances, weight, np.zeros(len(variances), dtype=bool)
    lattice = integrate_lattice(
        problem.log_density, low=problem.low, high=problem.high, mean_exists=problem.mean_exists
    )
    thin = lattice.weight < _EDGE_OF_LATTICE * lattice.weight.max()
    return np.exp(lattice.log_variance), lattice.weight, thin


def _reweighted(
    problem: Problem,
    rows: np.ndarray,
    variances: np.ndarray,
    weight: np.ndarray,
    thin: np.ndarray,
    level: float,
) -> Predictions:
    """Predictions of the domains in ``rows``, in working units."""
    data = problem.data
    place = np.argsort(data.tree.order)[rows]
    z, d = data.columns[-1][place], data.d[place]

    def blocks() -> Iterator[Block]:
        for pick, mean, spread in leaf_predictions(variances, data):
            own = 1.0 / (variances[pick, -1, None] + d)
            yield without_own(
                log_weight=np.log(weight[pick]),
                pulled=own * (z - mean[:, place]),
                own=own,
                share=1.0 - own * spread[:, place],
                thin=thin[pick],
            )

    return predict(blocks, estimate=z, variance=d, n_nodes=weight.size, level=level)


def _taxonomy_without(
    row: int,
    alone: np.ndarray,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    prior: TaxonomyPrior,
    level: float,
) -> Predictions:
    """The honest fit without one label, and its prediction of that domain."""
    problem = Problem.of(
        z=alone, d=variance, x=covariates, tree=build_tree(list(levels)), prior=prior
    )
    variances, weight, _ = _nodes(problem, None, 1000)
    data = problem.data
    place = int(np.argsort(data.tree.order)[row])
    regression = problem.regression[row]
    z = np.array([(estimate[row] - regression) / problem.scale])
    d = np.array([variance[row] / problem.scale**2])

    def blocks() -> Iterator[Block]:
        for pick, mean, spread in leaf_predictions(variances, data):
            yield Block(
                log_weight=np.log(weight[pick]),
                residual=z - mean[:, [place]],
                spread=variances[pick, -1, None] + spread[:, [place]] + d,
                thin=np.zeros((pick.size, 1), dtype=bool),
            )

    found = predict(
        blocks, estimate=z, variance=d, n_nodes=weight.size, level=level, reweighted=False
    )
    return in_units(found, problem.scale, np.array([regression]))


def _variance_exists(problem: Problem, labelled: np.ndarray) -> np.ndarray:
    """Labelled domains (n,) whose prediction's variance is finite without their own label."""
    data, tree = problem.data, problem.data.tree
    place = np.argsort(tree.order)[labelled]
    out = np.ones(labelled.size, dtype=bool)
    for level, exists in enumerate(problem.mean_exists_without):
        group = tree.climb(level)
        others = np.bincount(group, weights=data.seen)[group][place] - 1.0
        out &= exists | (others > 0.0)
    return out


def _mended(
    out: LeftOut,
    usable: np.ndarray,
    wide: np.ndarray,
    again: Callable[[int], Predictions],
    exists: np.ndarray | bool,
) -> LeftOut:
    """With honest fits for the domains at the edge, and NaN for variances that are infinite."""
    places = np.flatnonzero(usable)[wide]
    for place in places:
        out = out.replaced(int(place), again(int(place)))
    return out.finished(np.broadcast_to(exists, usable.shape), n_refitted=places.size)
