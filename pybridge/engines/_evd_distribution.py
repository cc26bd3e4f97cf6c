"""evd's dgpd, pgpd and qgpd, and where their numbers lose their digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import real_number
from pybridge.engines._sae_request import flag, numbers
from pybridge.engines._tail_likelihood import log_part
from pybridge.engines._tail_record import TailTable, common
from pybridge.engines._tail_request import ask, positive, request
from pybridge.errors import InputError
from pybridge.r import Reply

_SHIM = "evd_tail_distribution"
# (1 + shape x)^(-1/shape) keeps about 16 digits less those of 1/shape.
_DIFFERS = 1e-9


def dgpd(
    x: Any,
    loc: float = 0.0,
    scale: float = 1.0,
    shape: float = 0.0,
    log: bool = False,
    *,
    mode: str = "guarded",
) -> TailTable:
    """Density of the generalised Pareto distribution by evd::dgpd.

    Parameters
    ----------
    x : float or sequence of float
    loc, scale, shape : float
    log : bool
        The logarithm of it.
    mode : {"guarded", "raw"}
        ``"guarded"``: where evd loses digits (shapes near 0) or has another convention (0 at the
        location, where the density is 1/scale) the value by log1p and expm1 is given and evd's
        kept in the column ``evd``.

    Returns
    -------
    TailTable
        x, value; guarded also evd.

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops, in raw mode.
    """
    places = _places("x", x)
    words = {"loc": loc, "scale": scale, "shape": shape}

    def exact(at: dict[str, float]) -> np.ndarray:
        z = (places - at["loc"]) / at["scale"]
        inside = (z >= 0) & (1.0 + at["shape"] * z > 0)
        value = np.full(z.size, -math.inf)
        part, _, _ = log_part(z=z[inside], shape=np.full(int(inside.sum()), at["shape"]))
        value[inside] = -math.log(at["scale"]) - (1.0 + at["shape"]) * part
        return value if log else np.exp(value)

    return _asked("dgpd", "x", places, words, {"log": flag("log", log)}, exact, mode)


def pgpd(
    q: Any,
    loc: float = 0.0,
    scale: float = 1.0,
    shape: float = 0.0,
    lower_tail: bool = True,
    *,
    mode: str = "guarded",
) -> TailTable:
    """Distribution function of the generalised Pareto distribution by evd::pgpd.

    Parameters
    ----------
    q : float or sequence of float
    loc, scale, shape : float
    lower_tail : bool
        P(X <= q), or else P(X > q), which evd takes as 1 - P(X <= q).
    mode : {"guarded", "raw"}
        As in `dgpd`.

    Returns
    -------
    TailTable
        q, value; guarded also evd.

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops, in raw mode.
    """
    places = _places("q", q)
    words = {"loc": loc, "scale": scale, "shape": shape}
    lower = flag("lower_tail", lower_tail)

    def exact(at: dict[str, float]) -> np.ndarray:
        z = np.maximum((places - at["loc"]) / at["scale"], 0.0)
        inside = 1.0 + at["shape"] * z > 0
        part = np.full(z.size, math.inf)
        count = int(inside.sum())
        part[inside] = log_part(z=z[inside], shape=np.full(count, at["shape"]))[0]
        return -np.expm1(-part) if lower else np.exp(-part)

    return _asked("pgpd", "q", places, words, {"lower.tail": lower}, exact, mode)


def qgpd(
    p: Any,
    loc: float = 0.0,
    scale: float = 1.0,
    shape: float = 0.0,
    lower_tail: bool = True,
    *,
    mode: str = "guarded",
) -> TailTable:
    """Quantiles of the generalised Pareto distribution by evd::qgpd.

    Parameters
    ----------
    p : float or sequence of float
        Strictly between 0 and 1 for evd; guarded the ends of the support at 0 and 1 too.
    loc, scale, shape : float
    lower_tail : bool
        Whether p is P(X <= q).
    mode : {"guarded", "raw"}
        As in `dgpd`.

    Returns
    -------
    TailTable
        p, value; guarded also evd.

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops, in raw mode.
    """
    places = _places("p", p)
    if np.any((places < 0) | (places > 1)):
        raise InputError(
            "probabilities lie between 0 and 1",
            code="bad_probability",
            field="p",
            expected="0 <= p <= 1",
            got=f"{float(places[(places < 0) | (places > 1)][0]):g}",
        )
    words = {"loc": loc, "scale": scale, "shape": shape}
    lower = flag("lower_tail", lower_tail)

    def exact(at: dict[str, float]) -> np.ndarray:
        with np.errstate(divide="ignore", over="ignore"):
            rate = -np.log1p(-places) if lower else -np.log(places)
            if abs(at["shape"]) < 1e-300:
                return at["loc"] + at["scale"] * rate
            return at["loc"] + at["scale"] * np.expm1(at["shape"] * rate) / at["shape"]

    return _asked("qgpd", "p", places, words, {"lower.tail": lower}, exact, mode)


def _places(field: str, values: Any) -> np.ndarray:
    return number_vector(field, np.atleast_1d(np.asarray(values)))


def _asked(
    function: str,
    field: str,
    places: np.ndarray,
    parameters: dict[str, float],
    flags: dict[str, bool],
    exact: Callable[[dict[str, float]], np.ndarray],
    mode: str,
) -> TailTable:
    checked = {name: real_number(name, value) for name, value in parameters.items()}
    positive("scale", checked["scale"])
    arguments = {**checked, **flags}
    asked = request("evd", function, arguments, mode=mode)
    # evd refuses 0 and 1: they are asked of the formula alone.
    inner = np.ones(places.size, dtype=bool)
    if not asked.raw and function == "qgpd":
        inner = (places > 0) & (places < 1)
    inputs = {"which": function, "x": places[inner], "unit": 1.0, "arguments": arguments}
    reply = ask(_SHIM, inputs, asked) if inner.any() else Reply(value={"value": np.array([])})
    theirs = np.full(places.size, math.nan)
    theirs[inner] = numbers(reply.value["value"])
    table, notes = {field: places, "value": theirs}, []
    if not asked.raw:
        value = exact(checked)
        size = np.maximum(np.abs(value), 1e-300)
        with np.errstate(invalid="ignore"):
            far = ~((theirs == value) | (np.abs(theirs - value) <= _DIFFERS * size))
        table.update(value=np.where(far, value, theirs), evd=theirs)
        if far.any():
            notes.append(f"{int(far.sum())} values are not evd's: see the column evd")
    return TailTable(
        **common(asked, _SHIM, inputs, reply, notes=notes),
        table=table,
    )
