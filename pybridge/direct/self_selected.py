"""Outcomes of units that chose themselves, as an auxiliary variable and never as truth.

Volunteers (users who left a rating, answers that somebody chose to check) are no probability
sample: their mean is biased, and more of them do not help. Used as a prediction of every unit's
outcome they are harmless, since a probability sample beside them corrects what is wrong with it,
and useful, since the correction varies the less the better they predict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pybridge._checks import float_column, key_column, name_list, need_frame, numeric_column
from pybridge.errors import InputError
from pybridge.tables.labels import encode

VOLUNTEERED, PREDICTION = "volunteered", "volunteer_prediction"


def self_selected_auxiliary(
    units: pd.DataFrame,
    *,
    outcome: str,
    predictors: str | Sequence[str] | None = None,
    domain: str | None = None,
) -> pd.DataFrame:
    """Two auxiliary variables of every unit from the outcomes of those that chose themselves.

    Parameters
    ----------
    units : pandas.DataFrame
        All N units of the population.
    outcome : str
        Column of the volunteers' outcome, missing where a unit did not volunteer.
    predictors : str or list of str, optional
        Columns known on every unit, for a least-squares prediction of the others.
    domain : str, optional
        Column of the domain: the prediction then has an intercept a domain, drawn towards the
        common one where volunteers are few.

    Returns
    -------
    pandas.DataFrame
        With the index of ``units``: ``volunteered`` (0 or 1) and ``volunteer_prediction``, which
        is a volunteer's own outcome and the prediction from volunteers for everybody else.

    Raises
    ------
    InputError
        No volunteers, or fewer than coefficients; missing predictors.

    Notes
    -----
    Join the two columns to the units, then use them like any auxiliary variable::

        both = ["volunteered", "volunteer_prediction"]
        units = units.join(pb.self_selected_auxiliary(units, outcome="rating", domain="intent"))
        known = pb.population(units, domain="intent", auxiliary=both)
        pb.generalized_regression(design, known, outcome="y", auxiliary=both)

    where the probability sample of ``design`` has the two columns from ``units`` too. The estimates
    are as design-based as without: bias of the volunteers goes into the correction (1/N_i) Σ w e,
    not into the estimate. The probability sample must have been drawn whoever volunteered.

    References
    ----------
    Kim and Tam (2021), International Statistical Review 89, 382–401, for the data integration by
    regression that this is; Meng (2018), Annals of Applied Statistics 12, 685–726, for what the
    volunteers alone are worth.
    """
    need_frame("units", units)
    y = float_column(units, outcome, field="outcome")
    given = np.isfinite(y)
    columns = [
        numeric_column(units, name, field="predictors")
        for name in name_list("predictors", predictors)
    ]
    x = np.column_stack([np.ones(len(y)), *columns])
    if given.sum() <= x.shape[1]:
        raise InputError(
            "there are too few self-selected outcomes to predict from",
            code="too_few_outcomes",
            field="outcome",
            expected=f"more than {x.shape[1]} units with an outcome",
            got=int(given.sum()),
        )
    code = np.zeros(len(y), dtype=np.intp)
    if domain is not None:
        code = np.asarray(encode(key_column(units, domain, field="domain")).codes, dtype=np.intp)
    predicted = volunteers_predict(outcome=y, design=x, domain=code)
    return pd.DataFrame(
        {VOLUNTEERED: given.astype(np.float64), PREDICTION: np.where(given, y, predicted)},
        index=units.index,
    )


def volunteers_predict(
    *, outcome: np.ndarray, design: np.ndarray, domain: np.ndarray
) -> np.ndarray:
    """Least-squares predictions (N,) with domain intercepts drawn towards the common one.

    Parameters
    ----------
    outcome : numpy.ndarray
        Shape (N,), NaN where unknown.
    design : numpy.ndarray
        Shape (N, p), the first column 1.
    domain : numpy.ndarray
        Shape (N,), codes.

    Notes
    -----
    A domain's mean residual counts n_i/(n_i + κ), κ the ratio of the residual variances inside and
    between domains, by moments of the one-way layout; an absent domain has intercept 0.
    """
    given = np.isfinite(outcome)
    # Columns of one size, or the solver's cut-off would drop small ones.
    scale = np.abs(design).max(axis=0)
    x = design / np.where(scale > 0, scale, 1.0)
    beta, *_ = np.linalg.lstsq(x[given], outcome[given], rcond=None)
    residual, own = outcome[given] - x[given] @ beta, domain[given]
    m = int(domain.max()) + 1
    n = np.bincount(own, minlength=m)
    seen, total = n > 0, float(n.sum())
    mean = np.bincount(own, residual, minlength=m) / np.where(seen, n, 1)
    inside = float(((residual - mean[own]) ** 2).sum()) / max(total - seen.sum(), 1.0)
    spread = float((n * mean**2).sum()) - (seen.sum() - 1) * inside
    between = spread / max(total - float((n**2).sum()) / total, 1.0)
    if between <= 0 or seen.sum() < 2:
        return np.asarray(x @ beta)
    weight = n / (n + inside / between)
    return np.asarray(x @ beta + (weight * mean)[domain])
