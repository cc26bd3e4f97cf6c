"""The record of a fit of the taxonomy model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._files import write_text
from pybridge._checks import listed
from pybridge._options import choose
from pybridge._record import Record, freeze, plain
from pybridge.errors import InputError
from pybridge.provenance import Provenance
from pybridge.smoothing._area_fit import domain_statuses, standard_errors
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_record import TaxonomyEstimate, TaxonomyPosterior
from pybridge.smoothing._taxonomy_spec import TaxonomyAnswer, TaxonomySpec
from pybridge.smoothing._views import FitViews
from pybridge.tables.area import AreaTable

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck

SENSITIVITY_FACTORS = (0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False, repr=False)
class TaxonomyFit(Record, FitViews):
    """A fit of the taxonomy model: what was asked, the checked table, and the numbers.

    Attributes
    ----------
    spec : TaxonomySpec
        The request: engine, method, prior, level, seed, options.
    area : AreaTable
        Direct estimates, variances, design matrix, of m domains.
    levels : TaxonomyLevels
        Names, codes and labels of the R levels, coarse to fine.
    answer : TaxonomyAnswer
        The numbers as arrays (``answer.numbers``), and what the engine said.
    provenance : Provenance
        Engine, versions, method, options, seed.
    """

    spec: TaxonomySpec
    area: AreaTable
    levels: TaxonomyLevels
    answer: TaxonomyAnswer
    provenance: Provenance

    @property
    def numbers(self) -> TaxonomyPosterior | TaxonomyEstimate:
        """The numbers as arrays."""
        return self.answer.numbers

    @property
    def model_variance(self) -> dict[str, float]:
        """σ_r² of every level, coarse to fine: posterior medians, or the estimates."""
        return dict(zip(self.levels.names, map(float, self.numbers.model_variances)))

    @property
    def prior(self) -> TaxonomyPrior | None:
        """The prior that was used; None for REML and ML."""
        return getattr(self.numbers, "prior", None)

    @property
    def log_likelihood(self) -> float:
        """The ordinary log-likelihood at the variances found; NaN for a posterior."""
        return float(getattr(self.numbers, "log_likelihood", math.nan))

    @property
    def restricted_log_likelihood(self) -> float:
        """The restricted log-likelihood there, with +½ log|X'X|; NaN for a posterior."""
        return float(getattr(self.numbers, "restricted_log_likelihood", math.nan))

    @property
    def status(self) -> str:
        """The verdict on the fit, in the words used everywhere."""
        return self.numbers.status

    @property
    def engine_status(self) -> str:
        """The engine's own verdict."""
        return self.answer.engine_status

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the engine said, and what was done about it."""
        return self.answer.conditions

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object: ``ok``, ``out_of_sample``, ``census`` or ``negative_mse``."""
        words = domain_statuses(
            estimate=self.area.estimate, variance=self.area.variance, mse=self.numbers.mse
        )
        return np.asarray(freeze(words))

    @property
    def n_sampled(self) -> int:
        """Domains with a direct estimate."""
        return int(self.area.sampled.sum())

    @property
    def coefficients(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error (posterior means and deviations for bayes)."""
        variance = np.diagonal(self.numbers.coefficient_covariance)
        return pd.DataFrame(
            {
                "term": list(self.area.covariate_names),
                "estimate": np.array(self.numbers.coefficients),
                "standard_error": standard_errors(variance),
            }
        )

    def effects(self, level: str) -> pd.DataFrame:
        """Effects of the groups of one level: group, effect, standard_error.

        The group's column has the level's name, or taxonomy_<name> where that is one of the others.

        Parameters
        ----------
        level : str
            One of ``levels.names``.
        """
        place = self.levels.names.index(choose("level", level, self.levels.names))
        found = self.numbers.effects[place]
        numbers = {
            "effect": np.array(found.mean),
            "standard_error": np.array(found.standard_error),
        }
        name = _free_name(level, {*numbers})
        return pd.DataFrame({name: self.levels.labels[place][found.codes], **numbers})

    def to_frame(self) -> pd.DataFrame:
        """One row a domain, in the order of the area table.

        Columns: the coarser levels (taxonomy_<name> where a level has the name of one of the
        others), domain, n_labelled (where the table has it), direct,
        direct_variance, cv (of the smoothed estimate), level, estimate, mse (posterior variance
        for bayes), standard_error, lower, upper, shrinkage, synthetic, status.
        """
        numbers = self.numbers
        error = standard_errors(numbers.mse)
        size = np.abs(numbers.estimate)
        cv = np.divide(error, size, out=np.full(len(size), np.nan), where=size > 0)
        table: dict[str, Any] = {"domain": self.area.domains}
        if self.area.n_labelled is not None:
            table["n_labelled"] = self.area.n_labelled
        table.update(
            direct=self.area.estimate,
            direct_variance=self.area.variance,
            cv=cv,
            level=np.full(len(size), self.spec.level),
            estimate=numbers.estimate,
            mse=numbers.mse,
            standard_error=error,
            lower=numbers.lower,
            upper=numbers.upper,
            shrinkage=numbers.shrinkage,
            synthetic=numbers.synthetic,
            status=self.domain_status,
        )
        groups: dict[str, Any] = {}
        for name, codes, labels in zip(self.levels.names[:-1], *self._coarse()):
            groups[_free_name(name, {*table, *groups})] = labels[codes]
        return pd.DataFrame(
            {name: np.array(column) for name, column in {**groups, **table}.items()}
        )

    def _coarse(self) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
        return self.levels.codes[:-1], self.levels.labels[:-1]

    def sensitivity(self, factors: Sequence[float] = SENSITIVITY_FACTORS) -> pd.DataFrame:
        """How much the answer hangs on the prior: refits with its scale multiplied.

        The refits are native quadrature (for more than three levels the native sampler),
        whatever the engine of the fit; they take as long as a native fit each.

        Parameters
        ----------
        factors : sequence of float

        Returns
        -------
        pandas.DataFrame
            A row a factor: factor, the scale and the posterior median variance of every level,
            largest_change and mean_change of the domains' estimates from factor 1 (in posterior
            standard deviations), mean_standard_error.
        """
        if self.prior is None:
            raise InputError(
                f"method {self.spec.method!r} has no prior to be sensitive to",
                code="not_available",
                field="method",
                expected="a fit by method='bayes'",
                got=self.spec.method,
            )
        from pybridge.smoothing._taxonomy_sensitivity import sensitivity_table

        return sensitivity_table(
            self.area, self.levels, self.prior, factors=factors, seed=self.spec.seed
        )

    def summary(self) -> str:
        """The fit as text; the prior is in it."""
        m = len(self.area.domains)
        sizes = ", ".join(
            f"{size} of {name}" for name, size in zip(self.levels.names, self.levels.sizes)
        )
        variances = ", ".join(f"{name} {value:.6g}" for name, value in self.model_variance.items())
        kind = "posterior medians" if self.prior is not None else "estimates"
        lines = [
            f"Taxonomy model {self.area.formula}, {self.spec.summary()}",
            f"levels: {sizes}; {m - self.n_sampled} of {m} domains without a direct estimate",
            f"status {self.status} (engine: {self.engine_status})",
            f"variances by level ({kind}): {variances}",
        ]
        if self.prior is not None:
            lines.append(f"prior of the variances: {self.prior.summary(self.levels.names)}")
            lines.append("what hangs on its scale (x 0.1, 1, 10): sensitivity()")
            lines.append(self._accuracy())
        else:
            lines.append(
                f"log-likelihood {self.log_likelihood:.6f}, restricted "
                f"{self.restricted_log_likelihood:.6f}"
            )
        lines.append(self.coefficients.to_string(index=False, float_format=lambda x: f"{x:.5g}"))
        special = self.domain_status
        for word in ("census", "negative_mse"):
            which = self.area.domains[special == word]
            if len(which):
                lines.append(f"{word}: {listed(which)}")
        return "\n".join(lines + list(self.conditions))

    def _accuracy(self) -> str:
        """How well the posterior was integrated."""
        numbers = self.numbers
        assert isinstance(numbers, TaxonomyPosterior)
        if numbers.integration == "quadrature":
            return f"quadrature with {numbers.n_nodes} nodes"
        return (
            f"{numbers.integration}: {numbers.n_nodes} draws, largest R-hat "
            f"{np.nanmax(numbers.r_hat):.3f}, smallest effective size "
            f"{np.nanmin(numbers.effective_size):.0f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for ``json``."""
        return {
            "spec": self.spec.to_dict(),
            "formula": self.area.formula,
            "levels": list(self.levels.names),
            "model_variance": plain(self.model_variance),
            "prior": plain(self.prior),
            "log_likelihood": plain(self.log_likelihood),
            "restricted_log_likelihood": plain(self.restricted_log_likelihood),
            "status": self.status,
            "engine_status": self.engine_status,
            "conditions": list(self.conditions),
            "coefficients": plain(self.coefficients.to_dict("list")),
            "domains": plain(self.to_frame().to_dict("list")),
            "provenance": plain(self.provenance),
        }

    def crosscheck(self) -> FitCrosscheck:
        """The same fit by every engine that has its method, each beside the native one.

        Returns
        -------
        FitCrosscheck
            Its ``sentence`` says whether they agree, where they part, which is nearer to the
            optimum, and which engines could not be asked.
        """
        from pybridge.crosscheck.taxonomy import crosscheck_taxonomy

        return crosscheck_taxonomy(self)

    def r_script(self, path: str | PathLike[str] | None = None) -> str:
        """A complete R script, data included: rma.mv for REML and ML, JAGS for bayes.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        """
        from pybridge.smoothing._taxonomy_script import taxonomy_script

        text = taxonomy_script(self.spec, self.area, self.levels, self.prior)
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | PathLike[str]) -> Path:
        """Save R's object for ``readRDS()``: ``rma.mv`` for REML and ML, JAGS's chains for bayes.

        R is asked again with the same options and seed. Of a native fit it is that of the script:
        metafor at the same optimum with a tight stopping rule, or long chains of JAGS.

        Parameters
        ----------
        path : path

        Returns
        -------
        Path
            Where it is. On ``rma.mv`` metafor's summary, ranef, predict and profile work, groups
            under the user's labels and coefficients under the covariates' names (x and a number
            where R could not read one); chains (coda's ``mcmc.list``) are in the user's units,
            nodes beta, sigma2 (coarse to fine), theta (by the attribute ``rows``) and v of each
            level.

        Raises
        ------
        EngineUnavailable, EngineError
        """
        from pybridge.smoothing._taxonomy_rds import save

        return save(self, path)


def _free_name(name: str, taken: set[str]) -> str:
    """A level's name as a column, ``taxonomy_<name>`` where another column has it."""
    while name in taken:
        name = f"taxonomy_{name}"
    return name
