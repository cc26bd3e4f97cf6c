"""What direct estimates become: cross-checked, and a script of R."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from pybridge._files import write_text
from pybridge.design.survey_design import SurveyDesign

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck


class DirectExports:
    """The ways out of direct estimates; they do not keep the sample, so it is given again."""

    def crosscheck(self: Any, design: SurveyDesign, *, domain: str | None = None) -> FitCrosscheck:
        """The same estimates natively and by R's survey, with their whole covariance.

        Parameters
        ----------
        design : SurveyDesign
            The sample again.
        domain : str, optional
            Its column of domains, where it is not named as in the population.

        Returns
        -------
        FitCrosscheck
            Its ``sentence`` says whether they agree, and where they part.
        """
        from pybridge.crosscheck.direct import crosscheck_direct

        return crosscheck_direct(self, design, domain=domain)

    def r_script(
        self: Any,
        path: str | PathLike[str] | None = None,
        *,
        design: SurveyDesign,
        domain: str | None = None,
    ) -> str:
        """A complete R script, sample included, that gives the estimates by R's survey.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        design : SurveyDesign
            The sample again.
        domain : str, optional
            Its column of domains, where it is not named as in the population.

        Returns
        -------
        str
            The script. With ``engine="survey"`` it has the same numbers to the bit, of a native
            estimate to about ten digits. Modelled variances are not in it: survey has none.
        """
        from pybridge.direct._survey import survey_script

        text = survey_script(self, design, domain=domain)
        if path is not None:
            write_text(path, text)
        return text
