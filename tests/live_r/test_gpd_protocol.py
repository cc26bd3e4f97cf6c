"""The protocol with R's engines: the same verdicts as natively, and R's name in the provenance."""

from __future__ import annotations

import pytest

from pybridge.protocol.reading import make_protocol
from pybridge.protocol.run import run_protocol
from pybridge.simulate.tail_demonstrations import demonstrate
from pybridge.simulate.tail_scores import TailModel, simulate_tail_scores

pytestmark = pytest.mark.r


@pytest.mark.parametrize("engine", ["evd", "ismev"])
def test_an_r_engine_gives_the_native_verdict(engine: str) -> None:
    models = {"a": TailModel(), "b": TailModel(shape=0.2), "c": TailModel(location=9, sigmoid=True)}
    scores = simulate_tail_scores(models, n_items=2000)
    words = {"models": list(models), "mean_margin": 0.2, "tail_margin": 0.5, "replicates": 199}
    words |= {"fit_method": "table", "scan_quantiles": [0.95, 0.97]}
    ours, theirs = (
        run_protocol(make_protocol(**words, engine=name), scores, exploratory=True)
        for name in ("native", engine)
    )
    assert theirs.provenance.engine == engine and engine in theirs.provenance.packages
    assert theirs.provenance.r and dict(theirs.provenance.options)["refits"] == "native"
    for one, other in zip(ours.pairs, theirs.pairs):
        assert other.verdict == one.verdict and other.first_failure == one.first_failure
        for gate in ("G1", "G2", "G3", "P1"):
            assert other.outcome(gate) == one.outcome(gate)
    for name in ("score/a", "score/b"):
        assert theirs.fits[name].shape == pytest.approx(ours.fits[name].shape, abs=1e-5)
    assert theirs.fits["score/c"].status == ours.fits["score/c"].status == "infeasible"


def test_a_demonstration_with_evd() -> None:
    found = demonstrate("true_difference", engine="evd", replicates=199)
    assert found.runs[0][1].pairs[0].verdict == "PASS"
