# The exact maximum of the generalised Pareto likelihood, with base R alone.
#
#   cd r_reference && Rscript gpd_exact.R
#
# For a given shape the best scale is found by optimize on the log scale, and the shape by optimize
# on that profile; then Newton steps on the closed-form score and second derivatives polish both.
# The standard errors are from the closed-form observed information.

source("_gpd.R")
samples <- gpd_samples()

nllh <- function(p, y) {
  w <- 1 + p[2] * y / p[1]
  if (p[1] <= 0 || any(w <= 0)) return(Inf)
  length(y) * log(p[1]) + (1 + 1 / p[2]) * sum(log(w))
}

score <- function(p, y) {
  z <- y / p[1]
  w <- 1 + p[2] * z
  c(-length(y) / p[1] + (1 + p[2]) / p[1] * sum(z / w),
    sum(log(w)) / p[2]^2 - (1 + 1 / p[2]) * sum(z / w))
}

information <- function(p, y) {
  z <- y / p[1]
  w <- 1 + p[2] * z
  ss <- length(y) / p[1]^2 - (1 + p[2]) / p[1]^2 * sum(z * (2 + p[2] * z) / w^2)
  sk <- sum(z * (1 - z) / w^2) / p[1]
  kk <- sum(-2 * log(w) / p[2]^3 + 2 * z / (p[2]^2 * w) + (1 + 1 / p[2]) * z^2 / w^2)
  -matrix(c(ss, sk, sk, kk), 2)
}

exact <- function(y) {
  best_scale <- function(shape) {
    low <- if (shape < 0) log(-shape * max(y)) + 1e-9 else log(mean(y)) - 12
    optimize(function(s) nllh(c(exp(s), shape), y), c(low, log(max(y)) + 6), tol = 1e-10)
  }
  profile <- function(shape) best_scale(shape)$objective
  grid <- seq(-0.953, 3, by = 0.1)
  centre <- grid[which.min(vapply(grid, profile, 0))]
  shape <- optimize(profile, centre + c(-0.1, 0.1), tol = 1e-9)$minimum
  p <- c(exp(best_scale(shape)$minimum), shape)
  for (i in 1:20) {
    step <- solve(information(p, y), score(p, y))
    p <- p + step
    if (all(abs(step) < 1e-15 * abs(p))) break
  }
  v <- solve(information(p, y))
  c(scale = p[1], shape = p[2], scale_se = sqrt(v[1, 1]), shape_se = sqrt(v[2, 2]),
    covariance = v[1, 2], nllh = nllh(p, y), n_exceedances = length(y))
}

tables <- list()
for (name in names(samples)) {
  sample <- samples[[name]]
  tables[[paste0("golden/gpd_", name, "__R.csv")]] <- do.call(rbind, lapply(sample$u, function(u) {
    gpd_rows(name, u, "exact", exact(sample$x[sample$x > u] - u))
  }))
}
gpd_save(tables, "gpd_exact.R", c("evir", "ismev"))
