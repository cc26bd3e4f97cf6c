"""evd's dgpd, pgpd and qgpd, and where their numbers lose their digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import real_number, yes_or_no
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_likelihood import log_part
from pybridge.engines._tail_record import TailTable, common
from pybridge.engines._tail_request import ask, positive, request
from pybridge.errors import InputError
from pybridge.r import Reply

_SHIM = "evd_tail_distribution"
# (1 + shape x)^(-1/shape) keeps about 16 digits less those of 1/shape.
_DIFFERS = 1e-9


# What the three have in common, for help(): their own arguments stand before it.
_REST = """\
    loc, scale, shape : float
    mode : {"guarded", "raw"}
        ``"guarded"``: where evd loses digits (shapes near 0) or has another convention (density 0
        at the location, where it is 1/scale; no quantiles at 0 and 1) the value by log1p and expm1
        is given and evd's kept in the column ``evd``.

    Returns
    -------
    TailTable
        The argument, value; guarded also evd.

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops, in raw mode.
    """


def _documented(function: Callable[..., TailTable]) -> Callable[..., TailTable]:
    """The function with the shared half of its docstring."""
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n{_REST}"
    return function


@_documented
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
    log : bool
        The logarithm of it.
    """
    flags = {"log": yes_or_no("log", log)}
    return _asked("dgpd", {"x": _places("x", x)}, (loc, scale, shape), flags, mode)


@_documented
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
    lower_tail : bool
        P(X <= q), or else P(X > q), which evd takes as 1 - P(X <= q).
    """
    flags = {"lower.tail": yes_or_no("lower_tail", lower_tail)}
    return _asked("pgpd", {"q": _places("q", q)}, (loc, scale, shape), flags, mode)


@_documented
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
    lower_tail : bool
        Whether p is P(X <= q).
    """
    places = _places("p", p)
    outside = places[(places < 0) | (places > 1)]
    if outside.size:
        raise InputError(
            "probabilities lie between 0 and 1",
            code="bad_probability",
            field="p",
            expected="0 <= p <= 1",
            got=f"{float(outside[0]):g}",
        )
    flags = {"lower.tail": yes_or_no("lower_tail", lower_tail)}
    return _asked("qgpd", {"p": places}, (loc, scale, shape), flags, mode)


def _density(*, x: np.ndarray, loc: float, scale: float, shape: float, log: bool) -> np.ndarray:
    """Density, or its logarithm, at x (n,)."""
    z = (x - loc) / scale
    inside = (z >= 0) & (1.0 + shape * z > 0)
    value = np.full(z.size, -math.inf)
    part, _, _ = log_part(z=z[inside], shape=np.full(int(inside.sum()), shape))
    value[inside] = -math.log(scale) - (1.0 + shape) * part
    return value if log else np.exp(value)


def _probability(
    *, q: np.ndarray, loc: float, scale: float, shape: float, lower_tail: bool
) -> np.ndarray:
    """P(X <= q) or P(X > q) at q (n,)."""
    z = np.maximum((q - loc) / scale, 0.0)
    inside = 1.0 + shape * z > 0
    part = np.full(z.size, math.inf)
    part[inside] = log_part(z=z[inside], shape=np.full(int(inside.sum()), shape))[0]
    return -np.expm1(-part) if lower_tail else np.exp(-part)


def _quantile(
    *, p: np.ndarray, loc: float, scale: float, shape: float, lower_tail: bool
) -> np.ndarray:
    """Quantiles of probabilities p (n,), below or above."""
    with np.errstate(divide="ignore", over="ignore"):
        rate = -np.log1p(-p) if lower_tail else -np.log(p)
        if abs(shape) < 1e-300:
            return loc + scale * rate
        return np.asarray(loc + scale * np.expm1(shape * rate) / shape)


_EXACT: dict[str, Callable[..., np.ndarray]] = {
    "dgpd": _density,
    "pgpd": _probability,
    "qgpd": _quantile,
}


def _places(field: str, values: Any) -> np.ndarray:
    return number_vector(field, np.atleast_1d(np.asarray(values)))


def _asked(
    function: str,
    at: dict[str, np.ndarray],
    parameters: tuple[Any, Any, Any],
    flags: dict[str, bool],
    mode: str,
) -> TailTable:
    """evd's values at the places of the one argument in ``at``, and the exact ones beside them."""
    ((field, places),) = at.items()
    names = ("loc", "scale", "shape")
    checked = {name: real_number(name, value) for name, value in zip(names, parameters)}
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
        words = {name.replace(".", "_"): flag for name, flag in flags.items()}
        value = _EXACT[function](**at, **checked, **words)
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
