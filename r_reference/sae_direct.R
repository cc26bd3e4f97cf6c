# Reference values of sae's design-based estimators on its income data (52 provinces of Spain).
#
#   cd r_reference && Rscript sae_direct.R
#
# Writes the answers to golden/sae_direct_<outcome>__sae.csv: call, setting, quantity, key, value.
# Outcomes are the income, and whether it is below 6557.143, the poverty line of sae's vignette. The
# 17,199 persons are not written: the package has them.

suppressPackageStartupMessages(library(sae))
source("_sae.R")
data(incomedata)
data(sizeprov)
data(sizeprovedu)

incomedata$poor <- as.double(incomedata$income < 6557.143)
sizes <- sizeprov[, c("provlab", "Nd")]
strata <- sizeprovedu[, -2]
names(strata) <- c("provlab", "0", "1", "2", "3")

rows <- function(call, setting, domain, columns) {
  do.call(rbind, lapply(names(columns), function(name) {
    sae_rows(call, setting, name, domain, columns[[name]])
  }))
}

answers <- function(y) {
  d <- incomedata
  found <- list(
    weights = direct(d[[y]], d$provlab, d$weight, sizes),
    simple = direct(d[[y]], d$provlab, domsize = sizes),
    weights_replacement = direct(d[[y]], d$provlab, d$weight, sizes, replace = TRUE),
    simple_replacement = direct(d[[y]], d$provlab, replace = TRUE)
  )
  synthetic <- pssynt(d[[y]], d$weight, d$educ, strata)
  composite <- ssd(d$provlab, d$weight, sizes, found$weights[, c("Domain", "Direct")], synthetic)
  half <- ssd(d$provlab, d$weight, sizes, found$weights[, c("Domain", "Direct")], synthetic,
    delta = 1.5)
  rbind(
    do.call(rbind, lapply(names(found), function(setting) {
      rows("direct", setting, found[[setting]]$Domain, found[[setting]][-1])
    })),
    rows("pssynt", "education", synthetic$Domain, synthetic[-1]),
    rows("ssd", "delta 1", composite$Domain, composite[-1]),
    rows("ssd", "delta 1.5", half$Domain, half[-1])
  )
}

sae_save(list(
  "golden/sae_direct_income__sae.csv" = answers("income"),
  "golden/sae_direct_poor__sae.csv" = answers("poor")
), "sae_direct.R")
