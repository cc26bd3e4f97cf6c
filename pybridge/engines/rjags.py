"""R's package rjags: draws from any model of JAGS, and from the taxonomy model, summarised.

R's own argument names, dots as underscores; R-hat, effective size and Monte Carlo error of every
parameter, and a seed that is always known. The taxonomy model in the form of every other fit is
``taxonomy_model(..., engine="rjags")``.
"""

from __future__ import annotations

from pybridge.engines._rjags_record import JagsSamples
from pybridge.engines._rjags_samples import coda_samples
from pybridge.engines._rjags_taxonomy import taxonomy

__all__ = ["JagsSamples", "coda_samples", "taxonomy"]
