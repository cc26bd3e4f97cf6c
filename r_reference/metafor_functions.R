# Reference values of metafor::rma.mv beyond the taxonomy model (which is in taxonomy_metafor.R).
#
#   cd r_reference && Rscript metafor_functions.R
#
# Writes golden/metafor_functions__metafor.csv with columns call, quantity, key, value. The data are
# the case groups34 of _taxonomy.R, in golden/inputs/taxonomy_groups34.csv.

suppressPackageStartupMessages({
  library(metafor)
  library(sae)
})
source("_taxonomy.R")

case <- taxonomy_cases()$groups34
V <- diag(case$variance) + 0.05
R <- 0.5^abs(outer(1:5, 1:5, "-"))
dimnames(R) <- rep(list(sort(unique(case$region))), 2)
both <- list(~ 1 | region, ~ 1 | domain)
mods <- ~x2
calls <- list(
  nested = quote(rma.mv(estimate, variance, mods = mods, random = ~ 1 | region / domain,
    data = case)),
  ml = quote(rma.mv(estimate, variance, mods = mods, random = both, method = "ML", data = case)),
  t = quote(rma.mv(estimate, variance, mods = mods, random = both, test = "t", dfs = "contain",
    level = 90, data = case)),
  covariance = quote(rma.mv(estimate, V, mods = mods, random = both, data = case)),
  related = quote(rma.mv(estimate, variance, mods = mods, random = both, R = list(region = R),
    data = case)),
  fixed = quote(rma.mv(estimate, variance, mods = mods, random = both, sigma2 = c(NA, 0.2),
    data = case)),
  one = quote(rma.mv(estimate, variance, random = ~ 1 | domain, data = case)),
  slopes = quote(rma.mv(estimate, variance, mods = mods, random = ~ x2 | region, struct = "GEN",
    control = list(optimizer = "optim", reltol = 1e-10), data = case))
)
shown <- function(name, call) {
  fit <- suppressWarnings(eval(call))
  out <- rbind(
    rows(name, "coefficient", rownames(fit$beta), fit$beta),
    rows(name, "coefficient_error", rownames(fit$beta), fit$se),
    rows(name, "lower", rownames(fit$beta), fit$ci.lb),
    rows(name, "log_likelihood", "", as.numeric(logLik(fit))),
    rows(name, "QE", "", fit$QE), rows(name, "fitted", case$domain, fitted(fit))
  )
  if (fit$withS) {
    out <- rbind(out, rows(name, "sigma2", fit$s.names, fit$sigma2))
    effects <- ranef(fit)
    for (j in seq_along(fit$s.names)) {
      out <- rbind(out, rows(name, paste0("effect", j), rownames(effects[[j]]),
        effects[[j]]$intrcpt))
    }
  }
  if (fit$withG) {
    out <- rbind(out, rows(name, "tau2", seq_along(fit$tau2), fit$tau2),
      rows(name, "rho", seq_along(fit$rho), fit$rho))
  }
  names(out)[1] <- "call"
  out
}
answers <- Map(shown, names(calls), calls)
save_answers(list(`golden/metafor_functions__metafor.csv` = do.call(rbind, unname(answers))),
  "metafor_functions.R", c("metafor", "sae"))
