"""Whether a sample that is given again is the one that estimates were made of."""

from __future__ import annotations

import numpy as np

from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import DirectEstimates, direct_estimates
from pybridge.direct.inputs import domain_sample, need_design
from pybridge.errors import InputError

# R's numbers and the native ones part by less, another sample's by more.
_ROUNDING = 1e-6


def need_sample(found: DirectEstimates, design: SurveyDesign, *, domain: str | None) -> None:
    """InputError for a sample that does not give these counts and estimates.

    Estimates do not keep their units: of another sample a script or an object would hold other
    numbers without a word.
    """
    population = found.sample.population
    need_design(design, population)
    again = domain_sample(design, population, outcome=found.sample.outcome, domain=domain)
    same = np.array_equal(again.whole.n[0], found.n_labelled)
    if same:
        theirs = direct_estimates(again, found.request, level=found.level).formal
        scale = float(np.max(np.abs(found.formal), initial=0.0))
        same = bool((np.abs(theirs - found.formal) <= _ROUNDING * scale).all())
    if not same:
        raise InputError(
            "this is not the sample that the estimates were made of",
            code="other_units",
            field="design",
            expected=f"the same design and units: {found.sample.design}",
            got=f"{design.summary()}, which gives other counts or estimates",
        )
