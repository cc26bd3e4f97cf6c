"""The door to R: ``call(shim, inputs) -> Reply``, and what is needed to open it.

Nothing of R or rpy2 is loaded by importing this package; the first call starts R. It is also
imported by the child process that owns R, which must start fast: so every name is lazy, and
neither numpy nor pandas comes in here.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Doctor": "diagnosis",
    "Factor": "wire",
    "Installation": "installation",
    "Reply": "door",
    "call": "door",
    "call_many": "door",
    "doctor": "diagnosis",
    "find_r": "installation",
    "r_stopped": "stopped",
    "require_packages": "door",
    "setup_r": "setup",
    "shutdown": "pool",
}

__all__ = [
    "Doctor",
    "Factor",
    "Installation",
    "Reply",
    "call",
    "call_many",
    "doctor",
    "find_r",
    "r_stopped",
    "require_packages",
    "setup_r",
    "shutdown",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
