"""The gates G3 to G5 and the criteria P1 and P2, from what was computed for two models."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pybridge.protocol._models import ModelTail
from pybridge.protocol.outcomes import GateOutcome, equivalence, joined, outcome
from pybridge.protocol.plan import Protocol
from pybridge.tails.bootstrap import percentile_interval
from pybridge.tails.records import ParetoFit


def all_outcomes(plan: Protocol, a: ModelTail, b: ModelTail) -> tuple[GateOutcome, ...]:
    """G1 to G5, P1 and P2 of one pair, every one computed whatever the others say.

    Parameters
    ----------
    plan : Protocol
        With the values of the scorer in place.
    """
    g1 = equivalence(
        "G1",
        "means",
        replicates=a.means - b.means,
        estimate=a.mean - b.mean,
        margin=plan.mean_margin,
        level=plan.level,
    )
    g2 = equivalence(
        "G2",
        f"TVaR at {plan.tail_quantile:g}",
        replicates=a.tail_means - b.tail_means,
        estimate=a.tail_mean - b.tail_mean,
        margin=plan.tail_margin,
        level=plan.level,
    )
    fits, names = (a.fit, b.fit), (a.model, b.model)
    return (
        g1,
        g2,
        sample_size(plan, names, fits),
        fit_gate(names, fits, (a.p_value, b.p_value), plan.fit_alpha),
        stability(plan, a, b),
        intervals_apart(names, (a.shapes, b.shapes), plan.level),
        above_floor(fits, plan.floor),
    )


def sample_size(plan: Protocol, names: Sequence[str], fits: Sequence[ParetoFit]) -> GateOutcome:
    """G3: both models have at least N* exceedances, and a shape to which N* applies."""
    needed = plan.required_exceedances
    counts = [fit.n_exceedances for fit in fits]
    enough = min(counts) >= needed
    what = (
        f"power {plan.power:g} for a difference of {plan.difference:g} asks for {needed} "
        f"exceedances a model; there are {joined(list(zip(names, counts)))}"
    )
    outside = [n for n, fit in zip(names, fits) if fit.shape <= -0.5]
    if enough and outside:
        what += (
            f". The count means nothing for {' and '.join(outside)}: Smith's asymptotics hold for "
            "shapes above -1/2"
        )
    return outcome("G3", enough and not outside, what, observed=min(counts), limit=needed)


def fit_gate(
    names: Sequence[str], fits: Sequence[ParetoFit], p_values: Sequence[float], alpha: float
) -> GateOutcome:
    """G4: the Anderson–Darling p exceeds alpha for both; a fit that is none fails."""
    without = [f"{n} ({fit.status})" for n, fit in zip(names, fits) if not fit.usable]
    if without:
        observed = min((p for p in p_values if not math.isnan(p)), default=math.nan)
        sentence = f"there is no fit to test for {' and '.join(without)}"
        return outcome("G4", False, sentence, observed=observed, limit=alpha)
    shown = joined([(n, f"{p:.3g}") for n, p in zip(names, p_values)])
    passed = min(p_values) > alpha
    words = "above" if passed else "not above"
    sentence = f"Anderson–Darling p-values {shown}; the smaller is {words} {alpha:g}"
    return outcome("G4", passed, sentence, observed=min(p_values), limit=alpha)


def stability(plan: Protocol, a: ModelTail, b: ModelTail) -> GateOutcome:
    """G5: the shape's range over the window is at most the tolerance, for both."""
    low, high = plan.quantile - plan.half_width, plan.quantile + plan.half_width
    window = f"over {plan.points} quantiles from {low:g} to {high:g}"
    worst: tuple[float, float] = (math.nan, math.nan)
    parts, passed = [], True
    for one in (a, b):
        if not all(fit.usable for fit in one.window) or math.isnan(one.tolerance):
            bad = next((f.status for f in one.window if not f.usable), one.fit.status)
            parts.append(f"{one.model} has no usable fit at every one of them ({bad})")
            passed = False
            continue
        shapes = [fit.shape for fit in one.window]
        spread = max(shapes) - min(shapes)
        parts.append(
            f"{one.model}: {min(shapes):.3f} to {max(shapes):.3f}, range {spread:.3f} against "
            f"{one.tolerance:.3f}"
        )
        passed = passed and spread <= one.tolerance
        if not worst[0] - worst[1] > spread - one.tolerance:
            worst = (spread, one.tolerance)
    how = "calibrated" if plan.tolerance == "calibrated" else "registered"
    sentence = f"shapes {window}: {'; '.join(parts)} ({how} tolerance)"
    return outcome("G5", passed, sentence, observed=worst[0], limit=worst[1])


def intervals_apart(
    names: Sequence[str], shapes: Sequence[np.ndarray], level: float
) -> GateOutcome:
    """P1: the percentile intervals of the two shapes do not overlap."""
    ends = [percentile_interval(values, level) for values in shapes]
    if any(math.isnan(end) for pair in ends for end in pair):
        return outcome("P1", None, "a model has no bootstrap interval of its shape", limit=0.0)
    gap = max(ends[0][0] - ends[1][1], ends[1][0] - ends[0][1])
    shown = joined([(n, f"[{low:.3f}, {high:.3f}]") for n, (low, high) in zip(names, ends)])
    words = "do not overlap" if gap > 0 else "overlap"
    sentence = f"{level:.0%} bootstrap intervals of the shapes {words}: {shown}"
    return outcome("P1", gap > 0, sentence, observed=gap, limit=0.0)


def above_floor(fits: Sequence[ParetoFit], floor: float) -> GateOutcome:
    """P2: the absolute difference of the estimated shapes exceeds the floor."""
    gap = abs(fits[0].shape - fits[1].shape)
    if math.isnan(gap) or not all(fit.usable for fit in fits):
        return outcome("P2", None, "a model has no estimate of its shape", limit=floor)
    words = "exceeds" if gap > floor else "does not exceed"
    sentence = (
        f"|{fits[0].shape:.3f} - {fits[1].shape:.3f}| = {gap:.3f} {words} the floor of {floor:g}"
    )
    return outcome("P2", gap > floor, sentence, observed=gap, limit=floor)
