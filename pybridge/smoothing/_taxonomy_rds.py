"""A fit of the taxonomy model as the object that R returns, in a file for ``readRDS()``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._files import need_parent
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import FUNCTIONS, readable
from pybridge.engines._engine_request import EngineRequest
from pybridge.smoothing import _rjags
from pybridge.smoothing._taxonomy_script import metafor_options, sampler_options

if TYPE_CHECKING:
    from pybridge.smoothing.taxonomy_fit import TaxonomyFit


def save(fit: TaxonomyFit, path: str | PathLike[str]) -> Path:
    """Ask R again and keep what it returns: an ``rma.mv``, or JAGS's chains (``mcmc.list``).

    Raises
    ------
    InputError
        Sampling variances of 0, which JAGS does not take.
    EngineUnavailable, EngineError
    """
    place = need_parent(path)
    shim, package, inputs = _by_metafor(fit) if fit.prior is None else _by_rjags(fit)
    asked = EngineRequest(
        package=package,
        function=shim,
        level=fit.spec.level,
        time_limit=fit.spec.options.get("time_limit"),
    )
    requests.ask(shim, {**inputs, "file": str(place)}, asked)
    return place


def _by_metafor(fit: TaxonomyFit) -> tuple[str, str, dict[str, Any]]:
    """rma.mv with the user's labels, so that ranef() has them; the numbers are those of codes."""
    seen = fit.area.sampled
    sparse, control = metafor_options(fit.spec)
    columns: dict[str, Any] = {
        "estimate": fit.area.estimate[seen],
        "variance": fit.area.variance[seen],
    }
    levels = _plain_names(fit.levels.names)
    terms = _term_names(fit.area.covariate_names, taken={*columns, *levels})
    columns.update((name, fit.area.covariates[seen, j]) for j, name in enumerate(terms))
    for name, codes, labels in zip(levels, fit.levels.codes, fit.levels.labels):
        columns[name] = np.array([str(label) for label in labels[codes[seen]]], dtype=object)
    options: dict[str, Any] = {"method": fit.spec.method, "control": control}
    if sparse:
        options["sparse"] = True
    return (
        "metafor_rma_mv",
        "metafor",
        {
            "data": columns,
            "yi": "estimate",
            "V": "variance",
            "matrix": None,
            "W": None,
            "mods": "~ 0 + " + " + ".join(terms),
            "random": [f"~ 1 | {name}" for name in levels],
            "functions": list(FUNCTIONS),
            "options": options,
            "R": None,
            "labels": {"domain": [str(label) for label in fit.area.domains[seen]]},
        },
    )


def _plain_names(names: tuple[str, ...]) -> list[str]:
    """The levels' names where R can read them in any locale, else numbered ones."""
    good = all(readable(name) and name not in ("estimate", "variance") for name in names)
    return list(names) if good else [f"level{k + 1}" for k in range(len(names))]


def _term_names(names: Sequence[str], *, taken: set[str]) -> list[str]:
    """The covariates' names where R can read them, else x and their number."""
    found: list[str] = []
    for j, name in enumerate(names):
        if not readable(name) or name in taken:
            name = f"x{j + 1}"
            while name in {*taken, *names}:
                name += "_"
        found.append(name)
    return found


def _by_rjags(fit: TaxonomyFit) -> tuple[str, str, dict[str, Any]]:
    """The chains, back in the user's units, with the variances as sigma2."""
    inputs, unit = _rjags.chains_of(
        fit.area, fit.levels, fit.spec, fit.prior, sampler_options(fit.spec)
    )
    labels = {"domain": [str(label) for label in fit.area.domains]}
    return "rjags_samples", "rjags", {**inputs, "unit": unit, "labels": labels}
