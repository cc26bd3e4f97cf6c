# The taxonomy model by the package metafor. Every function takes a named list of plain vectors and
# returns one; an R user can source this file and call them.

# Nested random intercepts with known sampling variances by metafor::rma.mv.
#   estimate, variance  the m domains with a direct estimate
#   covariates          the m x p design matrix
#   levels              named list of codes of length m, coarse to fine, the domain last
#   method              "REML" or "ML"
#   sparse              as in rma.mv
#   control             named list, as in rma.mv
metafor_taxonomy <- function(inputs) {
  data <- as.data.frame(lapply(inputs$levels, function(code) factor(code)))
  data$y <- inputs$estimate
  data$d <- inputs$variance
  levels <- names(inputs$levels)
  random <- lapply(levels, function(level) stats::as.formula(paste("~ 1 |", level)))
  fit <- metafor::rma.mv(y, d,
    mods = inputs$covariates, intercept = FALSE, random = random, data = data,
    method = inputs$method, sparse = inputs$sparse, control = as.list(inputs$control)
  )
  effects <- metafor::ranef(fit)
  found <- lapply(levels, function(level) {
    own <- effects[[level]]
    list(code = as.numeric(rownames(own)), effect = own$intrcpt, standard_error = own$se)
  })
  names(found) <- levels
  list(
    variances = as.numeric(fit$sigma2), beta = as.vector(fit$beta), vb = as.vector(fit$vb),
    log_likelihood = as.numeric(stats::logLik(fit)), effects = found
  )
}
