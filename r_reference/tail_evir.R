# Reference values of evir::gpd on the Danish fire losses.
#
#   cd r_reference && Rscript tail_evir.R
#
# The losses are those of golden/inputs/gpd_danish.csv.

source("_gpd.R")
data(danish, package = "evir")
danish <- as.numeric(danish)

rows <- function(setting, fit) {
  data.frame(call = "gpd", setting = setting,
    quantity = c("par.ests", "par.ests", "par.ses", "par.ses", rep("varcov", 4), "nllh",
      "n.exceed", "threshold"),
    key = c("xi", "beta", "xi", "beta", rep("", 7)),
    value = as.numeric(c(fit$par.ests, fit$par.ses, fit$varcov, fit$nllh.final, fit$n.exceed,
      fit$threshold)))
}

gpd_save(list("golden/tail_danish__evir.csv" = rbind(
  rows("u10", evir::gpd(danish, 10)),
  rows("u20", evir::gpd(danish, 20)),
  rows("u10 expected", evir::gpd(danish, 10, information = "expected")),
  rows("u10 pwm", suppressWarnings(evir::gpd(danish, 10, method = "pwm"))),
  rows("nextremes 109", evir::gpd(danish, nextremes = 109))
)), "tail_evir.R", "evir")
