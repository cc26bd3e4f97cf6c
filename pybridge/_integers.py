"""Whole numbers that are R's integers, and not doubles, over there."""

from __future__ import annotations

import numpy as np

NA_INTEGER = -(2**31)


class Integers(np.ndarray):
    """An int32 array that crosses as R's integers, NA_INTEGER where missing; any other array of
    integers crosses as doubles."""
