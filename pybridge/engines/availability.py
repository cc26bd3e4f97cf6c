"""Whether an engine can be used, asked before any work is done."""

from __future__ import annotations

from pybridge.errors import EngineUnavailable


def need_engine(package: str, *, instead: str) -> None:
    """Raise EngineUnavailable, naming what works without it, unless R and the package are there.

    Parameters
    ----------
    package : str
        An R package.
    instead : str
        What the user can write instead, for example ``"engine='native' (--engine native)"``.
    """
    from pybridge.r import require_packages

    try:
        require_packages(package)
    except EngineUnavailable as error:
        facts = error.facts()
        hint = facts["hint"] or ""
        facts["hint"] = f"{hint} Without R: {instead}.".strip()
        raise EngineUnavailable(error.message, **facts) from error
