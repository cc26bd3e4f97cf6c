"""Candidates on every engine: one call to R with all folds, errors kept with their candidate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pybridge as pb
from pybridge.errors import EngineError, EngineTimeout, InputError, WorkerDied
from pybridge.selection import engines
from pybridge.selection.engines import engines_of, method_of
from tests.unit.selection.samples import DIRECT, setting

FH: dict[str, Any] = dict(smoothing="fay_herriot", area_formula="~ f")
GREG: dict[str, Any] = dict(direct="greg", unit_auxiliary="f")


def test_engines_and_methods() -> None:
    assert set(engines_of("fay_herriot")) == {"sae", "emdi", "hbsae", "native"}
    assert set(engines_of("taxonomy")) == {"native", "rjags", "metafor"}
    assert method_of("fay_herriot", "emdi", "REML") == "reml"
    assert method_of("fay_herriot", "sae", "reml") == "REML"
    assert [
        method_of("fay_herriot", name, None) for name in ("sae", "emdi", "hbsae", "native")
    ] == [
        *("REML", "reml", "bayes", "REML"),
    ]
    assert [method_of("taxonomy", name, None) for name in ("native", "metafor", "rjags")] == [
        *("bayes", "REML", "bayes"),
    ]
    assert "me" not in engines_of("fay_herriot")["emdi"]


@pytest.mark.parametrize("smoothing", ["fay_herriot", "taxonomy"])
def test_every_native_method_is_a_candidate(smoothing: str) -> None:
    words = dict(smoothing=smoothing, area_formula="~ f", **GREG)
    candidates = [
        pb.candidate(method, method=method, **words) for method in engines_of(smoothing)["native"]
    ]
    found = pb.select(*setting(), candidates, outcome="y")
    assert not found.failed and np.isfinite(found.scores["db_cv"]).all()
    best = found.scores["db_cv"]
    assert best.max() < 3 * best.min()  # one model, several estimators of its variance


class Stub:
    """An adapter that answers every problem by the native engine, and counts its calls."""

    def __init__(self, broken: Callable[[int], Exception | None] = lambda k: None) -> None:
        self.calls: list[int] = []
        self.broken = broken

    def fit_many(self, problems: Any, **words: Any) -> list[Any]:
        from pybridge.smoothing._area_model import fit_area_model

        self.calls.append(len(problems))
        answers: list[Any] = []
        for k, one in enumerate(problems):
            error = self.broken(k)
            if error is not None and not isinstance(error, InputError):
                raise error
            answers.append(
                error
                or fit_area_model(
                    estimate=one.estimate,
                    variance=one.variance,
                    covariates=one.covariates,
                    method="REML",
                )
            )
        return answers


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[[Stub], Stub]:
    def use(one: Stub) -> Stub:
        real = engines.importlib.import_module

        def fake(name: str) -> Any:
            return one if name == "pybridge.smoothing._sae" else real(name)

        monkeypatch.setattr(engines.importlib, "import_module", fake)
        return one

    return use


def test_one_call_for_all_candidates_folds_repetitions_and_splits(stub: Any) -> None:
    one = stub(Stub())
    candidates = [
        *DIRECT,
        pb.candidate("FH", engine="sae", **FH),
        pb.candidate("FH-GREG", engine="sae", **FH, **GREG),
        pb.candidate("native", **FH, **GREG),
    ]
    found = pb.select(*setting(), candidates, outcome="y", score="all", repetitions=3)
    # The whole sample once, five folds and two splits in each of three repetitions.
    assert one.calls == [2 * (1 + 3 * (5 + 2))]
    i, j = found.candidates.index("FH-GREG"), found.candidates.index("native")
    for key in found.scores:
        np.testing.assert_array_equal(found.domain_scores[key][i], found.domain_scores[key][j])


@pytest.mark.parametrize("kind", [EngineError, EngineTimeout, WorkerDied])
def test_r_that_stops_takes_its_own_candidates_only(stub: Any, kind: Any) -> None:
    stub(Stub(lambda k: kind("the worker died", code="worker_died")))
    candidates = [*DIRECT, pb.candidate("FH", engine="sae", **FH), pb.candidate("native", **FH)]
    found = pb.select(*setting(), candidates, outcome="y")
    assert found.failed == {"FH": "the worker died"}
    assert np.isfinite(found.scores["db_cv"][[0, 1, 2, 4]]).all()


def test_an_error_in_one_fold(stub: Any) -> None:
    wrong = InputError("problem 2: too few", code="too_few_domains", field="estimate")
    stub(Stub(lambda k: wrong if k == 2 else None))
    candidates = [*DIRECT, pb.candidate("FH", engine="sae", **FH)]
    found = pb.select(*setting(), candidates, outcome="y")
    assert found.failed == {"FH": "without fold 2: too few"}
    # Ten splits: the one that failed is left out of its average.
    stub(Stub(lambda k: wrong if k == 2 else None))
    found = pb.select(*setting(), candidates, outcome="y", repetitions=10)
    assert not found.failed and np.isfinite(found.scores["db_cv"]).all()


def test_options_reach_the_engine_and_part_the_batches() -> None:
    words = dict(engine="sae", **FH)
    one, same, other = (
        pb.candidate(name, **words, **options)
        for name, options in (("a", {"MAXITER": 5}), ("b", {"MAXITER": 5}), ("c", {"MAXITER": 9}))
    )
    assert engines.batch_key(one) == engines.batch_key(same) != engines.batch_key(other)
    assert "MAXITER=5" in one.summary() and dict(one.options) == {"MAXITER": 5}


def test_a_prior_of_the_taxonomy() -> None:
    words = dict(smoothing="taxonomy", area_formula="~ f", **GREG)
    tight = pb.TaxonomyPrior(shape=50.0, scale=1e-9)
    candidates = [pb.candidate("usual", **words), pb.candidate("tight", prior=tight, **words)]
    found = pb.select(*setting(), candidates, outcome="y")
    assert not found.failed and found.scores["db_cv"][0] != found.scores["db_cv"][1]


def test_four_levels_draw_the_same_numbers_from_the_same_seed() -> None:
    from tests.unit.selection.samples import units

    table = units().assign(
        s=lambda t: t["d"].str[1].astype(int) % 2, q=lambda t: t["d"].str[1].astype(int) // 4
    )
    table["p"] = "p" + table["s"].astype(str) + table["r"]
    table["q"] = table["p"] + table["q"].astype(str)
    known = pb.population(table, domain="d", auxiliary=["f"], taxonomy=["s", "p", "q"])
    design = pb.survey_design(table[table["labelled"]], weights="w")
    deep = [pb.candidate("deep", smoothing="taxonomy", area_formula="~ f", n_draws=100, **GREG)]
    first, again, other = (
        pb.select(design, known, deep, outcome="y", folds=np.arange(design.n_units) % 2, seed=seed)
        for seed in (4, 4, 5)
    )
    assert first == again and first.scores["db_cv"][0] != other.scores["db_cv"][0]
