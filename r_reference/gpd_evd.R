# Reference values of evd::fpot for the generalised Pareto distribution.
#
#   cd r_reference && Rscript gpd_evd.R
#
# Variants: "default" is the plain call; "tight" divides the excesses by their mean, tightens the
# optimiser and scales back, since BFGS with finite differences depends on the units (steps below
# 1e-4 would see no slope at the start, since evd takes shapes of up to 2e-5 for zero). Where R
# stops, the quantity "error" is 1 and there is nothing else.

source("_gpd.R")
samples <- gpd_samples()

quantities <- function(fit, by = 1) {
  v <- unname(fit$var.cov)
  c(scale = fit$estimate[["scale"]] * by, shape = fit$estimate[["shape"]],
    scale_se = sqrt(v[1, 1]) * by, shape_se = sqrt(v[2, 2]), covariance = v[1, 2] * by,
    nllh = fit$deviance / 2 + fit$nhigh * log(by), n_exceedances = fit$nhigh,
    rate = fit$pat, converged = as.numeric(fit$convergence == "successful"))
}

attempt <- function(expression) tryCatch(expression, error = function(e) c(error = 1))

fits <- function(name) {
  sample <- samples[[name]]
  do.call(rbind, lapply(sample$u, function(u) {
    y <- sample$x[sample$x > u] - u
    plain <- attempt(quantities(evd::fpot(sample$x, u)))
    tight <- attempt(quantities(evd::fpot(y / mean(y), 0,
      control = list(reltol = 1e-14, ndeps = c(1e-4, 1e-4), maxit = 1000)), by = mean(y)))
    tight[["rate"]] <- length(y) / length(sample$x)
    rbind(gpd_rows(name, u, "default", plain), gpd_rows(name, u, "tight", tight))
  }))
}

tables <- list()
for (name in names(samples)) {
  tables[[paste0("golden/inputs/gpd_", name, ".csv")]] <- data.frame(score = samples[[name]]$x)
  tables[[paste0("golden/gpd_", name, "__evd.csv")]] <- fits(name)
}

# Mean residual life and threshold stability of the rain, as evd draws them.
pdf(NULL)
life <- evd::mrlplot(samples$rain$x, tlim = c(5, 60), nt = 12)
stability <- evd::tcplot(samples$rain$x, tlim = c(10, 40), nt = 7)
tables[["golden/gpd_rain_plots__evd.csv"]] <- rbind(
  data.frame(plot = "mean_residual_life", x = rep(life$x, 3),
    column = rep(c("lower", "estimate", "upper"), each = length(life$x)),
    value = as.numeric(life$y)),
  data.frame(plot = "shapes", x = rep(seq(10, 40, length.out = 7), 3),
    column = rep(c("lower", "estimate", "upper"), each = 7), value = as.numeric(stability$shapes)),
  data.frame(plot = "scales", x = rep(seq(10, 40, length.out = 7), 3),
    column = rep(c("lower", "estimate", "upper"), each = 7), value = as.numeric(stability$scales))
)

# The extremal index of the rain by runs and by the intervals estimator (r = 0).
tables[["golden/gpd_rain_extremal_index__evd.csv"]] <- data.frame(
  threshold = rep(c(20, 30), each = 4), run = rep(c(0, 1, 3, 10), 2),
  extremal_index = c(vapply(c(0, 1, 3, 10), function(r) evd::exi(samples$rain$x, 20, r = r), 0),
    vapply(c(0, 1, 3, 10), function(r) evd::exi(samples$rain$x, 30, r = r), 0)))

gpd_save(tables, "gpd_evd.R", c("evd", "evir", "ismev"))
