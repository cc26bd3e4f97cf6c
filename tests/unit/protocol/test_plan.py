"""Reading a plan: the template is valid, the digest knows values only, errors name key and line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pybridge.errors import InputError
from pybridge.protocol._schema import KEYS
from pybridge.protocol.reading import load_protocol, make_protocol
from pybridge.protocol.template import protocol_template, toml_value

GOOD = 'models = ["a", "b", "c"]\n[G1]\nmargin = 0.1\n[G2]\nmargin = 0.2\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "claim.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_template_is_valid_as_it_is(tmp_path: Path) -> None:
    plan = load_protocol(written(tmp_path, protocol_template()))
    assert plan.models == ("model_a", "model_b") and plan.required_exceedances == 1570
    assert (plan.quantile, plan.half_width, plan.points) == (0.95, 0.01, 5)
    assert (plan.difference, plan.floor, plan.replicates) == (0.10, 0.10, 2000)
    assert (plan.fit_alpha, plan.power, plan.planning_shape) == (0.05, 0.80, 0.0)
    assert plan.engine == "evd" and plan.scan_quantiles[0] == 0.95


def test_the_template_marks_what_must_be_decided_and_explains_every_key() -> None:
    lines = protocol_template().splitlines()
    marked = [lines[k + 1] for k, line in enumerate(lines) if line.startswith("# EXAMPLE, decide")]
    assert [line.split(" =")[0] for line in marked] == ["models", "margin", "margin"]
    keys = [k for k, line in enumerate(lines) if " = " in line and not line.startswith("#")]
    assert len(keys) == len(KEYS)
    assert all(lines[k - 1].startswith("#") for k in keys)


def test_models_may_be_written_into_it(tmp_path: Path) -> None:
    names = ['odd "name"', "한국어", "tab\there"]
    text = protocol_template(models=names, scorers=["s"])
    assert load_protocol(written(tmp_path, text)).models == tuple(names)
    assert toml_value([1, 0.5, "a"]) == '[1, 0.5, "a"]'


def test_defaults_are_part_of_the_digest_and_layout_is_not(tmp_path: Path) -> None:
    plain = load_protocol(written(tmp_path, GOOD))
    spelled = load_protocol(
        written(tmp_path, "# a comment\nseed = 20250101\n" + GOOD + "quantile = 0.9\n")
    )
    other = load_protocol(written(tmp_path, "seed = 2\n" + GOOD))
    assert plain.sha256() == spelled.sha256() != other.sha256()
    moved = dataclasses.replace(plain, source="elsewhere.toml")
    assert moved.sha256() == plain.sha256()
    assert make_protocol(models=["a", "b", "c"], mean_margin=0.1, tail_margin=0.2) == (
        dataclasses.replace(plain, source="")
    )


def test_every_value_changes_the_digest() -> None:
    plan = make_protocol(models=["a", "b"], mean_margin=0.1, tail_margin=0.2)
    other = {
        "pairs": (("a", "b"),),
        "engine": "ismev",
        "kind": "log",
        "edge": "clip",
        "pairing": "none",
        "equivalence_scale": "transformed",
        "fit_method": "table",
        "tolerance": "calibrated",
        "models": ("a", "c"),
        "scorers": ("t",),
        "title": "x",
        "scan_quantiles": (0.9,),
    }
    digests = {plan.sha256()}
    for key in KEYS:
        if key.field == "format":
            continue
        value = other.get(key.field)
        if value is None:
            value = getattr(plan, key.field) + 1
        digests.add(dataclasses.replace(plan, **{key.field: value}).sha256())
    assert len(digests) == len(KEYS)


def test_values_of_one_scorer(tmp_path: Path) -> None:
    text = 'scorers = ["x", "y"]\n' + GOOD + '[scorer.y]\ntransform.kind = "logit"\nG1.margin = 9\n'
    plan = load_protocol(written(tmp_path, text))
    assert plan.for_scorer("x").kind == "none" and plan.for_scorer("x").mean_margin == 0.1
    assert plan.for_scorer("y").kind == "logit" and plan.for_scorer("y").mean_margin == 9.0
    assert plan.canonical()["scorer"] == {"y": {"transform.kind": "logit", "G1.margin": 9.0}}
    same = make_protocol(
        models=["a", "b", "c"],
        scorers=["x", "y"],
        mean_margin=0.1,
        tail_margin=0.2,
        overrides={"y": {"transform.kind": "logit", "G1.margin": 9}},
    )
    assert same.sha256() == plan.sha256()


def test_pairs_are_all_or_those_named() -> None:
    words = {"models": ["a", "b", "c"], "mean_margin": 0.1, "tail_margin": 0.2}
    assert make_protocol(**words).model_pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    assert make_protocol(**words, pairs=[["c", "a"]]).model_pairs == (("c", "a"),)


@pytest.mark.parametrize(
    ("text", "code", "field", "words"),
    [
        ("models = ]\n", "bad_toml", "protocol", "line 1"),
        (GOOD + "margn = 1\n", "unknown_key", "G2.margn", "line 6"),
        ("tial = 1\n" + GOOD, "unknown_key", "tial", "line 1"),
        (GOOD + "[G6]\nmargin = 1\n", "unknown_key", "G6", "line 6"),
        ('models = ["a", "b"]\n[G1]\nmargin = 1\n', "missing_key", "G2.margin", "no default"),
        ("[G1]\nmargin = 1\n", "missing_key", "models", "models"),
        ("seed = true\n" + GOOD, "bad_value", "seed", "line 1"),
        ('seed = "1"\n' + GOOD, "bad_value", "seed", "whole number"),
        (GOOD.replace("0.1", '"0.1"'), "bad_value", "G1.margin", "line 3"),
        (GOOD.replace("0.1", "-0.1"), "bad_value", "G1.margin", "line 3"),
        (GOOD.replace("0.1", "nan"), "bad_value", "G1.margin", "number"),
        (GOOD + '[tail]\nengine = "mev"\n', "bad_value", "tail.engine", '"evd" or "ismev"'),
        (GOOD + "[tail]\nquantile = 95\n", "bad_value", "tail.quantile", "line 7"),
        (GOOD + "[tail]\nquantile = 0.995\n", "bad_value", "G5.half_width", "window"),
        (GOOD + "[G3]\nshape = -0.5\n", "bad_value", "G3.shape", "-0.5 < x"),
        (GOOD + '[G5]\ntolerance = "loose"\n', "bad_value", "G5.tolerance", "calibrated"),
        (GOOD + "[scan]\nquantiles = [0.9, 0.8]\n", "bad_value", "scan.quantiles", "rising"),
        ('models = ["a", "a"]\n', "bad_value", "models", "different"),
        ('pairs = [["a", "z"]]\n' + GOOD, "bad_value", "pairs", "line 1"),
        ('pairs = [["a", "b"], ["b", "a"]]\n' + GOOD, "bad_value", "pairs", "different pairs"),
        ("tail = 3\n" + GOOD, "bad_value", "tail", "section"),
        ("format = 2\n" + GOOD, "later_version", "format", "Update pybridge"),
        ("format = 2\n" + GOOD, "later_version", "format", "line 1"),
        ('format = "1"\n' + GOOD, "bad_value", "format", "'1', text"),
        (GOOD + "[G3]\npower = 0.02\n", "bad_value", "G3.power", "line 7"),
        (GOOD + "[scorer.z]\nG1.margin = 1\n", "unknown_key", "scorer.z", "line 6"),
        (GOOD + "[scorer.score]\nG1.margin = -1\n", "bad_value", "G1.margin", "line 7"),
        (GOOD + '[scorer."score".G1] # own\n\nmargin = -1\n', "bad_value", "G1.margin", "line 8"),
        (
            GOOD + "[scorer.score]\nG3.power = 0.9\n",
            "unknown_key",
            "scorer.score.G3.power",
            "line 7",
        ),
        (GOOD + "[scorer.z]\nG1.margin = 1\n", "unknown_key", "scorer.z", "scorer.score"),
        (GOOD + "[scorer.score]\nG3.power = 0.9\n", "unknown_key", "scorer.score.G3.power", "G1"),
        (GOOD + "[scorer.score]\nG1 = 1\n", "bad_value", "scorer.score.G1", "section"),
        (GOOD + "[scorer.score]\nG1.margin = -1\n", "bad_value", "G1.margin", "number"),
    ],
)
def test_errors_name_the_key_its_line_and_what_is_allowed(
    tmp_path: Path, text: str, code: str, field: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_protocol(written(tmp_path, text))
    assert (caught.value.code, caught.value.field) == (code, field)
    assert words in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_protocol(tmp_path / "absent.toml")
    assert caught.value.code == "no_file" and "plan --out" in str(caught.value)
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(InputError) as caught:
        load_protocol(tmp_path / "latin.toml")
    assert caught.value.code == "bad_toml"
    with pytest.raises(InputError) as caught:
        make_protocol(models=["a", "b"], margin=1.0)
    assert caught.value.code == "unknown_key"


def test_the_record_shows_every_value() -> None:
    plan = make_protocol(models=["a", "b"], mean_margin=0.1, tail_margin=0.2)
    assert len(plan.to_frame()) == len(KEYS)
    assert "G5.half_width = 0.01" in plan.summary() and plan.sha256() in plan.summary()
