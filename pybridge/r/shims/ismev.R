# Generalised Pareto fits by the package ismev. Every function takes a named list of plain vectors
# and returns one; an R user can source this file and call them.

# ismev::gpd.fit without covariates.
#   x          the scores, or with guarded = TRUE the excesses over the threshold
#   threshold  NULL with guarded = TRUE
#   guarded    divide the excesses by their mean first and scale the answer back: its numerical
#              Hessian and its penalty depend on the units
#   unit       what to divide by instead of the mean, or NULL
#   arguments  further arguments of gpd.fit, by its own names; what is left goes to optim's control
ismev_gpd_fit <- function(inputs) {
  unit <- shared_unit(inputs)
  fit <- ismev_fit(inputs, unit)
  covariance <- fit$cov
  by <- c(unit, 1)
  full <- !is.null(covariance) && all(dim(covariance) == 2L)
  list(
    scale = fit$mle[1L] * unit, shape = fit$mle[2L],
    covariance = if (full) unname(covariance) * outer(by, by) else NULL,
    nllh = fit$nllh + fit$nexc * log(unit),
    convergence = as.numeric(fit$conv), n = as.numeric(fit$nexc)
  )
}

ismev_fit <- function(inputs, unit) {
  guarded <- isTRUE(inputs$guarded)
  x <- if (guarded) inputs$x / unit else inputs$x
  arguments <- inputs$arguments
  if (!is.null(arguments$siginit)) arguments$siginit <- arguments$siginit / unit
  threshold <- if (guarded) 0 else inputs$threshold
  do.call(ismev::gpd.fit, c(list(xdat = x, threshold = threshold, show = FALSE), arguments))
}

# Save the object of class "gpd.fit", for readRDS(); with guarded = TRUE that of the excesses divided
# by their unit, which is kept in its element "unit".
ismev_save <- function(inputs) {
  unit <- shared_unit(inputs)
  fit <- ismev_fit(inputs, unit)
  fit$unit <- unit
  shared_keep(fit, inputs$path)
  list(saved = inputs$path)
}
