"""Each labelled domain predicted as if it had no labels: can such predictions be trusted?"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._options import check_level
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import standard_errors
from pybridge.smoothing._leave_out_arrays import LeftOut, from_fit, joined

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
    from pybridge.smoothing.taxonomy_fit import TaxonomyFit


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeaveDomainOut(Record):
    """Predictions of every labelled domain by the model fitted to the others.

    Arrays have shape (n,), the labelled domains in the order of the area table.

    Attributes
    ----------
    model : str
        The model, in words.
    level : float
        Of the intervals.
    domains : numpy.ndarray
        Labels, object.
    direct, direct_variance : numpy.ndarray
        The direct estimates z_i, which the predictions did not see, and d_i.
    numbers : LeftOut
        The predictions as arrays.
    """

    model: str
    level: float
    domains: np.ndarray
    direct: np.ndarray
    direct_variance: np.ndarray
    numbers: LeftOut

    @property
    def prediction(self) -> np.ndarray:
        """Predicted domain means (n,): what the domain would be told without labels."""
        return self.numbers.prediction

    @property
    def standard_error(self) -> np.ndarray:
        """Standard errors (n,) of the predicted domain means; NaN where infinite."""
        return standard_errors(self.numbers.mse)

    @property
    def standardised_error(self) -> np.ndarray:
        """(z_i − prediction) / √(mse + d_i), shape (n,): about standard normal if all is right."""
        out = np.full(len(self.direct), np.nan)
        size = np.sqrt(self.numbers.spread, out=out, where=self.numbers.spread > 0)
        return np.asarray((self.direct - self.prediction) / size)

    @property
    def probability(self) -> np.ndarray:
        """Predictive distribution function at the direct estimate (n,): uniform if all is right."""
        return self.numbers.probability

    @property
    def covered(self) -> np.ndarray:
        """Whether the predictive interval of the direct estimate holds it, (n,) bool."""
        tail = 0.5 * (1.0 - self.level)
        with np.errstate(invalid="ignore"):
            return np.asarray((self.probability >= tail) & (self.probability <= 1.0 - tail))

    @property
    def scored(self) -> np.ndarray:
        """Domains that the others determine a prediction of, (n,) bool."""
        return np.isfinite(self.probability)

    @property
    def n_scored(self) -> int:
        """Their number."""
        return int(self.scored.sum())

    @property
    def coverage(self) -> float:
        """Share of the direct estimates inside their predictive intervals."""
        return float(self.covered[self.scored].mean()) if self.n_scored else math.nan

    @property
    def coverage_standard_error(self) -> float:
        """Binomial standard error that a coverage of exactly ``level`` would have."""
        if not self.n_scored:
            return math.nan
        return math.sqrt(self.level * (1.0 - self.level) / self.n_scored)

    @property
    def mean_error(self) -> float:
        """Mean of the standardised errors; 0 if all is right."""
        return self._mean(self.standardised_error)

    @property
    def root_mean_square(self) -> float:
        """Root mean square of the standardised errors; 1 if all is right, above: too confident."""
        return math.sqrt(self._mean(self.standardised_error**2))

    @property
    def log_density(self) -> float:
        """Sum of the log predictive densities of the direct estimates, to compare models by.

        Higher is better. The models must predict the same estimates.
        """
        return float(self.numbers.log_density[self.scored].sum())

    @staticmethod
    def _mean(values: np.ndarray) -> float:
        finite = values[np.isfinite(values)]
        return float(finite.mean()) if finite.size else math.nan

    def to_frame(self) -> pd.DataFrame:
        """One row a labelled domain.

        Columns: domain, direct, direct_variance, prediction, mse, standard_error, lower, upper
        (of the domain mean), level, standardised_error, probability, covered, log_density.
        """
        numbers = self.numbers
        return pd.DataFrame(
            {
                "domain": np.array(self.domains),
                "direct": np.array(self.direct),
                "direct_variance": np.array(self.direct_variance),
                "prediction": np.array(numbers.prediction),
                "mse": np.array(numbers.mse),
                "standard_error": self.standard_error,
                "lower": np.array(numbers.lower),
                "upper": np.array(numbers.upper),
                "level": self.level,
                "standardised_error": self.standardised_error,
                "probability": np.array(numbers.probability),
                "covered": self.covered,
                "log_density": np.array(numbers.log_density),
            }
        )

    def summary(self) -> str:
        """The answer as text."""
        inside = int(self.covered[self.scored].sum())
        lines = [
            f"{self.n_scored} labelled domains, each predicted as if it had no labels "
            f"({self.model})",
            f"{100 * self.level:g} % predictive intervals hold {inside} of {self.n_scored} direct "
            f"estimates: {100 * self.coverage:.1f} % ± {100 * self.coverage_standard_error:.1f}",
            f"standardised errors: mean {self.mean_error:.3g}, root mean square "
            f"{self.root_mean_square:.3g} (1 where the model's spread is right)",
            self._verdict(),
        ]
        unscored = self.domains[~self.scored]
        if len(unscored):
            lines.append(f"not determined without their own label: {listed(unscored)}")
        size = np.abs(np.nan_to_num(self.standardised_error))
        far = np.argsort(-size)[:5]
        far = far[size[far] > 2.5]
        if far.size:
            named = (f"{self.domains[i]} ({self.standardised_error[i]:+.1f})" for i in far)
            lines.append(f"furthest from their predictions: {listed(named)}")
        return "\n".join(lines)

    def _verdict(self) -> str:
        """One sentence."""
        if not self.n_scored:
            return "No domain could be scored."
        short = (self.coverage - self.level) / self.coverage_standard_error
        if short < -2.0:
            return (
                "Intervals of unlabelled domains are too narrow here: they cover significantly "
                "less than they say."
            )
        return (
            "No sign that intervals of unlabelled domains are too narrow, as long as these are "
            "like the labelled ones."
        )

    def plot(self, ax: Any = None) -> Any:
        """Direct estimates against their leave-out predictions; returns the matplotlib Axes."""
        from pybridge.report.smoothing_figures import leave_out_figure

        return leave_out_figure(self, ax)


def leave_out_fay_herriot(fit: FayHerriotFit, level: float | None) -> LeaveDomainOut:
    """Of a Fay-Herriot fit, in the model of its method, whichever engine fitted it."""
    area, method = fit.area, fit.spec.method.upper()
    _need_plain(fit, method)
    level = fit.spec.level if level is None else check_level(level)
    seen = area.sampled
    words: dict[str, Any] = {
        "estimate": area.estimate[seen],
        "variance": fit.engine_area.variance[seen],
        "covariates": area.covariates[seen],
        "level": level,
    }
    _need_one_more(int(seen.sum()), area.covariates.shape[1])
    if method == "BAYES":
        from pybridge.smoothing._leave_out_bayes import leave_out_area

        found = leave_out_area(**words)
    else:
        found = _by_likelihood(words, method)
    if fit.spread is not None:
        found = found.of_finite_domains(fit.spread[seen])
    return _record(fit, seen, found, level)


def _by_likelihood(words: dict[str, Any], method: str) -> LeftOut:
    """By algebra where there is some; the others by fitting again."""
    from pybridge.smoothing._area_model import fit_area_model
    from pybridge.smoothing._leave_out_area import METHODS, leave_out_likelihood

    if method in METHODS and (words["variance"] > 0.0).all():
        return leave_out_likelihood(method=method, **words)
    fits = []
    for i in range(len(words["estimate"])):
        alone = words["estimate"].copy()
        alone[i] = np.nan
        fit = fit_area_model(method=method, **{**words, "estimate": alone})
        fits.append(from_fit(fit, i, words))
    return joined(fits)


def leave_out_taxonomy_fit(fit: TaxonomyFit, level: float | None) -> LeaveDomainOut:
    """Of a taxonomy fit, in the model of its method and with its prior."""
    from pybridge.smoothing._taxonomy_spec import arrays

    area = fit.area
    level = fit.spec.level if level is None else check_level(level)
    seen = area.sampled
    _need_one_more(int(seen.sum()), area.covariates.shape[1])
    words: dict[str, Any] = {**arrays(area, fit.levels), "level": level}
    if fit.prior is None:
        from pybridge.smoothing._taxonomy_reml import leave_out_likelihood

        found = leave_out_likelihood(method=fit.spec.method, **words)
    else:
        from pybridge.smoothing._leave_out_bayes import leave_out_taxonomy

        found = leave_out_taxonomy(prior=fit.prior, seed=fit.spec.seed, **words)
    return _record(fit, seen, found, level)


def _record(
    fit: FayHerriotFit | TaxonomyFit, seen: np.ndarray, found: LeftOut, level: float
) -> LeaveDomainOut:
    area = fit.area
    return LeaveDomainOut(
        model=f"{area.formula}, {fit.spec.method}",
        level=level,
        domains=area.domains[seen],
        direct=area.estimate[seen],
        direct_variance=area.variance[seen],
        numbers=found,
    )


def _need_plain(fit: FayHerriotFit, method: str) -> None:
    """Only models whose refits the native engine has."""
    from pybridge.smoothing._adjusted import ADJUSTED_METHODS
    from pybridge.smoothing._area_model import NATIVE_METHODS

    able = (*NATIVE_METHODS, *ADJUSTED_METHODS)
    if fit.spec.correlation is not None:
        asked, field = f"{fit.spec.correlation} correlation", "correlation"
    elif fit.spec.options.get("transformation", "no") not in ("no", None):
        asked, field = f"transformation {fit.spec.options['transformation']!r}", "transformation"
    elif method != "BAYES" and method not in able:
        asked, field = f"method {fit.spec.method!r}", "method"
    else:
        return
    raise InputError(
        f"domains cannot be left out of a fit with {asked}",
        code="not_available",
        field=field,
        expected=f"independent domain effects, no transformation, {', '.join(able)} or bayes",
        got=asked,
    )


def _need_one_more(n: int, p: int) -> None:
    if n - 1 <= p:
        raise InputError(
            "too few domains to leave one out",
            code="too_few_domains",
            field="estimate",
            expected=f"at least {p + 2} domains with labels",
            got=n,
        )
