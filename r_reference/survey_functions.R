# Reference values of the functions of R's survey package on samples of California's schools.
#
#   cd r_reference && Rscript survey_functions.R
#
# Writes golden/survey_functions__survey.csv with columns call, quantity, key, value (quantities:
# estimate, error, covariance row by row, weight), and the units to golden/inputs/. The direct
# estimates of domains with known sizes are in survey.R.

suppressPackageStartupMessages(library(survey))
source("_taxonomy.R")
data(api)

keep <- c("stype", "awards", "dnum", "snum", "api00", "api99", "enroll", "ell", "meals")
p <- pmin(1, 200 * apipop$api99 / sum(apipop$api99))
drawn <- cbind(apipop[keep], p = p)
drawn <- drawn[(seq_along(p) * 7919) %% 6194 < 6194 * p, ]
units <- list(
  srs = cbind(apisrs[keep], fpc = apisrs$fpc),
  strat = cbind(apistrat[keep], apistrat[c("pw", "fpc")]),
  clus1 = cbind(apiclus1[keep], apiclus1[c("pw", "fpc")]),
  clus2 = cbind(apiclus2[keep], apiclus2[c("fpc1", "fpc2")]),
  drawn = drawn
)

srs <- svydesign(ids = ~1, fpc = ~fpc, data = units$srs)
strat <- svydesign(ids = ~1, strata = ~stype, weights = ~pw, fpc = ~fpc, data = units$strat)
clus1 <- svydesign(ids = ~dnum, weights = ~pw, fpc = ~fpc, data = units$clus1)
clus2 <- svydesign(ids = ~ dnum + snum, fpc = ~ fpc1 + fpc2, data = units$clus2)
replaced <- svydesign(ids = ~dnum, weights = ~pw, data = units$clus1)
types <- c(stypeH = 755, stypeM = 1018)
totals <- c(`(Intercept)` = 6194, api99 = 3914069)
cal <- calibrate(strat, ~ api99 + stype, c(totals, types))
rak <- calibrate(clus1, ~api99, totals, calfun = "raking")
post <- postStratify(clus1, ~stype, data.frame(stype = c("E", "H", "M"), Freq = c(4421, 755, 1018)))
poisson <- svydesign(ids = ~1, probs = ~p, pps = poisson_sampling(units$drawn$p), data = units$drawn)
pps <- svydesign(ids = ~1, fpc = ~p, pps = "brewer", data = units$drawn)

calls <- list(
  mean = svymean(~ api00 + api99, strat),
  total = svytotal(~enroll, srs, na.rm = TRUE),
  stages = svytotal(~ api00 + api99, clus2),
  ratio = svyratio(~ api00 + api99, ~meals, strat, covmat = TRUE),
  domains = svyby(~api00, ~stype, clus1, svymean, covmat = TRUE),
  domain_totals = svyby(~api00, ~awards, clus2, svytotal, covmat = TRUE),
  domain_ratios = svyby(~api00, ~stype, denominator = ~api99, replaced, svyratio, covmat = TRUE),
  calibrated = svytotal(~ api00 + meals, cal),
  raked = svytotal(~api00, rak),
  post_stratified = svymean(~api00, post),
  poisson = svytotal(~ api00 + meals, poisson),
  brewer = svytotal(~api00, pps),
  linear = svyglm(api00 ~ ell + meals, strat),
  linear_calibrated = svyglm(api00 ~ ell + meals, cal),
  logit = svyglm(I(api00 > 700) ~ ell + meals, clus1, family = quasibinomial())
)
weights <- list(calibrated = cal, raked = rak, post_stratified = post)

shown <- function(name, x) {
  errors <- SE(x)
  if (is.data.frame(errors)) errors <- unlist(errors, use.names = FALSE)
  V <- unname(as.matrix(vcov(x)))
  names <- names(coef(x))
  out <- rbind(
    rows(name, "estimate", names, coef(x)), rows(name, "error", names, errors),
    rows(name, "covariance", paste(row(V), col(V)), V)
  )
  if (!is.null(weights[[name]])) {
    w <- weights(weights[[name]])
    out <- rbind(out, rows(name, "weight", seq_along(w), w))
  }
  names(out)[1] <- "call"
  out
}

tables <- list()
for (name in names(units)) {
  tables[[paste0("golden/inputs/survey_functions_", name, ".csv")]] <- units[[name]]
}
answers <- Map(shown, names(calls), calls)
tables[["golden/survey_functions__survey.csv"]] <- do.call(rbind, unname(answers))
save_answers(tables, "survey_functions.R", "survey")
