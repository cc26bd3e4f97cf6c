"""A Fay-Herriot fit as the object that R's function returns, in a file for ``readRDS()``."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pybridge.engines import _sae_request as requests
from pybridge.errors import InputError

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit


def save(fit: FayHerriotFit, path: str | PathLike[str]) -> Path:
    """Ask R's sae again with the same inputs and seed, and keep what it returns.

    Raises
    ------
    InputError
        For an engine without such an object.
    EngineError
        Where R stops, as it did for the fit.
    """
    from pybridge.smoothing._sae_spatial import call_of

    if fit.spec.engine != "sae":
        raise InputError(
            f"engine {fit.spec.engine!r} has no object of R to save",
            code="not_available",
            field="engine",
            expected="engine='sae'",
            got=fit.spec.engine,
            hint="r_script() gives the same numbers under plain Rscript.",
        )
    place = Path(path).expanduser().resolve()
    asked, inputs = call_of(fit.area, fit.spec, fit.exact)
    shim = "sae_mseFH" if fit.spec.correlation is None else "sae_spatial_mseSFH"
    labels = None
    if fit.spec.mode != "raw":
        labels = {"domain": [str(label) for label in fit.area.domains[fit.area.sampled]]}
    requests.ask(shim, {**inputs, "seed": asked.seed, "file": str(place), "labels": labels}, asked)
    return place
