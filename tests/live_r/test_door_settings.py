"""What a user's own files set for R and for Python: .Renviron, .Rprofile, sitecustomize."""

import os
import time

import pytest

pytestmark = pytest.mark.r("sae")


def test_a_folder_for_temporary_files_of_the_user_s_own_is_left_empty(run_python, tmp_path):
    place, path = tmp_path / "scratch", tmp_path / "environ"
    place.mkdir()
    path.write_text(f"TMPDIR={place}\n")
    code = """
        from pybridge.r import call, shutdown
        print(call("selftest_session", {}).value["temporary"][0])
        END
        """
    for end in ("shutdown()", "pass", "import os; os.kill(os.getpid(), 9)"):
        done = run_python(code.replace("END", end), R_ENVIRON_USER=str(path), check=False)
        assert "9" in end or os.path.dirname(done.stdout.strip()) == str(place)
        limit = time.monotonic() + 15
        while os.listdir(place) and time.monotonic() < limit:
            time.sleep(0.05)
        assert os.listdir(place) == []


def test_a_folder_that_a_profile_makes_r_s_own_is_not_removed(run_python, tmp_path):
    place, path = tmp_path / "mine", tmp_path / "profile.R"
    place.mkdir()
    (place / "work").write_text("mine")
    path.write_text(
        "unlockBinding('tempdir', baseenv())\n"
        f"assign('tempdir', function(...) '{place}', baseenv())\n"
    )
    code = """
        from pybridge.r import call
        print(call("selftest_echo", {"x": ["ok"]}).value["x"][0])
        """
    assert run_python(code, R_PROFILE_USER=str(path)).stdout.strip() == "ok"
    assert (place / "work").read_text() == "mine"


@pytest.mark.parametrize(
    "variable, text",
    [
        ("R_ENVIRON_USER", "LC_ALL=C\nLANGUAGE=de\n"),
        ("R_PROFILE_USER", 'Sys.setlocale("LC_ALL", "C")\nSys.setenv(LANGUAGE = "de")\n'),
    ],
)
def test_a_locale_and_language_that_r_s_own_files_set(run_python, tmp_path, variable, text):
    path = tmp_path / "settings"
    path.write_text(text)
    code = """
        from pybridge.errors import EngineError
        from pybridge.r import call
        session = call("selftest_session", {}).value
        print(session["utf8"][0], session["locale"][0])
        try:
            call("selftest_maybe_error", {})
        except EngineError as error:
            print(error.got)
        """
    usual = run_python(code).stdout
    assert usual.startswith("True ") and usual.endswith("argument is of length zero\n")
    assert run_python(code, **{variable: str(path)}).stdout == usual


def test_what_python_prints_when_it_starts_does_not_matter(run_python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('Welcome to this computer' * 9)")
    code = """
        from pybridge.r import call
        print(call("selftest_echo", {"x": ["ok"]}).value["x"][0])
        """
    assert run_python(code, PYTHONPATH=str(tmp_path)).stdout.split()[-1] == "ok"


def test_the_child_has_the_pybridge_of_its_host(run_python, tmp_path):
    # Run from a checkout, with another one installed: the host's is the working directory's.
    (tmp_path / "pybridge").mkdir()
    (tmp_path / "pybridge" / "__init__.py").write_text("raise SystemExit('another one')")
    code = """
        import pybridge.r, sys
        sys.path.insert(0, PLACE)
        from pybridge.r import call
        print(call("selftest_echo", {"x": ["ok"]}).value["x"][0])
        """
    assert run_python(code.replace("PLACE", repr(str(tmp_path)))).stdout.strip() == "ok"


def test_a_profile_that_ends_r(run_python, tmp_path):
    path = tmp_path / "profile.R"
    path.write_text('quit("no")\n')
    code = """
        from pybridge.errors import EngineUnavailable
        from pybridge.r import call
        try:
            call("selftest_echo", {})
        except EngineUnavailable as error:
            print(error.code, ".Rprofile" in error.hint)
        """
    done = run_python(code, R_PROFILE_USER=str(path))
    assert done.stdout.strip() == "r_does_not_start True"


def test_the_doctor_finds_a_package_that_does_not_load(run_python, tmp_path):
    # What an interrupted installation leaves: R finds the package, and cannot load it.
    place = tmp_path / "sae"
    place.mkdir()
    (place / "DESCRIPTION").write_text(
        "Package: sae\nVersion: 99.1\nTitle: t\nDescription: d\nLicense: GPL-2\n"
    )
    code = """
        from pybridge.errors import EngineUnavailable
        from pybridge.r import call, doctor
        try:
            call("selftest_echo", {}, packages=["sae"])
        except EngineUnavailable as error:
            print(error.code, len(str(error).splitlines()))
        found = doctor()
        print(found.healthy, *[f"{item['what']} {item['code']}" for item in found.missing])
        """
    done = run_python(code, R_LIBS=str(tmp_path))
    assert done.stdout.splitlines() == ["package_broken 1", "False sae package_broken"]
