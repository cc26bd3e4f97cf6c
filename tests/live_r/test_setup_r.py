"""Setting up R's packages with real R: what would be got, and a second run that does nothing."""

import os
import shutil
import subprocess

import pytest

from pybridge.r import setup_r
from pybridge.r.packages import LIST, Package, in_scope

pytestmark = pytest.mark.r("sae", "survey")

INSTALL = os.path.join(os.path.dirname(LIST), "install.R")

# CRAN as it might be: wanted -> middle -> leaf, where the leaf that is there is too old.
PLAN = f"""
installing_by_hand <- TRUE
source("{INSTALL}")
there <- c(leaf = "0.3.0", good = "2.0", Matrix = "1.5-3", stale = "0.1")
version_of <- function(package) if (package %in% names(there)) there[[package]] else NA_character_
fields <- c("Depends", "Imports", "LinkingTo")
index <- rbind(
  wanted = c("R (>= 4.0), methods", "middle (>= 1.0),\\n good, Matrix (>= 1.6-0)", NA),
  middle = c(NA, "leaf (>= 0.5.0)", "header"),
  leaf = c(NA, NA, NA),
  header = c(NA, NA, NA),
  stale = c(NA, "leaf", NA)
)
colnames(index) <- fields
found <- plan("wanted", index)
cat(found$missing, "\\n")
cat(found$old, "\\n")
cat(plan("stale", index)$old, "\\n")
"""


def test_an_installed_dependency_that_is_too_old_is_found_and_matrix_stays():
    done = subprocess.run(
        [shutil.which("Rscript"), "-e", PLAN], capture_output=True, text=True, check=True
    )
    missing, old, stale = done.stdout.split("\n")[:3]
    assert missing.split() == ["wanted", "middle", "header"]
    assert old.split() == ["leaf"]
    assert stale.split() == []


def test_a_second_run_does_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, second = [], []
    one = setup_r("demo", say=first.append)
    assert one.complete and set(one.installed) == {item.name for item in in_scope("demo")}
    assert first[-1].startswith("loads: ")
    two = setup_r("demo", say=second.append)
    assert two.installed == one.installed
    assert len(second) == 1 and second[0].endswith("nothing to do")


def test_what_cannot_be_had_is_named(monkeypatch, tmp_path):
    wanted = (*in_scope("demo")[:1], Package("notapackage", "cran", "", "1.0", "demo", "nothing"))
    monkeypatch.setattr("pybridge.r.setup.in_scope", lambda scope: wanted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("R_LIBS_USER", str(tmp_path / "an empty library"))
    # Nothing listens there: as without a network.
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    lines = []
    outcome = setup_r("demo", say=lines.append)
    assert list(outcome.installed) == [wanted[0].name]
    assert "CRAN cannot be reached" in outcome.missing["notapackage"]
    assert any('install.packages("notapackage")' in line for line in lines)
    with open(outcome.log, encoding="utf-8") as log:
        assert "install.R get notapackage" in log.read()
