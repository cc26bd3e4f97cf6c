"""Finite domains, for candidates: the algebra stands with the models, in `smoothing._finite`."""

from __future__ import annotations

from pybridge.smoothing._finite import FiniteFit, finite_domains

__all__ = ["FiniteFit", "finite_domains"]
