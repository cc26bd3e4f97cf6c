# evir::gpd. Takes a named list of plain vectors and returns one; an R user can source this file.
#   data, threshold (in `arguments`) are divided by `unit`, 1 or a power of two, before evir sees
#   them; the answer goes back in those units.
evir_gpd <- function(inputs) {
  words <- inputs$arguments
  if (!is.null(words$threshold)) words$threshold <- words$threshold / inputs$unit
  fit <- do.call(evir::gpd, c(list(inputs$data / inputs$unit), words))
  if (!is.null(inputs$file)) {
    if (inputs$unit != 1) fit$unit <- inputs$unit
    shared_keep(fit, inputs$file)
  }
  list(
    par.ests = unname(fit$par.ests), par.ses = unname(fit$par.ses), varcov = unname(fit$varcov),
    threshold = fit$threshold, p.less.thresh = fit$p.less.thresh,
    n.exceed = as.numeric(fit$n.exceed), converged = as.numeric(fit$converged),
    nllh = as.numeric(fit$nllh.final + fit$n.exceed * log(inputs$unit)),
    information = fit$information
  )
}
