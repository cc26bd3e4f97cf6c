"""R's package ismev: its functions for exceedances under their own names and arguments.

Every function takes ``mode="guarded"`` (the default) or ``mode="raw"``. Raw is ismev's function as
it is, to the last bit. Guarded divides the scores by a power of two near their scale and
standardises covariates, since ismev's numerical Hessian and its penalty depend on the units,
tightens the search, and puts the exact optimum (or the exact ends of an interval) beside ismev's.
What ismev draws comes as values; nothing is drawn. Dots in R's names are underscores here:
``gpd.fit`` is ``gpd_fit``.
"""

from __future__ import annotations

from pybridge.engines._ismev_fit import gpd_fit
from pybridge.engines._ismev_plots import IsmevDiagnosis, gpd_diag, gpd_fitrange, mrl_plot
from pybridge.engines._ismev_point import pp_fit
from pybridge.engines._ismev_profile import IsmevProfile, gpd_prof, gpd_profxi
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._tail_record import TailTable

__all__ = [
    "IsmevDiagnosis",
    "IsmevFit",
    "IsmevProfile",
    "TailTable",
    "gpd_diag",
    "gpd_fit",
    "gpd_fitrange",
    "gpd_prof",
    "gpd_profxi",
    "mrl_plot",
    "pp_fit",
]
