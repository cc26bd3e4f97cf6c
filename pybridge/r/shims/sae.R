# Area-level models by the package sae. Every function takes a named list of plain vectors and
# returns one; an R user can source this file and call them.

# Fay-Herriot by sae::mseFH, which calls sae::eblupFH.
#   estimate, variance  the m domains with a direct estimate
#   covariates          the m x p design matrix
#   method              "REML", "ML" or "FH"
#   MAXITER, PRECISION, B  as in sae
#   seed                for the bootstrap criteria (B >= 1)
#   outside             design matrix of the domains without a direct estimate, or NULL
#   guarded             FALSE: what sae returns and nothing else
sae_fay_herriot <- function(inputs) {
  y <- inputs$estimate
  X <- inputs$covariates
  vardir <- inputs$variance
  if (!is.null(inputs$seed)) {
    set.seed(inputs$seed, "Mersenne-Twister", "Inversion", "Rejection")
  }
  fit <- sae::mseFH(y ~ X - 1, vardir,
    method = inputs$method,
    MAXITER = inputs$MAXITER, PRECISION = inputs$PRECISION, B = inputs$B
  )
  est <- fit$est$fit
  out <- list(
    convergence = est$convergence, iterations = as.numeric(est$iterations), at_zero = FALSE
  )
  if (est$convergence) {
    out <- c(out, list(
      eblup = as.vector(fit$est$eblup), mse = fit$mse, beta = est$estcoef$beta,
      std_error = est$estcoef$std.error, t_value = est$estcoef$tvalue,
      p_value = est$estcoef$pvalue, refvar = as.numeric(est$refvar),
      goodness = as.numeric(est$goodness), goodness_names = names(est$goodness)
    ))
  } else if (inputs$guarded && inputs$method == "FH" && sae_fh_zero_is_root(y, X, vardir)) {
    out$at_zero <- TRUE
    out <- c(out, sae_fh_at_zero(y, X, vardir))
  }
  if (!is.null(inputs$outside) && !is.null(out$beta)) {
    out <- c(out, sae_fh_outside(X, vardir, inputs$outside, out$beta, out$refvar, inputs$method))
  }
  out
}

# The moment equation sum((y - X b)^2 / (A + vardir)) = m - p falls in A: where it is not above its
# target at A = 0, the estimate is 0, and no iteration is needed to say so.
sae_fh_zero_is_root <- function(y, X, vardir) {
  if (any(vardir == 0)) return(FALSE)
  beta <- solve(crossprod(X / vardir, X), crossprod(X / vardir, y))
  sum((y - X %*% beta)^2 / vardir) <= nrow(X) - ncol(X)
}

# What sae::mseFH(method = "FH") returns where its iteration ends at A = 0.
sae_fh_at_zero <- function(y, X, vardir) {
  m <- nrow(X)
  p <- ncol(X)
  Vi <- 1 / vardir
  Q <- solve(crossprod(X * Vi, X))
  beta <- as.vector(Q %*% crossprod(X * Vi, y))
  std_error <- sqrt(diag(Q))
  Xbeta <- as.vector(X %*% beta)
  g2 <- rowSums((X %*% Q) * X)
  g3 <- 2 * m / sum(Vi)^2 / vardir
  bias <- 2 * (m * sum(Vi^2) - sum(Vi)^2) / sum(Vi)^3
  loglike <- -0.5 * sum(log(2 * pi * vardir) + (y - Xbeta)^2 / vardir)
  list(
    eblup = Xbeta, mse = g2 + 2 * g3 - bias, beta = beta, std_error = std_error,
    t_value = beta / std_error, p_value = 2 * pnorm(abs(beta / std_error), lower.tail = FALSE),
    refvar = 0,
    goodness = c(
      loglike, -2 * loglike + 2 * (p + 1), -2 * loglike + (p + 1) * log(m),
      -2 * loglike + 3 * (p + 1)
    ),
    goodness_names = c("loglike", "AIC", "BIC", "KIC")
  )
}

# sae has no prediction for domains without a direct estimate: x'beta, with the limit of its own
# mean squared error as the sampling variance grows, A + x'Cov(beta)x - b, b the bias of A.
sae_fh_outside <- function(X, vardir, outside, beta, A, method) {
  Vi <- 1 / (A + vardir)
  Q <- solve(crossprod(X * Vi, X))
  bias <- switch(method,
    REML = 0,
    ML = -sum(diag(Q %*% crossprod(X * Vi, X * Vi))) / sum(Vi^2),
    FH = 2 * (nrow(X) * sum(Vi^2) - sum(Vi)^2) / sum(Vi)^3
  )
  list(
    synthetic_outside = as.vector(outside %*% beta),
    mse_outside = A + rowSums((outside %*% Q) * outside) - bias
  )
}
