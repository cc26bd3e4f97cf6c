"""Whether a sample that is given again is the one that estimates were made of."""

from __future__ import annotations

import numpy as np

from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import DirectEstimates, direct_estimates
from pybridge.direct.inputs import domain_sample, need_design
from pybridge.errors import InputError

# Sums in another order part by less, another sample by more.
_ROUNDING = 1e-6


def need_sample(found: DirectEstimates, design: SurveyDesign, *, domain: str | None) -> None:
    """InputError for a sample that does not give these counts, estimates and variances.

    Estimates do not keep their units: of another sample a script or an object would hold other
    numbers without a word.
    """
    population = found.sample.population
    need_design(design, population)
    again = domain_sample(design, population, outcome=found.sample.outcome, domain=domain)
    same = np.array_equal(again.whole.n[0], found.n_labelled)
    if same:
        # Both natively from their cells: what the variances say of strata, clusters and corrections
        # is in them, whoever computed the estimates and whatever models their variances.
        theirs = direct_estimates(again, found.request, level=found.level)
        own = direct_estimates(found.sample, found.request, level=found.level)
        scale = float(np.max(np.abs(own.formal), initial=0.0))
        same = (
            _alike(theirs.formal, own.formal, scale)
            and _alike(theirs.standard_error, own.standard_error, scale)
            and np.array_equal(theirs.degrees_of_freedom, own.degrees_of_freedom, equal_nan=True)
        )
    if not same:
        raise InputError(
            "this is not the sample that the estimates were made of",
            code="other_units",
            field="design",
            expected=f"the same design and units: {found.sample.design}",
            got=f"{design.summary()}, which gives other counts, estimates or variances",
        )


def _alike(these: np.ndarray, those: np.ndarray, scale: float) -> bool:
    """Equal but for rounding beside the estimates' size; missing in the same places."""
    return bool(np.allclose(these, those, rtol=_ROUNDING, atol=_ROUNDING * scale, equal_nan=True))
