"""What each engine can do, as data: one row for each function of an engine.

The table is used to refuse, before R is called, what an engine does not have, naming what it has,
and is printed by ``pybridge doctor --engines``. It states what the engine's function offers;
``entry`` names the function of pybridge that leads there.
"""

from __future__ import annotations

import dataclasses

import pandas as pd

from pybridge._options import choose
from pybridge.engines._emdi_legal import legal_methods
from pybridge.engines._tail_capabilities import TAIL_ROWS


@dataclasses.dataclass(frozen=True)
class Capability:
    """One function of one engine.

    Attributes
    ----------
    engine : str
        ``"native"`` or the R package.
    task : str
        A word for what it does: ``area_level``, ``area_level_spatial``,
        ``area_level_space_time``, ``unit_level``, ``design_based``, ``direct``, ``tail``,
        ``taxonomy``.
    function : str
        The engine's own function or functions.
    entry : str
        The function of pybridge.
    methods : tuple of str
        Estimators, in the engine's own words.
    options : tuple of str
        Options that change the result, in the engine's own words.
    out_of_sample : bool
        Whether it predicts domains without a direct estimate by itself.
    needs_r : bool
    added : str
        What pybridge adds for these domains.
    """

    engine: str
    task: str
    function: str
    entry: str
    methods: tuple[str, ...]
    options: tuple[str, ...]
    out_of_sample: bool
    needs_r: bool
    added: str = ""


CAPABILITIES = (
    Capability(
        "sae",
        "area_level",
        "eblupFH, mseFH",
        "fay_herriot, engines.sae",
        ("REML", "ML", "FH"),
        ("MAXITER", "PRECISION", "B"),
        out_of_sample=False,
        needs_r=True,
        added="guarded fay_herriot adds x'beta and its mean squared error",
    ),
    Capability(
        "sae",
        "area_level_spatial",
        "eblupSFH, mseSFH",
        "fay_herriot(correlation='spatial'), engines.sae",
        ("REML", "ML"),
        ("proxmat", "MAXITER", "PRECISION"),
        out_of_sample=False,
        needs_r=True,
    ),
    Capability(
        "sae",
        "area_level_spatial",
        "pbmseSFH, npbmseSFH (REML only)",
        "engines.sae",
        ("REML", "ML"),
        ("proxmat", "B", "MAXITER", "PRECISION", "seed"),
        out_of_sample=False,
        needs_r=True,
    ),
    Capability(
        "sae",
        "area_level_space_time",
        "eblupSTFH, pbmseSTFH",
        "fay_herriot(time=), engines.sae",
        ("REML",),
        (
            *("proxmat", "model", "B", "MAXITER", "PRECISION", "theta_iter", "sigma21_start"),
            *("rho1_start", "sigma22_start", "rho2_start", "seed"),
        ),
        out_of_sample=False,
        needs_r=True,
    ),
    Capability(
        "sae",
        "unit_level",
        "eblupBHF, pbmseBHF",
        "engines.sae",
        ("REML", "ML"),
        ("selectdom", "meanxpop", "popnsize", "B", "seed"),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "sae",
        "design_based",
        "direct, pssynt, ssd",
        "engines.sae",
        ("Horvitz-Thompson with known size", "post-stratified synthetic", "composite"),
        ("sweight", "domsize", "replace", "ps", "domsizebyps", "delta"),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "emdi",
        "area_level",
        "fh, compare, compare_pred, benchmark, estimators, step",
        "fay_herriot, engines.emdi",
        legal_methods("no"),
        (
            *("transformation", "backtransformation", "eff_smpsize", "mse_type", "B", "interval"),
            *("k", "mult_constant", "Ci", "tol", "maxit", "seed"),
        ),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "emdi",
        "area_level_spatial",
        "fh, spatialcor.tests",
        "fay_herriot(correlation='spatial'), engines.emdi",
        legal_methods("spatial"),
        ("corMatrix", "mse_type", "B", "k", "mult_constant", "tol", "maxit", "seed"),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "emdi",
        "design_based",
        "direct",
        "engines.emdi",
        ("Hájek means, poverty and inequality indicators",),
        (
            *("weights", "threshold", "var", "boot_type", "B", "X_calib", "totals"),
            *("custom_indicator", "na.rm", "seed"),
        ),
        out_of_sample=False,
        needs_r=True,
    ),
    Capability(
        "hbsae",
        "area_level",
        "fSAE.Area",
        "fay_herriot, engines.hbsae",
        ("bayes",),
        (
            *("method", "prior", "beta0", "Omega0", "lambda0", "CV", "CVweights", "full.cov"),
            *("keep.data", "rel.int.tol", "x", "subdivisions", "abs.tol", "stop.on.error"),
        ),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "native",
        "area_level",
        "fay_herriot, FayHerriotFit.benchmark",
        "fay_herriot",
        (
            *("REML", "ML", "FH", "PR", "AMRL", "AMPL", "AMRL_YL", "AMPL_YL"),
            *("reblup", "reblupbc", "bayes"),
        ),
        (
            *("transformation", "backtransformation", "eff_smpsize", "mse_type", "B", "k"),
            *("mult_constant", "finite_population", "element_variance", "seed"),
        ),
        out_of_sample=True,
        needs_r=False,
    ),
    Capability(
        "survey",
        "direct",
        "svytotal, svyby, svymean",
        "horvitz_thompson, hajek, prediction_powered, generalized_regression",
        ("horvitz_thompson", "hajek", "prediction_powered", "generalized_regression"),
        ("strata", "ids", "fpc", "pps", "lonely_psu"),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "survey",
        "design_based",
        "svydesign, calibrate, postStratify, svymean, svytotal, svyratio, svyby, svyglm",
        "engines.survey",
        ("means", "totals", "ratios", "domains", "regression", "calibrated (GREG)"),
        (
            *("ids", "probs", "strata", "fpc", "weights", "nest", "pps", "variance", "lonely_psu"),
            *("calfun", "bounds", "trim", "stage", "partial", "na.rm", "deff", "covmat"),
            *("vartype", "keep.var", "separate", "influence", "family", "subset", "weights"),
        ),
        out_of_sample=False,
        needs_r=True,
    ),
    *(Capability(*row) for row in TAIL_ROWS),
    Capability(
        "metafor",
        "taxonomy",
        "rma.mv",
        "taxonomy_model, engines.metafor",
        ("REML", "ML"),
        (
            *("random", "struct", "mods", "W", "R", "Rscale", "sigma2", "tau2", "rho", "test"),
            *("dfs", "btt", "subset", "slab", "dist", "cvvc", "sparse", "control"),
        ),
        out_of_sample=False,
        needs_r=True,
    ),
    Capability(
        "rjags",
        "taxonomy",
        "jags.model, coda.samples",
        "taxonomy_model, engines.rjags",
        ("bayes",),
        ("prior", "n.chains", "n.adapt", "n.burn", "n.iter", "thin", "inits", "na.rm", "seed"),
        out_of_sample=True,
        needs_r=True,
    ),
    Capability(
        "native",
        "taxonomy",
        "taxonomy_model",
        "taxonomy_model",
        ("bayes", "REML", "ML"),
        ("prior", "integration", "n_draws", "seed"),
        out_of_sample=True,
        needs_r=False,
    ),
    Capability(
        "native",
        "direct",
        "the cells pass and the variance engine",
        "horvitz_thompson, hajek, prediction_powered, generalized_regression",
        ("horvitz_thompson", "hajek", "prediction_powered", "generalized_regression"),
        ("strata", "ids", "fpc", "pps", "lonely_psu"),
        out_of_sample=True,
        needs_r=False,
    ),
)

