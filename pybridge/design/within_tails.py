"""How heavy the tails of residuals are within domains: the share of Var(s²) that they make.

Within a domain of n independent draws with variance σ² and kurtosis κ

    Var(s²) = σ⁴ [2/(n − 1) + (κ − 3)/n],

of which (κ − 3)/(κ − 1) is the tails' doing in large samples: 0 for normal draws and lighter tails,
towards 1 for heavy ones. It also says how far s² may be tied to the error of the mean: their squared
correlation is γ²/(κ − 1), γ the skewness; for gamma outcomes that is two thirds of the share. κ is
the one *within* domains: variances that differ between domains of normal outcomes make the pooled
kurtosis large, but no tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._record import Record
from pybridge.design.cells import Cells, packed_index, unpack


@dataclass(frozen=True, eq=False, repr=False)
class TailMoments(Record):
    """Two quadratic forms in the S = p(p − 1)/2 products of a residual's coefficients.

    With g the products c_a c_b (twice those off the diagonal) of a residual c'(y, f), its tails'
    share is ``g' excess g`` over ``g' noise g``, between 0 and 1.

    Attributes
    ----------
    excess, noise : numpy.ndarray
        Shape (S, S).
    """

    excess: np.ndarray
    noise: np.ndarray

    def share(self, residual: np.ndarray) -> float:
        """The tails' share λ of the noise of s², for a residual c'(y, f); c has shape (p − 1,).

        0 without spread, and where nothing but rounding is left of the excess.
        """
        rows, cols = packed_index(len(residual))
        product = residual[rows] * residual[cols] * np.where(rows == cols, 1.0, 2.0)
        excess = product @ self.excess @ product
        noise = product @ self.noise @ product
        size = np.abs(product) @ (np.abs(self.excess) + np.abs(self.noise)) @ np.abs(product)
        if not excess > _ROUNDING * size:
            return 0.0
        return 1.0 if noise <= excess else float(excess / noise)


_ROUNDING = 1e-11


def tail_moments(cells: Cells) -> TailMoments:
    """Forms for the tails' share of any residual of the whole sample, from its cells.

    For n independent draws, m₄ their fourth central moment and s² their variance,

        E m₄ = σ⁴ (a κ + b),   a = (n − 1)(n² − 3n + 3)/n³,   b = 3 (n − 1)(2n − 3)/n³
        E s⁴ = σ⁴ (h κ + c),   c = 1 + 2/(n − 1) − 3/n,       h = 1/n.

    Their averages F and S over the domains with two units or more, by the domains' weights, and
    those of a, b, c, h give the one κ = (F c − S b)/(S a − F h) that fits all domains, so

        (κ − 3)/(κ − 1) = [F (c + 3h) − S (b + 3a)] / [F (c + h) − S (b + a)],

    which stays finite where κ does not. Weights count as equal within domains. O(m).
    """
    m, p = cells.plan.n_domains, cells.n_variables
    size = len(packed_index(p - 1)[0])
    n = np.bincount(cells.pair_domain, weights=cells.n.sum(axis=1), minlength=m)
    several = n >= 2
    if not several.any():
        return TailMoments(np.zeros((size, size)), np.zeros((size, size)))
    weight, spread = _spreads(cells, n, several)
    weight = weight / weight.sum()
    fourth = cells.fourth[1:, 1:] / cells.fourth[0, 0]
    square = (spread.T * weight) @ spread
    n = n[several]
    a = weight @ ((n - 1) * (n**2 - 3 * n + 3) / n**3)
    b = weight @ (3 * (n - 1) * (2 * n - 3) / n**3)
    c = weight @ (1 + 2 / (n - 1) - 3 / n)
    h = weight @ (1 / n)
    return TailMoments(
        excess=(c + 3 * h) * fourth - (b + 3 * a) * square,
        noise=(c + h) * fourth - (b + a) * square,
    )


def _spreads(cells: Cells, n: np.ndarray, several: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (d,) and packed variances of (y, f) (d, S) of the d domains with several units."""
    m, p = len(n), cells.n_variables
    total = np.zeros((m, p))
    gram = np.zeros((m, cells.gram.shape[-1]))
    starts = np.flatnonzero(np.r_[True, np.diff(cells.pair_domain) > 0])
    seen = cells.pair_domain[starts]
    total[seen] = np.add.reduceat(cells.total.sum(axis=1), starts, axis=0)
    gram[seen] = np.add.reduceat(cells.gram.sum(axis=1), starts, axis=0)
    total, gram, n = total[several], gram[several], n[several]
    weight = total[:, 0]
    mean = total[:, 1:] / weight[:, None]
    raw = unpack(gram, p)[:, 1:, 1:] / weight[:, None, None]
    rows, cols = packed_index(p - 1)
    central = raw[:, rows, cols] - mean[:, rows] * mean[:, cols]
    return weight, central * (n / (n - 1))[:, None]
