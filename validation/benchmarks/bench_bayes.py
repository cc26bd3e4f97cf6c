"""The native Bayesian engines: time, growth and memory, and R's metafor and rjags beside them.

    python validation/benchmarks/bench_bayes.py [--without-r]

1. Bayesian area model at m = 100 000: under 2 s, under 10 s with exact quantiles.
2. Taxonomy model, two levels, m = 63 without quantiles (a refit of cross-validation): under 40 ms.
3. Three levels: m = 5 000 at least 100 times faster than rjags run until every coefficient and
   variance has an effective size of 10 000 (extrapolated from its effective size a second);
   m = 100 000 under 60 s with quantiles, memory linear in m.
4. REML at m = 1 000 at least 200 times faster than rma.mv(sparse = TRUE).
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from pybridge.smoothing._bayes import fit_area_model_bayes
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood

AREA, AREA_WITH_QUANTILES = 2.0, 10.0
REFIT = 0.040
LARGE = 60.0
FASTER_THAN_RJAGS, FASTER_THAN_METAFOR = 100, 200
EFFECTIVE_SIZE = 10_000

# The same problem for R: nested groups at random, three levels.
PROBLEM = """
problem <- function(m, counties, regions) {
  set.seed(1)
  county <- sample(counties, m, replace = TRUE)
  region <- (seq_len(counties) - 1) %% regions + 1
  region <- region[county]
  x <- rnorm(m)
  d <- runif(m, 0.5, 2)
  z <- 1 + x + 0.7 * rnorm(regions)[region] + 0.5 * rnorm(counties)[county] +
    0.6 * rnorm(m) + sqrt(d) * rnorm(m)
  list(z = z, d = d, X = cbind(1, x), region = region, county = county, domain = seq_len(m))
}
"""

METAFOR = (
    PROBLEM
    + """
suppressPackageStartupMessages(library(metafor))
p <- problem(1000, 100, 10)
data <- data.frame(lapply(p[c("region", "county", "domain")], factor))
seconds <- system.time(rma.mv(p$z, p$d, mods = p$X, intercept = FALSE, data = data, sparse = TRUE,
  random = list(~ 1 | region, ~ 1 | county, ~ 1 | domain)))[["elapsed"]]
cat(seconds)
"""
)

RJAGS = (
    PROBLEM
    + """
suppressPackageStartupMessages(library(rjags))
p <- problem(5000, 500, 20)
text <- "model {
  for (i in 1:m) {
    theta[i] ~ dnorm(inprod(X[i, ], beta) + v1[region[i]] + v2[county[i]], tau[3])
    z[i] ~ dnorm(theta[i], 1 / d[i])
  }
  for (g in 1:20) { v1[g] ~ dnorm(0, tau[1]) }
  for (g in 1:500) { v2[g] ~ dnorm(0, tau[2]) }
  for (r in 1:3) { tau[r] ~ dgamma(1, 0.125) }
  for (j in 1:2) { beta[j] ~ dnorm(0, 1e-8) }
}"
data <- c(p[c("z", "d", "X", "region", "county")], m = 5000)
model <- jags.model(textConnection(text), data, n.adapt = 200, quiet = TRUE)
update(model, 300, progress.bar = "none")
start <- proc.time()[["elapsed"]]
draws <- coda.samples(model, c("beta", "tau"), 1500, progress.bar = "none")
seconds <- proc.time()[["elapsed"]] - start
cat(seconds, min(effectiveSize(draws)))
"""
)


def problem(m: int, groups: tuple[int, ...], seed: int = 1) -> dict[str, Any]:
    """A population with nested groups at random; ``groups`` coarse to fine."""
    rng = np.random.default_rng(seed)
    d = rng.uniform(0.5, 2.0, m)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    z = x.sum(axis=1) + rng.normal(size=m) * np.sqrt(0.4 + d)
    levels = [np.arange(m)]
    finer = rng.integers(0, groups[-1], m) if groups else None
    for place in range(len(groups) - 1, -1, -1):
        assert finer is not None
        levels.insert(0, finer)
        z = z + 0.6 * rng.normal(size=groups[place])[finer]
        if place:
            finer = finer % groups[place - 1]
    return {"estimate": z, "variance": d, "covariates": x, "levels": levels}


def area(arrays: dict[str, Any]) -> dict[str, Any]:
    """Without the levels."""
    return {name: value for name, value in arrays.items() if name != "levels"}


def seconds(work: Callable[[], Any], times: int) -> float:
    """The fastest of several runs."""
    found = []
    for _ in range(times):
        start = perf_counter()
        work()
        found.append(perf_counter() - start)
    return min(found)


def peak_megabytes(work: Callable[[], Any]) -> float:
    """Memory that the work needs beside its input."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def from_r(script: str) -> list[float]:
    """The numbers that an R script prints."""
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def report(what: str, value: float, bar: float, *, at_least: bool = False) -> bool:
    """One line, and whether the bar was held."""
    good = value >= bar if at_least else value <= bar
    word = "at least" if at_least else "at most"
    print(f"{'ok  ' if good else 'MISS'} {what}: {value:.4g} ({word} {bar:g})", flush=True)
    return good


