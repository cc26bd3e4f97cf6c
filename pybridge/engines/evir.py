"""R's package evir: its `gpd`, with which the Danish fire losses were first fitted.

The losses themselves are :func:`pybridge.datasets.danish`.
"""

from __future__ import annotations

from pybridge.engines._evir_gpd import EvirFit, gpd

__all__ = ["EvirFit", "gpd"]
