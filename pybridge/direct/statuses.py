"""What is said of a domain's direct estimate, and the quantile of its interval."""

from __future__ import annotations

import numpy as np

from pybridge.direct.inputs import DomainSample


def t_quantile(level: float, degrees: np.ndarray) -> np.ndarray:
    """Two-sided t quantile at each number of degrees of freedom."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, 0.5 + level / 2.0))


def domain_statuses(sample: DomainSample) -> np.ndarray:
    """One word a domain, shape (m,), object; the first that applies."""
    moments, size = sample.whole, sample.population.size
    n, total, gram = moments.n[0], moments.total[0], moments.gram[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = gram[:, 1, 1] - total[:, 1] ** 2 / total[:, 0]
    overall = gram[:, 1, 1].sum() + np.finfo(float).tiny
    constant = spread <= 1e-13 * np.maximum(gram[:, 1, 1], overall / max(n.sum(), 1.0) * n)
    certain = np.abs(moments.weight_square[0] - total[:, 0]) <= 1e-9 * total[:, 0]
    status = np.full(len(n), "ok", dtype=object)
    status[constant & (n >= 2)] = "constant_outcome"
    status[n == 1] = "single_unit"
    status[(n > 0) & certain & (n >= size - 0.5)] = "census"
    status[n == 0] = "out_of_sample"
    return status
