"""R's package metafor: rma.mv, multilevel models of estimates with known sampling variances.

R's own argument names, dots as underscores. ``mode="raw"`` is R's function as it is;
``mode="guarded"`` refuses what R would leave out or drop, and puts the exact optimum of nested
random intercepts beside R's. The taxonomy model in the form of every other fit, with predictions of
unlabelled domains and mean squared errors, is ``taxonomy_model(..., engine="metafor")``.
"""

from __future__ import annotations

from pybridge.engines._metafor_fit import rma_mv
from pybridge.engines._metafor_record import MetaforFit

__all__ = ["MetaforFit", "rma_mv"]
