"""Awkward surroundings: wrong R_HOME, no R, no rpy2, locales, library paths; a clean host."""

import json
import textwrap

import pytest

pytestmark = pytest.mark.r("sae", "survey", "evd")

BLOCK_RPY2 = "import sys; sys.modules['rpy2'] = None\n"
ASK = """
    from pybridge.errors import EngineUnavailable
    from pybridge.r import call
    try:
        print(call("selftest_echo", {"x": ["ok"]}).value["x"][0])
    except EngineUnavailable as error:
        print(error.code, error.exit_status)
        print(error)
    """


def test_a_wrong_r_home_does_not_matter(run_python):
    assert run_python(ASK, R_HOME="/no/such/place").stdout.strip() == "ok"


def test_no_r(run_python):
    out = run_python(ASK, PATH="/no/such/place", R_HOME=None).stdout.split("\n")
    assert out[0] == "r_missing 3"
    assert "apt-get install r-base-core" in out[1]


def test_no_r_on_the_path_but_a_right_r_home(run_python):
    from pybridge.r import find_r

    out = run_python(ASK, PATH="/usr/bin-not", R_HOME=find_r().home).stdout
    assert out.strip() == "ok"


def test_rpy2_that_the_host_cannot_import(run_python):
    out = run_python(BLOCK_RPY2 + textwrap.dedent(ASK)).stdout.split("\n")
    assert out[0] == "rpy2_missing 3"
    assert "pip install" in out[1]


def broken_rpy2(tmp_path, text):
    """A directory with an rpy2 that fails on import in this way."""
    package = tmp_path / "rpy2"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "situation.py").write_text("")
    (package / "rinterface.py").write_text(text)
    return str(tmp_path)


@pytest.mark.parametrize(
    "text, code",
    [
        ("raise ImportError('undefined symbol: R_getVar')", "rpy2_does_not_fit"),
        (
            "class error(Exception): pass\nerror.__module__ = 'ffi'\nraise error('R_getVar')",
            "rpy2_does_not_fit",
        ),
        ("raise ValueError('r_home is None')", "r_does_not_start"),
        (
            "import os; os.write(2, b'unable to open the base package'); os._exit(2)",
            "r_does_not_start",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "r_does_not_start"),
    ],
)
def test_an_rpy2_that_does_not_fit(run_python, tmp_path, text, code):
    out = run_python(ASK, PYTHONPATH=broken_rpy2(tmp_path, text)).stdout.split("\n")
    assert out[0] == f"{code} 3"
    if "base package" in text:
        assert "unable to open the base package" in out[1]
    if "SIGSEGV" in text:
        assert "SIGSEGV" in out[1]


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "LANG": None},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "ko_KR.UTF-8", "LANGUAGE": "ko"},
        {"LC_ALL": "ko_KR.EUC-KR"},
        {"LC_ALL": "no_SUCH.locale"},
        {"LC_ALL": None, "LANG": None, "LC_CTYPE": None},
    ],
)
def test_names_survive_any_locale(run_python, variables):
    done = run_python(
        """
        from pybridge.errors import EngineError
        from pybridge.r import call
        names = ["서울", "😀", "é", "NA"]
        assert call("selftest_echo", {"서울": names}).value == {"서울": names}
        assert call("selftest_session", {}).value["utf8"][0]
        try:
            call("selftest_error", {"text": "서울"})
        except EngineError as error:
            assert error.got == "서울"
            assert "calling shim" in error.message, error.message
        """,
        PYTHONIOENCODING="utf-8",
        **variables,
    )
    assert done.stderr == ""


def test_a_library_path_with_a_space(run_python, tmp_path):
    library = tmp_path / "my R library"
    library.mkdir()
    done = run_python(
        """
        from pybridge.r import call
        print(call("selftest_session", {}, packages=("stats",)).value["libraries"][0])
        """,
        R_LIBS=str(library),
    )
    assert done.stdout.strip() == str(library)


def test_a_working_directory_that_shadows_modules(run_python, tmp_path):
    for name in ("json", "select", "struct", "rpy2", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / ".RData").write_bytes(b"not an image of R")
    done = run_python(
        f"""
        import json, os, select, struct, numpy
        from pybridge.r import call
        os.chdir({str(tmp_path)!r})
        print(call("selftest_echo", {{"x": ["ok"]}}).value["x"][0])
        """
    )
    assert done.stdout.strip() == "ok"


def test_a_profile_that_changes_options_does_not_change_results(run_python, tmp_path):
    profile = tmp_path / "profile.R"
    profile.write_text(
        'options(OutDec = ",", contrasts = c("contr.sum", "contr.poly"), warn = 2)\n'
        'cat("hello from the profile\\n")\n'
    )
    done = run_python(
        """
        from pybridge.r import call
        reply = call("selftest_conditions", {})
        print(reply.printed[1], len(reply.warnings))
        """,
        R_PROFILE_USER=str(profile),
    )
    assert done.stdout.strip() == "[1] 1.5 2.0 2"
    assert done.stderr == ""


