"""The functions of R's packages under their own names: ``pb.engines.sae.mseSFH(...)``.

One module a package, loaded on first use; a module that is put here is there.

Columns reach R as R itself would have read them: whole numbers as integers, other numbers as
doubles, True and False as logicals, text as text, and categoricals as factors with their
categories as levels, in their order. An ordered categorical is a plain factor too, with treatment
contrasts, as what R's ``cut()`` makes and as in the native engines. Guarded, the outcomes and
variances of area-level models are doubles, since sums and products of R's integers end at
2147483647; other formulas that go beyond are refused. Text for survey is a factor, guarded.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def _modules() -> list[str]:
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return sorted(name for name in names if not name.startswith("_"))


def __getattr__(name: str) -> ModuleType:
    if name.startswith("_") or name not in _modules():
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; there are {', '.join(_modules())}"
        )
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return _modules()
