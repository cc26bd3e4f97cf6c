"""How heavy the tails of residuals are within domains: the share of Var(s²) that they make.

Within a domain of n independent draws with variance σ² and kurtosis κ

    Var(s²) = σ⁴ [2/(n − 1) + (κ − 3)/n],

of which (κ − 3)/(κ − 1) is the tails' doing in large samples: 0 for normal draws and lighter
tails, towards 1 for heavy ones. It also says how far s² may be tied to the error of the mean: their
squared correlation is γ²/(κ − 1), γ the skewness; for gamma outcomes that is two thirds of the
share. κ is the one *within* domains: variances that differ between domains of normal outcomes make
the pooled kurtosis large, but no tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._record import Record
from pybridge.design.cells import Cells, packed_index, unpack


# A difference of sums that is this small beside them is 0.
_ROUNDING = 1e-11
# As are two equations whose determinant is this small beside its terms one and the same.
_SAME = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class TailMoments(Record):
    """What the tails' share of any residual c'(y, f) is made of.

    Residuals enter by the S = p(p − 1)/2 products g of their coefficients, c_a c_b (twice those off
    the diagonal): F = g' fourth g and S = g' square g.

    Attributes
    ----------
    fourth, square : numpy.ndarray
        Shape (S, S): averages over the domains of m₄ and of s⁴ for products of (y, f).
    of_fourth, of_square : numpy.ndarray
        Shape (2,): (a, b) and (h, c), what E m₄ and E s⁴ are of (σ⁴ κ, σ⁴).
    """

    fourth: np.ndarray
    square: np.ndarray
    of_fourth: np.ndarray
    of_square: np.ndarray

    def share(self, residual: np.ndarray) -> float:
        """The tails' share λ of the noise of s², for a residual c'(y, f); c has shape (p − 1,).

        0 without spread, and where nothing but rounding is left of the excess.
        """
        product = residual_products(residual)
        (a, b), (h, c) = self.of_fourth, self.of_square

        def combined(k: float) -> tuple[float, float]:
            """σ⁴ (κ − k) but for a factor that does not depend on k, and the size of its terms."""
            one, other = (c + k * h) * self.fourth, (b + k * a) * self.square
            size = np.abs(product) @ (np.abs(one) + np.abs(other)) @ np.abs(product)
            return float(product @ (one - other) @ product), float(size)

        excess, size = combined(3.0)
        noise = combined(1.0)[0]
        if not excess > _ROUNDING * size:
            return 0.0
        return 1.0 if noise <= excess else excess / noise


def residual_products(residual: np.ndarray) -> np.ndarray:
    """The products g (S,) of a residual's coefficients c (p − 1,): c_a c_b, twice where a < b."""
    rows, cols = packed_index(len(residual))
    return np.asarray(residual[rows] * residual[cols] * np.where(rows == cols, 1.0, 2.0))


def tail_moments(cells: Cells) -> TailMoments:
    """Moments for the tails' share of any residual of the whole sample, from its cells.

    For n independent draws, m₄ their fourth central moment and s² their variance,

        E m₄ = σ⁴ (a κ + b),   a = (n − 1)(n² − 3n + 3)/n³,   b = 3 (n − 1)(2n − 3)/n³
        E s⁴ = σ⁴ (h κ + c),   c = 1 + 2/(n − 1) − 3/n,       h = 1/n.

    Their averages F and S over the domains with two units or more, by the domains' weights, and
    those of a, b, c, h give the one κ = (F c − S b)/(S a − F h) that fits all domains, so

        (κ − 3)/(κ − 1) = [F (c + 3h) − S (b + 3a)] / [F (c + h) − S (b + a)],

    which stays finite where κ does not. Weights count as equal within domains. O(m).

    Of two units, and of three, m₄ is a multiple of s⁴ whatever κ is: where no domain has more, the
    data say nothing of tails, and the share is 0 instead of what unequal weights or chance make.
    """
    m, p = cells.plan.n_domains, cells.n_variables
    size = len(packed_index(p - 1)[0])
    n = np.bincount(cells.pair_domain, weights=cells.n.sum(axis=1), minlength=m)
    several = n >= 2
    nothing = np.zeros((size, size))
    no_share = TailMoments(nothing, nothing, np.zeros(2), np.zeros(2))
    if not several.any():
        return no_share
    weight, spread = _spreads(cells, n, several)
    weight = weight / weight.sum()
    n = n[several]
    a = weight @ ((n - 1) * (n**2 - 3 * n + 3) / n**3)
    b = weight @ (3 * (n - 1) * (2 * n - 3) / n**3)
    h, c = weight @ (1 / n), weight @ (1 + 2 / (n - 1) - 3 / n)
    if a * c - b * h <= _SAME * a * c:
        return no_share
    return TailMoments(
        fourth=cells.fourth[1:, 1:] / cells.fourth[0, 0],
        square=(spread.T * weight) @ spread,
        of_fourth=np.array([a, b]),
        of_square=np.array([h, c]),
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