FITS = """
    import numpy as np, pandas as pd, pybridge as pb
    from pybridge import datasets
    milk = datasets.milk().assign(v=lambda t: t["SD"] ** 2, f=lambda t: t["MajorArea"].astype(str))
    fit = pb.fay_herriot("yi ~ C(MajorArea)", milk, variance="v", domain="SmallArea")
    print(fit.to_frame().select_dtypes("number").to_numpy().tolist()[:9])
    units = pd.DataFrame({"s": [1, 1, 1, 1, 2, 2, 2, 2], "c": [1, 1, 2, 2, 3, 3, 4, 4]})
    units = units.assign(y=[1.0, 4, 2, 8, 5, 7, 1, 9], unit=range(8), n1=4, n2=6)
    survey = pb.engines.survey
    design = survey.svydesign("~c + unit", units, strata="~s", fpc="~n1 + n2", nest=True)
    print(survey.svymean("~y", design).to_frame()["standard_error"].tolist())
    print(survey.svyby("~y", "~s", design).to_frame()["standard_error"].tolist())
    print(pb.generalized_pareto(np.arange(1.0, 60.0) ** 2, threshold=9.0, engine="evd").shape)
    """


@pytest.fixture(scope="module")
def usual_fits(run_python):
    return run_python(FITS).stdout


# Not c and list: survey itself looks these up where a user may have put others.
MASKS = ("paste0", "stop", "solve", "mean", "sum", "sqrt", "diag", "as.numeric")


@pytest.mark.parametrize(
    "profile",
    [
        "options(survey.ultimate.cluster = TRUE)",
        "options(warnPartialMatchArgs = TRUE, warnPartialMatchDollar = TRUE)",
        f"attach(list({', '.join(f'{name} = function(...) 7' for name in MASKS)}))",
        f"for (name in {json.dumps(MASKS).replace('[', 'c(').replace(']', ')')}) "
        "assign(name, function(...) 7, globalenv())",
    ],
)
def test_what_a_profile_sets_or_attaches_does_not_change_results(
    run_python, usual_fits, tmp_path, profile
):
    path = tmp_path / "profile.R"
    path.write_text(profile + "\n")
    assert len(usual_fits.splitlines()) == 4
    done = run_python(FITS, R_PROFILE_USER=str(path))
    assert done.stdout == usual_fits and done.stderr == ""


@pytest.mark.parametrize("packages", ["NULL", "base"])
def test_without_r_s_usual_packages(run_python, usual_fits, packages):
    assert run_python(FITS, R_DEFAULT_PACKAGES=packages).stdout == usual_fits


def test_without_a_place_for_temporary_files(run_python):
    done = run_python(
        """
        import tempfile
        from pybridge.errors import EngineUnavailable
        from pybridge.r import call
        def nowhere(dir):
            raise OSError(28, "No space left on device")
        tempfile.TemporaryFile = nowhere
        try:
            call("selftest_echo", {})
        except EngineUnavailable as error:
            print(error.code, "TMPDIR" in error.hint, "/tmp" in error.got)
        """
    )
    assert done.stdout.strip() == "no_temporary_folder True True"


def test_a_place_that_is_not_there_is_passed_over(run_python, tmp_path):
    code = """
        import os, tempfile
        from pybridge.r import call
        if os.environ.get("SET"):
            tempfile.tempdir = os.environ["SET"]
        place = call("selftest_session", {}).value["temporary"][0]
        print(os.path.dirname(os.path.dirname(place)))
        """
    there, gone = str(tmp_path), str(tmp_path / "gone")
    assert run_python(code, TMPDIR=gone, TEMP=there).stdout.strip() == there
    assert run_python(code, TMPDIR=gone, SET=there).stdout.strip() == there


def test_the_host_stays_clean(run_python):
    done = run_python(
        """
        import os, signal, sys, threading, warnings
        import pandas
        before = dict(os.environ), warnings.filters[:], signal.getsignal(signal.SIGINT)
        from pybridge.r import call
        call("selftest_session", {}, packages=("sae",))
        assert (dict(os.environ), warnings.filters[:], signal.getsignal(signal.SIGINT)) == before
        assert not any(name.split(".")[0] in ("rpy2", "cffi") for name in sys.modules)
        assert threading.active_count() == 1
        """
    )
    assert done.stdout == "" and done.stderr == ""


def test_importing_the_door_starts_nothing(run_python):
    done = run_python(
        """
        import sys
        import pybridge.r
        assert "numpy" not in sys.modules
        from pybridge.r import call, call_many
        from pybridge.r.pool import pool
        assert pool().all == [] and "rpy2" not in sys.modules and "pandas" not in sys.modules
        """
    )
    assert done.stderr == ""


def test_doctor_names_what_is_there_and_what_is_missing(run_python):
    ask = """
        import json
        from pybridge.r import doctor
        print(json.dumps(doctor().to_dict()))
        """
    whole = json.loads(run_python(ask).stdout)
    assert whole["pair_fits"] and whole["packages"]["sae"] and whole["libraries"]
    without = json.loads(run_python(ask, PATH="/no/such/place", R_HOME=None).stdout)
    assert without["r_version"] is None and not without["pair_fits"]
    assert [item["code"] for item in without["missing"]] == ["r_missing"]
    blocked = json.loads(run_python(BLOCK_RPY2 + textwrap.dedent(ask)).stdout)
    assert blocked["rpy2"] is None and blocked["r_version"]
    assert [item["code"] for item in blocked["missing"]] == ["rpy2_missing"]
    wrong = json.loads(run_python(ask, R_HOME="/wrong").stdout)
    assert wrong["ignored_r_home"] == "/wrong" and wrong["pair_fits"]
