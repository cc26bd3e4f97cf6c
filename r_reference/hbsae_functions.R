# Reference values of hbsae::fSAE.Area with every method it has, on the milk data.
#
#   cd r_reference && Rscript hbsae_functions.R
#
# Writes golden/hbsae_functions__hbsae.csv with columns call, quantity, key, value. Two areas are
# without a direct estimate. The data are in golden/inputs/bayes_milk_areas.csv (bayes_hbsae.R).

suppressPackageStartupMessages(library(hbsae))
source("_taxonomy.R")

data(milk, package = "sae")
area <- sprintf("d%03d", milk$SmallArea)
X <- model.matrix(~ factor(milk$MajorArea))
dimnames(X) <- list(area, paste0("x", 1:4))
seen <- !seq_along(area) %in% c(4, 12)
y <- setNames(milk$yi, area)[seen]
v <- setNames(milk$SD^2, area)[seen]

calls <- list(
  HB = list(), hybrid = list(method = "hybrid"), REML = list(method = "REML"),
  synthetic = list(method = "synthetic"), survreg = list(method = "survreg"),
  BLUP = list(method = "BLUP", lambda0 = 0.02), tight = list(rel.int.tol = 1e-7),
  prior = list(prior = function(x) 1 / sqrt(x)),
  informative = list(beta0 = rep(1, 4), Omega0 = diag(4) * 10)
)
shown <- function(name, words) {
  fit <- suppressWarnings(do.call(fSAE.Area, c(list(y, v, X, silent = TRUE), words)))
  out <- rbind(
    rows(name, "estimate", names(EST(fit)), EST(fit)), rows(name, "mse", names(MSE(fit)), MSE(fit)),
    rows(name, "coefficient", colnames(X), fit$beta),
    rows(name, "effect", names(y), fit$raneff)
  )
  variance <- sv2(fit)
  if (length(variance) && is.finite(variance)) {
    out <- rbind(out, rows(name, "variance", "", variance))
  }
  names(out)[1] <- "call"
  out
}
answers <- Map(shown, names(calls), calls)
save_answers(list(`golden/hbsae_functions__hbsae.csv` = do.call(rbind, unname(answers))),
  "hbsae_functions.R", c("hbsae", "sae"))
