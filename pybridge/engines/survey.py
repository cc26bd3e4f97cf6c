"""R's package survey: designs, calibration, and design-based estimates with their covariance.

R's own argument names, dots as underscores. A design holds the sample; the records of what is
estimated from it hold R's numbers only, and go back to R by ``r_script(data=)`` and
``to_rds(path, data)``. Means of domains with known sizes (HT, Hájek, PPI, GREG) in the form of
every other estimate are ``horvitz_thompson(..., engine="survey")`` and so on.
"""

from __future__ import annotations

from pybridge.engines._survey_call import svyby, svymean, svyratio, svytotal
from pybridge.engines._survey_design import SvyDesign, svydesign
from pybridge.engines._survey_glm import svyglm, weights
from pybridge.engines._survey_record import SurveyEstimates
from pybridge.engines._survey_steps import calibrate, postStratify

__all__ = [
    "SurveyEstimates",
    "SvyDesign",
    "calibrate",
    "postStratify",
    "svyby",
    "svydesign",
    "svyglm",
    "svymean",
    "svyratio",
    "svytotal",
    "weights",
]
