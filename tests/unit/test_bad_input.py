"""Every bad input is refused with its facts before an engine runs: by evaluate, and in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main
from pybridge.errors import InputError


def all_units() -> pd.DataFrame:
    """300 units in 10 counties of 3 regions, two in five labelled; clusters of five."""
    rng = np.random.default_rng(3)
    county = np.repeat(np.arange(10), 30)
    f = rng.normal(size=300) + county / 5
    y = 1 + f + rng.normal(size=300)
    units = pd.DataFrame({"county": [f"c{i}" for i in county], "f": f, "y": y})
    units["region"] = [f"r{i % 3}" for i in county]
    units["stratum"] = np.arange(300) % 4
    units["cluster"] = [f"k{i // 5}" for i in range(300)]
    return units.assign(y=units["y"].where(np.arange(300) % 5 < 2))


def the_sample() -> pd.DataFrame:
    units = all_units()
    return units[units["y"].notna()].assign(w=2.5, N=300.0)


def the_totals() -> pd.DataFrame:
    units = all_units().groupby("county", as_index=False)
    return units.agg(size=("f", "size"), f=("f", "mean"), region=("region", "first"))


class Bad(NamedTuple):
    """What to change, what else to say, and what must come back."""

    code: str
    field: str
    change: Callable[[pd.DataFrame], pd.DataFrame] = lambda t: t
    words: dict[str, Any] = {}
    totals: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    hint: str = ""


def replaced(column: str, value: Any, row: int = 1) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(table: pd.DataFrame) -> pd.DataFrame:
        values = table[column].astype(object) if isinstance(value, str) else table[column].copy()
        values.iloc[row] = value
        return table.assign(**{column: values})

    return change


def same(table: pd.DataFrame) -> pd.DataFrame:
    return table


WEIGHTED: dict[str, Any] = {"weights": "w"}
MISSING = "missing_column"
BAD = {
    # columns
    "missing outcome column": Bad(MISSING, "", lambda t: t.rename(columns={"y": "yy"}), hint="yy"),
    "missing auxiliary column": Bad(
        MISSING, "", lambda t: t.rename(columns={"f": "ff"}), hint="ff"
    ),
    "missing domain column": Bad(MISSING, "", words={"domain": "conty"}, hint="county"),
    "missing level": Bad(MISSING, "", words={"taxonomy": ["regoin"]}, hint="region"),
    "missing strata column": Bad(MISSING, "", words={"strata": "strat"}, hint="stratum"),
    "missing weights column": Bad(MISSING, "", words={"weights": "weight"}),
    "outcome is text": Bad("not_numeric", "outcome", replaced("y", "high"), hint="high"),
    "auxiliary is text": Bad("not_numeric", "auxiliary", replaced("f", "1,5"), hint="1,5"),
    "infinite outcome": Bad("infinite_values", "outcome", replaced("y", np.inf)),
    "infinite auxiliary": Bad("infinite_values", "auxiliary", replaced("f", -np.inf)),
    "missing auxiliary": Bad("missing_values", "auxiliary", replaced("f", np.nan)),
    "missing domain": Bad("missing_values", "domain", replaced("county", None)),
    "missing level of a unit": Bad(
        "missing_values", "taxonomy", replaced("region", None), {"taxonomy": ["region"]}
    ),
    "a column twice": Bad("duplicate_name", "auxiliary", words={"auxiliary": ["f", "f"]}),
    "constant auxiliary": Bad("constant_auxiliary", "auxiliary", lambda t: t.assign(f=0.1)),
    "collinear auxiliaries": Bad(
        "collinear_auxiliary",
        "auxiliary",
        lambda t: t.assign(g=3 - 2 * t["f"]),
        {"auxiliary": ["f", "g"]},
    ),
    "out of range": Bad("out_of_range", "auxiliary", lambda t: t.assign(f=1e200 * t["f"])),
    # labels
    "no labels": Bad("no_labels", "outcome", lambda t: t.assign(y=np.nan)),
    "nothing unlabelled": Bad("nothing_unlabelled", "population", lambda t: t.assign(y=t["f"])),
    "taxonomy not nested": Bad(
        "taxonomy_not_nested", "taxonomy", replaced("region", "r9"), {"taxonomy": ["region"]}
    ),
    "levels fine to coarse": Bad(
        "taxonomy_order", "taxonomy", words={"taxonomy": ["county", "region"]}
    ),
    "fewer domains than coefficients": Bad(
        "too_few_domains", "formula", lambda t: t.assign(county="one"), {"candidates": "standard"}
    ),
    # the design
    "weights zero": Bad("bad_weight", "weights", replaced("w", 0.0), WEIGHTED, same),
    "weights negative": Bad("bad_weight", "weights", replaced("w", -1.0), WEIGHTED, same),
    "weights missing": Bad("missing_values", "weights", replaced("w", np.nan), WEIGHTED, same),
    "weights infinite": Bad("infinite_values", "weights", replaced("w", np.inf), WEIGHTED, same),
    "weights not given": Bad("missing_argument", "weights", same, {}, same),
    "a stratum without labels": Bad(
        "unsampled_stratum", "strata", replaced("stratum", 9, row=2), {"strata": "stratum"}
    ),
    "a stratum with one primary unit": Bad(
        "lonely_psu",
        "strata",
        lambda t: t.assign(stratum=t["stratum"].where(~t.index.isin([0, 2]), 9)),
        {"strata": "stratum"},
    ),
    "an unknown rule for it": Bad("unknown_option", "lonely_psu", words={"lonely_psu": "drop"}),
    "clusters labelled in part": Bad("clusters_in_part", "weights", words={"ids": "cluster"}),
    "clusters across strata": Bad(
        "clusters_cross_strata",
        "ids",
        same,
        {**WEIGHTED, "ids": "cluster", "strata": "stratum"},
        same,
    ),
    "more folds than primary units": Bad("too_many_folds", "folds", words={"folds": 121}),
    "one fold": Bad("bad_count", "folds", words={"folds": 1}),
    "correction below the sample": Bad(
        "bad_fpc", "fpc", lambda t: t.assign(N=100.0), {"fpc": "N"}, same
    ),
    "correction that varies": Bad("bad_fpc", "fpc", replaced("N", 301.0), {"fpc": "N"}, same),
    # the population
    "unknown domain": Bad("unknown_domain", "domain", replaced("county", "c77"), WEIGHTED, same),
    "size below the sample": Bad("size_below_sample", "size", same, WEIGHTED, replaced("size", 3)),
    "size of nothing": Bad("bad_size", "size", same, WEIGHTED, replaced("size", 0)),
    "duplicated domain": Bad(
        "duplicate_domain", "domain", same, WEIGHTED, lambda t: pd.concat([t, t.iloc[:1]])
    ),
    "totals without sizes": Bad(
        MISSING, "population", same, WEIGHTED, lambda t: t.drop(columns="size")
    ),
    "totals without a mean": Bad(
        "missing_values", "auxiliary_means", same, WEIGHTED, replaced("f", np.nan)
    ),
    # words
    "level in percent": Bad("bad_level", "level", words={"level": 95.0}, hint="0.95"),
    "unknown engine": Bad("unknown_option", "engine", words={"engine": "SAS"}),
    "unknown reference": Bad("unknown_option", "reference", words={"reference": "best"}),
    "unknown candidates": Bad("unknown_option", "candidates", words={"candidates": "all"}),
    "seed below 0": Bad("bad_count", "seed", words={"seed": -1}),
}


@pytest.fixture(params=BAD)
def bad(request: pytest.FixtureRequest) -> Bad:
    return BAD[request.param]


def words_of(bad: Bad) -> dict[str, Any]:
    usual = dict(
        outcome="y", domain="county", auxiliary=["f"], engine="native", candidates="direct"
    )
    return {**usual, **bad.words}


def table_of(bad: Bad) -> pd.DataFrame:
    return bad.change(all_units() if bad.totals is None else the_sample())


def test_by_the_function(bad: Bad, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fit(*arguments: Any, **words: Any) -> None:
        raise AssertionError("an engine ran")

    monkeypatch.setattr("pybridge.selection.refits.fit_native", no_fit)
    monkeypatch.setattr("pybridge.selection.refits.fit_in_r", no_fit)
    totals = None if bad.totals is None else bad.totals(the_totals())
    with pytest.raises(InputError) as caught:
        pb.evaluate(table_of(bad), population=totals, **words_of(bad))
    error = caught.value
    assert error.code == bad.code
    if bad.field:
        assert error.field == bad.field
    assert (
        error.field
        and error.expected is not None
        and error.got is not None
        or (error.code == "missing_argument")
    )
    assert bad.hint in (error.hint or "")
    assert set(error.to_dict()) == {"error", "message", "code", "field", "expected", "got", "hint"}


def arguments_of(bad: Bad, folder: Path) -> list[str]:
    table_of(bad).to_csv(folder / "units.csv", index=False)
    found = ["evaluate", str(folder / "units.csv")]
    for word, value in words_of(bad).items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        found += [f"--{word.replace('_', '-')}", text]
    if bad.totals is not None:
        bad.totals(the_totals()).to_csv(folder / "totals.csv", index=False)
        found += ["--population", str(folder / "totals.csv")]
    return found


def test_on_the_command_line(bad: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(arguments_of(bad, tmp_path))
    out, err = capsys.readouterr()
    assert status == 2 and out == ""
    lines = [line for line in err.splitlines() if not line.startswith("·")]
    assert len(lines) == 1 and lines[0].startswith("pybridge: error: ")
    if bad.field:
        assert f"field: {bad.field}" in lines[0]
    assert "Traceback" not in err and os.linesep not in lines[0]


@pytest.mark.parametrize("wrong", ["no", 0, None])
def test_a_yes_or_no_that_is_neither_is_refused_everywhere(wrong: Any) -> None:
    sample = the_sample()
    design = pb.survey_design(sample, weights="w")
    known = pb.population(the_totals(), domain="county", size="size", auxiliary_means=["f"])
    words: dict[str, Any] = {"outcome": "y", "domain": "county"}
    calls: dict[str, Callable[[], Any]] = {
        "nest": lambda: pb.survey_design(sample, weights="w", ids="cluster", nest=wrong),
        "intercept": lambda: pb.generalized_regression(design, known, intercept=wrong, **words),
        "size_corrected": lambda: pb.select(
            design, known, [pb.candidate("HT")], size_corrected=wrong, **words
        ),
        "taxonomy": lambda: pb.standard_candidates("f", taxonomy=wrong),
        "ordered": lambda: pb.diagnose_scores(np.arange(100.0), ordered=wrong),
    }
    for field, call in calls.items():
        with pytest.raises(InputError) as caught:
            call()
        assert (caught.value.code, caught.value.field) == ("not_a_bool", field)
