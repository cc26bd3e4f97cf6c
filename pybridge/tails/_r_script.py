"""A tail fit as a plain R script, data included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge.errors import InputError

# The native optimum, as evd finds it with tight tolerances.
_NATIVE = {"control": {"reltol": 1e-14, "ndeps": [1e-4, 1e-4], "maxit": 1000}}


def r_arguments(engine: str, mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What R's function is called with beside the data, by its own names."""
    given = {n: v for n, v in options.items() if n not in ("mode", "time_limit", "penalty")}
    if engine == "native":
        return dict(_NATIVE)
    if mode == "raw":
        return given
    if engine == "evd":
        return {**given, "control": {**_NATIVE["control"], **dict(given.get("control") or {})}}
    return {"reltol": 1e-15, "maxit": 10_000, **given}


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
    arguments = r_arguments(engine, mode, options)
    listed = "".join(f", {r.name(name)} = {r.value(item)}" for name, item in arguments.items())
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
        lines.append("# Divided by their mean, since the optimiser depends on the units.")
        lines.append("unit <- mean(excesses)")
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
