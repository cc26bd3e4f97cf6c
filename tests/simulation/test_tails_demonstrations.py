"""The four demonstrations show what they say, on simulated scores whose truth is known."""

from __future__ import annotations

import functools

import pytest

from pybridge.errors import InputError
from pybridge.simulate.tail_demonstrations import NAMES, Demonstration, demonstrate


@functools.lru_cache(maxsize=None)
def shown(name: str) -> Demonstration:
    return demonstrate(name, replicates=300)


def test_a_small_sample_shows_a_large_difference_that_shrinks() -> None:
    found = shown("sample_size")
    small, large = (verdict for _, verdict in found.runs)
    widest = max(small.pairs, key=lambda pair: abs(pair.difference.estimate))
    names = (widest.model_a, widest.model_b)
    gap = abs(widest.difference.estimate)
    assert widest.outcome("G3").observed == 100
    assert gap > 0.25 and widest.outcome("G4").passed and widest.outcome("P2").passed
    assert widest.verdict == "KILL" and widest.first_failure == "G3"
    later = large.pair(*names)
    assert abs(later.difference.estimate) < 0.1 * gap
    g3 = later.outcome("G3")
    assert (g3.observed, g3.limit, g3.verdict) == (1500, 1570, "fail")
    assert all(pair.verdict == "KILL" for pair in (*small.pairs, *large.pairs))


def test_a_bound_makes_a_false_tail_and_the_logit_removes_it() -> None:
    raw, logit = (verdict for _, verdict in shown("bounded_scores").runs)
    heavy = raw.pair("seldom", "sometimes")
    assert heavy.first_failure == "G4" and heavy.verdict == "KILL"
    assert 0.9 < heavy.shape_a < 1.2 and 0.9 < heavy.shape_b < 1.2
    degenerate = raw.fits["score/often"]
    assert degenerate.status == "infeasible" and degenerate.shape == -1.0
    assert raw.pair("seldom", "often").outcome("G4").verdict == "fail"
    for pair in logit.pairs:
        assert pair.outcome("G4").passed and pair.outcome("G3").passed
        assert abs(pair.shape_a) < 0.05 and abs(pair.shape_b) < 0.05
        assert pair.verdict == "KILL"  # there is no difference to claim


def test_one_threshold_passes_everything_and_its_window_kills_it() -> None:
    pair = shown("threshold_fishing").runs[0][1].pairs[0]
    failing = [outcome.gate for outcome in pair.outcomes if not outcome.passed]
    assert failing == ["G5"] and pair.first_failure == "G5"
    words = dict(pair.scan_passes)
    assert [q for q, word in words.items() if word == "pass"] == [0.97]
    assert "too few" not in words.values()
    scan = shown("threshold_fishing").runs[0][1].scans["score"]
    assert scan.n_exceedances.min() >= 1570
    assert "threshold fishing" in pair.fishing and "0.97" in pair.fishing


def test_a_true_difference_passes() -> None:
    verdict = shown("true_difference").runs[0][1]
    pair = verdict.pairs[0]
    assert pair.verdict == "PASS" and all(outcome.passed for outcome in pair.outcomes)
    assert pair.outcome("G3").observed == 1570
    assert pair.fishing == ""
    assert pair.difference.lower < -0.25 < pair.difference.upper


@pytest.mark.parametrize("name", NAMES)
def test_every_demonstration_tells_its_truth_and_is_exploratory(name: str) -> None:
    found = shown(name)
    assert found.truth in found.summary() and all(f in found.summary() for f in found.findings)
    assert all(verdict.exploratory for _, verdict in found.runs)
    assert len(found.to_frame()) == sum(len(verdict.pairs) for _, verdict in found.runs)
    assert found.verdict(found.runs[0][0]) is found.runs[0][1]


def test_another_name_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        demonstrate("luck")
    assert caught.value.code == "unknown_option"
