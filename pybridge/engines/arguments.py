"""R's own arguments: where each of them is, and which have no meaning here, with the reason.

The functions of ``pb.engines`` take R's arguments under R's names, dots as underscores. What they
do not take is in `LEFT_OUT`, which ``pybridge doctor --engines`` prints; a test compares both with
the ``formals()`` of the installed R functions.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

_PLOT = "only of what R draws; the values come back as a table"
_PRINT = "only of what R prints on the way"
_NOTHING = "R's function has no more arguments"
_SET = "fSAE.Area sets it itself"
_GLM = "svyglm() sets it itself"
_REPLICATES = "only of designs of replicate weights; R stops at it for those of svydesign()"

# The R functions that a function of pybridge.engines calls, where it is not the one of its name:
# methods, which have the arguments of their generics, and functions that get what stands in dots.
R_FUNCTIONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("emdi", "compare"): ("emdi:::compare.fh",),
    ("emdi", "compare_pred"): ("emdi:::compare_pred.emdi",),
    ("emdi", "estimators"): ("emdi:::estimators.emdi",),
    ("emdi", "spatialcor_tests"): ("emdi::spatialcor.tests",),
    ("emdi", "step"): ("emdi:::step.fh",),
    ("evd", "confint"): ("evd:::confint.evd", "evd:::confint.profile.evd"),
    ("evd", "fpot"): ("evd::fpot", "stats::optim"),
    ("evd", "profile"): ("evd:::profile.evd",),
    ("hbsae", "fSAE_Area"): ("hbsae::fSAE.Area", "hbsae::fSAE.Unit", "stats::integrate"),
    ("ismev", "gpd_diag"): ("ismev::gpd.diag",),
    ("ismev", "gpd_fit"): ("ismev::gpd.fit",),
    ("ismev", "gpd_fitrange"): ("ismev::gpd.fitrange",),
    ("ismev", "gpd_prof"): ("ismev::gpd.prof",),
    ("ismev", "gpd_profxi"): ("ismev::gpd.profxi",),
    ("ismev", "mrl_plot"): ("ismev::mrl.plot",),
    ("ismev", "pp_fit"): ("ismev::pp.fit",),
    ("metafor", "rma_mv"): ("metafor::rma.mv",),
    ("rjags", "coda_samples"): ("rjags::jags.model", "rjags::coda.samples"),
    ("survey", "calibrate"): ("survey:::calibrate.survey.design2", "survey:::calibrate.pps"),
    ("survey", "postStratify"): ("survey:::postStratify.survey.design",),
    ("survey", "svyby"): ("survey:::svyby.survey.design2", "survey:::svyby.default"),
    ("survey", "svydesign"): ("survey:::svydesign.default",),
    ("survey", "svyglm"): ("survey:::svyglm.survey.design", "stats::glm", "stats::glm.control"),
    ("survey", "svymean"): ("survey:::svymean.survey.design2", "survey:::svymean.pps"),
    ("survey", "svyratio"): ("survey:::svyratio.survey.design2", "survey:::svyratio.pps"),
    ("survey", "svytotal"): ("survey:::svytotal.survey.design2", "survey:::svytotal.pps"),
    ("survey", "weights"): ("survey:::weights.survey.design",),
}

# Functions of pybridge.engines that no R package has.
OWN_FUNCTIONS = (("emdi", "legal_combinations"), ("rjags", "taxonomy"))

# By function of pybridge.engines: R's argument, and why it is not there (or where it is).
LEFT_OUT: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("emdi", "compare"): {"...": _NOTHING},
    ("emdi", "compare_pred"): {"...": _NOTHING},
    ("emdi", "estimators"): {"...": _NOTHING},
    ("emdi", "step"): {"...": _NOTHING},
    ("evd", "clusters"): {
        "keep.names": "of R's names of the values, which are in the column position",
        **dict.fromkeys(("plot", "xdata", "lvals", "lty", "lwd", "pch", "col"), _PLOT),
        **dict.fromkeys(("xlab", "ylab", "..."), _PLOT),
    },
    ("evd", "confint"): {"...": _NOTHING},
    ("evd", "exiplot"): dict.fromkeys(("add", "lty", "xlab", "ylab", "ylim", "..."), _PLOT),
    ("evd", "fpot"): {
        "...": "parameters to be held (loc, scale, shape, rlevel) and optim's control, lower, "
        "upper, which are here by name",
        "par": "it is start",
        "fn": "the likelihood is fpot()'s",
        "gr": "fpot() has no gradient",
        "hessian": "fpot() sets it itself",
    },
    ("evd", "mrlplot"): dict.fromkeys(("lty", "col", "main", "xlab", "ylab", "..."), _PLOT),
    ("evd", "profile"): {"...": _NOTHING},
    ("evd", "tcplot"): {
        "which": "of the parameters that are drawn; the table has all",
        **dict.fromkeys(("lty", "lwd", "type", "cilty", "vci", "xlab", "xlim"), _PLOT),
        **dict.fromkeys(("ylabs", "ylims", "ask"), _PLOT),
        "...": "arguments of fpot(), which are here by name: npp, method, control",
    },
    ("evir", "gpd"): {"...": "entries of optim's control: control here"},
    ("hbsae", "fSAE_Area"): {
        "...": "arguments of fSAE.Unit() and of integrate(), which are here by name",
        **dict.fromkeys(("f", "lower", "upper", "rel.tol"), _SET),
        **dict.fromkeys(("keep.xy", "aux"), "R has them for S's sake, and makes nothing of them"),
        "y": "it is est.init",
        "area": "the names of est.init, the column domain here",
        "Xpop": "it is X",
        "silent": _PRINT,
        **dict.fromkeys(("v", "fpc", "nu0", "s20"), _SET),
        **dict.fromkeys(
            ("Narea", "vpop", "w", "wpop"), "of unit-level models, which fSAE.Area is not"
        ),
    },
    ("ismev", "gpd_fit"): {"show": _PRINT, "...": "entries of optim's control: control here"},
    ("ismev", "gpd_fitrange"): {
        "show": _PRINT,
        "...": "arguments of gpd.fit(), which are here by name: method, maxit, control",
    },
    ("ismev", "pp_fit"): {"show": _PRINT, "...": "entries of optim's control: control here"},
    ("metafor", "rma_mv"): {
        "verbose": _PRINT,
        "digits": "only of what R prints; numbers come whole",
        "...": "dist, which is here by name; R's others say what the object keeps and prints",
    },
    ("rjags", "coda_samples"): {
        "file": "it is model, the text instead of a file's name",
        "quiet": _PRINT,
        "...": "the bar of progress that R prints",
    },
    ("survey", "calibrate"): {"verbose": _PRINT, "...": _NOTHING},
    ("survey", "postStratify"): {"...": _NOTHING},
    ("survey", "svyby"): {
        "verbose": _PRINT,
        "return.replicates": _REPLICATES,
        "multicore": "of how fast R is; it forks, which a worker must not",
        "...": "arguments of FUN, which are here by name: na_rm, denominator",
    },
    ("survey", "svydesign"): {
        "variables": "R's default, all of data, is what formulas are read in",
        "...": "joint, psum, lonely_psu, adjust_domain_lonely: ppsmat(), HR() and R's options",
    },
    ("survey", "svyglm"): {
        "...": "arguments of glm(), which are here by name",
        **dict.fromkeys(("data", "method", "model", "x", "y"), _GLM),
        "offset": "a term of the formula, offset(x)",
        "control": "its entries are here by name: epsilon, maxit",
        "trace": _PRINT,
        **dict.fromkeys(("etastart", "mustart"), "the search starts at start"),
        "singular.ok": "R leaves collinear terms out; the record's conditions name them",
    },
    ("survey", "svymean"): {"...": _NOTHING},
    ("survey", "svyratio"): {
        "formula": "R's other name of numerator",
        "...": _NOTHING,
    },
    ("survey", "svytotal"): {"...": _NOTHING},
    ("survey", "weights"): {"...": _NOTHING},
}


# Arguments that only later versions of the packages have than those of Debian 12.
NEWER: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("survey", "svyby"): ("stringsAsFactors",),
    ("survey", "svydesign"): ("calibrate.formula", "na_weights"),
    ("survey", "svyglm"): ("std.errors", "degf"),
}

# Where nothing is said: by function R's argument, whose default is another one here, and why.
OTHER_DEFAULTS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("rjags", "coda_samples"): {
        "n.chains": "4 chains, where R has 1: of one nothing says whether it has converged",
    },
    ("survey", "svyby"): {
        "covmat": "guarded, domains have their covariance",
        "influence": "the functions of all units stay in R where they are not asked for",
    },
    ("survey", "svyratio"): {"covmat": "guarded, ratios have their covariance"},
}


def r_functions(engine: str, name: str) -> tuple[str, ...]:
    """The R functions whose arguments a function of ``pybridge.engines`` takes."""
    return R_FUNCTIONS.get((engine, name), (f"{engine}::{name}",))


def left_out() -> pd.DataFrame:
    """R's arguments that have no meaning here: engine, function, argument, reason."""
    rows = [
        (engine, function, argument, reason)
        for (engine, function), items in LEFT_OUT.items()
        for argument, reason in items.items()
    ]
    return pd.DataFrame(rows, columns=["engine", "function", "argument", "reason"])


def left_out_text() -> str:
    """The same for reading, arguments of one reason together, and defaults that are not R's."""
    lines = ["R's own arguments that have no meaning here:"]
    for (engine, function), items in LEFT_OUT.items():
        lines.append(f"{engine}.{function}")
        reasons: dict[str, list[str]] = {}
        for argument, reason in items.items():
            reasons.setdefault(reason, []).append(argument)
        lines += [f"    {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    lines.append("Of newer versions of a package, and not here yet:")
    for (engine, function), names in NEWER.items():
        lines.append(f"{engine}.{function}: {', '.join(names)}")
    lines.append("Defaults that are not R's:")
    for (engine, function), items in OTHER_DEFAULTS.items():
        lines += [f"{engine}.{function}"] + [f"    {name}: {why}" for name, why in items.items()]
    return "\n".join(lines)
