"""The record of a generalised Pareto fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._files import need_parent, write_text
from pybridge._checks import number_vector
from pybridge._options import check_level, choose
from pybridge._record import Record, freeze
from pybridge.errors import InputError
from pybridge.provenance import Provenance
from pybridge.tails._intervals import Interval, chi_square_drop, normal_quantile
from pybridge.tails._maximum import Maximum, profile_maximum
from pybridge.tails._profile import parameter_interval
from pybridge.tails._r_script import heavy_tail, r_arguments, r_unit, tail_script
from pybridge.tails._status import USABLE
from pybridge.tails.bootstrap import ParetoBootstrap, bootstrap
from pybridge.tails.goodness import GoodnessOfFit, goodness_of_fit
from pybridge.tails.return_levels import INTERVALS, ReturnLevels, return_levels
from pybridge.tails.transforms import Transform

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck

PARAMETERS = ("scale", "shape")


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFit(Record):
    """A generalised Pareto distribution fitted to the excesses over a threshold.

    Attributes
    ----------
    shape, scale : float
        P(X > u + x | X > u) = (1 + shape x / scale)^(-1/shape); NaN where there is no fit.
    covariance : numpy.ndarray
        (2, 2), of (scale, shape) in R's order; NaN where it does not exist.
    threshold, threshold_rule, threshold_asked
        u, how it was asked for ("value", "quantile", "count"), and the number given.
    n_scores, n_exceedances : int
    exceedance_rate : float
    log_likelihood : float
        Of the excesses at the estimates.
    status : str
        "converged", "nonregular" (shape of at most -1/2: no standard errors), "infeasible" (the
        likelihood has no maximum above shape -1), "weak_identification" (fewer than 10
        exceedances), "too_few" (fewer than 5), "degenerate" (ties, or a standard error that is
        not to be trusted), "not_converged", "failed".
    engine, method, mode : str
    engine_status : str
        The engine's own word; evidence, not the verdict.
    level : float
    transform : Transform
        Applied to the scores before the threshold; every number here is on its scale.
    excesses : numpy.ndarray
        (n_exceedances,) float64, what the engine saw.
    exact_shape, exact_scale, exact_log_likelihood : float
        The exact maximum of the same likelihood, computed natively: the arbiter beside R's answer.
    conditions : tuple of str
        What the engine said, and what was found about the data, one sentence each.
    provenance : Provenance
        Engine, versions, options.
    """

    shape: float
    scale: float
    covariance: np.ndarray
    threshold: float
    threshold_rule: str
    threshold_asked: float
    n_scores: int
    n_exceedances: int
    exceedance_rate: float
    log_likelihood: float
    status: str
    engine: str
    method: str
    mode: str
    engine_status: str
    level: float
    transform: Transform
    excesses: np.ndarray
    exact_shape: float
    exact_scale: float
    exact_log_likelihood: float
    conditions: tuple[str, ...]
    provenance: Provenance

    def __post_init__(self) -> None:
        # Only the arrays can change; to look at all two dozen fields takes half as long as a fit.
        for name in ("covariance", "excesses"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    @property
    def usable(self) -> bool:
        """Whether the estimates stand for something ("nonregular" ones do, without errors)."""
        return self.status in USABLE

    @property
    def shape_standard_error(self) -> float:
        return math.sqrt(self.covariance[1, 1])

    @property
    def scale_standard_error(self) -> float:
        return math.sqrt(self.covariance[0, 0])

    @property
    def upper_end_point(self) -> float:
        """The largest possible score: threshold - scale / shape, infinite for shapes >= 0."""
        return self.threshold - self.scale / self.shape if self.shape < 0 else math.inf

    def exact_maximum(self) -> Maximum:
        """The maximum of the likelihood, computed natively from the excesses."""
        return profile_maximum(excesses=self.excesses)

    def need_maximum_likelihood(self) -> None:
        """Raise InputError unless the method is maximum likelihood."""
        if self.method != "ML":
            raise InputError(
                "profile intervals belong to maximum likelihood",
                code="no_profile",
                field="interval",
                expected="method ML, or interval='delta'",
                got=f"method {self.method}",
            )

    def interval(
        self, parameter: str = "shape", *, kind: str = "profile", level: float | None = None
    ) -> Interval:
        """A confidence interval of the shape or the scale.

        Parameters
        ----------
        parameter : {"shape", "scale"}
        kind : {"profile", "delta"}
            The profile interval is computed natively from the excesses, whatever the engine.
        level : float, optional
            Default: the fit's own.

        Returns
        -------
        Interval
            NaN ends where the fit has no standard errors (the chi-squared limit of the likelihood
            ratio fails there too). A lower end of -1 for the shape says that the likelihood does
            not fall far enough before the boundary.
        """
        choose("parameter", parameter, PARAMETERS)
        choose("kind", kind, INTERVALS)
        level = self.level if level is None else check_level(level)
        estimate = self.shape if parameter == "shape" else self.scale
        error = self.shape_standard_error if parameter == "shape" else self.scale_standard_error
        if kind == "profile":
            self.need_maximum_likelihood()
        low = high = math.nan
        if kind == "delta" or not math.isfinite(error):
            half = normal_quantile(level) * error
            low, high = estimate - half, estimate + half
        elif self.usable:
            low, high = parameter_interval(
                excesses=self.excesses,
                maximum=self.exact_maximum(),
                parameter=parameter,
                drop=chi_square_drop(level),
            )
        return Interval(parameter, estimate, low, high, level, kind)

    def return_level(
        self,
        period: Any,
        *,
        observations_per_period: float = 1.0,
        interval: str = "delta",
        level: float | None = None,
    ) -> ReturnLevels:
        """The score exceeded once in ``period`` periods, on the fitted (transformed) scale.

        Parameters
        ----------
        period : float or sequence of float
        observations_per_period : float
            1 for periods counted in scores; 365 for daily values and periods in years.
        interval : {"delta", "profile"}
        level : float, optional

        Raises
        ------
        InputError
            ``below_threshold`` for levels below the threshold.
        """
        return return_levels(
            self,
            period,
            observations_per_period=observations_per_period,
            interval=interval,
            level=level,
        )

    def quantile(
        self, probability: Any, *, interval: str = "delta", level: float | None = None
    ) -> ReturnLevels:
        """The score not exceeded with the given probability, or probabilities, near 1."""
        values = np.atleast_1d(np.asarray(probability, dtype=np.float64))
        bad = ~((values > 0.0) & (values < 1.0))
        if bad.any():
            raise InputError(
                "a probability must lie strictly between 0 and 1",
                code="bad_probability",
                field="probability",
                expected="0 < probability < 1",
                got=f"{float(values[bad][0]):g}",
            )
        return self.return_level(1.0 / (1.0 - values), interval=interval, level=level)

    def goodness_of_fit(
        self, *, method: str = "bootstrap", replicates: int = 999, seed: int = 1
    ) -> GoodnessOfFit:
        """Anderson–Darling and Cramér–von Mises; see :func:`pybridge.tails.goodness`."""
        return goodness_of_fit(self, method=method, replicates=replicates, seed=seed)

    def bootstrap(
        self,
        *,
        kind: str = "resampling",
        replicates: int = 2000,
        seed: int = 1,
        level: float | None = None,
    ) -> ParetoBootstrap:
        """Replicates of the estimates; see :func:`pybridge.tails.bootstrap`."""
        return bootstrap(self, kind=kind, replicates=replicates, seed=seed, level=level)

    def crosscheck(self, *, engines: Sequence[str] = ("native", "evd", "ismev")) -> FitCrosscheck:
        """The same excesses by every engine: whether they agree, and which is nearer to the top.

        Parameters
        ----------
        engines : sequence of str
            An engine that is missing is named in the answer.
        """
        from pybridge.crosscheck.tail import crosscheck_tail

        return crosscheck_tail(self, engines=engines)

    def r_script(self, path: str | PathLike[str] | None = None, *, data: Any = None) -> str:
        """A complete R script that gives the same numbers under plain Rscript.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        data : sequence of float, optional
            The scores, needed for a raw fit (a fit keeps its excesses only).
        """
        text = tail_script(
            engine=self.engine,
            mode=self.mode,
            method=self.method,
            options=self.provenance.options,
            threshold=self.threshold,
            data=self._r_data(data),
        )
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | PathLike[str], data: Any = None) -> Path:
        """Save the object of R's package (for a native fit evd's), for readRDS(); returns the path.

        That of a guarded fit is of the excesses over 0, divided by their mean (where the tail is
        heavy, by a power of two near their scale), which its element ``unit`` holds: scales and
        quantiles of it, and R's own plots, times ``unit`` plus the threshold are the record's.

        Raises
        ------
        EngineUnavailable
        EngineError
            Where R has no fit of these excesses.
        """
        from pybridge.r import call

        engine = "ismev" if self.engine == "ismev" else "evd"
        heavy = None if self.mode == "raw" else heavy_tail(self.excesses)
        inputs = {
            "x": self._r_data(data),
            "threshold": self.threshold,
            "guarded": self.mode != "raw",
            "unit": r_unit(heavy),
            "arguments": r_arguments(self.engine, self.mode, self.provenance.options, heavy),
            "path": str(need_parent(path)),
        }
        call(f"{engine}_save", inputs, packages=(engine,))
        return Path(path)

    def _r_data(self, data: Any) -> np.ndarray:
        if self.mode != "raw":
            return self.excesses
        if data is None:
            raise InputError(
                "a raw fit is of all scores, and a fit keeps its excesses only",
                code="data_needed",
                field="data",
                expected="the scores that were fitted",
                got=None,
            )
        return self.transform.apply(number_vector("data", data))

    def plot(self, ax: Any = None) -> Any:
        """QQ, PP and return levels, on three matplotlib Axes or a new figure; returns them."""
        from pybridge.report.tail_figures import diagnostic_figure

        return diagnostic_figure(self, ax)

    def to_frame(self) -> pd.DataFrame:
        """One row a parameter, with its interval from the standard error."""
        rows = []
        for name in ("shape", "scale"):
            delta = self.interval(name, kind="delta")
            error = self.shape_standard_error if name == "shape" else self.scale_standard_error
            rows.append((name, delta.estimate, error, delta.lower, delta.upper, self.level))
        names = ["parameter", "estimate", "standard_error", "lower", "upper", "level"]
        return pd.DataFrame(rows, columns=names).assign(status=self.status)

    def summary(self) -> str:
        rule = "" if self.threshold_rule == "value" else f" ({self.threshold_rule} "
        rule += f"{self.threshold_asked:g})" if rule else ""
        lines = [
            f"Generalised Pareto fit by {self.engine} ({self.method}, {self.mode}): {self.status}",
            f"{self.n_exceedances} of {self.n_scores} scores above {self.threshold:g}{rule}, "
            f"transform: {self.transform.summary()}",
            f"shape {self.shape:.6g} (standard error {self.shape_standard_error:.3g}), "
            f"scale {self.scale:.6g} ({self.scale_standard_error:.3g}), "
            f"log-likelihood {self.log_likelihood:.6f}",
        ]
        return "\n".join([*lines, *(f"- {text}" for text in self.conditions)])
