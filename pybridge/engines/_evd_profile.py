"""evd's profile likelihoods and confint, with the exact ends beside R's interpolated ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import name_list, number_vector
from pybridge._options import yes_or_no
from pybridge.engines._evd_record import EvdFit, back, model_of, need_fit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_ends import profile_ends
from pybridge.engines._tail_likelihood import Peak
from pybridge.engines._tail_optimum import Model
from pybridge.engines._tail_record import TailRecord, common
from pybridge.engines._tail_request import (
    TailRequest,
    ask,
    confidence,
    control_list,
    request,
    search_method,
)
from pybridge.errors import InputError
from pybridge.r import Reply

_SHIM = "evd_tail_profile"
# evd interpolates between points a quarter of a standard error apart: that leaves less than this
# share of an interval, but where the profile is not monotone it may read an end off anywhere.
_OFF = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class EvdProfile(TailRecord):
    """Profile likelihoods of the parameters of a fit, and their intervals.

    Attributes
    ----------
    estimate, lower, upper : mapping of str to float
        By parameter, as evd has them: the ends are interpolated between the points of the
        profile, NaN where it does not reach far enough.
    exact_lower, exact_upper : mapping of str to float
        Guarded: the ends by root finding; NaN where the likelihood does not fall far enough.
    curves : mapping of str to numpy.ndarray
        By parameter the points, (k, p + 1): its value, the deviance, and the other parameters.
    columns : mapping of str to tuple of str
        The names of these columns.
    """

    estimate: Mapping[str, float]
    lower: Mapping[str, float]
    upper: Mapping[str, float]
    exact_lower: Mapping[str, float]
    exact_upper: Mapping[str, float]
    curves: Mapping[str, np.ndarray]
    columns: Mapping[str, tuple[str, ...]]

    def to_frame(self) -> pd.DataFrame:
        """One row a parameter: estimate, lower, upper, exact_lower, exact_upper, level."""
        names = list(self.estimate)
        sides = ("estimate", "lower", "upper", "exact_lower", "exact_upper")
        table: dict[str, Any] = {"parameter": names}
        for side in sides:
            known = getattr(self, side)
            table[side] = [known.get(name, math.nan) for name in names]
        return pd.DataFrame({**table, "level": self.request.level})

    def curve(self, parameter: str) -> pd.DataFrame:
        """The points of one parameter's profile, with the log-likelihood.

        Raises
        ------
        InputError
            For a parameter that was not profiled.
        """
        if parameter not in self.curves:
            raise InputError(
                f"{parameter} was not profiled",
                code="unknown_parameter",
                field="parameter",
                expected=", ".join(self.curves),
                got=parameter,
            )
        points = self.curves[parameter]
        columns = dict(zip(self.columns[parameter], np.array(points).T))
        table = pd.DataFrame(columns)
        return table.assign(log_likelihood=-0.5 * table["deviance"])

    def summary(self) -> str:
        """The intervals as text."""
        lines = [self.request.summary(), self.to_frame().to_string(index=False)]
        return "\n".join([*lines, *self.conditions])


def profile(
    fitted: EvdFit,
    which: str | Sequence[str] | None = None,
    conf: float = 0.999,
    mesh: Any = None,
    xmin: Any = None,
    xmax: Any = None,
    convergence: bool = False,
    method: str = "BFGS",
    control: Mapping[str, Any] | None = None,
    *,
    level: float = 0.95,
    time_limit: float | None = None,
) -> EvdProfile:
    """Profile log-likelihoods by evd's profile, and the intervals by its confint.

    Parameters
    ----------
    fitted : EvdFit
        Of `fpot`, with standard errors; its mode is this call's.
    which : str or sequence of str, optional
        Parameters; by default all that were estimated.
    conf : float
        How far each profile reaches: until the deviance has risen by this quantile of chi-squared.
    mesh : float or sequence of float, optional
        Step in each parameter; by default a quarter of its standard error.
    xmin, xmax : float or sequence of float, optional
        Where each profile ends at the latest.
    convergence : bool
        Let evd print the convergence of each search (kept in ``conditions``).
    method, control
        Of R's optim.
    level : float
        Of the intervals; less than ``conf``.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    EvdProfile
        Of a point process too in guarded mode: R's own profile stops there, since it does not
        pass the model on. In raw mode it is R's, and raises EngineError.

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops.

    References
    ----------
    Coles (2001), An Introduction to Statistical Modeling of Extreme Values, section 2.6.6.
    """
    fit = need_fit("fitted", fitted)
    words = _arguments(fit, locals())
    asked = request(
        "evd",
        "profile",
        {**fit.request.arguments, **words},
        mode=fit.request.mode,
        level=level,
        time_limit=time_limit,
        unit=fit.request.unit,
    )
    if asked.level > words["conf"]:
        raise InputError(
            "the profile does not reach as far as the interval",
            code="bad_level",
            field="level",
            expected=f"at most conf, {words['conf']:g}",
            got=level,
        )
    inputs = {**fit.inputs, "profile": _for_r(words, asked), "level": asked.level}
    return _record(fit, asked, inputs, ask(_SHIM, inputs, asked))


def _arguments(fit: EvdFit, given: Mapping[str, Any]) -> dict[str, Any]:
    which = name_list("which", given["which"]) or fit.names
    unknown = [name for name in which if name not in fit.names]
    if unknown or len(fit.names) < 2:
        raise InputError(
            "only parameters that were estimated beside others have a profile",
            code="unknown_parameter",
            field="which",
            expected=f"among {', '.join(fit.names)}, of two or more",
            got=", ".join(which),
        )
    if not all(math.isfinite(error) for error in fit.standard_errors.values()):
        raise InputError(
            "a profile needs standard errors, for its steps",
            code="no_standard_errors",
            field="fitted",
            expected="a fit with standard errors",
            got=f"status {fit.status}",
        )
    found: dict[str, Any] = {"which": list(which), "conf": confidence("conf", given["conf"])}
    for name in ("mesh", "xmin", "xmax"):
        if given[name] is not None:
            found[name] = _each(name, given[name], which)
    if yes_or_no("convergence", given["convergence"]):
        found["convergence"] = True
    method = search_method(given["method"], mode=fit.request.mode)
    if method != "BFGS":
        found["method"] = method
    control = control_list(given["control"])
    return found if control is None else {**found, "control": control}


def _each(name: str, value: Any, which: Sequence[str]) -> np.ndarray:
    found = number_vector(name, np.atleast_1d(np.asarray(value, dtype=object).astype(float)))
    if found.size != len(which) or (name == "mesh" and np.any(found <= 0)):
        raise InputError(
            f"{name} must be a {'positive ' if name == 'mesh' else ''}number for each parameter",
            code="bad_profile",
            field=name,
            expected=f"{len(which)} numbers, for {', '.join(which)}",
            got=value,
        )
    return found


def _for_r(words: Mapping[str, Any], asked: TailRequest) -> dict[str, Any]:
    found = dict(words)
    by = np.array([back(name, 1.0, asked.unit) for name in words["which"]])
    for name in ("mesh", "xmin", "xmax"):
        if name in found:
            found[name] = found[name] / by
    if not asked.raw and found.get("method", "BFGS") == "BFGS":
        # One parameter fewer than the fit's own search, and room for it.
        found["control"] = {"maxit": 500, "reltol": 1e-12, **dict(found.get("control") or {})}
    return found


def _record(fit: EvdFit, asked: TailRequest, inputs: Mapping[str, Any], reply: Reply) -> EvdProfile:
    value, unit = reply.value, asked.unit
    names = list(value["names"])
    by = np.array([back(name, 1.0, unit) for name in names])
    lower, upper = numbers(value["lower"]) * by, numbers(value["upper"]) * by
    columns = {name: tuple(value["columns"][name]) for name in names}
    shift = float(value["shift"][0])
    curves = {}
    for name in names:
        points = numbers(value["curves"][name]) * [
            back(word, 1.0, 1.0 if word == "deviance" else unit) for word in columns[name]
        ]
        points[:, 1] += shift
        curves[name] = points
    exact = {} if asked.raw else _exact(fit, asked, names)
    notes = []
    missing = [name for name, one, two in zip(names, lower, upper) if np.isnan(one + two)]
    if missing:
        notes.append(f"evd's profile does not reach an end of the interval of {', '.join(missing)}")
    # Where the user's own range ends, evd gives that.
    ranged = [word for word in ("xmin", "xmax") if word in asked.arguments]
    off = [
        name
        for name, ends in exact.items()
        if not ranged and _apart(ends, lower, upper, names.index(name))
    ]
    if off:
        notes.append(f"evd's interpolated ends are not those of the profile: {', '.join(off)}")
    return EvdProfile(
        **common(
            asked,
            _SHIM,
            inputs,
            reply,
            status="not_converged" if missing or off else fit.status,
            engine_status="incomplete" if missing else "successful",
            notes=notes,
            value=_values(value),
        ),
        estimate=dict(zip(names, (numbers(value["estimate"]) * by).tolist())),
        lower=dict(zip(names, lower.tolist())),
        upper=dict(zip(names, upper.tolist())),
        exact_lower={name: ends[0] for name, ends in exact.items()},
        exact_upper={name: ends[1] for name, ends in exact.items()},
        curves=curves,
        columns=columns,
    )


def _apart(ends: tuple[float, float], lower: np.ndarray, upper: np.ndarray, k: int) -> bool:
    """Whether an end that evd gives lies elsewhere than the exact one."""
    width = ends[1] - ends[0]
    gaps = (abs(float(lower[k]) - ends[0]), abs(float(upper[k]) - ends[1]))
    return any(gap > _OFF * width for gap in gaps)


def _values(value: Mapping[str, Any]) -> dict[str, Any]:
    """What evd returned, in the units it was asked in."""
    return {name: item for name, item in value.items() if name not in ("shift", "columns")}


def exact_parts(fit: EvdFit) -> tuple[Model, Peak]:
    """The model that a guarded fit maximised, in R's units, and its exact peak."""
    unit = fit.request.unit
    exceedances = np.array(fit.value["exceedances"]) / unit
    model = model_of(fit.request, exceedances=exceedances, n=len(fit.inputs["x"]))
    theta = [fit.exact[name] / back(name, 1.0, unit) for name in model.parameters]
    return model, Peak(np.array(theta), model.log_likelihood(theta), True)


def _exact(fit: EvdFit, asked: TailRequest, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    from scipy.special import chdtri

    if not math.isfinite(fit.exact.get("shape", math.nan)) or fit.status == "infeasible":
        return {}
    model, peak = exact_parts(fit)
    held = {
        name: value / back(name, 1.0, asked.unit)
        for name, value in fit.param.items()
        if name not in fit.names
    }
    drop = 0.5 * float(chdtri(1, 1.0 - asked.level))
    found = {}
    for name in names:
        step = 0.5 * fit.standard_errors[name] / back(name, 1.0, asked.unit)
        ends = profile_ends(model=model, parameter=name, best=peak, step=step, drop=drop, held=held)
        found[name] = (back(name, ends[0], asked.unit), back(name, ends[1], asked.unit))
    return found
