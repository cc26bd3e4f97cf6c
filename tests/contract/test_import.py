"""Importing the package loads little, and neither importing nor fitting changes the host."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("rpy2", "matplotlib", "patsy", "scipy.optimize", "scipy.stats", "pytest", "dask")

STATE = """
import decimal, json, locale, os, random, signal, sys, threading, warnings
import numpy as np, pandas as pd
import scipy.special, scipy.stats  # each adds warning filters of its own, whoever imports it

def digest(value):
    import hashlib
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]

def state():
    return {
        "warning filters": digest(warnings.filters),
        "numpy errors": digest(np.geterr()),
        "numpy printing": digest(sorted(np.get_printoptions().items())),
        "numpy random": digest([part.tolist() if hasattr(part, "tolist") else part
                                for part in np.random.get_state()]),
        "random": digest(random.getstate()),
        "environment": digest(sorted(os.environ.items())),
        "signal handlers": digest([(int(s), str(signal.getsignal(s)))
                                   for s in signal.valid_signals()]),
        "locale": digest(locale.setlocale(locale.LC_ALL)),
        "decimal": digest(decimal.getcontext()),
        "pandas options": digest([(name, pd.get_option(name)) for name in
                                  ("mode.chained_assignment", "display.max_rows",
                                   "display.precision", "compute.use_bottleneck")]),
        "hooks": digest([sys.excepthook.__qualname__, sys.displayhook.__qualname__,
                         threading.excepthook.__name__]),
        "folder": os.getcwd(),
        "recursion": sys.getrecursionlimit(),
    }

def changed_by(work):
    before = state()
    exec(work, globals())
    after = state()
    return [name for name in before if before[name] != after[name]]

print(json.dumps([changed_by(work) for work in json.loads(sys.argv[1])]))
"""

AREA = """
f = np.arange(12.0)
area = pd.DataFrame({
    "county": [f"c{i}" for i in range(12)], "f": f,
    "estimate": 1 + 0.5 * f + np.tile([0.9, -0.8, 0.4], 4), "variance": np.linspace(0.2, 0.4, 12),
})
pybridge.fay_herriot("estimate ~ f", area, variance="variance", domain="county", engine="ENGINE")
"""
EVALUATE = """
draw = np.random.default_rng(5)
frame = pd.DataFrame({"county": np.repeat([f"c{i}" for i in range(12)], 40)})
frame["f"] = draw.normal(size=len(frame)) + frame.index // 40
frame["y"] = (frame["f"] + draw.normal(size=len(frame))).where(frame.index % 4 == 0)
pybridge.evaluate(frame, outcome="y", domain="county", auxiliary=["f"], engine="native")
"""
DAMAGE = {
    "warning filters": "warnings.simplefilter('ignore')",
    "numpy errors": "np.seterr(all='ignore')",
    "numpy random": "np.random.seed(1)",
    "random": "random.random()",
    "environment": "os.environ['R_HOME_DIR'] = 'x'",
    "signal handlers": "signal.signal(signal.SIGINT, signal.SIG_IGN)",
    "pandas options": "pd.set_option('display.precision', 3)",
    "numpy printing": "np.set_printoptions(precision=3)",
    "decimal": "decimal.getcontext().prec = 5",
    "folder": "os.chdir(os.path.dirname(os.getcwd()))",
}


def in_a_child(code: str, *arguments: str) -> list:
    """What the last line that the code prints holds, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def changed_by(*works: str) -> list[list[str]]:
    """For each piece of code, run one after another in a child: what of the host it changed."""
    return in_a_child(STATE, json.dumps(works))


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    return set(HEAVY) & set(in_a_child(code))


@pytest.mark.parametrize("statement", ["import pybridge", "import pybridge.cli"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert loaded_by(statement) == set()


def test_a_heavy_import_is_found() -> None:
    assert loaded_by("import scipy.optimize") == {"scipy.optimize"}


def test_importing_and_native_work_change_nothing_of_the_host() -> None:
    steps = [
        "import pybridge",
        "assert pybridge.__all__\nfor name in pybridge.__all__: getattr(pybridge, name)",
        AREA.replace("ENGINE", "native"),
        EVALUATE,
    ]
    assert changed_by(*steps) == [[], [], [], []]


@pytest.mark.r("sae")
def test_a_fit_in_r_changes_nothing_of_the_host() -> None:
    assert changed_by("import pybridge" + AREA.replace("ENGINE", "sae")) == [[]]


def test_a_change_of_the_host_is_found() -> None:
    assert changed_by(*DAMAGE.values()) == [[what] for what in DAMAGE]
