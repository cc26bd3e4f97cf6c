"""Adapter of R's rjags: the taxonomy model by JAGS's Gibbs sampler.

The prior is the native one, except that JAGS needs a proper prior for the coefficients: normal
with a standard deviation of 10^4 working units (a unit is the root of the median sampling
variance, in which JAGS is given the data). The chains are summarised in R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._checks import listed
from pybridge._options import check_level, real_number, whole_number
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.smoothing._batches import in_one_call, numbered_levels
from pybridge.smoothing._bayes_input import need_enough
from pybridge.smoothing._spec import refuse_options
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_record import LevelEffects, TaxonomyPosterior
from pybridge.smoothing._taxonomy_spec import TaxonomyAnswer, TaxonomySpec
from pybridge.tables.area import AreaTable

if TYPE_CHECKING:
    from pybridge.r import Reply

_DEFAULTS = {"n_chains": 4, "n_adapt": 1000, "n_burn": 2000, "n_draws": 5000, "thin": 1}
_DIFFUSE = 1e-8
_WORST_R_HAT = 1.05
_SMALLEST_SIZE = 200.0


def complete_options(given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Chains, draws thrown away and kept, thinning, and a time limit in seconds."""
    refuse_options(given, (*_DEFAULTS, "time_limit"), engine="rjags")
    options: dict[str, Any] = {
        name: whole_number(name, given.get(name, default), least=0 if name == "n_burn" else 1)
        for name, default in _DEFAULTS.items()
    }
    limit = given.get("time_limit")
    options["time_limit"] = None if limit is None else real_number("time_limit", limit)
    return options


def fit(area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec) -> TaxonomyAnswer:
    """Fit one checked table; R's warnings become Python's.

    Raises
    ------
    InputError
        Sampling variances of 0, which JAGS has no density for.
    EngineUnavailable, EngineError
    """
    from pybridge.r import call

    prior, unit = _prior_and_unit(area, levels, spec)
    reply = call(
        "rjags_taxonomy",
        _inputs(area, levels, spec, prior, unit),
        packages=("rjags", "coda"),
        time_limit=spec.options["time_limit"],
    )
    reply.warn("rjags", stacklevel=3)
    return _read(area, levels, spec, reply)


def fit_many(
    problems: Sequence[AreaProblem],
    *,
    levels: Sequence[np.ndarray],
    level: float = 0.95,
    seed: int = 1,
    prior: TaxonomyPrior | None = None,
    **engine_options: Any,
) -> list[Any]:
    """Sample several posteriors on one taxonomy in one round trip to R.

    Parameters
    ----------
    problems : sequence of AreaProblem
    levels : R arrays (m,)
        Codes of the groups, coarse to fine; the last one is the domain itself.
    level, seed, prior
        As in `taxonomy_model`; the chains of every problem start from the same seed.

    Returns
    -------
    list
        A TaxonomyAnswer for each problem, or the error of one that cannot be fitted.
    """
    from pybridge.r import call_many

    options = complete_options(engine_options, "bayes")
    spec = TaxonomySpec(
        engine="rjags",
        method="bayes",
        level=check_level(level),
        seed=seed,
        prior=prior,
        options=options,
    )
    taxonomy = numbered_levels(levels)
    packages = ("rjags", "coda")
    return in_one_call(
        problems,
        inputs=lambda area: _inputs(area, taxonomy, spec, *_prior_and_unit(area, taxonomy, spec)),
        call=lambda items: call_many(
            "rjags_taxonomy", items, packages=packages, time_limit=options["time_limit"]
        ),
        read=lambda area, reply: _read(area, taxonomy, spec, reply),
    )


def _prior_and_unit(
    area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec
) -> tuple[TaxonomyPrior, float]:
    """The prior, and the unit in which JAGS gets the data; refused where it cannot take them."""
    seen = area.sampled
    need_enough(int(seen.sum()), area.covariates.shape[1])
    census = seen & (area.variance == 0.0)
    if census.any():
        raise InputError(
            "JAGS cannot take sampling variances of 0",
            code="census_not_supported",
            field="variance",
            expected="variances above 0",
            got=f"0 in domains {listed(area.domains[census])}",
            hint="engine='native' takes them.",
        )
    residual = area.estimate[seen] - np.mean(area.estimate[seen])
    prior = spec.prior or TaxonomyPrior.default(
        area.variance[seen], residual=residual, depth=len(levels.names)
    )
    return prior, float(np.sqrt(np.median(area.variance[seen])))


