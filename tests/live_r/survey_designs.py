"""Designs of the schools of California, here and in R, for the tests of survey's options."""

from __future__ import annotations

import numpy as np

from pybridge import datasets
from pybridge.engines import survey


TOTALS = {"(Intercept)": 6194, "api99": 3914069}


DESIGNS = """
suppressPackageStartupMessages(library(survey))
data(api)
strat <- svydesign(id = ~1, strata = ~stype, weights = ~pw, fpc = ~fpc, data = apistrat)
clus1 <- svydesign(id = ~dnum, weights = ~pw, fpc = ~fpc, data = apiclus1)
apiclus2$gap <- ifelse(seq_len(nrow(apiclus2)) %% 9 == 0, NA, apiclus2$meals)
apiclus2$group <- ifelse(seq_len(nrow(apiclus2)) %% 5 == 0, NA, as.character(apiclus2$stype))
clus2 <- svydesign(id = ~dnum + snum, fpc = ~fpc1 + fpc2, data = apiclus2)
totals <- c(`(Intercept)` = 6194, api99 = 3914069)
cal <- function(...) calibrate(clus1, ~api99, totals, ...)
"""


def api_tables():
    """The samples, with gaps in the one of two stages as in DESIGNS."""
    found = {n: datasets.from_r("survey", n, file="api") for n in ("apistrat", "apiclus1")}
    two = datasets.from_r("survey", "apiclus2", file="api")
    row = np.arange(1, len(two) + 1)
    two["gap"] = two["meals"].where(row % 9 != 0)
    two["group"] = two["stype"].astype(object).where(row % 5 != 0)
    return {**found, "apiclus2": two}


def designs(tables, mode):
    svydesign = survey.svydesign
    return {
        "strat": svydesign(
            1, tables["apistrat"], strata="~stype", weights="~pw", fpc="~fpc", mode=mode
        ),
        "clus1": svydesign("~dnum", tables["apiclus1"], weights="~pw", fpc="~fpc", mode=mode),
        "clus2": svydesign("~dnum + snum", tables["apiclus2"], fpc="~fpc1 + fpc2", mode=mode),
    }
