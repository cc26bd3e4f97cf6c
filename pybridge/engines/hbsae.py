"""R's package hbsae: fSAE.Area, the hierarchical Bayesian area-level model.

R's own argument names, dots as underscores. ``mode="raw"`` is R's function as it is;
``mode="guarded"`` matches rows by label and puts the exact posterior beside R's. The same model is
``fay_herriot(..., engine="hbsae", method="bayes")`` in the form of every other fit.
"""

from __future__ import annotations

from pybridge.engines._hbsae_area import fSAE_Area
from pybridge.engines._hbsae_record import HbsaeFit

__all__ = ["HbsaeFit", "fSAE_Area"]
