"""What the Bayesian area-level models refuse, with the reason; arrays in, arrays out."""

from __future__ import annotations

import numpy as np

from pybridge._checks import listed
from pybridge.errors import InputError


def checked_arrays(
    estimate: np.ndarray, variance: np.ndarray, covariates: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float arrays of matching shapes with finite numbers where there are labels."""
    z = np.asarray(estimate, dtype=np.float64)
    d = np.asarray(variance, dtype=np.float64)
    x = np.asarray(covariates, dtype=np.float64)
    if z.ndim != 1 or d.shape != z.shape or x.ndim != 2 or x.shape[0] != z.size:
        raise InputError(
            "estimate, variance and covariates do not fit together",
            code="bad_shape",
            field="covariates",
            expected="shapes (m,), (m,), (m, p)",
            got=f"{z.shape}, {d.shape}, {x.shape}",
        )
    seen = ~np.isnan(z)
    for field, bad in (
        ("estimate", np.isinf(z)),
        ("variance", seen & ~(np.isfinite(d) & (d >= 0.0))),
        ("covariates", ~np.isfinite(x).all(axis=1)),
    ):
        if bad.any():
            rows = np.flatnonzero(bad)
            raise InputError(
                f"{field} holds numbers that cannot be used",
                code="not_finite" if field != "variance" else "bad_variance",
                field=field,
                expected="finite numbers" + (", at least 0" if field == "variance" else ""),
                got=f"rows {listed(rows)} (counted from 0)",
            )
    return z, d, x


def need_enough(m: int, p: int) -> None:
    """The flat priors need more than p + 2 labelled domains for a proper posterior."""
    if m <= p + 2:
        raise InputError(
            f"{m} labelled domains are too few for {p} coefficients and a model variance",
            code="too_few_domains",
            field="estimate",
            expected=f"at least {p + 3} domains with labels",
            got=m,
            hint="With m <= p + 2 the posterior under the flat prior does not exist.",
        )


def left_over(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Residuals of least squares, for covariates of any rank."""
    return z - x @ np.linalg.lstsq(x, z, rcond=None)[0]


def need_variation(*, z: np.ndarray, d: np.ndarray, x: np.ndarray) -> None:
    """Refuse census domains on the regression exactly: the posterior then piles up at s = 0."""
    census = d == 0.0
    count = int(census.sum())
    if count < 2:
        return
    size = np.abs(x).max(axis=0)
    block = x[census] / np.where(size > 0.0, size, 1.0)
    spare = count - int(np.linalg.matrix_rank(block))
    answer = z[census]
    exact = np.abs(left_over(answer, block)).max() <= 1e-13 * np.abs(answer).max()
    if spare >= 2 and exact:
        raise InputError(
            f"{count} domains with sampling variance 0 lie exactly on the regression",
            code="degenerate",
            field="variance",
            expected="sampling variances above 0, or some spread around the regression",
            got="no variation from which the model variance could be estimated",
        )
