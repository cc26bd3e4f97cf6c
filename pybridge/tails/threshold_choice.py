"""An automatic threshold: goodness-of-fit tests in sequence, with false-discovery control."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import check_level
from pybridge._record import Record
from pybridge.tails.scan import TailScan, tail_scan
from pybridge.tails.transforms import Transform

CANDIDATES = tuple(round(0.80 + 0.01 * k, 2) for k in range(19))


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdChoice(Record):
    """The lowest threshold above all that the sequence of tests rejects.

    Attributes
    ----------
    quantile, threshold : float
        NaN when every candidate is rejected.
    reason : str
    false_discovery_rate : float
        Bound of the expected share of false rejections.
    n_rejected : int
    scan : TailScan
    """

    quantile: float
    threshold: float
    reason: str
    false_discovery_rate: float
    n_rejected: int
    scan: TailScan

    def to_frame(self) -> pd.DataFrame:
        """The candidates, with what became of each."""
        table = self.scan.to_frame()
        return table.assign(rejected=np.arange(len(table)) < self.n_rejected)

    def summary(self) -> str:
        return self.reason


def choose_threshold(
    scores: Any,
    *,
    quantiles: Sequence[float] = CANDIDATES,
    false_discovery_rate: float = 0.05,
    engine: str = "native",
    transform: Transform | str | None = None,
    seed: int = 1,
) -> ThresholdChoice:
    """Test the fit at rising thresholds and take the first that is not rejected.

    ForwardStop (G'Sell et al., 2016; for thresholds Bader, Yan and Zhang, 2018, Annals of Applied
    Statistics 12): with p-values p_1, p_2, ... of the Anderson–Darling tests at rising thresholds,
    the first k are rejected, k the largest with -(1/k) sum_{i <= k} log(1 - p_i) at most the
    false discovery rate.

    A threshold that was chosen after looking at the scores makes every later interval too short;
    it is never used in a registered protocol.

    Parameters
    ----------
    scores : sequence of float, (n,)
    quantiles : sequence of float
        Candidates, rising.
    false_discovery_rate : float
    engine : {"native", "evd", "ismev"}
    """
    false_discovery_rate = check_level(false_discovery_rate)
    scan = tail_scan(
        np.asarray(scores),
        quantiles=quantiles,
        engine=engine,
        transform=transform,
        interval="delta",
        seed=seed,
    )
    p = scan.anderson_darling_p
    # A candidate without a fit is no evidence for the ones above it: it counts as rejected.
    means = np.cumsum(-np.log1p(-np.minimum(np.where(np.isnan(p), 0.0, p), 1 - 1e-12)))
    means /= np.arange(1, p.size + 1)
    passing = np.flatnonzero(means <= false_discovery_rate)
    rejected = int(passing[-1]) + 1 if passing.size else 0
    if rejected == p.size:
        reason = f"every one of {p.size} candidates is rejected: no threshold fits"
        return ThresholdChoice(math.nan, math.nan, reason, false_discovery_rate, rejected, scan)
    q, u = float(scan.quantile[rejected]), float(scan.threshold[rejected])
    below = f"the {rejected} lower candidates are rejected" if rejected else "none lies lower"
    reason = (
        f"quantile {q:g} (threshold {u:.6g}): the lowest candidate whose fit is not rejected with "
        f"false discoveries held at {false_discovery_rate:g}; {below}; "
        f"Anderson–Darling p {p[rejected]:.3g}, "
        f"{int(scan.n_exceedances[rejected])} exceedances"
    )
    return ThresholdChoice(q, u, reason, false_discovery_rate, rejected, scan)
