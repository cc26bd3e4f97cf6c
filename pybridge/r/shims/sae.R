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

# The functions of sae under their own names. Every input of one of them holds
#   formula, functions  the model as text in R's words, and the functions it may call
#   data                the columns, a named list; the other arguments name their columns
#   options             the remaining arguments, a named list
#   seed                for what is drawn at random, or NULL
#   file, labels        where to keep the object that R returned, and what its rows are, or NULL
#   columns             for that object too: what made-up names of columns stand for
#   at_zero             TRUE where the answer is to be the solution at 0, which sae does not get to
# and comes back as R's own numbers under R's own names.

sae_formula <- function(inputs) shared_formula(inputs$formula, shared_columns(inputs$data), inputs$functions)

# The two sides of a formula, before anything is fitted.
sae_design <- function(inputs) {
  formula <- sae_formula(inputs)
  shared_outcome_once(formula)
  frame <- stats::model.frame(formula, na.action = stats::na.pass)
  X <- stats::model.matrix(formula, frame)
  y <- stats::model.response(frame)
  list(y = as.numeric(y), X = unname(X[, , drop = FALSE]), terms = colnames(X))
}

sae_eblupFH <- function(inputs) {
  formula <- sae_formula(inputs)
  vardir <- inputs$data[[inputs$vardir]]
  o <- inputs$options
  shared_seed(inputs$seed)
  fit <- sae::eblupFH(formula, vardir, o$method, o$MAXITER, o$PRECISION, o$B)
  if (isTRUE(inputs$at_zero)) fit <- sae_fh_put_zero(fit, formula, vardir)
  shared_keep(fit, inputs$file, inputs$labels, inputs$columns)
  sae_area_reply(formula, fit)
}

sae_mseFH <- function(inputs) {
  formula <- sae_formula(inputs)
  vardir <- inputs$data[[inputs$vardir]]
  o <- inputs$options
  shared_seed(inputs$seed)
  fit <- sae::mseFH(formula, vardir, o$method, o$MAXITER, o$PRECISION, o$B)
  if (isTRUE(inputs$at_zero)) fit <- sae_fh_put_zero(fit, formula, vardir)
  shared_keep(fit, inputs$file, inputs$labels, inputs$columns)
  sae_area_reply(formula, fit$est, fit$mse)
}

# Where the moment equation has its solution at 0 and the iteration does not get there.
sae_mseFH_at_zero <- function(inputs) {
  formula <- sae_formula(inputs)
  vardir <- inputs$data[[inputs$vardir]]
  X <- unname(stats::model.matrix(formula))
  y <- stats::model.response(stats::model.frame(formula))
  if (!sae_fh_zero_is_root(y, X, vardir)) return(list())
  sae_fh_at_zero(y, X, vardir)
}

# And put into what sae returned, in its own form; its flag stays as it is.
sae_fh_put_zero <- function(fit, formula, vardir, data = environment(formula)) {
  frame <- stats::model.frame(formula, data)
  X <- stats::model.matrix(formula, frame)
  zero <- sae_fh_at_zero(stats::model.response(frame), unname(X), vardir)
  est <- if (is.null(fit$est)) fit else fit$est
  if (est$fit$convergence) return(fit)
  est$eblup <- matrix(zero$eblup, ncol = 1L, dimnames = list(rownames(X), NULL))
  est$fit$estcoef <- data.frame(
    beta = zero$beta, std.error = zero$std_error, tvalue = zero$t_value, pvalue = zero$p_value,
    # mseFH calls eblupFH with the design matrix for a covariate.
    row.names = colnames(if (is.null(fit$est)) X else stats::model.matrix(~ X - 1))
  )
  est$fit$refvar <- 0
  est$fit$goodness <- stats::setNames(zero$goodness, zero$goodness_names)
  if (is.null(fit$est)) return(est)
  list(est = est, mse = zero$mse)
}

# What sae's area-level functions return, without what is not there when they do not converge.
sae_area_reply <- function(formula, est, mse = NULL) {
  fit <- est$fit
  out <- list(convergence = fit$convergence, iterations = as.numeric(fit$iterations))
  if (is.data.frame(fit$estcoef)) {
    out <- c(out, list(
      eblup = as.vector(est$eblup), terms = colnames(stats::model.matrix(formula)),
      beta = fit$estcoef$beta, std_error = fit$estcoef$std.error, t_value = fit$estcoef$tvalue,
      p_value = fit$estcoef$pvalue, goodness = as.numeric(fit$goodness),
      goodness_names = names(fit$goodness)
    ))
    if (!is.null(fit$refvar)) out$refvar <- as.numeric(fit$refvar)
    if (!is.null(fit$spatialcorr)) out$spatialcorr <- as.numeric(fit$spatialcorr)
  }
  if (is.data.frame(fit$estvarcomp)) {
    out$components <- rownames(fit$estvarcomp)
    out$component_estimate <- fit$estvarcomp$estimate
    out$component_std_error <- fit$estvarcomp$std.error
  }
  if (is.matrix(fit$estvarcomp_iterations)) {
    out$component_iterations <- unname(fit$estvarcomp_iterations)
  }
  if (is.data.frame(mse)) {
    out$mse <- mse$mse
    out$msebc <- mse$msebc
  } else if (is.numeric(mse)) {
    out$mse <- as.vector(mse)
  }
  out
}
