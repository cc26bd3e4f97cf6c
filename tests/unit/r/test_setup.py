"""Getting the R packages, step by step, with the programs played by a stand-in."""

import pytest

from pybridge.errors import EngineUnavailable, InputError
from pybridge.r import setup
from pybridge.r.installation import Installation
from pybridge.r.packages import in_scope
from pybridge.r.setup import _Setup, main, setup_r

R = Installation("/usr/lib/R", "4.2.2", "PATH", None, ())


class Stand:
    """Commands that remember what was asked and install what they are told they can."""

    def __init__(self, there, *, apt=(), cran=(), plan=(), broken=()):
        self.r, self.log = R, "setup.log"
        self.there = dict(there)
        self.apt, self.cran, self.planned, self.broken = set(apt), set(cran), plan, broken
        self.asked = []

    def clear_log(self):
        self.asked.append("clear")

    def said(self, word, *names, quiet=False):
        if word == "look":
            return [[name, self.there.get(name, "NA")] for name in names]
        assert word == "plan"
        return [[name] for name in self.planned]

    def rscript(self, word, name):
        self.asked.append(f"{word} {name}")
        if word == "get" and name in self.cran:
            self.there[name] = "9.9"
        if word == "load":
            return "Error: it is broken" if name in self.broken else f"loads {name} 9.9 "
        return "noise\nError: CRAN cannot be reached\nExecution halted"

    def known_to_apt(self, prefix, names):
        return [name for name in names if name in self.apt]

    def apt_install(self, prefix, names):
        self.asked.append("apt " + " ".join(names))
        for item in in_scope("all"):
            if item.debian in names:
                self.there[item.name] = "9.9"
        return 0


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(setup, "root_prefix", lambda: [])

    def go(stand, scope="demo"):
        lines = []
        outcome = _Setup(stand, in_scope(scope), lines.append).run()
        return outcome, lines

    return go


def everything(scope="demo"):
    return {item.name: "9.9" for item in in_scope(scope)}


def test_debian_first_then_cran_then_loading(run):
    apt = ["r-cran-survey", "r-cran-lme4", "r-cran-mass"]
    stand = Stand({}, apt=apt, cran=["sae"])
    outcome, lines = run(stand)
    assert outcome.complete and set(outcome.installed) == set(everything())
    assert stand.asked[1] == "apt " + " ".join(apt)
    assert stand.asked[2] == "get sae"
    assert [line for line in stand.asked if line.startswith("load")] == [
        f"load {name}" for name in everything()
    ]
    assert any(line.startswith("Debian: installing 3") for line in lines)


def test_what_cran_packages_need_comes_prebuilt_where_apt_has_it(run):
    stand = Stand(everything(), apt=["r-cran-rlang"], cran=["sae"], plan=["rlang", "saeRobust"])
    del stand.there["sae"]
    run(stand)
    assert "apt r-cran-rlang" in stand.asked


def test_a_second_run_does_nothing(run):
    stand = Stand(everything())
    run(stand)
    again = Stand(everything())
    outcome, lines = run(again)
    assert outcome.complete and again.asked == [] and len(lines) == 1
    assert "nothing to do" in lines[0]


def test_a_package_that_does_not_load_is_found_out(run):
    stand = Stand(everything(), broken=["lme4"])
    outcome, lines = run(stand)
    assert not outcome.complete and "it is broken" in outcome.missing["lme4"]
    assert any("apt-get install r-cran-lme4" in line for line in lines)
    # It is tried anew the next time.
    assert not run(Stand(everything(), broken=["lme4"]))[0].complete


def test_an_old_version_is_replaced_or_named(run):
    there = {**everything(), "sae": "1.0"}
    outcome, _ = run(Stand(there))
    assert outcome.missing == {"sae": "1.0 is older than 1.3"}
    assert run(Stand(there, cran=["sae"]))[0].complete


def test_without_network_it_goes_on_and_says_what_to_do(run):
    stand = Stand({"survey": "9.9"})
    outcome, lines = run(stand)
    assert set(outcome.missing) == {"lme4", "MASS", "sae"}
    assert outcome.installed == {"survey": "9.9"}
    assert "CRAN cannot be reached" in outcome.missing["sae"]
    assert any('install.packages("sae")' in line for line in lines)
    assert lines[-1] == "the log: setup.log"


def test_without_rights_apt_is_left_alone_and_named(run, monkeypatch):
    monkeypatch.setattr(setup, "root_prefix", lambda: None)
    stand = Stand({}, apt=["r-cran-survey"], cran=["sae", "survey", "lme4", "MASS"])
    outcome, lines = run(stand)
    assert outcome.complete and not any(line.startswith("apt") for line in stand.asked)
    assert any("sudo apt-get install r-cran-survey" in line for line in lines)


def test_another_r_does_not_see_what_apt_installs(run):
    stand = Stand({}, apt=["r-cran-survey"], cran=["sae", "survey", "lme4", "MASS"])
    stand.r = Installation("/opt/R", "4.4.0", "R_HOME", None, ())
    run(stand)
    assert not any(line.startswith("apt") for line in stand.asked)


def test_a_wrong_scope_is_refused():
    with pytest.raises(InputError):
        setup_r("everything")


def test_without_r_the_exit_status_is_3_and_the_line_says_why(monkeypatch, capsys):
    def gone():
        raise EngineUnavailable("R was not found", code="r_missing", field="R", hint="Get R.")

    monkeypatch.setattr(setup, "find_r", gone)
    assert main(["--scope", "demo"]) == 3
    assert "R was not found" in capsys.readouterr().err
