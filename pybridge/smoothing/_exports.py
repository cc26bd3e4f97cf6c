"""What a Fay-Herriot fit becomes: cross-checked, a script of R, an object of R, benchmarked."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybridge._files import write_text
from pybridge.errors import InputError
from pybridge.smoothing._adapters import SPACE_TIME

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck
    from pybridge.smoothing.benchmarking import BenchmarkedEstimates


class FitExports:
    """The ways out of a fit of the Fay-Herriot model."""

    def crosscheck(self: Any) -> FitCrosscheck:
        """The same fit by every engine that has its method, each beside the exact optimum.

        Returns
        -------
        FitCrosscheck
            Its ``sentence`` says whether they agree, where they part, which is nearer to the
            optimum, and which engines could not be asked.

        Raises
        ------
        InputError
            For a fit of transformed estimates, or over time.
        """
        if self.spec.correlation == SPACE_TIME:
            raise InputError(
                "no other engine has the model over time",
                code="not_available",
                field="time",
                expected="a model of one instant",
                got=self.spec.correlation,
                hint="fit.exact holds the highest restricted likelihood that pybridge found.",
            )
        if self.spec.options.get("transformation", "no") != "no":
            raise InputError(
                "emdi and the native engine bring transformed estimates back each in its own way: "
                "there is nothing to compare with",
                code="not_available",
                field="transformation",
                expected="transformation='no'",
                got=self.spec.options["transformation"],
                hint="fit.exact holds the exact optimum on the transformed scale.",
            )
        from pybridge.crosscheck.area import crosscheck_area

        # Engines have the model; what finite domains make of it is the same for all. They are
        # compared by the MSE that each has by default: a bootstrap is another quantity.
        options = dict(self.spec.options)
        if self.spec.engine == "native":
            options = {n: v for n, v in options.items() if n not in ("mse_type", "B")}
            if self.spec.method.startswith("reblup"):
                options["mse_type"] = "pseudo"  # which emdi has too
        spec = replace(self.spec, options=options)
        return crosscheck_area(replace(self, spec=spec, area=self.engine_area, spread=None))

    def r_script(self: Any, path: str | PathLike[str] | None = None) -> str:
        """A complete R script, data included, that gives the same numbers under plain Rscript.

        Parameters
        ----------
        path : path, optional
            Where to write it too.

        Returns
        -------
        str
            The script. For ``engine="native"`` it asks sae for the same optimum with a tight
            PRECISION, equal to about nine digits (hbsae for the same posterior, to about seven);
            otherwise the numbers are the same to the bit.
        """
        from pybridge.smoothing._r_script import (
            fay_herriot_script,
            finite_script,
            spatial_script,
        )

        if self.spread is not None:
            text = finite_script(self.spec, self.area, self.engine_area, self.spread)
        elif self.fit.engine_fit is not None:
            text = self.fit.engine_fit.r_script()
        elif self.spec.correlation is None:
            text = fay_herriot_script(self.spec, self.area)
        else:
            text = spatial_script(self.spec, self.area, self.fit.exact)
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self: Any, path: str | PathLike[str]) -> Path:
        """Save the object that R's sae, emdi or hbsae returns, for ``readRDS()``.

        Of a native fit that of its script.

        Parameters
        ----------
        path : path

        Returns
        -------
        Path
            Where it is. sae's object, unless raw, has the domains of its rows in its attribute
            ``rows``; on emdi's its own summary, plot, compare and estimators work.
        """
        from pybridge.smoothing._back_to_r import save

        if self.spread is not None:
            return save(replace(self, area=self.engine_area, spread=None), path)
        if self.fit.engine_fit is not None:
            return Path(self.fit.engine_fit.to_rds(path))
        return save(self, path)

    def benchmark(
        self: Any,
        *,
        total: float | str,
        weights: Any,
        method: str = "difference",
        total_variance: float = 0.0,
        mse_type: str | None = None,
        B: int = 500,
        seed: int | None = None,
    ) -> BenchmarkedEstimates:
        """Make the estimates add up to a total, with the MSE that they then have.

        Parameters
        ----------
        total : float or "direct"
            What Σ weight × estimate is to be, taken as the truth of these domains; or the direct
            estimates' own weighted sum, where a publication must agree with them.
        weights : Series, mapping or array
            Sizes N for a total, shares for a mean; by label, or in the order of the table.
        method : {"difference", "ratio", "mse"}
            The same shift for all; in proportion to the estimates; in proportion to their MSE.
        total_variance : float
            Of a total that is an estimate from elsewhere.
        mse_type : {"analytical", "boot", "none"}, optional
            Closed form (exact to second order for ``difference``, to first for the others), or
            the parametric bootstrap; by default the first for ``difference``, else the second.
        B, seed : int
            Of the bootstrap.

        Raises
        ------
        InputError
            Weights of other domains, estimates that are missing, a total far from every weighted
            sum of the estimates, an MSE that the model has not.

        References
        ----------
        Steorts and Ghosh (2013), Statistica Sinica 23, 749; Rao and Molina (2015), Small Area
        Estimation, section 6.4.6.
        """
        from pybridge.smoothing.benchmarking import benchmark

        words: dict[str, Any] = {"total_variance": total_variance, "mse_type": mse_type}
        return benchmark(self, total=total, weights=weights, method=method, B=B, seed=seed, **words)
