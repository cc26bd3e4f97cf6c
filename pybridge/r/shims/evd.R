# Generalised Pareto fits by the package evd. Every function takes a named list of plain vectors and
# returns one; an R user can source this file and call them.

# evd::fpot, model "gpd".
#   x          the scores, or with guarded = TRUE the excesses over the threshold
#   threshold  NULL with guarded = TRUE
#   guarded    divide the excesses by their mean first and scale the answer back: fpot's optimiser
#              has absolute steps, and what it finds depends on the units
#   unit       what to divide by instead of the mean, or NULL
#   arguments  further arguments of fpot, by its own names
evd_fpot <- function(inputs) {
  guarded <- isTRUE(inputs$guarded)
  unit <- shared_unit(inputs)
  x <- if (guarded) inputs$x / unit else inputs$x
  arguments <- evd_arguments(inputs$arguments, unit)
  threshold <- if (guarded) 0 else inputs$threshold
  fit <- do.call(evd::fpot, c(list(x = x, threshold = threshold), arguments))
  evd_values(fit, unit)
}

# A start is in the user's units.
evd_arguments <- function(arguments, unit) {
  if (!is.null(arguments$start$scale)) arguments$start$scale <- arguments$start$scale / unit
  arguments
}

evd_values <- function(fit, unit) {
  v <- fit$var.cov
  by <- c(unit, 1)
  full <- !is.null(v) && all(dim(v) == 2L)
  list(
    scale = unname(fit$param["scale"]) * unit, shape = unname(fit$param["shape"]),
    covariance = if (full) unname(v) * outer(by, by) else NULL,
    nllh = fit$deviance / 2 + fit$nhigh * log(unit),
    convergence = as.character(fit$convergence), n = as.numeric(fit$nhigh)
  )
}

# Save the object of class "pot" that evd_fpot works with, for readRDS(). With guarded = TRUE it is
# that of the excesses divided by their unit, which is kept in its element "unit".
evd_save <- function(inputs) {
  guarded <- isTRUE(inputs$guarded)
  unit <- shared_unit(inputs)
  x <- if (guarded) inputs$x / unit else inputs$x
  arguments <- evd_arguments(inputs$arguments, unit)
  threshold <- if (guarded) 0 else inputs$threshold
  fit <- do.call(evd::fpot, c(list(x = x, threshold = threshold), arguments))
  fit$unit <- unit
  shared_keep(fit, inputs$path)
  list(saved = inputs$path)
}
