"""Exact refits of resamples that share one sample: a matrix product and a polynomial.

A resample is a row of counts c_j over the same excesses x_j, so its only sums are
A(t) = sum_j c_j log(1 + t x_j) / sum_j c_j. In v = log(1 + t max x) each term is analytic within
distance pi of the real axis, whatever x_j, so that a few dozen Chebyshev nodes of an interval give
A to rounding error; at the nodes all resamples together are one matrix product. What is
interpolated is q = log(A / expm1(v)), the logarithm of the best scale over the largest excess,
which has no singularity at v = 0. A resample whose maximum is not inside the interval is fitted
by itself, from its counts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pybridge.tails._batch import Refits, refit_rows

_MOST_NODES = 160
_DIGITS = 12.0  # exp(-12 - 2 half) bounds the error at worst; 1e-9 is measured, see the tests
_REACH = 5.0  # standard deviations of v on each side; what lies beyond is fitted by itself
_MARGIN = 0.1  # of v, beyond these


class SharedSample(NamedTuple):
    """What all resamples of one sample have in common.

    excesses : (n,) float64, in falling order; low, high : the interval of v;
    nodes : (k,) Chebyshev nodes;
    logs : (k, n) log(1 + expm1(v_k) x_j / max x) / expm1(v_k); to_coefficients : (k, k)
    from values at the nodes to a Chebyshev series; derivative : (k, k) from a series to its slope's
    """

    excesses: np.ndarray
    low: float
    high: float
    nodes: np.ndarray
    logs: np.ndarray
    to_coefficients: np.ndarray
    derivative: np.ndarray


def prepare(*, excesses: np.ndarray, shape: float, scale: float) -> SharedSample:
    """Nodes around the fit of the whole sample, (n,) excesses in falling order; shape > -1."""
    n, largest = excesses.size, float(excesses[0])
    theta = max(shape * largest / scale, -1.0 + 1e-12)
    centre = math.log1p(theta)
    # dA/dv at the centre: how fast the shape moves along v, and so how far v is spread.
    ratio = excesses / largest
    slope = math.exp(centre) * float(np.mean(ratio / (1.0 + theta * ratio)))
    spread = (1.0 + shape) / math.sqrt(n) / max(slope, 1e-3)
    half = min(_MARGIN + _REACH * spread, 14.0)
    low, high = centre - half, centre + half
    growth = math.pi / half + math.hypot(1.0, math.pi / half)
    k = min(_MOST_NODES, 4 + math.ceil((_DIGITS + 2.0 * half) / math.log(growth)))
    angles = np.pi * (np.arange(k) + 0.5) / k
    nodes = 0.5 * (low + high) + half * np.cos(angles)
    nodes[np.abs(nodes) < 1e-9] = 1e-9
    theta_nodes = np.expm1(nodes)
    logs = np.multiply.outer(theta_nodes, ratio)
    np.log1p(logs, out=logs)
    logs /= theta_nodes[:, np.newaxis]
    to_coefficients = np.cos(np.multiply.outer(angles, np.arange(k))) * (2.0 / k)
    to_coefficients[:, 0] *= 0.5
    return SharedSample(excesses, low, high, nodes, logs, to_coefficients, _derivative(k))


def refit_counts(*, sample: SharedSample, counts: np.ndarray) -> Refits:
    """Fit every resample; ``counts`` is (R, n), float64 or integers."""
    counts = np.asarray(counts, dtype=np.float64)
    refits, safe = refit_sums(
        sample=sample,
        sums=node_sums(sample=sample, counts=counts),
        totals=counts.sum(axis=1),
        first=_first_drawn(counts),
    )
    rest = np.flatnonzero(~safe)
    if rest.size:
        refit_alone(sample=sample, counts=counts[rest], rows=rest, refits=refits)
    return refits


def node_sums(*, sample: SharedSample, counts: np.ndarray) -> np.ndarray:
    """(R, k) sums over the excesses of counts times ``logs``, from (R, n) float64 counts."""
    return np.einsum("rj,kj->rk", counts, sample.logs)


def refit_sums(
    *, sample: SharedSample, sums: np.ndarray, totals: np.ndarray, first: np.ndarray
) -> tuple[Refits, np.ndarray]:
    """Fit every resample from its sums at the nodes.

    Parameters
    ----------
    sums : (R, k) of :func:`node_sums`; totals : (R,) sizes of the resamples;
    first : (R,) place of the largest excess that each holds

    Returns
    -------
    Refits, and (R,) bool: where they can be relied on; the others are for :func:`refit_alone`.
    """
    largest = float(sample.excesses[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.log(sums / totals[:, np.newaxis])
    theta = np.expm1(sample.nodes)
    with np.errstate(over="ignore", invalid="ignore"):
        profile = -q - theta * np.exp(q)
    v, inside = _maximise(sample, q, profile)
    basis = _basis(_unit(sample, v), sample.nodes.size)
    q_at = np.einsum("rk,rk->r", np.nan_to_num(q @ sample.to_coefficients), basis)
    scale_ratio = np.exp(q_at)
    shape = np.expm1(v) * scale_ratio
    # On the boundary, shape -1 and scale the resample's own largest, the profile is -log of it.
    boundary = np.log(largest / sample.excesses[first])
    safe = inside & (shape > -0.7) & (-q_at - shape - 1.0 > boundary) & (totals > 0)
    return Refits(shape, scale_ratio * largest, np.zeros(v.size, dtype=bool)), safe


def refit_alone(
    *, sample: SharedSample, counts: np.ndarray, rows: np.ndarray, refits: Refits
) -> None:
    """Fit some rows by themselves, from their counts, and write them into the refits."""
    alone = refit_rows(excesses=sample.excesses[np.newaxis, :], weights=counts)
    for target, values in zip(refits, alone):
        target[rows] = values


def _first_drawn(counts: np.ndarray) -> np.ndarray:
    """Column of the first count above 0 of each row; 0 where there is none."""
    few = counts[:, :64] > 0  # almost always enough, and 64 columns are cheap
    first = few.argmax(axis=1)
    rest = np.flatnonzero(~few.any(axis=1))
    first[rest] = (counts[rest] > 0).argmax(axis=1)
    return first


def _unit(sample: SharedSample, v: np.ndarray) -> np.ndarray:
    return (2.0 * v - sample.low - sample.high) / (sample.high - sample.low)


def _maximise(
    sample: SharedSample, q: np.ndarray, profile: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """v of each row's maximum, and whether it lies inside the interval."""
    k = sample.nodes.size
    best = np.nan_to_num(profile, nan=-np.inf).argmax(axis=1)
    inside = (best > 0) & (best < k - 1)
    middle = np.clip(best, 1, k - 2)
    low, high = sample.nodes[middle + 1].copy(), sample.nodes[middle - 1].copy()
    v = _top(sample.nodes, np.nan_to_num(profile), middle)
    half = 0.5 * (sample.high - sample.low)
    series = np.nan_to_num(q @ sample.to_coefficients)
    slopes = series @ sample.derivative / half
    bends = slopes @ sample.derivative / half
    for _ in range(40):
        basis = _basis(_unit(sample, v), k)
        value, first, second = (
            np.einsum("rk,rk->r", one, basis) for one in (series, slopes, bends)
        )
        theta, w, ratio = np.expm1(v), np.exp(v), np.exp(value)
        inner = w + theta * first
        slope = -first - ratio * inner
        bend = -second - ratio * (first * inner + w + w * first + theta * second)
        rising = slope > 0
        low, high = np.where(rising, v, low), np.where(rising, high, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            after = v - slope / bend
        good = (bend < 0) & (after >= low) & (after <= high)
        after = np.where(good, after, 0.5 * (low + high))
        moved = np.abs(after - v)
        v = after
        if np.all((moved < 1e-6) | (high - low < 1e-12) | ~inside):
            break
    return v, inside


def _top(nodes: np.ndarray, profile: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Abscissa of the top of the parabola through each row's highest node and its neighbours."""
    rows = np.arange(k.size)
    v0, v1, v2 = nodes[k - 1], nodes[k], nodes[k + 1]
    up = (profile[rows, k] - profile[rows, k - 1]) / (v1 - v0)
    down = (profile[rows, k + 1] - profile[rows, k]) / (v2 - v1)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = 0.5 * (v0 + v1) - up * 0.5 * (v2 - v0) / (down - up)
    return np.where((top < v0) & (top > v2), top, v1)


def _basis(u: np.ndarray, k: int) -> np.ndarray:
    """(R, k) Chebyshev polynomials at one u each in [-1, 1]."""
    angles = np.arccos(np.clip(u, -1.0, 1.0))
    return np.cos(angles[:, np.newaxis] * np.arange(k))


def _derivative(k: int) -> np.ndarray:
    """(k, k): the coefficients of a series' derivative are its own times this."""
    from numpy.polynomial import chebyshev

    out = np.zeros((k, k))
    out[:, : k - 1] = chebyshev.chebder(np.eye(k), axis=0).T
    return out