def chains_of(
    area: AreaTable,
    levels: TaxonomyLevels,
    spec: TaxonomySpec,
    prior: TaxonomyPrior | None,
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], float]:
    """What JAGS is asked for a fit, also for one that it did not make; and its unit."""
    seed = 1 if spec.seed is None else spec.seed
    asked = replace(spec, prior=prior, options=dict(options), seed=seed)
    prior, unit = _prior_and_unit(area, levels, asked)
    return _inputs(area, levels, asked, prior, unit), unit


def _read(
    area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec, reply: Reply
) -> TaxonomyAnswer:
    numbers = _numbers(area, levels, *_prior_and_unit(area, levels, spec), reply.value)
    said = tuple(f"R warning: {text.strip()}" for text in reply.warnings)
    return TaxonomyAnswer(
        numbers=numbers,
        engine_status=numbers.status,
        conditions=said,
        versions=dict(reply.versions),
    )


def _inputs(
    area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec, prior: TaxonomyPrior, unit: float
) -> dict[str, Any]:
    """The named list that the shim takes, in working units."""
    seen = area.sampled
    shape, scale = prior.arrays(len(levels.names))
    half = 0.5 * (1.0 - spec.level)
    words = {name: float(spec.options[name]) for name in _DEFAULTS}
    seed = (
        spec.seed if spec.seed is not None else int(np.random.default_rng().integers(2**31 - 99))
    )
    return {
        "estimate": area.estimate[seen] / unit,
        "variance": area.variance[seen] / unit / unit,
        "place": np.flatnonzero(seen) + 1.0,
        "covariates": area.covariates,
        "levels": {
            f"level{place + 1}": codes + 1.0 for place, codes in enumerate(levels.codes[:-1])
        },
        "shape": shape,
        "rate": scale / unit / unit,
        "diffuse": _DIFFUSE,
        "tails": np.array([half, 1.0 - half]),
        "seed": float(seed),
        **words,
    }


def _numbers(
    area: AreaTable,
    levels: TaxonomyLevels,
    prior: TaxonomyPrior,
    unit: float,
    value: Mapping[str, Any],
) -> TaxonomyPosterior:
    """The record, back in the user's units."""
    p = area.covariates.shape[1]
    seen = area.sampled
    mse = np.array(value["mse"]) * unit**2
    effects = [
        _effects(value["effects"][f"level{place + 1}"], unit)
        for place in range(len(levels.names) - 1)
    ]
    # Every domain is a group of the finest level; its code is not its row.
    order = np.argsort(levels.codes[-1])
    own = {"mean": value["own"][order], "standard_error": value["own_error"][order]}
    effects.append(_effects(own, unit))
    r_hat, size = np.array(value["r_hat"]), np.array(value["effective_size"])
    bad = bool((r_hat > _WORST_R_HAT).any() or (size < _SMALLEST_SIZE).any())
    few = int(seen.sum()) <= p + 5
    return TaxonomyPosterior(
        model_variance=float(value["median"][-1]) * unit**2,
        model_variances=np.array(value["median"]) * unit**2,
        model_variance_means=np.array(value["mean"]) * unit**2,
        coefficients=np.array(value["beta"]) * unit,
        coefficient_covariance=np.array(value["vb"]).reshape(p, p) * unit**2,
        estimate=np.array(value["estimate"]) * unit,
        mse=mse,
        shrinkage=np.array(value["shrinkage"]),
        synthetic=np.array(value["synthetic"]) * unit,
        derivative=np.divide(mse, area.variance, out=np.zeros_like(mse), where=seen),
        lower=np.array(value["lower"]) * unit,
        upper=np.array(value["upper"]) * unit,
        effects=tuple(effects),
        prior=prior,
        integration="rjags",
        n_nodes=int(value["n_draws"][0]),
        accuracy=float("nan"),
        r_hat=r_hat,
        effective_size=size,
        status="not_converged" if bad else "weak_identification" if few else "converged",
    )


def _effects(value: Mapping[str, Any], unit: float) -> LevelEffects:
    mean = np.array(value["mean"]) * unit
    error = np.array(value["standard_error"]) * unit
    return LevelEffects(codes=np.arange(mean.size), mean=mean, standard_error=error)
