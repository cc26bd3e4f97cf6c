# Reference values of the Bayesian taxonomy model by JAGS's Gibbs sampler.
#
#   cd r_reference && Rscript taxonomy_rjags.R
#
# A diffuse normal prior on the coefficients and inverse-gamma(shape, 0.1 median d) on every level's
# variance, shape 1 above the domain and 0.1 at it. Writes golden/taxonomy_<case>__rjags.csv
# with columns setting, quantity, key, value; every posterior mean (quantity), standard deviation
# (quantity_sd) and median (quantity_median) has its Monte Carlo standard error (..._error).

suppressPackageStartupMessages({
  library(rjags)
  library(sae)
})
source("_taxonomy.R")
# Not with JAGS's glm module: its block sampler mixes faster, but gave medians of the variances and
# means of the domains 4 to 5 Monte Carlo errors away from JAGS's own samplers and from dense
# quadrature (groups34, flat34).

model_text <- function(levels) {
  coarse <- head(levels, -1)
  sums <- paste0(" + v_", coarse, "[", coarse, "[i]]", collapse = "")
  groups <- paste0(
    "  for (g in 1:n_", coarse, ") { v_", coarse, "[g] ~ dnorm(0, tau_", coarse, ") }\n",
    collapse = ""
  )
  variances <- paste0(
    "  tau_", levels, " ~ dgamma(shape_", levels, ", rate)\n  s_", levels, " <- 1 / tau_", levels, "\n",
    collapse = ""
  )
  paste0(
    "model {\n",
    "  for (i in 1:m) {\n",
    "    mu[i] <- inprod(X[i, ], beta)", sums, "\n",
    "    theta[i] ~ dnorm(mu[i], tau_domain)\n",
    "  }\n",
    "  for (k in 1:n) { z[k] ~ dnorm(theta[known[k]], 1 / d[k]) }\n",
    groups, variances,
    "  for (j in 1:p) { beta[j] ~ dnorm(0, diffuse) }\n}\n"
  )
}

sampled <- function(case, seed) {
  levels <- levels_of(case)
  known <- which(!is.na(case$estimate))
  X <- design_of(case)
  unit <- sqrt(median(case$variance[known]))
  data <- list(m = nrow(case), n = length(known), p = ncol(X), X = X, known = known,
    z = case$estimate[known] / unit, d = case$variance[known] / unit^2, rate = 0.1,
    diffuse = 1e-8)
  for (level in levels) data[[paste0("shape_", level)]] <- if (level == "domain") 0.1 else 1
  for (level in head(levels, -1)) {
    data[[level]] <- as.integer(factor(case[[level]]))
    data[[paste0("n_", level)]] <- max(data[[level]])
  }
  inits <- lapply(1:4, function(chain) {
    list(.RNG.name = "base::Mersenne-Twister", .RNG.seed = seed + chain)
  })
  model <- jags.model(textConnection(model_text(levels)), data, inits, n.chains = 4, quiet = TRUE)
  update(model, 4000, progress.bar = "none")
  draws <- coda.samples(model, c("beta", "theta", paste0("s_", levels)), 160000, thin = 16,
    progress.bar = "none")
  list(draws = draws, unit = unit, levels = levels)
}

summarise <- function(case, name, key, draws, power) {
  values <- as.matrix(draws)[, name] # all chains
  size <- sum(vapply(draws, function(chain) coda::effectiveSize(chain[, name]), 0))
  # The median moves with the share of draws below it: its error from that indicator's own
  # effective size, which a heavy tail does not disturb, and from the density there.
  q <- median(values)
  near <- quantile(values, c(0.45, 0.55))
  at <- 0.1 / (near[[2]] - near[[1]])
  below_size <- sum(vapply(draws, function(chain) {
    coda::effectiveSize(coda::mcmc(as.numeric(chain[, name] < q)))
  }, 0))
  unit <- case$unit^power
  label <- key[1]
  rbind(
    rows("default", label, key[2], mean(values) * unit),
    rows("default", paste0(label, "_error"), key[2], sd(values) / sqrt(size) * unit),
    rows("default", paste0(label, "_sd"), key[2], sd(values) * unit),
    rows("default", paste0(label, "_sd_error"), key[2],
      sd((values - mean(values))^2) / sqrt(size) / 2 / sd(values) * unit),
    rows("default", paste0(label, "_median"), key[2], q * unit),
    rows("default", paste0(label, "_median_error"), key[2], 0.5 / sqrt(below_size) / at * unit)
  )
}

tables <- list()
for (name in c("groups34", "flat34", "three60", "gaps60")) {
  case <- taxonomy_cases()[[name]]
  fit <- sampled(case, 100)
  answers <- list()
  for (level in fit$levels) {
    answers[[level]] <- summarise(fit, paste0("s_", level), c("variance", level), fit$draws, 2)
  }
  for (j in seq_len(ncol(design_of(case)))) {
    answers[[paste0("b", j)]] <- summarise(fit, paste0("beta[", j, "]"),
      c("coefficient", paste0("x", j)), fit$draws, 1)
  }
  for (i in seq_len(nrow(case))) {
    answers[[paste0("d", i)]] <- summarise(fit, paste0("theta[", i, "]"),
      c("estimate", case$domain[i]), fit$draws, 1)
  }
  tables[[paste0("golden/taxonomy_", name, "__rjags.csv")]] <- do.call(rbind, answers)
  cat(name, "\n")
}
save_answers(tables, "taxonomy_rjags.R", c("rjags", "coda", "sae"))
