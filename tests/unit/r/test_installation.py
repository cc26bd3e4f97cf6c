"""Finding R without starting it: R_HOME right, wrong or absent, R too old, and pairs that clash."""

import os
import stat

import pytest

from pybridge.errors import EngineUnavailable
from pybridge.r import installation
from pybridge.r.installation import environment, find_r, install_rpy2_hint, why_not_started


@pytest.fixture
def make_r(tmp_path):
    """A directory that looks like an R of this version, with a program R that names it."""

    def make(name, version):
        home = tmp_path / name
        (home / "library" / "base").mkdir(parents=True)
        (home / "library" / "base" / "DESCRIPTION").write_text(
            f"Package: base\nVersion: {version}\n"
        )
        (home / "etc").mkdir()
        (home / "etc" / "ldpaths").write_text('LD_LIBRARY_PATH="${R_HOME}/lib:/java"\n')
        program = home / "bin" / "R"
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\nR_SHARE_DIR=/share/of/r\necho "WARNING: noise"\necho {home}\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return home

    return make


@pytest.fixture(autouse=True)
def no_memory():
    installation._find.cache_clear()
    yield
    installation._find.cache_clear()


def test_r_on_the_path(make_r, monkeypatch):
    home = make_r("one", "4.3.1")
    monkeypatch.delenv("R_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    found = find_r()
    assert (found.home, found.version, found.source) == (str(home), "4.3.1", "PATH")
    variables = dict(found.variables)
    assert variables["LD_LIBRARY_PATH"] == f"{home}/lib:/java"
    assert variables["R_SHARE_DIR"] == "/share/of/r"


def test_a_right_r_home_comes_first(make_r, monkeypatch):
    one, two = make_r("one", "4.3.1"), make_r("two words", "4.4.0")
    monkeypatch.setenv("R_HOME", str(two))
    monkeypatch.setenv("PATH", f"{one}/bin:/usr/bin:/bin")
    found = find_r()
    assert (found.home, found.source, found.ignored_home) == (str(two), "R_HOME", None)


def test_a_wrong_r_home_is_ignored_and_named(make_r, monkeypatch):
    home = make_r("one", "4.3.1")
    monkeypatch.setenv("R_HOME", "/no/such/place")
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    found = find_r()
    assert (found.home, found.ignored_home) == (str(home), "/no/such/place")
    child = environment(found, "/a/folder")
    assert child["R_HOME"] == str(home)
    assert os.environ["R_HOME"] == "/no/such/place"


def test_no_r_at_all(monkeypatch):
    monkeypatch.delenv("R_HOME", raising=False)
    monkeypatch.setenv("PATH", "/no/such/place")
    with pytest.raises(EngineUnavailable) as caught:
        find_r()
    error = caught.value
    assert error.code == "r_missing" and error.exit_status == 3
    assert "apt-get install r-base-core" in error.hint and 'engine="native"' in error.hint


def test_no_r_and_a_wrong_r_home(monkeypatch):
    monkeypatch.setenv("R_HOME", "/wrong")
    monkeypatch.setenv("PATH", "/no/such/place")
    with pytest.raises(EngineUnavailable, match="R_HOME=/wrong holds no R"):
        find_r()


def test_a_program_r_that_does_not_start(tmp_path, monkeypatch):
    program = tmp_path / "R"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.delenv("R_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(EngineUnavailable, match="does not start"):
        find_r()


def test_an_old_r(make_r, monkeypatch):
    monkeypatch.setenv("R_HOME", str(make_r("old", "3.6.3")))
    with pytest.raises(EngineUnavailable) as caught:
        find_r()
    assert caught.value.code == "r_too_old" and "3.6.3" in caught.value.got


@pytest.fixture
def some_r(make_r, monkeypatch):
    monkeypatch.setenv("R_HOME", str(make_r("one", "4.2.2")))
    return find_r()


def test_the_child_gets_what_r_needs_and_the_host_keeps_its_own(some_r, monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setenv("R_SESSION_INITIALIZED", "PID=1:NAME=x")
    before = dict(os.environ)
    child = environment(some_r, "/a/place")
    assert dict(os.environ) == before
    assert child["TZ"] == "UTC" and child["TMPDIR"] == "/a/place"
    assert "R_SESSION_INITIALIZED" not in child
    monkeypatch.setenv("TZ", "Asia/Seoul")
    assert environment(some_r, "/a/place")["TZ"] == "Asia/Seoul"


@pytest.mark.parametrize(
    "before, after",
    [
        (None, "glibc.malloc.hugetlb=1"),
        ("", "glibc.malloc.hugetlb=1"),
        ("glibc.malloc.check=3", "glibc.malloc.check=3:glibc.malloc.hugetlb=1"),
        ("glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb=0"),
    ],
)
def test_the_child_asks_for_huge_pages_unless_the_user_said_what_to_do(
    some_r, monkeypatch, before, after
):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if before is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", before)
    assert environment(some_r, "/a/place")["GLIBC_TUNABLES"] == after


@pytest.mark.parametrize(
    "text, code",
    [
        ("builtins.ImportError: undefined symbol: R_getVar", "rpy2_does_not_fit"),
        ("ffi.error: symbol 'R_getVar' not found in library 'libR.so'", "rpy2_does_not_fit"),
        ("builtins.ModuleNotFoundError: No module named 'rpy2'", "rpy2_missing"),
        (
            "it exited with status 2\nFatal error: unable to open the base package",
            "r_does_not_start",
        ),
        ("killed by signal SIGSEGV", "r_does_not_start"),
        ("", "r_does_not_start"),
    ],
)
def test_why_a_child_did_not_start(some_r, text, code):
    error = why_not_started(text, some_r)
    assert isinstance(error, EngineUnavailable) and error.code == code
    assert error.hint
    if code == "rpy2_does_not_fit":
        assert "R 4.2.2" in error.message and "3.5.17" in error.hint
    if "base package" in text:
        assert "unable to open the base package" in error.got


def test_the_line_that_installs_a_fitting_rpy2():
    assert "3.5.17" in install_rpy2_hint("4.2.2") and "3.5.17" in install_rpy2_hint("4.4.3")
    assert "3.5.17" not in install_rpy2_hint("4.5.0")


def test_an_rpy2_that_is_too_old(monkeypatch):
    monkeypatch.setattr(installation, "rpy2_version", lambda: "3.4.5")
    with pytest.raises(EngineUnavailable) as caught:
        installation.need_rpy2()
    assert caught.value.code == "rpy2_too_old"


def test_rpy2_that_is_blocked_counts_as_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rpy2", None)
    with pytest.raises(EngineUnavailable) as caught:
        installation.need_rpy2()
    assert caught.value.code == "rpy2_missing" and "pybridge[r]" in caught.value.hint
