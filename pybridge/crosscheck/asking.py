"""The same request to every adapter of the area-level model that has its method."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pybridge.errors import (
    EngineError,
    EngineUnavailable,
    EngineWarning,
    InputError,
    PybridgeError,
)
from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.smoothing.fay_herriot import Adapter
from pybridge.tables.area import AreaTable

# Huber's constant and the bias correction's, of a robust fit.
_SHARED = ("k", "mult_constant")


def ask_all(
    adapters: Sequence[Adapter], area: AreaTable, spec: FayHerriotSpec
) -> tuple[dict[str, AreaFit], dict[str, str]]:
    """Answers by producer (engine and mode), and why others could not be asked.

    The native engine comes first. Options go along where they are the engine's own.
    """
    found: dict[str, AreaFit] = {}
    unavailable: dict[str, str] = {}
    able = [a for a in adapters if spec.method.lower() in map(str.lower, a.methods)]
    for adapter in sorted(able, key=lambda a: a.engine != "native"):
        for mode in adapter.modes:
            producer = name_of(adapter, mode)
            answer = _ask(adapter, area, spec, mode)
            if isinstance(answer, AreaFit):
                found[producer] = answer
            elif isinstance(answer, EngineUnavailable):
                # What is missing is missing in every mode.
                unavailable[adapter.engine] = why(answer)
                break
            else:
                unavailable[producer] = why(answer)
    return found, unavailable


def name_of(adapter: Adapter, mode: str) -> str:
    """Engine and mode; the native engine has one mode only."""
    return adapter.engine if len(adapter.modes) == 1 else f"{adapter.engine} {mode}"


def why(error: PybridgeError) -> str:
    """An error as a reason."""
    text = error.message if error.got is None else f"{error.message} ({error.got})"
    return f"{text}. {error.hint}" if error.hint else text


def _options_for(adapter: Adapter, spec: FayHerriotSpec) -> dict[str, Any]:
    """The request's options where they are the engine's own, or mean the same to it."""
    if spec.engine == adapter.engine:
        return dict(spec.options)
    if not spec.method.lower().startswith("reblup") or adapter.engine not in ("emdi", "native"):
        return {}
    shared = {name: spec.options[name] for name in _SHARED if name in spec.options}
    # emdi's kind of MSE, which the native engine has beside its own.
    return {**shared, "mse_type": "pseudo"}


def _ask(
    adapter: Adapter, area: AreaTable, spec: FayHerriotSpec, mode: str
) -> AreaFit | PybridgeError:
    module = importlib.import_module(adapter.module)
    given = _options_for(adapter, spec)
    own = next(word for word in adapter.methods if word.lower() == spec.method.lower())
    asked = replace(
        spec,
        engine=adapter.engine,
        method=own,
        mode=mode,
        options=module.complete_options(given),
    )
    try:
        with warnings.catch_warnings():
            # What R says is kept in the answer's conditions.
            warnings.simplefilter("ignore", EngineWarning)
            found: AreaFit = module.fit(area, asked)
            return found
    except (InputError, EngineUnavailable, EngineError) as error:
        return error
