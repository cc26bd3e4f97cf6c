"""A Fay-Herriot fit by metafor: the taxonomy model of one level is that model."""

from __future__ import annotations

import warnings

import numpy as np

from pybridge.crosscheck.asking import why
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning, InputError
from pybridge.smoothing import _metafor
from pybridge.smoothing._area_fit import AreaFit, area_fit_of
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_spec import TaxonomySpec
from pybridge.tables.area import AreaTable

# metafor's time grows with the cube: some 5 s at 500 domains.
MOST_DOMAINS = 500


def ask_metafor(area: AreaTable, spec: FayHerriotSpec) -> AreaFit | str:
    """rma.mv's answer with a random intercept a domain, or why there is none."""
    m = int(area.sampled.sum())
    if m > MOST_DOMAINS:
        return f"it inverts matrices of {m} by {m}; it is asked about {MOST_DOMAINS} at most"
    levels = TaxonomyLevels(
        names=("domain",), codes=(np.arange(len(area.domains)),), labels=(area.domains,)
    )
    asked = TaxonomySpec(
        engine="metafor",
        method=spec.method.upper(),
        level=spec.level,
        options=_metafor.complete_options({}, spec.method.upper()),
    )
    try:
        with warnings.catch_warnings():
            # What R says is kept in the answer's conditions.
            warnings.simplefilter("ignore", EngineWarning)
            answer = _metafor.fit(area, levels, asked)
    except (InputError, EngineUnavailable, EngineError) as error:
        return why(error)
    numbers = answer.numbers
    return area_fit_of(
        numbers,
        engine="metafor",
        method=asked.method,
        level=spec.level,
        log_likelihood=float(getattr(numbers, "log_likelihood")),
        restricted_log_likelihood=float(getattr(numbers, "restricted_log_likelihood")),
        engine_status=answer.engine_status,
        conditions=answer.conditions,
        versions=answer.versions,
    )