def native() -> bool:
    """The native bars."""
    good = True
    big = problem(100_000, ())
    for variance, words in ((big["variance"], "variance well above 0"), (None, "variance near 0")):
        arrays = area(big)
        if variance is None:
            rng = np.random.default_rng(2)
            arrays["estimate"] = rng.normal(size=100_000) * np.sqrt(big["variance"])
        fast = seconds(lambda: fit_area_model_bayes(**arrays, quantiles=False), 3)
        full = seconds(lambda: fit_area_model_bayes(**arrays), 2)
        good &= report(f"area model, m = 100 000, {words}, s", fast, AREA)
        good &= report("  with exact quantiles, s", full, AREA_WITH_QUANTILES)
    for m, groups in ((63, (21,)), (34, (5,))):
        small = problem(m, groups)
        fast = seconds(lambda: fit_taxonomy_bayes(**small, quantiles=False), 20)
        good &= report(f"taxonomy model, two levels, m = {m}, s", fast, REFIT)
    for groups in ((20, 2000), (200, 20_000)):
        large = problem(100_000, groups)
        full = seconds(lambda: fit_taxonomy_bayes(**large), 1)
        good &= report(f"taxonomy model, three levels {groups}, m = 100 000, s", full, LARGE)
    sizes = [problem(m, (20, m // 50)) for m in (20_000, 80_000)]
    small_peak, large_peak = (
        peak_megabytes(lambda: fit_taxonomy_bayes(**arrays, quantiles=False)) for arrays in sizes
    )
    print(f"     peak memory {small_peak:.0f} MB at m = 20 000, {large_peak:.0f} MB at 80 000")
    return good & report("growth of memory for 4 times the domains", large_peak / small_peak, 5.0)


def beside_r() -> bool:
    """The bars against metafor and rjags."""
    arrays = problem(1000, (10, 100))
    own = seconds(lambda: fit_taxonomy_likelihood(**arrays), 10)
    (theirs,) = from_r(METAFOR)
    print(f"     REML, m = 1 000: native {own * 1e3:.1f} ms, rma.mv(sparse = TRUE) {theirs:.2f} s")
    good = report("REML against metafor", theirs / own, FASTER_THAN_METAFOR, at_least=True)
    arrays = problem(5000, (20, 500))
    own = seconds(lambda: fit_taxonomy_bayes(**arrays), 3)
    spent, size = from_r(RJAGS)
    needed = EFFECTIVE_SIZE / size * spent
    print(
        f"     three levels, m = 5 000: native {own:.2f} s; rjags {size:.0f} effective draws in "
        f"{spent:.1f} s, so {needed:.0f} s for {EFFECTIVE_SIZE}"
    )
    return good & report("posterior against rjags", needed / own, FASTER_THAN_RJAGS, at_least=True)


def main() -> int:
    """Run the bars; 0 where all were held."""
    good = native()
    if "--without-r" not in sys.argv[1:]:
        good &= beside_r()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
