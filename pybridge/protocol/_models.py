"""What the gates need of every model of one scorer: fits, a test, resamples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pybridge.protocol._resampling import Resamples, Target, resample_group
from pybridge.protocol.plan import Protocol
from pybridge.tables.scores import ScoreTable
from pybridge.tails._batch import refit_rows
from pybridge.tails._distribution import draw_sorted
from pybridge.tails._streams import stream
from pybridge.tails.dependence import label_order
from pybridge.tails.diagnosis import diagnose_scores
from pybridge.tails.generalized_pareto import fit_many
from pybridge.tails.goodness import goodness_of_fit, table_reaches
from pybridge.tails.records import ParetoFit
from pybridge.tails.tail_means import tail_value_at_risk


class ModelTail(NamedTuple):
    """One model by one scorer.

    Attributes
    ----------
    fit, window, scan : fits at the registered quantile, over G5's window, over the scan's grid
    p_value, scan_p_values : Anderson–Darling p-values
    tolerance : of G5, a number
    mean, tail_mean : on the scale of the equivalence gates
    means, tail_means, shapes : (B,) resamples
    scan_shapes : (k, B)
    findings : what is odd about the scores, a code and a sentence each
    """

    model: str
    fit: ParetoFit
    window: tuple[ParetoFit, ...]
    scan: tuple[ParetoFit, ...]
    p_value: float
    scan_p_values: tuple[float, ...]
    tolerance: float
    mean: float
    tail_mean: float
    means: np.ndarray
    tail_means: np.ndarray
    shapes: np.ndarray
    scan_shapes: np.ndarray
    findings: tuple[tuple[str, str], ...]


def model_tails(plan: Protocol, table: ScoreTable, scorer: str) -> dict[str, ModelTail]:
    """Everything about every model of the plan, by one scorer.

    Parameters
    ----------
    plan : Protocol
        With the values of the scorer in place.
    """
    raw = {model: table.scores(model, scorer) for model in plan.models}
    moved = {model: plan.transform.apply(values, field=model) for model, values in raw.items()}
    grid = [plan.quantile, *window_quantiles(plan), *plan.scan_quantiles]
    tasks = [
        (moved[model], {"quantile": q, "allow_none": True}) for model in plan.models for q in grid
    ]
    fits = fit_many(tasks, engine=plan.engine, level=plan.level, options={})
    by_model = {m: fits[i * len(grid) : (i + 1) * len(grid)] for i, m in enumerate(plan.models)}
    resamples = _resamples(plan, table, scorer, raw, moved, by_model)
    out = {}
    for model in plan.models:
        fit, *others = by_model[model]
        window, scan = tuple(others[: plan.points]), tuple(others[plan.points :])
        scale = raw[model] if plan.equivalence_scale == "raw" else moved[model]
        found = resamples[model]
        out[model] = ModelTail(
            model=model,
            fit=fit,
            window=window,
            scan=scan,
            p_value=_p_value(fit, plan.fit_method, plan.fit_replicates, plan.seed, model),
            scan_p_values=tuple(_p_value(f, "table", 199, plan.seed, model) for f in scan),
            tolerance=_tolerance(plan, fit, window, scorer, model),
            mean=float(scale.mean()),
            tail_mean=tail_value_at_risk(scale, quantile=plan.tail_quantile),
            means=found.means,
            tail_means=found.tail_means,
            shapes=found.shapes[0],
            scan_shapes=found.shapes[1:],
            findings=_findings(moved[model], table.items[scorer, model], fit),
        )
    return out


def _findings(scores: np.ndarray, items: np.ndarray, fit: ParetoFit) -> tuple[tuple[str, str], ...]:
    """What is odd about the transformed scores, those of the items in the order of their labels."""
    if fit.n_exceedances == 0:
        text = f"no score lies above the threshold {fit.threshold:g}, which is the largest"
        return (("no_exceedances", text),)
    ordered = scores[label_order(items)]
    return diagnose_scores(ordered, threshold=fit.threshold, ordered=True).findings


def window_quantiles(plan: Protocol) -> list[float]:
    """The grid of G5."""
    ends = plan.quantile - plan.half_width, plan.quantile + plan.half_width
    return [float(q) for q in np.linspace(*ends, plan.points)]


def groups(plan: Protocol, table: ScoreTable, scorer: str) -> list[list[str]]:
    """Models that are resampled together, because they have the same items."""
    if plan.pairing == "none":
        return [[model] for model in plan.models]
    out: list[list[str]] = []
    for model in plan.models:
        for group in out:
            if table.shares_items([group[0], model], scorer):
                group.append(model)
                break
        else:
            out.append([model])
    return out


def _resamples(
    plan: Protocol,
    table: ScoreTable,
    scorer: str,
    raw: dict[str, np.ndarray],
    moved: dict[str, np.ndarray],
    fits: dict[str, list[ParetoFit]],
) -> dict[str, Resamples]:
    out: dict[str, Resamples] = {}
    for group in groups(plan, table, scorer):
        # Models with the same items share the resampled items; the stream is that of the first,
        # so that a model without company keeps its numbers whatever is beside it.
        rng = stream(plan.seed, "resamples", scorer, group[0])
        targets = [
            Target(
                values=raw[m] if plan.equivalence_scale == "raw" else moved[m],
                transformed=moved[m],
                fits=tuple([fits[m][0], *fits[m][1 + plan.points :]]),
            )
            for m in group
        ]
        found = resample_group(
            targets=targets,
            replicates=plan.replicates,
            tail_quantile=plan.tail_quantile,
            rng=rng,
        )
        out.update(zip(group, found))
    return out


def _p_value(fit: ParetoFit, method: str, replicates: int, seed: int, label: str) -> float:
    if not fit.usable:
        return math.nan
    if method == "table" and not table_reaches(shape=fit.shape, n=fit.n_exceedances):
        method = "bootstrap"
    test = goodness_of_fit(fit, method=method, replicates=replicates, seed=seed)
    return test.anderson_darling_p


def _tolerance(
    plan: Protocol, fit: ParetoFit, window: Sequence[ParetoFit], scorer: str, model: str
) -> float:
    if not isinstance(plan.tolerance, str):
        return plan.tolerance
    if not fit.usable or not all(one.usable for one in window):
        return math.nan
    return calibrated_tolerance(
        shape=fit.shape,
        counts=[one.n_exceedances for one in window],
        replicates=max(plan.fit_replicates, 199),
        level=0.95,
        rng=stream(plan.seed, "tolerance", scorer, model),
    )


def calibrated_tolerance(
    *,
    shape: float,
    counts: Sequence[int],
    replicates: int,
    level: float,
    rng: np.random.Generator,
) -> float:
    """The quantile of the shape's range over the window, under the fitted distribution.

    Above any threshold a generalised Pareto distribution keeps its shape, so samples of as many
    excesses as lie over the lowest threshold are drawn, and at each threshold the same number of
    largest values as in the data is fitted.

    Parameters
    ----------
    counts : exceedances at each threshold of the window
    """
    most = max(counts)
    per_block = max(1, (1 << 18) // most)
    ranges = []
    for start in range(0, replicates, per_block):
        rows = min(per_block, replicates - start)
        x = draw_sorted(rng=rng, n_rows=rows, n=most, shape=shape, scale=1.0)
        shapes = []
        for n in sorted(set(counts)):
            cut = x[:, most - n - 1][:, np.newaxis] if n < most else 0.0
            shapes.append(refit_rows(excesses=x[:, most - n :] - cut).shape)
        ranges.append(np.ptp(np.stack(shapes), axis=0))
    return float(np.quantile(np.concatenate(ranges), level))
