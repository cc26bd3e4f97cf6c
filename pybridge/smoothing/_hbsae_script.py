"""A Bayesian Fay-Herriot fit as a call of hbsae::fSAE.Area, for a script or an object of R."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge.engines._hbsae_record import hbsae_script
from pybridge.engines._engine_request import EngineRequest
from pybridge.errors import InputError
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import AreaTable

# Of a native fit, whose posterior hbsae comes to in about seven digits with it.
_TIGHT = 1e-7


def posterior_script(spec: FayHerriotSpec, area: AreaTable) -> str:
    """The script; it leaves R's answer in ``fit``."""
    asked, inputs = posterior_call(spec, area)
    title = f"Fay-Herriot model {area.formula}, method bayes: {asked.summary()}"
    return hbsae_script(title, inputs)


def posterior_call(spec: FayHerriotSpec, area: AreaTable) -> tuple[EngineRequest, dict[str, Any]]:
    """What is asked of fSAE.Area, rows in the table's order.

    Raises
    ------
    InputError
        Sampling variances of 0, which hbsae does not take.
    """
    seen = area.sampled
    census = seen & (area.variance == 0.0)
    if census.any():
        raise InputError(
            "hbsae cannot take sampling variances of 0, so there is no script with these numbers",
            code="not_available",
            field="variance",
            expected="variances above 0",
            got=f"0 in domains {listed(area.domains[census])}",
        )
    labels = [str(label) for label in area.domains]
    order = np.concatenate([np.flatnonzero(seen), np.flatnonzero(~seen)])
    options = {"method": "HB", "rel.int.tol": spec.options.get("rel.int.tol", _TIGHT)}
    asked = EngineRequest(
        package="hbsae",
        function="fSAE.Area",
        arguments=options,
        mode=spec.mode,
        level=spec.level,
        time_limit=spec.options.get("time_limit"),
    )
    return asked, {
        "estimate": area.estimate[seen],
        "variance": area.variance[seen],
        "X": area.covariates,
        "terms": list(area.covariate_names),
        "names": labels,
        "domains": [labels[k] for k in order],
        "options": options,
        "prior": None,
    }
