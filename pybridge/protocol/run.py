"""Running a protocol on scores: every gate and criterion of every pair by every scorer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._options import need_kind, yes_or_no
from pybridge._record import FrozenMapping
from pybridge.errors import InputError
from pybridge.protocol._models import ModelTail, model_tails
from pybridge.protocol.gates import (
    above_floor,
    all_outcomes,
    fit_gate,
    intervals_apart,
    sample_size,
)
from pybridge.protocol.outcomes import GateOutcome
from pybridge.protocol.plan import Protocol
from pybridge.protocol.registration import Registration, need_registered
from pybridge.protocol.verdict import PairVerdict, Verdict
from pybridge.provenance import provenance
from pybridge.tables.scores import ScoreTable, score_table
from pybridge.tails._intervals import Interval
from pybridge.tails.bootstrap import percentile_interval
from pybridge.tails.scan import TailScan


def run_protocol(
    protocol: Protocol,
    scores: pd.DataFrame | ScoreTable,
    *,
    registration: str | PathLike[str] | None = None,
    exploratory: bool = False,
) -> Verdict:
    """Compute the verdict on every pair.

    Parameters
    ----------
    protocol : Protocol
    scores : pandas.DataFrame
        Columns model, item, score, and scorer where there are several.
    registration : path, optional
        Default: beside the protocol's file.
    exploratory : bool
        Run without a registration; the result is marked so everywhere.

    Returns
    -------
    Verdict

    Raises
    ------
    InputError
        ``not_registered``, ``protocol_differs``, ``registration_edited``, ``bad_clock``; scores
        that cannot be used; ``model_missing``, ``scorer_missing``; ``unequal_items`` where items
        were registered as shared and are not.
    EngineUnavailable
        Without R, if the engine is R's.
    """
    need_kind("protocol", protocol, Protocol, "load_protocol")
    found: Registration | None = None
    if not yes_or_no("exploratory", exploratory):
        found = need_registered(protocol, registration)
    table = score_table(scores)
    _need_everything(protocol, table)
    pairs: list[PairVerdict] = []
    label = "EXPLORATORY" if exploratory else "registered"
    fits, scans, findings = {}, {}, {}
    versions: dict[str, str] = {}
    for scorer in protocol.scorers:
        plan = protocol.for_scorer(scorer)
        tails = model_tails(plan, table, scorer)
        for a, b in plan.model_pairs:
            paired = plan.pairing != "none" and table.shares_items([a, b], scorer)
            pairs.append(_pair(plan, scorer, tails[a], tails[b], paired, label))
        scans[scorer] = _scan(plan, list(tails.values()))
        fits.update({f"{scorer}/{model}": tail.fit for model, tail in tails.items()})
        findings.update({f"{scorer}/{model}": tail.findings for model, tail in tails.items()})
        for tail in tails.values():
            versions.update(tail.fit.provenance.packages)
            if tail.fit.provenance.r:
                versions["R"] = tail.fit.provenance.r
    return Verdict(
        pairs=tuple(pairs),
        exploratory=exploratory,
        protocol=FrozenMapping(protocol.canonical()),
        protocol_sha256=protocol.sha256(),
        registered_at="" if found is None else found.registered_at,
        data_sha256=table.sha256(),
        fits=FrozenMapping(fits),
        scans=FrozenMapping(scans),
        findings=FrozenMapping(findings),
        provenance=provenance(
            protocol.engine,
            "tail-shape protocol",
            options={"refits": "native", "run": "exploratory" if exploratory else "registered"},
            seed=protocol.seed,
            versions=versions,
        ),
    )


def _need_everything(protocol: Protocol, table: ScoreTable) -> None:
    """Every model and scorer of the plan is there, and items are shared where they must be."""
    for field, wanted, there in (
        ("scorer", protocol.scorers, table.scorers),
        ("model", protocol.models, table.models),
    ):
        absent = [name for name in wanted if name not in there]
        if absent:
            raise InputError(
                f"the scores lack a registered {field}: {listed(absent)}",
                code=f"{field}_missing",
                field=field,
                expected=listed(wanted, most=12),
                got=listed(there, most=12),
            )
    for scorer in protocol.scorers:
        for model in protocol.models:
            table.scores(model, scorer)
        if protocol.pairing != "items":
            continue
        for a, b in protocol.model_pairs:
            only = table.unshared(a, b, scorer) if not table.shares_items([a, b], scorer) else ()
            if only:
                raise InputError(
                    f"{a} and {b} were registered as answering the same items, and do not",
                    code="unequal_items",
                    field="item",
                    expected="the same items for both",
                    got=f"{len(only)} items of one only: {listed(only)}",
                )


def _pair(
    plan: Protocol, scorer: str, a: ModelTail, b: ModelTail, paired: bool, label: str
) -> PairVerdict:
    outcomes = all_outcomes(plan, a, b)
    first = next((one.gate for one in outcomes if not one.passed), "")
    low, high = percentile_interval(a.shapes - b.shapes, plan.level)
    kind = "paired resampling" if paired else "resampling"
    what = f"difference of shapes, {a.model} - {b.model}"
    passes = _scan_passes(plan, a, b, outcomes)
    estimate = a.fit.shape - b.fit.shape if a.fit.usable and b.fit.usable else math.nan
    return PairVerdict(
        scorer=scorer,
        model_a=a.model,
        model_b=b.model,
        verdict="KILL" if first else "PASS",
        first_failure=first,
        outcomes=outcomes,
        paired=paired,
        shape_a=a.fit.shape,
        shape_b=b.fit.shape,
        difference=Interval(what, estimate, low, high, plan.level, kind),
        scan_passes=passes,
        fishing=_fishing(plan, outcomes, passes),
        run=label,
    )


def _scan_passes(
    plan: Protocol, a: ModelTail, b: ModelTail, outcomes: Sequence[GateOutcome]
) -> tuple[tuple[float, str], ...]:
    """What the pair would get, but for G5, with each quantile of the scan."""
    equivalent = outcomes[0].passed and outcomes[1].passed
    names = (a.model, b.model)
    out = []
    for k, q in enumerate(plan.scan_quantiles):
        fits = (a.scan[k], b.scan[k])
        p_values = (a.scan_p_values[k], b.scan_p_values[k])
        shapes = (a.scan_shapes[k], b.scan_shapes[k])
        enough = sample_size(plan, names, fits).passed
        others = (
            fit_gate(names, fits, p_values, plan.fit_alpha),
            intervals_apart(names, shapes, plan.level),
            above_floor(fits, plan.floor),
        )
        met = equivalent and all(one.passed for one in others)
        out.append((q, ("pass" if met else "fail") if enough else "too few"))
    return tuple(out)


def _fishing(
    plan: Protocol, outcomes: Sequence[GateOutcome], passes: Sequence[tuple[float, str]]
) -> str:
    """The warning, where a pass depends on the threshold; those with too few scores say nothing."""
    judged = [q for q, word in passes if word != "too few"]
    at = [q for q, word in passes if word == "pass"]
    failed = [one.gate for one in outcomes if not one.passed]
    if len(at) == 1 and len(judged) > 1:
        return (
            f"threshold fishing: of {len(judged)} thresholds with enough exceedances only "
            f"{at[0]:g} passes everything but G5"
        )
    if failed == ["G5"]:
        return (
            f"threshold fishing: the registered quantile {plan.quantile:g} passes everything, and "
            "its shape does not last over the window of G5"
        )
    return ""


def _scan(plan: Protocol, tails: Sequence[ModelTail]) -> TailScan:
    """The registered grid, with the percentile intervals of the same resamples."""
    fits = [fit for tail in tails for fit in tail.scan]
    ends = [percentile_interval(row, plan.level) for tail in tails for row in tail.scan_shapes]
    errors = []
    for fit in fits:
        u, v = fit.threshold, fit.covariance
        square = v[0, 0] + u * u * v[1, 1] - 2.0 * u * v[0, 1]
        errors.append(math.sqrt(square) if square >= 0 else math.nan)
    return TailScan(
        model=np.array([tail.model for tail in tails for _ in tail.scan], dtype=object),
        quantile=np.array([*plan.scan_quantiles] * len(tails)),
        interval="bootstrap",
        level=plan.level,
        engine=plan.engine,
        lower=np.array([low for low, _ in ends]),
        upper=np.array([high for _, high in ends]),
        modified_scale_standard_error=np.array(errors),
        anderson_darling_p=np.array([p for tail in tails for p in tail.scan_p_values]),
        **_columns(fits),
    )


def _columns(fits: Sequence[Any]) -> dict[str, np.ndarray]:
    names = ("threshold", "n_exceedances", "shape", "shape_standard_error", "scale")
    out = {name: np.array([getattr(fit, name) for fit in fits]) for name in names}
    out["modified_scale"] = out["scale"] - out["shape"] * out["threshold"]
    out["status"] = np.array([fit.status for fit in fits], dtype=object)
    return out
