# Reference values of sae's spatial and spatio-temporal Fay-Herriot models.
#
#   cd r_reference && Rscript sae_spatial.R
#
# Writes for each case the table and the proximity matrix (row, column, value) to golden/inputs/,
# and the answers to golden/sae_spatial_<case>__sae.csv: call, setting, quantity, key, value. The
# bootstraps have few replicates: they are there for their digits. Plain R, no Python near it.

suppressPackageStartupMessages(library(sae))
source("_sae.R")
data(grapes)
data(grapesprox)
data(spacetime)
data(spacetimeprox)

TIGHT <- list(PRECISION = 1e-12, MAXITER = 1000)

# Domains on a ring, each with its two neighbours.
ring <- function(m, seed, rho, variance) {
  W <- matrix(0, m, m)
  for (i in seq_len(m)) W[i, c(i %% m + 1, (i - 2) %% m + 1)] <- 0.5
  sae_seed(seed)
  x <- rnorm(m)
  d <- exp(rnorm(m, 0, 0.5))
  v <- solve(diag(m) - rho * W, rnorm(m, 0, sqrt(variance)))
  y <- 1 + x + v + rnorm(m, 0, sqrt(d))
  list(table = data.frame(domain = seq_len(m), y = y, d = d, x = x), W = W)
}

cases <- list(
  grapes = list(
    table = data.frame(domain = seq_len(nrow(grapes)), y = grapes$grapehect, d = grapes$var,
      x1 = grapes$area, x2 = grapes$workdays),
    W = as.matrix(grapesprox), formula = y ~ x1 + x2 - 1
  ),
  ring = c(ring(25, 4, 0.6, 3), formula = y ~ x),
  negative = c(ring(40, 11, -0.7, 2), formula = y ~ x),
  spacetime = list(
    table = with(spacetime, data.frame(domain = Area, time = Time, y = Y, d = Var, x1 = X1, x2 = X2)),
    W = as.matrix(spacetimeprox), formula = y ~ x1 + x2
  )
)

answer <- function(call, setting, est, mse = NULL) {
  fit <- est$fit
  rows <- function(quantity, key, value) sae_rows(call, setting, quantity, key, value)
  out <- rbind(
    rows("iterations", "", fit$iterations),
    rows("coefficient", seq_len(nrow(fit$estcoef)), fit$estcoef$beta),
    rows("coefficient_se", seq_len(nrow(fit$estcoef)), fit$estcoef$std.error),
    rows(names(fit$goodness), "", fit$goodness),
    rows("estimate", seq_along(est$eblup), est$eblup)
  )
  if (!is.null(fit$refvar)) {
    out <- rbind(out, rows("model_variance", "", fit$refvar),
      rows("spatial_correlation", "", fit$spatialcorr))
  } else {
    out <- rbind(out, rows("component", rownames(fit$estvarcomp), fit$estvarcomp$estimate),
      rows("component_se", rownames(fit$estvarcomp), fit$estvarcomp$std.error))
  }
  if (is.data.frame(mse)) {
    out <- rbind(out, rows("mse", seq_len(nrow(mse)), mse$mse),
      rows("mse_corrected", seq_len(nrow(mse)), mse$msebc))
  } else if (!is.null(mse)) {
    out <- rbind(out, rows("mse", seq_along(mse), mse))
  }
  out
}

spatial <- function(case, name) {
  data <- case$table
  W <- case$W
  found <- list()
  for (method in c("REML", "ML")) {
    fit <- mseSFH(case$formula, d, W, method = method, data = data)
    found <- c(found, list(answer("mseSFH", method, fit$est, fit$mse)))
    tight <- eblupSFH(case$formula, d, W, method = method, MAXITER = TIGHT$MAXITER,
      PRECISION = TIGHT$PRECISION, data = data)
    found <- c(found, list(answer("eblupSFH", paste(method, "tight"), tight)))
  }
  if (name == "ring") {
    sae_seed(3)
    fit <- pbmseSFH(case$formula, d, W, B = 5, data = data)
    found <- c(found, list(answer("pbmseSFH", "REML", fit$est, fit$mse)))
    sae_seed(3)
    fit <- npbmseSFH(case$formula, d, W, B = 5, data = data)
    found <- c(found, list(answer("npbmseSFH", "REML", fit$est, fit$mse)))
  }
  do.call(rbind, found)
}

space_time <- function(case) {
  data <- case$table
  found <- list()
  for (model in c("S", "ST")) {
    sae_seed(3)
    fit <- pbmseSTFH(case$formula, 11, 3, d, case$W, B = 5, model = model, data = data)
    found <- c(found, list(answer("pbmseSTFH", model, fit$est, fit$mse)))
    tight <- eblupSTFH(case$formula, 11, 3, d, case$W, model = model, MAXITER = TIGHT$MAXITER,
      PRECISION = TIGHT$PRECISION, data = data)
    found <- c(found, list(answer("eblupSTFH", paste(model, "tight"), tight)))
  }
  do.call(rbind, found)
}

tables <- list()
for (name in names(cases)) {
  case <- cases[[name]]
  tables[[paste0("golden/inputs/sae_spatial_", name, ".csv")]] <- case$table
  tables[[paste0("golden/inputs/sae_spatial_", name, "_proximity.csv")]] <- sae_triplets(case$W)
  tables[[paste0("golden/sae_spatial_", name, "__sae.csv")]] <-
    if (name == "spacetime") space_time(case) else spatial(case, name)
}
sae_save(tables, "sae_spatial.R")