ENGINES = tuple(dict.fromkeys(item.engine for item in CAPABILITIES))
TASKS = tuple(dict.fromkeys(item.task for item in CAPABILITIES))


def capabilities(*, engine: str | None = None, task: str | None = None) -> tuple[Capability, ...]:
    """The rows of one engine, of one task, or all.

    Raises
    ------
    InputError
        For an engine or task that the table does not know.
    """
    if engine is not None:
        choose("engine", engine, ENGINES)
    if task is not None:
        choose("task", task, TASKS)
    return tuple(
        item for item in CAPABILITIES if engine in (None, item.engine) and task in (None, item.task)
    )


def engines_for(task: str, method: str | None = None) -> tuple[str, ...]:
    """The engines that do a task, by this method where one is named (case does not matter)."""
    wanted = None if method is None else method.lower()
    return tuple(
        item.engine
        for item in capabilities(task=task)
        if wanted is None or wanted in map(str.lower, item.methods)
    )


def capabilities_frame() -> pd.DataFrame:
    """The table as a DataFrame, a row for each function; lists joined by commas."""
    rows = []
    for item in CAPABILITIES:
        row = dataclasses.asdict(item)
        row["methods"] = ", ".join(item.methods)
        row["options"] = ", ".join(item.options)
        rows.append(row)
    return pd.DataFrame(rows)


def capabilities_text() -> str:
    """The table for reading: a heading and a few lines for each row."""
    lines = []
    for item in CAPABILITIES:
        where = "needs R" if item.needs_r else "without R"
        lines.append(f"{item.engine} / {item.task}: {item.function} ({where})")
        lines.append(f"    by        {item.entry}")
        lines.append(f"    methods   {', '.join(item.methods)}")
        if item.options:
            lines.append(f"    options   {', '.join(item.options)}")
        outside = "yes" if item.out_of_sample else "no"
        outside += f", but {item.added}" if item.added else ""
        lines.append(f"    domains without a direct estimate: {outside}")
    return "\n".join(lines)
