"""Adapter of R's metafor: the taxonomy model by rma.mv, REML and ML.

rma.mv works with domains by domains matrices (or sparse ones), stops about 2e-5 short of the
optimum by default and has neither predictions for unlabelled domains nor a second-order mean
squared error. Its variances, coefficients, effects and log-likelihood are taken as they are; the
rest is computed here at its variances. The exact optimum is computed beside it and named where
rma.mv fell short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._options import check_level
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaProblem, standard_errors
from pybridge.smoothing._batches import in_one_call, numbered_levels
from pybridge.smoothing._bayes_input import need_enough
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_record import LevelEffects, TaxonomyEstimate
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood, taxonomy_at
from pybridge.smoothing._taxonomy_spec import TaxonomyAnswer, TaxonomySpec, arrays
from pybridge.tables.area import AreaTable

if TYPE_CHECKING:
    from pybridge.r import Reply

# What rma.mv's default stopping rule leaves is smaller; beyond this it stopped elsewhere.
_SHORTFALL = 1e-4
# A variance below this share of the largest is metafor's way to say 0: its search is in logs.
_ZERO = 1e-7


def complete_options(given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """``sparse``, ``time_limit``; everything else goes into rma.mv's ``control``."""
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str)) and value is not None:
            raise InputError(
                f"the option {name!r} must be a number, a word or a logical",
                code="unknown_option",
                field=name,
                expected="an entry of metafor's control list",
                got=value,
            )
    options = dict(given)
    options.setdefault("sparse", False)
    options.setdefault("time_limit", None)
    return options


def fit(area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec) -> TaxonomyAnswer:
    """Fit one checked table; R's warnings become Python's.

    Raises
    ------
    EngineUnavailable, EngineError
    """
    from pybridge.r import call

    reply = call(
        "metafor_taxonomy",
        _inputs(area, levels, spec),
        packages=("metafor",),
        time_limit=spec.options["time_limit"],
    )
    reply.warn("metafor", stacklevel=3)
    return _read(area, levels, spec, reply)


def fit_many(
    problems: Sequence[AreaProblem],
    *,
    levels: Sequence[np.ndarray],
    method: str = "REML",
    level: float = 0.95,
    **engine_options: Any,
) -> list[Any]:
    """Fit several problems on one taxonomy in one round trip to R.

    Parameters
    ----------
    problems : sequence of AreaProblem
    levels : R arrays (m,)
        Codes of the groups, coarse to fine; the last one is the domain itself.
    method, level
        As in `taxonomy_model`.

    Returns
    -------
    list
        A TaxonomyAnswer for each problem, or the error of one that cannot be fitted.
    """
    from pybridge.r import call_many

    options = complete_options(engine_options, method)
    spec = TaxonomySpec(engine="metafor", method=method, level=check_level(level), options=options)
    taxonomy = numbered_levels(levels)
    return in_one_call(
        problems,
        inputs=lambda area: _inputs(area, taxonomy, spec),
        call=lambda items: call_many(
            "metafor_taxonomy", items, packages=("metafor",), time_limit=options["time_limit"]
        ),
        read=lambda area, reply: _read(area, taxonomy, spec, reply),
    )


def _inputs(area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec) -> dict[str, Any]:
    """The named list that the shim takes."""
    seen = area.sampled
    need_enough(int(seen.sum()), area.covariates.shape[1])
    return {
        "estimate": area.estimate[seen],
        "variance": area.variance[seen],
        "covariates": area.covariates[seen],
        "levels": {
            f"level{place + 1}": (codes[seen] + 1).astype(np.float64)
            for place, codes in enumerate(levels.codes)
        },
        "method": spec.method,
        "sparse": bool(spec.options["sparse"]),
        "control": {k: v for k, v in spec.options.items() if k not in ("sparse", "time_limit")},
    }


def _read(
    area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec, reply: Reply
) -> TaxonomyAnswer:
    said = tuple(f"R warning: {text.strip()}" for text in reply.warnings)
    return _answer(area, levels, spec, reply.value, said, dict(reply.versions))


def _answer(
    area: AreaTable,
    levels: TaxonomyLevels,
    spec: TaxonomySpec,
    value: Mapping[str, Any],
    said: tuple[str, ...],
    versions: dict[str, str],
) -> TaxonomyAnswer:
    numbers = arrays(area, levels)
    words: dict[str, Any] = {"method": spec.method, "level": spec.level}
    found = np.array(value["variances"])
    base = taxonomy_at(found, **numbers, **words)
    exact = fit_taxonomy_likelihood(**numbers, **words)
    which = "restricted_log_likelihood" if spec.method == "REML" else "log_likelihood"
    shortfall = getattr(exact, which) - getattr(base, which)
    status = exact.status
    if status == "converged" and (found <= _ZERO * max(float(found.max()), 1e-300)).any():
        status = "boundary"
    if shortfall > _SHORTFALL:
        status = "not_converged"
        said += (
            f"metafor's log-likelihood is {shortfall:.3g} below the optimum, which has variances "
            f"{', '.join(f'{v:.6g}' for v in exact.model_variances)} (engine='native' fits there)",
        )
    said += ("mean squared errors by pybridge at metafor's variances: metafor has none",)
    taken = _engine_numbers(area, levels, value, base, spec, which)
    return TaxonomyAnswer(
        numbers=replace(taken, status=status),
        engine_status="converged",
        conditions=said,
        versions=versions,
    )


def _engine_numbers(
    area: AreaTable,
    levels: TaxonomyLevels,
    value: Mapping[str, Any],
    base: TaxonomyEstimate,
    spec: TaxonomySpec,
    which: str,
) -> TaxonomyEstimate:
    """metafor's own coefficients, effects and log-likelihood in the record."""
    beta = np.array(value["beta"])
    estimate = area.covariates @ beta
    synthetic = estimate
    effects = []
    for place, own in enumerate(base.effects):
        said = value["effects"][f"level{place + 1}"]
        # Groups without labelled domains are unknown to metafor: effect 0, its prior variance.
        mean, error = np.zeros(levels.sizes[place]), np.full(levels.sizes[place], np.nan)
        error[own.codes] = own.standard_error
        code = np.asarray(said["code"], dtype=np.intp) - 1
        mean[code] = said["effect"]
        error[code] = said["standard_error"]
        synthetic = estimate
        estimate = estimate + mean[levels.codes[place]]
        effects.append(
            LevelEffects(codes=own.codes, mean=mean[own.codes], standard_error=error[own.codes])
        )
    half = NormalDist().inv_cdf(0.5 + spec.level / 2.0) * standard_errors(base.mse)
    variances = np.array(value["variances"])  # to the last bit: those of the base went to units
    changed: dict[str, Any] = {which: float(value["log_likelihood"][0])}
    return replace(
        base,
        model_variance=float(variances[-1]),
        model_variances=variances,
        coefficients=beta,
        coefficient_covariance=np.array(value["vb"]).reshape(beta.size, beta.size),
        estimate=estimate,
        synthetic=synthetic,
        lower=estimate - half,
        upper=estimate + half,
        effects=tuple(effects),
        **changed,
    )
