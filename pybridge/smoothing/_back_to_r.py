"""A Fay-Herriot fit as the object that R's function returns, in a file for ``readRDS()``."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pybridge._files import need_parent
from pybridge.engines import _engine_request as requests
from pybridge.errors import InputError
from pybridge.smoothing._spec import FayHerriotSpec

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit


def save(fit: FayHerriotFit, path: str | PathLike[str]) -> Path:
    """Ask R again with the same inputs and seed, and keep what it returns.

    Of a native fit it is sae's (hbsae's, for bayes) at the same optimum, with a tight tolerance.

    Raises
    ------
    InputError
        For a method that R's sae and hbsae do not have.
    EngineError
        Where R stops, as it did for the fit.
    """
    place = need_parent(path)
    if fit.spec.method == "bayes":
        from pybridge.smoothing._hbsae_script import posterior_call

        called, wanted = posterior_call(fit.spec, fit.area)
        requests.ask("hbsae_fSAE_Area", {**wanted, "file": str(place)}, called)
        return place
    from pybridge.smoothing._sae_spatial import call_of

    asked, inputs = call_of(fit.area, _sae_spec(fit), fit.exact)
    shim = "sae_mseFH" if fit.spec.correlation is None else "sae_spatial_mseSFH"
    labels = None
    if fit.spec.mode != "raw":
        labels = {"domain": [str(label) for label in fit.area.domains[fit.area.sampled]]}
    # The solution at 0, where sae's iteration for the moment equation does not get.
    inputs["at_zero"] = (
        fit.spec.method == "FH" and fit.spec.mode != "raw" and fit.model_variance == 0
    )
    requests.ask(shim, {**inputs, "seed": asked.seed, "file": str(place), "labels": labels}, asked)
    return place


def _sae_spec(fit: FayHerriotFit) -> FayHerriotSpec:
    """The request to sae: the fit's own, or that of its twin."""
    from pybridge.smoothing._r_script import TIGHT

    spec = fit.spec
    if spec.engine == "sae":
        return spec
    if spec.method not in ("REML", "ML", "FH") or spec.correlation is not None:
        raise InputError(
            f"R's sae has no method {spec.method!r}, so there is no object of R to save",
            code="not_available",
            field="method",
            expected="REML | ML | FH | bayes",
            got=spec.method,
        )
    return replace(spec, engine="sae", options={**TIGHT, "time_limit": None})
