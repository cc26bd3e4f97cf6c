"""Four demonstrations of the protocol on simulated scores whose truth is known.

The seeds were chosen among the first few dozen, so that each shows its mode of failure; the truth
behind every pair is stated, and how often such a thing happens is what
``validation/studies/tails_error_rates.py`` measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from pybridge._options import choose
from pybridge._record import Record
from pybridge.protocol.reading import make_protocol
from pybridge.protocol.run import run_protocol
from pybridge.protocol.verdict import Verdict
from pybridge.simulate.tail_scores import (
    TailModel,
    equal_tail_means,
    perturbed_model,
    simulate_tail_scores,
)

NAMES = ("sample_size", "bounded_scores", "threshold_fishing", "true_difference")


@dataclass(frozen=True, eq=False, repr=False)
class Demonstration(Record):
    """A claim, what the protocol says to it, and what is true.

    Attributes
    ----------
    name, title, truth : str
    runs : tuple of (str, Verdict)
        Each with a caption; all exploratory, since nothing was registered.
    findings : tuple of str
    """

    name: str
    title: str
    truth: str
    runs: tuple[tuple[str, Verdict], ...]
    findings: tuple[str, ...]

    def verdict(self, caption: str) -> Verdict:
        """The run of a caption."""
        return dict(self.runs)[caption]

    def to_frame(self) -> pd.DataFrame:
        """The family tables of all runs, below one another."""
        parts = [verdict.to_frame().assign(data=caption) for caption, verdict in self.runs]
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> str:
        lines = [self.title, "=" * len(self.title), f"Truth: {self.truth}", ""]
        for caption, verdict in self.runs:
            lines += [f"--- {caption}", *(pair.summary() for pair in verdict.pairs), ""]
        return "\n".join([*lines, *(f"=> {text}" for text in self.findings)])


def demonstrate(name: str, *, engine: str = "native", replicates: int = 1000) -> Demonstration:
    """Run one demonstration.

    Parameters
    ----------
    name : {"sample_size", "bounded_scores", "threshold_fishing", "true_difference"}
    engine : {"native", "evd", "ismev"}
    replicates : int
        Of the bootstrap.
    """
    return _MAKERS[choose("name", name, NAMES)](engine, replicates)


def _sample_size(engine: str, replicates: int) -> Demonstration:
    levels = (0.1, 0.2, 0.4, 0.8)
    runs = []
    for n in (2000, 30_000):
        scores = perturbed_model(levels, n_items=n, seed=SEEDS["sample_size"])
        protocol = make_protocol(
            title="noise changes the kind of the worst cases",
            models=sorted(set(scores["model"])),
            mean_margin=0.15,
            tail_margin=0.5,
            engine=engine,
            replicates=replicates,
            scan_quantiles=[0.95, 0.97, 0.99],
        )
        verdict = run_protocol(protocol, scores, exploratory=True)
        runs.append((f"{n} items", verdict))
    first, second = (verdict for _, verdict in runs)
    widest = max(first.pairs, key=lambda pair: abs(pair.difference.estimate))
    names = (widest.model_a, widest.model_b)
    gaps = [abs(verdict.pair(*names).difference.estimate) for verdict in (first, second)]
    return Demonstration(
        name="sample_size",
        title="The illusion of a small sample (G3)",
        truth="one model under four levels of noise; every true difference of shapes is 0",
        runs=tuple(runs),
        findings=(
            f"with 2,000 items the shapes of {names[0]} and {names[1]} seem to differ by "
            f"{gaps[0]:.3f}, the widest of six pairs, and the fits pass G4; G3 kills the claim",
            f"with 30,000 items (still fewer than N* asks for, as G3 says) the difference is "
            f"{gaps[1]:.3f}, {gaps[0] / gaps[1]:.0f} times smaller",
        ),
    )


def _bounded_scores(engine: str, replicates: int) -> Demonstration:
    models = {
        "seldom": TailModel(location=-9.0, spread=1.5, sigmoid=True),
        "sometimes": TailModel(location=-10.0, spread=2.0, sigmoid=True),
        "often": TailModel(location=-2.5, spread=2.0, sigmoid=True),
    }
    scores = simulate_tail_scores(models, n_items=31_400, seed=SEEDS["bounded_scores"])
    runs = []
    for caption, kind in (("raw scores", "none"), ("logit of the scores", "logit")):
        protocol = make_protocol(
            title="a classifier's scores have heavy tails",
            models=list(models),
            mean_margin=0.5,  # wide on purpose: it is the fit that shows
            tail_margin=0.99,
            kind=kind,
            engine=engine,
            replicates=replicates,
            scan_quantiles=[0.95, 0.97, 0.99],
        )
        runs.append((caption, run_protocol(protocol, scores, exploratory=True)))
    raw, logit = ({m: verdict.fits[f"score/{m}"].shape for m in models} for _, verdict in runs)
    return Demonstration(
        name="bounded_scores",
        title="The shadow of a bound (G4)",
        truth="all models have exponential tails (shape 0) on the logit scale",
        runs=tuple(runs),
        findings=(
            f"raw scores: shapes {raw['seldom']:.2f} and {raw['sometimes']:.2f} where few scores "
            f"come near the bound at 1, and {raw['often']:.2f} where many do; all three are made "
            "by the bound, and G4 kills the claim",
            "after the logit the fits pass G4 and the shapes are "
            + ", ".join(f"{shape:.3f}" for shape in logit.values()),
        ),
    )


def _threshold_fishing(engine: str, replicates: int) -> Demonstration:
    models = {
        "plain": TailModel(),
        "dented": TailModel(shape=0.09, tail_from=0.97, dents=((0.9634, 0.97, 2.0),)),
    }
    scores = simulate_tail_scores(models, n_items=157_000, seed=SEEDS["threshold_fishing"])
    protocol = make_protocol(
        title="the dented model's worst cases are of another kind",
        models=list(models),
        mean_margin=0.05,
        tail_margin=0.2,
        quantile=0.97,
        engine=engine,
        replicates=replicates,
        scan_quantiles=[0.95, 0.96, 0.97, 0.98, 0.99],
    )
    verdict = run_protocol(protocol, scores, exploratory=True)
    pair = verdict.pairs[0]
    at = [q for q, word in pair.scan_passes if word == "pass"]
    return Demonstration(
        name="threshold_fishing",
        title="Fishing for a threshold (G5)",
        truth="the dented model's tail has shape 0.09 from the 97 % quantile on, less than the "
        "floor, and is disturbed just below it",
        runs=(("157000 items", verdict),),
        findings=(
            f"of five thresholds {', '.join(f'{q:g}' for q in at) or 'none'} alone passes "
            "everything but G5",
            f"G5: {pair.outcome('G5').sentence}",
        ),
    )


def _true_difference(engine: str, replicates: int) -> Demonstration:
    scale = equal_tail_means(0.25, other_shape=0.0)
    models = {"light": TailModel(), "heavy": TailModel(shape=0.25, tail_scale=scale)}
    scores = simulate_tail_scores(models, n_items=31_400, seed=SEEDS["true_difference"])
    protocol = make_protocol(
        title="the heavy model's worst cases are of another kind",
        models=list(models),
        mean_margin=0.05,
        tail_margin=0.2,
        engine=engine,
        replicates=replicates,
    )
    verdict = run_protocol(protocol, scores, exploratory=True)
    pair = verdict.pairs[0]
    return Demonstration(
        name="true_difference",
        title="A difference that is there (pass)",
        truth="shapes 0 and 0.25, with equal means and equal TVaR",
        runs=(("31400 items", verdict),),
        findings=(
            f"every gate and both criteria are met: shapes {pair.shape_a:.3f} and "
            f"{pair.shape_b:.3f}",
        ),
    )


SEEDS = {"sample_size": 30, "bounded_scores": 1, "threshold_fishing": 33, "true_difference": 1}
_MAKERS: dict[str, Callable[[str, int], Demonstration]] = {
    "sample_size": _sample_size,
    "bounded_scores": _bounded_scores,
    "threshold_fishing": _threshold_fishing,
    "true_difference": _true_difference,
}
