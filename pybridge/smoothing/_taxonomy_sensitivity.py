"""How much a taxonomy fit hangs on its prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import real_number
from pybridge.errors import InputError
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_spec import arrays
from pybridge.tables.area import AreaTable


def sensitivity_table(
    area: AreaTable,
    levels: TaxonomyLevels,
    prior: TaxonomyPrior,
    *,
    factors: Sequence[float],
    seed: int | None = None,
) -> pd.DataFrame:
    """Refits with the prior's scale multiplied by each factor, compared with factor 1."""
    numbers = [real_number("factors", factor) for factor in factors]
    if not numbers or min(numbers) <= 0.0:
        raise InputError(
            "factors must be positive numbers",
            code="bad_factor",
            field="factors",
            expected="for example (0.1, 1, 10)",
            got=list(factors),
        )

    def refit(factor: float) -> Any:
        chosen = prior if factor == 1.0 else prior.scaled(factor)
        return fit_taxonomy_bayes(**arrays(area, levels), prior=chosen, quantiles=False, seed=seed)

    fits = {factor: refit(factor) for factor in dict.fromkeys([1.0, *numbers])}
    base = fits[1.0]
    spread = np.sqrt(np.where(base.mse > 0.0, base.mse, np.nan))
    rows = []
    for factor in numbers:
        found = fits[factor]
        row: dict[str, Any] = {"factor": factor}
        scales = found.prior.arrays(len(levels.names))[1]
        row.update({f"scale_{name}": s for name, s in zip(levels.names, scales)})
        medians = zip(levels.names, found.model_variances)
        row.update({f"variance_{name}": value for name, value in medians})
        change = np.abs(found.estimate - base.estimate) / spread
        row["largest_change"] = float(np.nanmax(change))
        row["mean_change"] = float(np.nanmean(change))
        row["mean_standard_error"] = float(np.nanmean(np.sqrt(found.mse)))
        rows.append(row)
    return pd.DataFrame(rows)
