"""The rows of tail fits in the table of what engines can do, in the order of its fields."""

from __future__ import annotations

# engine, task, function, entry, methods, options, out_of_sample, needs_r
TAIL_ROWS: tuple[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...], bool, bool], ...] = (
    (
        "evd",
        "tail",
        "fpot",
        "generalized_pareto, engines.evd",
        ("ML",),
        (
            *("model (gpd, pp)", "start", "npp", "cmax", "r", "ulow", "rlow", "mper", "std.err"),
            *("corr", "method", "control", "loc, scale, shape, rlevel (held)"),
        ),
        False,
        True,
    ),
    (
        "evd",
        "tail",
        "profile, confint, tcplot, mrlplot, clusters, exi, exiplot, dgpd, pgpd, qgpd",
        "engines.evd",
        ("profile likelihood", "threshold stability", "mean residual life", "extremal index"),
        ("which", "conf", "mesh", "xmin", "xmax", "tlim", "pscale", "nt", "r", "ulow", "rlow"),
        False,
        True,
    ),
    (
        "ismev",
        "tail",
        "gpd.fit, pp.fit",
        "generalized_pareto, engines.ismev",
        ("ML",),
        (
            *("npy", "ydat", "mul", "sigl", "shl", "mulink", "siglink", "shlink", "muinit"),
            *("siginit", "shinit", "method", "maxit"),
        ),
        False,
        True,
    ),
    (
        "ismev",
        "tail",
        "gpd.fitrange, gpd.prof, gpd.profxi, gpd.diag, mrl.plot",
        "engines.ismev",
        ("threshold stability", "profile likelihood", "diagnosis", "mean residual life"),
        ("umin", "umax", "m", "xlow", "xup", "npy", "conf", "nint"),
        False,
        True,
    ),
    (
        "evir",
        "tail",
        "gpd",
        "engines.evir",
        ("ML", "PWM"),
        ("threshold", "nextremes", "information", "control"),
        False,
        True,
    ),
    (
        "native",
        "tail",
        "generalized_pareto",
        "generalized_pareto",
        ("ML", "PWM", "penalised"),
        ("penalty",),
        False,
        False,
    ),
)
