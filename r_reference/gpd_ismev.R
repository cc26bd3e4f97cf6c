# Reference values of ismev::gpd.fit for the generalised Pareto distribution.
#
#   cd r_reference && Rscript gpd_ismev.R
#
# Variants: "default" is the plain call; "tight" divides the excesses by their mean and gives
# Nelder-Mead a relative tolerance of 1e-15.

source("_gpd.R")
samples <- gpd_samples()

quantities <- function(fit, by = 1) {
  c(scale = fit$mle[1] * by, shape = fit$mle[2], scale_se = fit$se[1] * by, shape_se = fit$se[2],
    covariance = fit$cov[1, 2] * by, nllh = fit$nllh + fit$nexc * log(by),
    n_exceedances = fit$nexc, rate = fit$rate, converged = as.numeric(fit$conv == 0))
}

attempt <- function(expression) {
  tryCatch(suppressWarnings(expression), error = function(e) c(error = 1))
}

fits <- function(name) {
  sample <- samples[[name]]
  do.call(rbind, lapply(sample$u, function(u) {
    y <- sample$x[sample$x > u] - u
    plain <- attempt(quantities(ismev::gpd.fit(sample$x, u, show = FALSE)))
    tight <- attempt(quantities(
      ismev::gpd.fit(y / mean(y), 0, show = FALSE, reltol = 1e-15, maxit = 10000), by = mean(y)))
    tight[["rate"]] <- length(y) / length(sample$x)
    rbind(gpd_rows(name, u, "default", plain), gpd_rows(name, u, "tight", tight))
  }))
}

tables <- list()
for (name in names(samples)) {
  tables[[paste0("golden/gpd_", name, "__ismev.csv")]] <- fits(name)
}

range <- ismev::gpd.fitrange(samples$rain$x, 10, 40, nint = 6, show = FALSE)
tables[["golden/gpd_rain_range__ismev.csv"]] <- data.frame(threshold = range$threshold,
  scale = range$mle[, 1], shape = range$mle[, 2], scale_se = range$se[, 1],
  shape_se = range$se[, 2])

gpd_save(tables, "gpd_ismev.R", c("ismev", "evir"))
