"""What `import pybridge` costs above importing numpy and pandas: at most 0.15 s.

    python validation/benchmarks/bench_import.py

Each of several child processes imports numpy and pandas first and then times the package, so that
the two numbers come from one run. The median counts; the first child only warms the disk's cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

BUDGET = 0.15  # seconds
CHILDREN = 9
CHILD = """
from time import perf_counter
start = perf_counter()
import numpy, pandas
middle = perf_counter()
import pybridge
print(middle - start, perf_counter() - middle)
"""


def times() -> tuple[float, float]:
    """Seconds for numpy with pandas, and for pybridge after them."""
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    base, package = map(float, done.stdout.split())
    return base, package


def main() -> int:
    times()
    base, package = (
        statistics.median(column) for column in zip(*(times() for _ in range(CHILDREN)))
    )
    verdict = "ok" if package <= BUDGET else "OVER"
    print(
        f"import pybridge: {package:.3f} s above numpy and pandas ({base:.3f} s); "
        f"budget {BUDGET} s: {verdict}"
    )
    return int(package > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
