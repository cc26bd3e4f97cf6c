"""Samples for the tests of traps in R's tail packages."""

from __future__ import annotations

import warnings

import numpy as np

from pybridge.errors import EngineWarning


def sample(shape, n=150, scale=1.0, seed=0):
    e = np.random.default_rng(seed).exponential(size=n)
    return scale * (e if shape == 0 else np.expm1(shape * e) / shape)


def quietly(function, *arguments, **words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        return function(*arguments, **words)
