"""The probes of doctor --traps see R's behaviour, and say where a newer package has mended one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import pybridge
from pybridge.cli import main
from pybridge.engines import traps
from pybridge.errors import EngineUnavailable, InputError
from pybridge.r import Reply

pytestmark = pytest.mark.r("sae", "emdi", "evd", "ismev", "survey")


@pytest.fixture(scope="module")
def report():
    return traps.probe_traps().to_frame().set_index("trap")


def test_every_trap_has_one_probe_and_every_probe_a_trap():
    shim = Path(pybridge.__file__).parent / "r" / "shims" / "traps.R"
    listed = shim.read_text(encoding="utf-8").partition("traps_probes <- list(")[2]
    probes = re.findall(r"^  (\w+) = function\(\)", listed, re.MULTILINE)
    assert probes == [item.name for item in traps.TRAPS] and len(set(probes)) == len(probes)


def test_each_probe_gives_an_answer(report):
    assert set(report["state"]) <= {"as documented", "mended"}
    assert (report["said"] == "").all() and (report["version"] != "").all()


def test_what_emdi_2_2_3_mended_shows_as_mended(report):
    assert report.loc["emdi_robust_k", "state"] == "mended"
    assert report.loc["emdi_arcsin", "state"] == "as documented"


def test_lonely_strata_follow_the_version_of_survey(report):
    version = tuple(
        map(int, report.loc["survey_lonely_adjust", "version"].split("-")[0].split("."))
    )
    expected = "as documented" if version[:2] <= (4, 1) else "mended"
    assert report.loc["survey_lonely_adjust", "state"] == expected


def test_answers_of_another_package_are_told_apart(monkeypatch):
    def answered(shim, inputs, **words):
        stopped = {"message": "no such thing\n", "call": None, "class": ("error",)}
        versions = {"survey": "9.9"}
        return [
            Reply(value={"trapped": [False]}, versions=versions),
            Reply(value={}, versions=versions, error=stopped),
        ]

    monkeypatch.setattr(traps, "call_many", answered)
    found = traps.probe_traps("survey")
    assert [row[3] for row in found.rows] == ["mended", "not probed"]
    assert found.mended == ("survey_lonely_adjust",)
    assert "survey 9.9" in found.summary() and "R said: no such thing" in found.summary()
    assert found.summary().endswith("1 mended, 1 not probed")


def test_a_package_that_is_not_there_is_a_state(monkeypatch):
    def missing(shim, inputs, *, packages, **words):
        raise EngineUnavailable("no", code="package_missing", field=packages[-1])

    monkeypatch.setattr(traps, "call_many", missing)
    rows = traps.probe_traps("survey", "evd").rows
    assert {row[3] for row in rows} == {"not installed"}
    assert all(bool(row[4]) == (row[0] == "evd") for row in rows)  # evd: ismev holds its data


def test_an_unknown_package_is_refused():
    with pytest.raises(InputError) as caught:
        traps.probe_traps("mev")
    assert caught.value.field == "packages"


def test_the_command_line(monkeypatch, capsys):
    found = traps.probe_traps("evd")
    monkeypatch.setattr(traps, "probe_traps", lambda: found)
    assert main(["doctor", "--traps"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(found.summary())
    assert main(["doctor", "--traps", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["traps"]
    assert [item["trap"] for item in answer] == list(found.to_frame()["trap"])
