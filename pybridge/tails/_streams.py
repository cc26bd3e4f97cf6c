"""Random streams: one for each purpose, from the user's seed, whatever is computed beside it."""

from __future__ import annotations

import zlib

import numpy as np

from pybridge._options import whole_number


def stream(seed: int, *labels: str) -> np.random.Generator:
    """The generator of a purpose, for example ``stream(1, "resampling", "model A")``.

    Streams of other labels are independent of it, so that a further model, gate or scorer leaves
    the numbers of the others as they are.
    """
    whole_number("seed", seed, least=0)
    words = [zlib.crc32(label.encode("utf-8")) for label in labels]
    return np.random.default_rng([int(seed), len(words), *words])
