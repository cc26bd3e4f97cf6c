"""The verdict: each gate decides as specified, all are shown, and the family holds together."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.protocol._models import calibrated_tolerance, window_quantiles
from pybridge.protocol._resampling import Target, item_counts, resample_group
from pybridge.protocol.outcomes import GATES, equivalence
from pybridge.protocol.reading import make_protocol
from pybridge.protocol.run import run_protocol
from pybridge.tails._distribution import draw
from pybridge.tails.dependence import label_order
from pybridge.tails.generalized_pareto import generalized_pareto
from validation.reimplementations.generalized_pareto import tail_mean

N = 2000


def sample(shape: float = 0.0, n: int = N, seed: int = 1, scale: float = 1.0) -> np.ndarray:
    return draw(rng=np.random.default_rng(seed), size=(n,), shape=shape, scale=scale)


def table(**samples: np.ndarray) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"model": name, "item": np.arange(len(x)), "score": x})
        for name, x in samples.items()
    ]
    return pd.concat(parts, ignore_index=True)


def plan(models=("a", "b"), **changes):
    words = {"mean_margin": 0.2, "tail_margin": 1.0, "replicates": 199, "engine": "native"}
    words |= {"fit_method": "table", "models": list(models), "scan_quantiles": [0.95, 0.97, 0.99]}
    return make_protocol(**(words | changes))


def run(scores, protocol=None, **changes):
    return run_protocol(protocol or plan(**changes), scores, exploratory=True)


BASE = table(a=sample(seed=1), b=sample(seed=2))


def test_every_gate_is_computed_and_shown_after_the_first_failure() -> None:
    one = run(BASE).pair("a", "b")
    assert tuple(outcome.gate for outcome in one.outcomes) == GATES
    assert one.verdict == "KILL" and one.first_failure == "G3"
    assert {o.verdict for o in one.outcomes} <= {"pass", "fail"}
    assert all(o.sentence and np.isfinite([o.observed, o.limit]).all() for o in one.outcomes)
    g3 = one.outcome("G3")
    assert (g3.observed, g3.limit) == (100.0, 1570.0)
    assert "1570" in g3.sentence and "a: 100" in g3.sentence


def test_a_claim_that_meets_everything_passes() -> None:
    # Small N* on purpose; the difference of the shapes is large and mean and TVaR margins wide.
    scores = table(a=sample(0.0, 4000, 3), b=sample(0.6, 4000, 4, scale=0.6))
    one = run(scores, difference=0.5, tail_margin=50.0, mean_margin=1.0, tolerance=0.3)
    assert one.pairs[0].verdict == "PASS" and one.pairs[0].first_failure == ""
    assert one.n_passed == 1 and one.to_frame()["verdict"].tolist() == ["PASS"]


@pytest.mark.parametrize(
    ("gate", "changes"),
    [
        ("G1", {"mean_margin": 0.01}),
        ("G2", {"tail_margin": 0.01}),
        ("G3", {}),
        ("G5", {"tolerance": 1e-6, "difference": 0.5}),
        ("P1", {"difference": 0.5, "floor": 0.001}),
        ("P2", {"difference": 0.5, "floor": 0.9}),
    ],
)
def test_each_gate_can_kill(gate: str, changes: dict) -> None:
    assert run(BASE, **changes).pair("a", "b").outcome(gate).verdict == "fail"


def test_a_bad_fit_fails_g4_and_p_values_are_those_of_the_fits() -> None:
    bumpy = np.concatenate([sample(seed=5)[:1800], 6 + 0.05 * sample(seed=6)[:200]])
    verdict = run(table(a=sample(seed=1), b=bumpy))
    g4 = verdict.pair("a", "b").outcome("G4")
    fit = generalized_pareto(bumpy, quantile=0.95, engine="native")
    p = fit.goodness_of_fit(method="table").anderson_darling_p
    assert g4.verdict == "fail" and g4.observed == pytest.approx(p) and p < 0.05
    assert verdict.fits["score/b"].shape == pytest.approx(fit.shape)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (np.linspace(0, 1, N), "infeasible"),
        (np.repeat([0.0, 1.0, 2.0, 3.0], [1800, 100, 60, 40]), "degenerate"),
        (np.repeat([0.0, 1.0], [1000, 1000]), "too_few"),
        (np.full(N, 0.3), "too_few"),
    ],
)
def test_a_model_without_a_fit_is_killed_with_its_reason_and_the_rest_is_shown(bad, word) -> None:
    one = run(table(a=sample(seed=1), b=bad), mean_margin=9.0, tail_margin=9.0).pair("a", "b")
    assert one.outcome("G1").verdict == one.outcome("G2").verdict == "pass"
    assert one.outcome("G4").verdict == "fail" and word in one.outcome("G4").sentence
    assert one.outcome("G5").verdict == "fail"
    assert one.outcome("P1").verdict == one.outcome("P2").verdict == "not computed"
    assert one.verdict == "KILL" and not one.outcome("P1").passed


def test_n_star_means_nothing_below_minus_one_half() -> None:
    scores = table(a=sample(-0.7, 6000, 7), b=sample(-0.7, 6000, 8))
    g3 = run(scores, difference=0.25).pair("a", "b").outcome("G3")
    assert g3.verdict == "fail" and g3.observed == 300 > g3.limit == 252 and "-1/2" in g3.sentence


def test_equivalence_is_an_interval_inside_the_margin_not_a_missing_difference() -> None:
    rng = np.random.default_rng(1)
    wide, narrow = rng.normal(0.0, 1.0, 999), rng.normal(0.05, 0.001, 999)
    words = {"estimate": 0.0, "margin": 0.1, "level": 0.95}
    assert equivalence("G1", "means", replicates=wide, **words).verdict == "fail"
    found = equivalence("G1", "means", replicates=narrow, **words)
    assert found.verdict == "pass" and 0.04 < found.lower < found.upper < 0.06
    assert found.observed == pytest.approx(found.upper) and found.limit == 0.1
    edge = equivalence("G1", "means", replicates=narrow, estimate=0, margin=0.05, level=0.95)
    assert edge.verdict == "fail"


def test_resamples_are_what_each_model_gives_alone() -> None:
    x, y = sample(0.1, 400, 9), sample(0.1, 400, 10)
    targets = [
        Target(v, v, (generalized_pareto(v, quantile=0.8, engine="native"),)) for v in (x, y)
    ]
    words = {"replicates": 30, "tail_quantile": 0.9}
    found = resample_group(targets=targets, rng=np.random.default_rng(3), **words)
    rng = np.random.default_rng(3)
    rows = max(1, (1 << 17) // 400)
    counts = np.concatenate([item_counts(400, min(rows, 30 - s), rng) for s in range(0, 30, rows)])
    assert (counts.sum(axis=1) == 400).all()
    for v, target, one in zip((x, y), targets, found):
        for r, row in enumerate(counts):
            again = np.repeat(v, row)
            assert one.means[r] == pytest.approx(again.mean())
            assert one.tail_means[r] == pytest.approx(tail_mean(again, 0.9))
            fit = generalized_pareto(again, threshold=target.fits[0].threshold, engine="native")
            assert one.shapes[0, r] == pytest.approx(fit.exact_shape, abs=1e-7)


def test_pairing_narrows_what_it_can_and_the_result_says_which() -> None:
    item = sample(0.0, N, 11)
    scores = table(a=item + 0.05 * sample(seed=12), b=item + 0.05 * sample(seed=13))
    paired, alone = run(scores).pairs[0], run(scores, pairing="none").pairs[0]
    assert paired.paired and not alone.paired
    width = {}
    for name, one in (("paired", paired), ("alone", alone)):
        g1 = one.outcome("G1")
        width[name] = (g1.upper - g1.lower, one.difference.upper - one.difference.lower)
        assert ("in pairs" in one.summary()) == (name == "paired")
    assert width["paired"][0] < 0.3 * width["alone"][0]
    assert width["paired"][1] < 0.8 * width["alone"][1]


def test_unequal_items_are_resampled_alone_unless_pairing_was_registered() -> None:
    scores = BASE[~((BASE["model"] == "b") & (BASE["item"] < 3))]
    assert not run(scores).pairs[0].paired
    with pytest.raises(InputError) as caught:
        run(scores, pairing="items")
    assert caught.value.code == "unequal_items" and "3 items of one only: 0, 1, 2" in str(
        caught.value
    )


def test_the_family_is_all_pairs_by_all_scorers() -> None:
    three = table(a=sample(seed=1), b=sample(seed=2), c=sample(seed=3))
    both = pd.concat([three.assign(scorer="x"), three.assign(scorer="y", score=three["score"] * 2)])
    verdict = run(both, models=("a", "b", "c"), scorers=["x", "y"])
    frame = verdict.to_frame()
    assert len(frame) == 6 and list(frame.columns[6:13]) == list(GATES)
    assert len(verdict.gates_frame()) == 42 and len(verdict.scan_frame()) == 2 * 3 * 3
    # A scale leaves the shapes alone.
    np.testing.assert_allclose(frame["shape_a"][:3], frame["shape_a"][3:], atol=1e-9)
    alone = run(three[three["model"] != "c"].assign(scorer="x"), scorers=["x"])
    assert alone.pair("a", "b").outcome("P1") == verdict.pair("b", "a", "x").outcome("P1")


def test_equivalence_on_raw_and_shape_on_transformed_scores() -> None:
    a, b = sample(seed=1) - 3, sample(seed=2) - 3
    squashed = table(a=1 / (1 + np.exp(-a)), b=1 / (1 + np.exp(-b)))
    one = run(squashed, kind="logit").pairs[0]
    direct = run(table(a=a, b=b)).pairs[0]
    assert one.shape_a == pytest.approx(direct.shape_a, abs=1e-8)
    assert one.outcome("G1").upper < 0.2 * direct.outcome("G1").upper
    moved = run(squashed, kind="logit", equivalence_scale="transformed").pairs[0]
    assert moved.outcome("G1").upper == pytest.approx(direct.outcome("G1").upper, abs=1e-9)


def test_the_calibrated_tolerance_is_met_by_the_fitted_distribution() -> None:
    counts = [120, 110, 100, 90, 80]
    words = {"shape": 0.1, "counts": counts, "level": 0.95}
    limit = calibrated_tolerance(replicates=1000, rng=np.random.default_rng(1), **words)
    again = calibrated_tolerance(replicates=4000, rng=np.random.default_rng(2), **words)
    assert limit == pytest.approx(again, rel=0.12)
    within = 0
    for seed in range(300):
        x = np.sort(sample(0.1, 120, 100 + seed))
        shapes = []
        for n in counts:
            u = x[120 - n - 1] if n < 120 else 0.0
            shapes.append(generalized_pareto(x, threshold=u, engine="native").exact_shape)
        within += np.ptp(shapes) <= again
    assert within / 300 == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 300))
    one = run(BASE, tolerance="calibrated").pairs[0].outcome("G5")
    assert "calibrated tolerance" in one.sentence and one.limit > 0.05


def test_the_window_is_the_registered_one() -> None:
    assert window_quantiles(plan()) == pytest.approx([0.94, 0.945, 0.95, 0.955, 0.96])


def test_a_pass_at_a_single_threshold_is_named_as_fishing() -> None:
    words = {"difference": 0.9, "floor": 0.01, "tolerance": 1e-9, "scan_quantiles": [0.95, 0.96]}
    scores = table(a=sample(0.0, 4000, 3), b=sample(0.6, 4000, 4, scale=0.6))
    one = run(scores, tail_margin=50.0, mean_margin=1.0, **words).pairs[0]
    assert one.verdict == "KILL" and one.first_failure == "G5"
    assert dict(one.scan_passes)[0.95] == "pass" and "threshold fishing" in one.fishing
    assert "WARNING" in one.summary()
    assert run(BASE).pairs[0].fishing == ""


def test_an_unregistered_protocol_runs_as_exploratory_only_and_is_marked(tmp_path: Path) -> None:
    protocol = plan()
    with pytest.raises(InputError) as caught:
        run_protocol(protocol, BASE)
    assert caught.value.code == "no_path"
    protocol.register(tmp_path / "kept.json")
    registered = run_protocol(protocol, BASE, registration=tmp_path / "kept.json")
    exploratory = run(BASE)
    for one, other in zip(registered.pairs, exploratory.pairs):
        assert (one.run, other.run) == ("registered", "EXPLORATORY")
        assert one == dataclasses.replace(other, run="registered")
        assert "EXPLORATORY" in other.summary() and "EXPLORATORY" not in one.summary()
    assert registered.registered_at and not exploratory.registered_at
    assert "EXPLORATORY" not in registered.summary()
    assert protocol.sha256() in registered.summary()
    for text in (exploratory.summary(), json.dumps(exploratory.to_dict())):
        assert "EXPLORATORY" in text
    for frame in (
        exploratory.to_frame(),
        exploratory.gates_frame(),
        exploratory.scan_frame(),
    ):
        assert set(frame["run"]) == {"EXPLORATORY"}
    paths = exploratory.write(tmp_path / "out")
    assert all("EXPLORATORY" in path.read_text(encoding="utf-8") for path in paths)


def test_what_is_odd_about_the_scores_is_named_beside_the_verdict(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    noise = np.repeat(rng.exponential(size=N // 10), 10) + 0.01 * rng.exponential(size=N)
    scores = table(
        plain=sample(seed=1),
        capped=np.minimum(sample(seed=2), 3.2),
        whole=np.floor(40 * sample(seed=3)),
        serial=noise,
        flat=np.full(N, 0.3),
    )
    verdict = run(scores, models=("plain", "capped", "whole", "serial", "flat"))
    codes = {
        name.split("/")[1]: [code for code, _ in found] for name, found in verdict.findings.items()
    }
    assert codes == {
        "plain": [],
        "capped": ["hard_cap", "ties"],
        "whole": ["integer"],
        "serial": ["serial_dependence"],
        "flat": ["no_exceedances"],
    }
    assert "capped: hard_cap" in verdict.summary() and "decluster" in verdict.summary()
    frame = verdict.findings_frame()
    assert frame["model"].tolist() == ["capped", "capped", "whole", "serial", "flat"]
    assert set(frame["run"]) == {"EXPLORATORY"}
    assert any(path.name == "findings.csv" for path in verdict.write(tmp_path))
    squashed = BASE.assign(score=1 / (1 + np.exp(-3 * BASE["score"])))
    saturated = run(squashed)
    assert "logit" in saturated.summary() and "saturated" in saturated.summary()
    assert run(squashed, kind="logit").findings_frame().empty


def test_the_order_of_the_items_is_that_of_their_numbers() -> None:
    labels = np.array(["10", "9", "-1", "2"], dtype=object)
    assert label_order(labels).tolist() == [2, 3, 1, 0]
    assert label_order(np.array(["r10", "r09", "q1"], dtype=object)).tolist() == [2, 1, 0]


def test_the_verdict_pickles_holds_the_data_s_digest_and_follows_the_seed() -> None:
    verdict = run(BASE)
    assert pickle.loads(pickle.dumps(verdict)) == verdict
    assert run(BASE.sample(frac=1, random_state=3)) == verdict
    other = run(BASE, seed=5)
    assert other.data_sha256 == verdict.data_sha256
    assert other.pairs[0].outcome("P1").observed != verdict.pairs[0].outcome("P1").observed


@pytest.mark.parametrize(
    ("scores", "changes", "code"),
    [
        (BASE[BASE["model"] == "a"], {}, "model_missing"),
        (BASE, {"scorers": ["judge"]}, "scorer_missing"),
        (BASE.assign(item=1), {}, "duplicate_item"),
        (BASE.assign(score=np.nan), {}, "missing_values"),
        (BASE, {"kind": "logit"}, "score_out_of_range"),
        (BASE.assign(score=BASE["score"].clip(upper=1.0)), {"kind": "logit"}, "score_at_bound"),
        (BASE.assign(score=-BASE["score"]), {"kind": "log"}, "score_out_of_range"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(scores, changes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        run(scores, **changes)
    assert caught.value.code == code
