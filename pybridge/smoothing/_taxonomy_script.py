"""A fit of the taxonomy model as a plain R script, data included."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

from pybridge._r_text import number, text, value, vector
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_spec import TaxonomySpec
from pybridge.tables.area import AreaTable

# rma.mv's own stopping rule is loose; this one comes to the optimum that the native fit has.
_TIGHT = {"optimizer": "optim", "optmethod": "Nelder-Mead", "reltol": 1e-14, "maxit": 10000}
_SAMPLER = {"n_chains": 4, "n_adapt": 1000, "n_burn": 2000, "n_draws": 20000, "thin": 1}


def taxonomy_script(
    spec: TaxonomySpec, area: AreaTable, levels: TaxonomyLevels, prior: TaxonomyPrior | None
) -> str:
    """metafor::rma.mv for REML and ML, JAGS through rjags for the posterior."""
    head = f"Taxonomy model {area.formula}, method {spec.method}, fitted by {spec.engine}."
    note = "Numbers are in hexadecimal, which R reads to the last bit."
    parts = ["".join(f"# {_ascii(line)}\n" for line in (head, note)), _data(area, levels)]
    if prior is None:
        parts.append(_by_metafor(spec, levels))
    else:
        unit = float(np.sqrt(np.median(area.variance[area.sampled])))
        parts.append(_by_rjags(spec, levels, prior, unit))
    return "\n".join(parts)


def _data(area: AreaTable, levels: TaxonomyLevels) -> str:
    """All domains; those without a direct estimate have NA."""
    numbers = {"estimate": area.estimate, "variance": np.where(area.sampled, area.variance, np.nan)}
    lines = [f"{name} <- {vector(map(number, column))}" for name, column in numbers.items()]
    names = ", ".join(map(text, area.covariate_names))
    cells = vector(map(number, area.covariates.ravel(order="F")))
    lines.append(
        f"X <- matrix({cells},\n  ncol = {area.covariates.shape[1]}, "
        f"dimnames = list(NULL, c({names})))"
    )
    for place, (codes, labels) in enumerate(zip(levels.codes, levels.labels)):
        column = vector(text(str(label)) for label in labels[codes])
        lines.append(f"level{place + 1} <- {column}  # {_ascii(levels.names[place])}")
    return "\n".join(lines) + "\n"


def metafor_options(spec: TaxonomySpec) -> tuple[bool, dict[str, Any]]:
    """rma.mv's sparse and control: as asked for, of a native fit those that find its optimum."""
    if spec.engine != "metafor":
        return False, dict(_TIGHT)
    control = {k: v for k, v in spec.options.items() if k not in ("sparse", "time_limit")}
    return bool(spec.options["sparse"]), control


def sampler_options(spec: TaxonomySpec) -> dict[str, Any]:
    """JAGS's chains: as asked for, of a native fit long ones."""
    if spec.engine != "rjags":
        return dict(_SAMPLER)
    return {name: spec.options[name] for name in _SAMPLER}


def _by_metafor(spec: TaxonomySpec, levels: TaxonomyLevels) -> str:
    sparse, control = metafor_options(spec)
    names = [f"level{place + 1}" for place in range(len(levels.names))]
    random = ", ".join(f"~ 1 | {name}" for name in names)
    frame = ", ".join(f"{name} = factor({name}[known])" for name in names)
    return (
        "known <- !is.na(estimate)\n"
        f"data <- data.frame({frame})\n"
        "fit <- metafor::rma.mv(estimate[known], variance[known],\n"
        f"  mods = X[known, , drop = FALSE], intercept = FALSE, data = data,\n"
        f"  random = list({random}),\n"
        f"  method = {text(spec.method)}, sparse = {value(sparse)}, control = {value(control)})\n"
        "print(fit)\n"
        "eblup <- as.vector(X %*% fit$beta)\n"
        "effects <- metafor::ranef(fit)\n"
        f"for (name in {vector(map(text, names))}) {{\n"
        "  own <- effects[[name]]\n"
        "  add <- own$intrcpt[match(get(name), rownames(own))]\n"
        "  eblup <- eblup + ifelse(is.na(add), 0, add)\n"
        "}\n"
        f"print(data.frame(domain = {names[-1]}, direct = estimate, estimate = eblup), "
        "digits = 10)\n"
    )


def _by_rjags(spec: TaxonomySpec, levels: TaxonomyLevels, prior: TaxonomyPrior, unit: float) -> str:
    options = sampler_options(spec)
    shape, scale = prior.arrays(len(levels.names))
    # The codes themselves: R would sort the labels by its locale, and groups draw in their order.
    codes = ",\n    ".join(
        f"level{place + 1} = {vector(number(code + 1) for code in column)}"
        for place, column in enumerate(levels.codes[:-1])
    )
    half = 0.5 * (1.0 - spec.level)
    settings = ",\n  ".join(f"{name} = {value(item)}" for name, item in options.items())
    return (
        "# JAGS needs a proper prior for the coefficients: normal, standard deviation 10^4 units.\n"
        + _shims()
        + "known <- which(!is.na(estimate))\n"
        f"unit <- {number(unit)}  # the root of the median variance\n"
        "inputs <- list(estimate = estimate[known] / unit,\n"
        "  variance = variance[known] / unit / unit,\n"
        f"  place = known, covariates = X, levels = list({codes}),\n"
        f"  shape = {vector(map(number, shape))},\n"
        f"  rate = {vector(map(number, scale))} / unit / unit,\n"
        f"  diffuse = 1e-8, tails = c({number(half)}, {number(1.0 - half)}),\n"
        f"  seed = {number(spec.seed if spec.seed is not None else 1)},\n  {settings})\n"
        "answer <- rjags_taxonomy(inputs)\n"
        "cat('posterior medians of the variances:', answer$median * unit^2, '\\n')\n"
        f"print(data.frame(domain = level{len(levels.names)}, direct = estimate,\n"
        "  estimate = answer$estimate * unit, mse = answer$mse * unit^2,\n"
        "  lower = answer$lower * unit, upper = answer$upper * unit), digits = 7)\n"
    )


def _shims() -> str:
    """The functions that the bridge itself calls."""
    path = resources.files("pybridge.r") / "shims" / "rjags.R"
    return path.read_text(encoding="utf-8") + "\n"


def _ascii(line: str) -> str:
    return line.encode("ascii", "backslashreplace").decode("ascii").replace("\n", " ")
