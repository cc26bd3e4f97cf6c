"""R's package sae: its functions under their own names, with R's own names of arguments.

Tables come in as pandas, answers go out as frozen records that hold R's numbers to the last bit,
know what R said, and go back to R by ``r_script()`` and ``to_rds()``. ``mode="raw"`` is R's
function as it is; ``mode="guarded"`` refuses what it would misread, keeps rows and labels
together, and says where its answer is not to be trusted.
"""

from __future__ import annotations

from pybridge.engines._sae_area import eblupFH, mseFH
from pybridge.engines._sae_composite import ssd
from pybridge.engines._sae_direct import direct, pssynt
from pybridge.engines._sae_direct_record import SaeDomainEstimates
from pybridge.engines._sae_record import SaeFit
from pybridge.engines._sae_space_time import eblupSTFH, pbmseSTFH
from pybridge.engines._sae_spatial import eblupSFH, mseSFH, npbmseSFH, pbmseSFH
from pybridge.engines._sae_unit import eblupBHF, pbmseBHF
from pybridge.engines._sae_unit_record import SaeUnitFit

__all__ = [
    "SaeDomainEstimates",
    "SaeFit",
    "SaeUnitFit",
    "direct",
    "eblupBHF",
    "eblupFH",
    "eblupSFH",
    "eblupSTFH",
    "mseFH",
    "mseSFH",
    "npbmseSFH",
    "pbmseBHF",
    "pbmseSFH",
    "pbmseSTFH",
    "pssynt",
    "ssd",
]
