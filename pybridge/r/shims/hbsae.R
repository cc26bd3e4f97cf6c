# The Bayesian area-level model by the package hbsae. Every function takes a named list of plain
# vectors and returns one; an R user can source this file and call them.

# hbsae::fSAE.Area: flat priors on the coefficients and on the model variance.
#   estimate, variance  the domains with a direct estimate
#   place               their rows in covariates, counted from 1
#   covariates          the m x p design matrix of all domains
#   tolerance           rel.int.tol of fSAE.Area
hbsae_fay_herriot <- function(inputs) {
  X <- inputs$covariates
  names <- as.character(seq_len(nrow(X)))
  dimnames(X) <- list(names, paste0("x", seq_len(ncol(X))))
  known <- names[inputs$place]
  fit <- hbsae::fSAE.Area(
    stats::setNames(inputs$estimate, known), stats::setNames(inputs$variance, known), X,
    silent = TRUE, rel.int.tol = inputs$tolerance
  )
  in_order <- function(values) as.vector(values[match(names, names(values))])
  gamma <- rep(0, nrow(X))
  gamma[inputs$place] <- as.vector(fit$gamma)[seq_along(inputs$place)]
  list(
    estimate = in_order(hbsae::EST(fit)), mse = in_order(hbsae::MSE(fit)),
    synthetic = as.vector(X %*% fit$beta), shrinkage = gamma, beta = as.vector(fit$beta),
    vb = as.vector(as.matrix(fit$Vbeta)), variance_mean = as.numeric(hbsae::sv2(fit))
  )
}
