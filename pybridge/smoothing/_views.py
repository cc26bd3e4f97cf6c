"""What every area-level fit can be asked beside its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pybridge.smoothing.diagnostics import FitDiagnostics
    from pybridge.smoothing.leave_domain_out import LeaveDomainOut


class FitViews:
    """Diagnostics, predictions without the own label, figures."""

    def diagnostics(self: Any) -> FitDiagnostics:
        """Residuals a domain, Brown's goodness-of-fit test, criteria, R², normality.

        Returns
        -------
        FitDiagnostics
            ``to_frame()`` has a row a domain.
        """
        from pybridge.smoothing.diagnostics import fit_diagnostics

        return fit_diagnostics(self)

    def leave_domain_out(self: Any, *, level: float | None = None) -> LeaveDomainOut:
        """Each labelled domain predicted as if it had no labels.

        It shows what the predictions of domains without labels are worth: their standardised
        errors, and how many direct estimates their predictive intervals hold. The model is fitted
        to the other domains, its variances included; by algebra, by reweighting the posterior's
        quadrature nodes (exact), or from a warm start. R's engines are not called again: their
        methods have the same optimum here. A prior stays what it was.

        Parameters
        ----------
        level : float, optional
            Of the intervals; by default the fit's own.

        Returns
        -------
        LeaveDomainOut

        Raises
        ------
        InputError
            ``not_available`` for correlated domain effects, transformations and methods that have
            no native engine; ``too_few_domains``.
        """
        from pybridge.smoothing.leave_domain_out import (
            leave_out_fay_herriot,
            leave_out_taxonomy_fit,
        )

        if hasattr(self, "levels"):
            return leave_out_taxonomy_fit(self, level)
        return leave_out_fay_herriot(self, level)

    def plot(self: Any, kind: str = "overview", ax: Any = None) -> Any:
        """A figure of the fit.

        Parameters
        ----------
        kind : str
            ``"overview"`` (four panels), ``"caterpillar"``, ``"domains"``, ``"direct"``,
            ``"shrinkage"``, ``"residuals"`` or ``"qq"``.
        ax : matplotlib Axes, optional
            To draw on (four of them for the overview); a new figure by default.

        Returns
        -------
        matplotlib Axes, or an array of four.
        """
        from pybridge.report.smoothing_figures import fit_figure

        return fit_figure(self, kind, ax)
