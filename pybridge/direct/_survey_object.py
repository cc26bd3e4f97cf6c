"""Direct estimates as an object of R's survey in a file, for ``readRDS()``."""

from __future__ import annotations

import os
from pathlib import Path

from pybridge._files import need_parent
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct._survey import asked_of_survey
from pybridge.direct.estimates import DirectEstimates
from pybridge.engines.availability import need_engine


def to_rds(
    found: DirectEstimates,
    path: str | os.PathLike[str],
    design: SurveyDesign,
    *,
    domain: str | None,
) -> Path:
    """Let R save the estimates, their covariance and the design.

    Raises
    ------
    InputError
        A sample too large for R's matrices of units by domains, or a folder that is not there.
    EngineUnavailable, EngineError
    """
    from pybridge.r import call

    need_engine("survey", instead="to_frame(), which needs no R")
    place = need_parent(path)
    levels, inputs = asked_of_survey(found, design, found.request, domain)
    population = found.sample.population
    groups = [
        ["all"] if level is None else [str(label) for label in population.group_codes(level)[1]]
        for level in levels
    ]
    sent = {
        **inputs,
        "labels": [str(label) for label in population.domains],
        "level_names": [level or "all" for level in levels],
        "level_labels": {f"level{k}": labels for k, labels in enumerate(groups)},
        "file": str(place),
    }
    call("survey_direct_object", sent, packages=("survey",))
    return place
