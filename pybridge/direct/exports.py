"""What direct estimates become: cross-checked, a script of R, and an object of R."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
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

        Raises
        ------
        InputError
            A design of another sample (``other_units``).
        """
        from pybridge.crosscheck.direct import crosscheck_direct
        from pybridge.direct._same_sample import need_sample

        need_sample(self, design, domain=domain)
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

        Raises
        ------
        InputError
            A design of another sample (``other_units``), or one too large for R's matrices of units
            by domains.
        """
        from pybridge.direct._same_sample import need_sample
        from pybridge.direct._survey import survey_script

        need_sample(self, design, domain=domain)
        text = survey_script(self, design, domain=domain)
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(
        self: Any,
        path: str | PathLike[str],
        *,
        design: SurveyDesign,
        domain: str | None = None,
    ) -> Path:
        """Save the estimates as an object of R's survey, for ``readRDS()``.

        ``coef``, ``SE``, ``vcov``, ``confint`` and ``cv`` work on it. It is what ``svyby`` returns
        for Hájek estimates, which leaves out domains without units and gives those of one unit the
        standard error 0; for others what ``svytotal`` returns, with the population's part of the
        working model added. Its attribute ``survey.design`` is the ``svydesign``, whose variables
        are outcome, domain, the levels of the taxonomy, the auxiliary variables x1, x2 ... and the
        working model's residual.

        Parameters
        ----------
        path : path
        design : SurveyDesign
            The sample again.
        domain : str, optional
            Its column of domains, where it is not named as in the population.

        Returns
        -------
        pathlib.Path
            With ``engine="survey"`` the numbers are the record's to the bit. Modelled variances are
            not in it: survey has none.

        Raises
        ------
        InputError
            A design of another sample (``other_units``), or one too large for R's matrices of units
            by domains.
        EngineUnavailable, EngineError
        """
        from pybridge.direct._same_sample import need_sample
        from pybridge.direct._survey_object import to_rds

        need_sample(self, design, domain=domain)
        return to_rds(self, path, design, domain=domain)
