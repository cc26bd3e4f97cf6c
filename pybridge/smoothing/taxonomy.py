"""The public entry of the taxonomy model: one request, checked, to one engine."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pybridge._checks import need_frame
from pybridge._options import check_level, choose, real_number, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.smoothing._bayes_input import need_enough
from pybridge.smoothing._taxonomy_levels import taxonomy_levels
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior, default_shapes, prior_from_factor
from pybridge.smoothing._taxonomy_spec import TaxonomySpec
from pybridge.smoothing.taxonomy_fit import TaxonomyFit
from pybridge.tables.area import AreaTable, area_table
from pybridge.tables.area_join import with_covariates

# Engine, its methods, and the module with complete_options(given, method) and fit(...).
ENGINES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "native": (("bayes", "REML", "ML"), "pybridge.smoothing._taxonomy_native"),
    "rjags": (("bayes",), "pybridge.smoothing._rjags"),
    "metafor": (("REML", "ML"), "pybridge.smoothing._metafor"),
}

__all__ = ["TaxonomyFit", "TaxonomyPrior", "taxonomy_model"]


def taxonomy_model(
    formula: str,
    area: pd.DataFrame,
    *,
    variance: str = "variance",
    levels: Sequence[str],
    covariates: pd.DataFrame | None = None,
    engine: str = "native",
    method: str = "bayes",
    prior: TaxonomyPrior | Mapping[str, Any] | None = None,
    level: float = 0.95,
    seed: int | None = None,
    **engine_options: Any,
) -> TaxonomyFit:
    """Smooth direct domain estimates with effects at every level of a taxonomy.

    z_i ~ N(θ_i, d_i), θ_i = x_i'β + Σ_r v^(r), v^(r) ~ N(0, σ_r²) for the groups of level r that
    hold domain i: domains borrow from the regression, and from the groups they lie in.

    Parameters
    ----------
    formula : str
        ``"estimate ~ f"``: the column of direct estimates (empty where a domain has none), then
        covariates in patsy's words.
    area : pandas.DataFrame
        One row a domain. A record with ``to_frame()`` will do.
    variance : str
        Column of the sampling variances; 0 for a domain observed in full.
    levels : sequence of str
        Columns of the taxonomy, coarse to fine, the last one the domain itself:
        ``["region", "county"]``.
    covariates : pandas.DataFrame, optional
        Further columns from a table of their own, one row a domain, labels in the last level's
        column.
    engine : {"native", "rjags", "metafor"}
        Who computes. Never one in place of the other.
    method : {"bayes", "REML", "ML"}
        ``bayes``: flat prior on β, inverse-gamma priors on the variances, posterior means and
        exact quantiles (native: quadrature for up to three levels, a Gibbs sampler beyond;
        rjags: JAGS). ``REML``, ``ML``: EBLUP with its second-order MSE (native, metafor).
    prior : TaxonomyPrior or mapping, optional
        ``{"shape": 1, "scale": 0.05}`` (numbers, or one a level), or ``{"factor": 0.1}``: scale
        as a multiple of the median sampling variance. Default: inverse-gamma(1, 0.1 median d), at
        the domain inverse-gamma(0.1, 0.1 median d); the reasons are in `TaxonomyPrior`. Without
        ``shape`` a mapping has those shapes.
    level : float
        Confidence level of the intervals.
    seed : int, optional
        For samplers.
    **engine_options
        native: ``integration`` ("auto", "quadrature", "gibbs"), ``n_draws``. rjags: ``n_chains``,
        ``n_adapt``, ``n_burn``, ``n_draws``, ``thin``, ``time_limit``. metafor: the entries of
        its ``control``, ``sparse``, ``time_limit``.

    Returns
    -------
    TaxonomyFit

    Raises
    ------
    InputError
        Anything wrong with the request, the table or the taxonomy, before an engine runs.
    EngineUnavailable, EngineError
        R or a package is missing; R stopped.

    References
    ----------
    Rao and Molina (2015), Small Area Estimation, chapters 8 and 10.
    """
    methods, module_name = ENGINES[choose("engine", engine, ENGINES)]
    if method not in methods:
        raise _no_such_method(engine, method, methods)
    module = importlib.import_module(module_name)
    options = module.complete_options(engine_options, method)
    rows = need_frame("area", area.to_frame() if isinstance(area, Record) else area)
    taxonomy = taxonomy_levels(rows, levels)
    if covariates is not None:
        rows = with_covariates(rows, covariates, domain=taxonomy.names[-1])
    table = area_table(formula, rows, variance=variance, domain=taxonomy.names[-1])
    need_enough(int(table.sampled.sum()), table.covariates.shape[1])
    spec = TaxonomySpec(
        engine=engine,
        method=method,
        level=check_level(level),
        seed=_seed(seed, engine),
        prior=_prior(prior, method, table, len(taxonomy.names)),
        options=options,
    )
    answer = module.fit(table, taxonomy, spec)
    made_by = provenance(
        engine,
        method,
        options={"formula": formula, "levels": taxonomy.names, "level": spec.level, **options},
        seed=spec.seed,
        versions=answer.versions,
    )
    return TaxonomyFit(spec=spec, area=table, levels=taxonomy, answer=answer, provenance=made_by)


def _seed(seed: int | None, engine: str) -> int | None:
    """The seed; for JAGS a fresh one where none is given, so that the record knows it."""
    if seed is None:
        return secrets.randbelow(2**31 - 100) if engine == "rjags" else None
    return whole_number("seed", seed, least=0, most=2**31 - 1)


def _no_such_method(engine: str, method: Any, methods: tuple[str, ...]) -> InputError:
    others = [name for name, (words, _) in ENGINES.items() if method in words]
    return InputError(
        f"engine {engine!r} has no method {method!r}",
        code="unknown_option",
        field="method",
        expected=" | ".join(methods),
        got=method,
        hint=f"Engines with it: {', '.join(others)}." if others else None,
    )


def _prior(
    given: TaxonomyPrior | Mapping[str, Any] | None, method: str, table: AreaTable, depth: int
) -> TaxonomyPrior | None:
    """The prior as asked for; None for the default, which depends on the data."""
    if given is None:
        return None
    if method != "bayes":
        raise InputError(
            f"method {method!r} has no prior",
            code="bad_prior",
            field="prior",
            expected="prior=None",
            got=given,
            hint="method='bayes' takes one.",
        )
    if isinstance(given, Mapping):
        if set(given) == {"factor"} or set(given) == {"factor", "shape"}:
            factor = real_number("prior", given["factor"])
            shape = given.get("shape", default_shapes(depth))
            given = prior_from_factor(factor, table.variance[table.sampled], shape=shape)
        elif "scale" in given and set(given) <= {"shape", "scale"}:
            shape = given.get("shape", default_shapes(depth))
            given = TaxonomyPrior(shape=shape, scale=given["scale"])
    if not isinstance(given, TaxonomyPrior):
        raise InputError(
            "a prior is a TaxonomyPrior or a mapping",
            code="bad_prior",
            field="prior",
            expected="{'shape': ..., 'scale': ...} or {'factor': ...}",
            got=given,
        )
    given.arrays(depth)
    return given
