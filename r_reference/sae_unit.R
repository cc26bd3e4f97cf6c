# Reference values of sae's nested-error model of units: corn and soybean areas of 12 counties.
#
#   cd r_reference && Rscript sae_unit.R
#
# Writes the units and the counties to golden/inputs/, the answers to golden/: call, setting,
# quantity, key, value. Unit 33 is left out, as in Battese, Harter and Fuller (1988).

suppressPackageStartupMessages(library(sae))
source("_sae.R")
data(cornsoybean)
data(cornsoybeanmeans)

units <- cornsoybean[-33, ]
means <- cornsoybeanmeans[, c("CountyIndex", "MeanCornPixPerSeg", "MeanSoyBeansPixPerSeg")]
sizes <- cornsoybeanmeans[, c("CountyIndex", "PopnSegments")]

answer <- function(call, setting, est, mse = NULL) {
  rows <- function(quantity, key, value) sae_rows(call, setting, quantity, key, value)
  out <- rbind(
    rows("estimate", est$eblup$domain, est$eblup$eblup),
    rows("sampsize", est$eblup$domain, est$eblup$sampsize),
    rows("coefficient", seq_along(est$fit$fixed), est$fit$fixed),
    rows("refvar", "", est$fit$refvar),
    rows("errorvar", "", est$fit$errorvar),
    rows("loglike", "", est$fit$loglike),
    rows("random", rownames(est$fit$random), est$fit$random[, 1])
  )
  if (!is.null(mse)) out <- rbind(out, rows("mse", mse$domain, mse$mse))
  out
}

found <- list()
for (method in c("REML", "ML")) {
  fit <- eblupBHF(CornHec ~ CornPix + SoyBeansPix, County, meanxpop = means, popnsize = sizes,
    method = method, data = units)
  found <- c(found, list(answer("eblupBHF", paste("corn", method), fit)))
}
fit <- eblupBHF(SoyBeansHec ~ CornPix + SoyBeansPix, County, selectdom = c(10, 1, 5),
  meanxpop = means, popnsize = sizes, method = "ML", data = cornsoybean)
found <- c(found, list(answer("eblupBHF", "soybeans ML", fit)))
sae_seed(3)
fit <- pbmseBHF(CornHec ~ CornPix + SoyBeansPix, County, meanxpop = means, popnsize = sizes, B = 5,
  data = units)
found <- c(found, list(answer("pbmseBHF", "corn REML", fit$est, fit$mse)))

names(cornsoybean) <- c("county", "corn", "soybeans", "corn_pixels", "soybean_pixels")
cornsoybean$county <- as.character(cornsoybean$county)
counties <- data.frame(county = as.character(means$CountyIndex), corn_pixels = means[[2]],
  soybean_pixels = means[[3]], segments = sizes$PopnSegments)
number <- function(table) {
  is_whole <- vapply(table, is.integer, NA)
  table[is_whole] <- lapply(table[is_whole], as.double)
  table
}
sae_save(list(
  "golden/inputs/sae_unit_segments.csv" = number(cornsoybean),
  "golden/inputs/sae_unit_counties.csv" = number(counties),
  "golden/sae_unit_cornsoybean__sae.csv" = do.call(rbind, found)
), "sae_unit.R")
