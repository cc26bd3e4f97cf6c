"""Where a number comes from: engine, versions, method, options, seed."""

from __future__ import annotations

import dataclasses
import functools
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from pybridge._record import FrozenMapping, Record
from pybridge._version import __version__


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Provenance(Record):
    """What made a number. It holds no time, so that the same work gives the same record.

    Attributes
    ----------
    engine, method : str
        Who computed, and which estimator.
    options : mapping
        Everything else that was asked for.
    seed : int or None
    pybridge, python, numpy, pandas, scipy : str
        Versions.
    r : str or None
        R's version, None where R was not used.
    packages : mapping of str
        Versions of the R packages that were used.
    """

    engine: str
    method: str
    options: Mapping[str, Any]
    seed: int | None
    pybridge: str
    python: str
    numpy: str
    pandas: str
    scipy: str
    r: str | None
    packages: Mapping[str, str]

    def summary(self) -> str:
        """One line: engine, method, versions, options, seed."""
        used = [f"pybridge {self.pybridge}"]
        if self.r is not None:
            used.append(f"R {self.r}")
        used += [f"{name} {version}" for name, version in self.packages.items()]
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        text = f"{self.method} by {self.engine} ({', '.join(used)})"
        text += f"; {options}" if options else ""
        return text if self.seed is None else f"{text}; seed {self.seed}"


def provenance(
    engine: str,
    method: str,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    versions: Mapping[str, str] | None = None,
) -> Provenance:
    """The record for a result computed just now.

    Parameters
    ----------
    engine, method : str
    options : mapping, optional
    seed : int, optional
    versions : mapping of str, optional
        ``Reply.versions`` where R was used: "R" and each package.
    """
    used = dict(versions or {})
    return Provenance(
        engine=engine,
        method=method,
        options=FrozenMapping(dict(options or {})),
        seed=seed,
        pybridge=__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        pandas=pd.__version__,
        scipy=_scipy_version(),
        r=used.pop("R", None),
        packages=FrozenMapping(used),
    )


@functools.cache
def _scipy_version() -> str:
    """By its metadata: importing scipy costs more, reading them a millisecond each time."""
    return metadata.version("scipy")
