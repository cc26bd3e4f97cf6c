"""A tail fit as a plain R script, data included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge.errors import InputError
from pybridge.tails._maximum import Maximum, profile_maximum

# The optimum, as evd finds it with tight tolerances. evd takes shapes of up to 2e-5 for zero, so
# that shorter difference steps than 1e-4 would see no slope at its start, shape 0; longer ones cost
# digits.
_NATIVE = {"control": {"reltol": 1e-14, "ndeps": [1e-4, 1e-4], "maxit": 1000}}


# The mean of the excesses says how large they are unless the tail is heavy: from shape 1 on it has
# no limit. In units of a mean 100 times the scale, R's steps and starts miss the maximum.
_LARGEST_MEAN = 8.0  # in units of the scale


def heavy_tail(excesses: np.ndarray) -> Maximum | None:
    """The exact maximum where the mean is no measure of the scale, else None."""
    mean = float(excesses.mean()) if excesses.size else math.nan
    # The search is for few samples: the mean of an exponential is 1.4 medians, and 8 scales take 5.
    if not (math.isfinite(mean) and mean > 3.0 * float(np.median(excesses))):
        return None
    best = profile_maximum(excesses=excesses)
    return best if not best.at_boundary and mean > _LARGEST_MEAN * best.scale else None


def r_unit(heavy: Maximum | None) -> float | None:
    """What R divides excesses by in a guarded fit; None for their mean, as R computes it."""
    return None if heavy is None else math.ldexp(1.0, round(math.log2(heavy.scale)))


def r_arguments(
    engine: str, mode: str, options: Mapping[str, Any], heavy: Maximum | None
) -> dict[str, Any]:
    """What R's function is called with beside the data, by its own names, in the user's units.

    Where the tail is heavy (see `heavy_tail`), a guarded fit starts at the exact maximum, if no
    other start is given.
    """
    given = {n: v for n, v in options.items() if n not in ("mode", "time_limit", "penalty")}
    if mode == "raw" and engine != "native":
        return given
    if engine == "ismev":
        start = {} if heavy is None else {"siginit": heavy.scale, "shinit": heavy.shape}
        return {"reltol": 1e-15, "maxit": 10_000, **start, **given}
    found = dict(_NATIVE) if engine == "native" else dict(given)
    found["control"] = {**_NATIVE["control"], **dict(found.get("control") or {})}
    if heavy is not None:
        found.setdefault("start", {"scale": heavy.scale, "shape": heavy.shape})
    return found


def _in_units(name: str, item: Any) -> str:
    """One argument as text; what is in the scores' units is divided by ``unit`` there."""
    if name == "siginit":
        return f"{r.value(item)} / unit"
    if name == "start":
        words = [f"{r.name(n)} = {r.value(v)}{' / unit' * (n == 'scale')}" for n, v in item.items()]
        return f"list({', '.join(words)})"
    return r.value(item)


def tail_script(
    *,
    engine: str,
    mode: str,
    method: str,
    options: Mapping[str, Any],
    threshold: float,
    data: np.ndarray,
) -> str:
    """The script; ``data`` are the excesses, in raw mode the scores."""
    if method != "ML":
        raise InputError(
            f"R's evd and ismev have no method {method}, so there is no script with these numbers",
            code="not_available",
            field="method",
            expected="ML",
            got=method,
        )
    heavy = None if mode == "raw" else heavy_tail(data)
    arguments = r_arguments(engine, mode, options, heavy)
    listed = "".join(f", {r.name(n)} = {_in_units(n, item)}" for n, item in arguments.items())
    guarded = mode != "raw"
    lines = [
        f"# Generalised Pareto fit of the excesses over {threshold:.17g}, by "
        + ("ismev::gpd.fit." if engine == "ismev" else "evd::fpot."),
        "# Numbers are written in hexadecimal: R reads them to the last bit.",
    ]
    if engine == "native":
        lines.append("# The fit was native; evd comes to the same optimum with tight tolerances.")
    name = "excesses" if guarded else "scores"
    lines.append(f"{name} <- {r.vector(r.number(v) for v in data)}")
    if guarded:
        unit = r_unit(heavy)
        by = "their mean" if unit is None else "a power of two near their scale: their mean is far"
        lines.append(f"# Divided by {by}, since the optimiser depends on the units.")
        lines.append(f"unit <- {'mean(excesses)' if unit is None else r.number(unit)}")
    else:
        lines.append("unit <- 1")
    x, u = ("excesses / unit", "0") if guarded else ("scores", r.number(threshold))
    if engine == "ismev":
        lines += [
            f"fit <- ismev::gpd.fit({x}, {u}, show = FALSE{listed})",
            "result <- c(scale = fit$mle[1] * unit, shape = fit$mle[2],",
            "  scale_se = fit$se[1] * unit, shape_se = fit$se[2],",
            "  nllh = fit$nllh + fit$nexc * log(unit))",
        ]
    else:
        lines += [
            f"fit <- evd::fpot({x}, {u}{listed})",
            'result <- c(scale = fit$param[["scale"]] * unit, shape = fit$param[["shape"]],',
            "  scale_se = sqrt(fit$var.cov[1, 1]) * unit, shape_se = sqrt(fit$var.cov[2, 2]),",
            "  nllh = fit$deviance / 2 + fit$nhigh * log(unit))",
        ]
    return "\n".join([*lines, "print(result, digits = 17)", ""])
