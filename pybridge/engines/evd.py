"""R's package evd: its functions for exceedances under their own names and arguments.

Every function takes ``mode="guarded"`` (the default) or ``mode="raw"``. Raw is evd's function as it
is, to the last bit. Guarded divides the scores by a power of two near their scale, since evd's
optimiser depends on the units, tightens the search, and puts the exact optimum (or the exact ends
of an interval) beside evd's. What evd draws comes as values. Dots in R's names of arguments are
underscores here: ``std.err`` is ``std_err``.
"""

from __future__ import annotations

from pybridge.engines._evd_clusters import EvdClusters, clusters, exi
from pybridge.engines._evd_confint import confint
from pybridge.engines._evd_distribution import dgpd, pgpd, qgpd
from pybridge.engines._evd_fit import fpot
from pybridge.engines._evd_profile import EvdProfile, profile
from pybridge.engines._evd_record import EvdFit
from pybridge.engines._evd_thresholds import exiplot, mrlplot, tcplot
from pybridge.engines._tail_record import TailTable

__all__ = [
    "EvdClusters",
    "EvdFit",
    "EvdProfile",
    "TailTable",
    "clusters",
    "confint",
    "dgpd",
    "exi",
    "exiplot",
    "fpot",
    "mrlplot",
    "pgpd",
    "profile",
    "qgpd",
    "tcplot",
]
