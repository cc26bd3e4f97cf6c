"""Who fits which area-level model: one line an adapter, and the way to the right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pybridge._options import MODES, choose
from pybridge.engines._emdi_legal import METHODS, legal_methods
from pybridge.errors import InputError


@dataclass(frozen=True)
class Adapter:
    """One way of computing: a module with ``complete_options(given)`` and ``fit(table, spec)``."""

    engine: str
    methods: tuple[str, ...]
    module: str
    modes: tuple[str, ...] = MODES


_LIKELIHOODS = ("REML", "ML", "FH", "PR", "AMRL", "AMPL", "AMRL_YL", "AMPL_YL")

# An engine may have several, for different methods.
ADAPTERS = (
    Adapter("sae", ("REML", "ML", "FH"), "pybridge.smoothing._sae"),
    Adapter("emdi", METHODS, "pybridge.smoothing._emdi"),
    Adapter("hbsae", ("bayes",), "pybridge.smoothing._hbsae"),
    Adapter("native", _LIKELIHOODS, "pybridge.smoothing._native", ("guarded",)),
    Adapter("native", ("reblup", "reblupbc"), "pybridge.smoothing._native_robust", ("guarded",)),
    Adapter("native", ("bayes",), "pybridge.smoothing._native_bayes", ("guarded",)),
)

# The same for correlated domain effects: (correlation, adapter).
SPATIAL, SPACE_TIME = "spatial", "spatio-temporal"
CORRELATED = (
    (SPATIAL, Adapter("sae", ("REML", "ML"), "pybridge.smoothing._sae_spatial")),
    (SPATIAL, Adapter("emdi", legal_methods("spatial"), "pybridge.smoothing._emdi")),
    (SPACE_TIME, Adapter("sae", ("REML",), "pybridge.smoothing._sae_space_time", ("guarded",))),
)


def own_case(method: str, methods: tuple[str, ...]) -> str:
    """The method as the engine writes it."""
    return next(own for own in methods if own.lower() == method.lower())


def adapter_for(engine: Any, method: Any, mode: Any, correlation: Any) -> Adapter:
    """The adapter for a legal combination, or an InputError that lists what is legal."""
    choose("engine", engine, dict.fromkeys(adapter.engine for adapter in ADAPTERS))
    choose("mode", mode, MODES)
    adapters: tuple[Adapter, ...] = ADAPTERS
    if correlation is not None:
        choose("correlation", correlation, dict.fromkeys(name for name, _ in CORRELATED))
        adapters = tuple(adapter for name, adapter in CORRELATED if name == correlation)
    own = [adapter for adapter in adapters if adapter.engine == engine]
    if not own:
        able = dict.fromkeys(adapter.engine for adapter in adapters)
        raise InputError(
            f"engine {engine!r} has no {correlation} correlation",
            code="not_available",
            field="correlation",
            expected=f"engine={' | '.join(able)}",
            got=engine,
        )
    for adapter in own:
        if isinstance(method, str) and method.lower() in map(str.lower, adapter.methods):
            if mode not in adapter.modes:
                raise _no_such_mode(adapter, mode)
            return adapter
    others = dict.fromkeys(
        adapter.engine
        for adapter in adapters
        if isinstance(method, str) and method.lower() in map(str.lower, adapter.methods)
    )
    raise InputError(
        f"engine {engine!r} has no method {method!r}",
        code="unknown_option",
        field="method",
        expected=" | ".join(word for adapter in own for word in adapter.methods),
        got=method,
        hint=f"Engines with it: {', '.join(others)}." if others else None,
    )


def _no_such_mode(adapter: Adapter, mode: str) -> InputError:
    why = "there is no R function to call as it is"
    if adapter.engine != "native":
        why = f"pb.engines.{adapter.engine} has the function as it is"
    return InputError(
        f"engine {adapter.engine!r} has no mode {mode!r}: {why}",
        code="unknown_option",
        field="mode",
        expected=" | ".join(adapter.modes),
        got=mode,
    )
