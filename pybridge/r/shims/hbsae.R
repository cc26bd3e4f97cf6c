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

# hbsae::fSAE.Area under its own name. Inputs:
#   domains             names of the areas, those with a direct estimate first
#   estimate, variance  est.init and var.init of these
#   X, x                matrices with a row an area (x: an area with a direct estimate), or NULL
#   names, terms        row names of X (NULL: as domains), and column names
#   options             the remaining arguments under their own names
#   prior               R code of the prior's density as a function of sv2/se2, or NULL
#   file                where to keep the object, or NULL
hbsae_fSAE_Area <- function(inputs) {
  fit <- hbsae_object(inputs)
  shared_keep(fit, inputs$file)
  vectors <- c(
    "raneff", "Vraneff", "gamma", "g1", "g2", "synth", "res", "CV_per_area", "relErrM", "relErrV"
  )
  scalars <- c("sigma2.hat", "sigma2.se", "lambdaREML", "lambdahat", "CV", "p.eff", "llh.c")
  out <- list(
    domain = names(hbsae::EST(fit)), est = as.vector(hbsae::EST(fit)),
    mse = as.vector(hbsae::MSE(fit)), in_sample = as.numeric(fit$inSampleAreas)
  )
  for (name in vectors) if (!is.null(fit[[name]])) out[[name]] <- as.numeric(fit[[name]])
  for (name in scalars) if (length(fit[[name]]) == 1L) out[[name]] <- as.numeric(fit[[name]])
  if (!is.null(fit$beta)) {
    out$terms <- names(fit$beta)
    out$beta <- as.vector(fit$beta)
    out$Vbeta <- unname(as.matrix(fit$Vbeta))
  }
  sv2 <- try(hbsae::sv2(fit), silent = TRUE)
  if (is.numeric(sv2)) out$sv2 <- as.numeric(sv2)
  out
}

hbsae_object <- function(inputs) {
  n <- length(inputs$estimate)
  known <- inputs$domains[seq_len(n)]
  words <- list(
    est.init = stats::setNames(inputs$estimate, known),
    var.init = stats::setNames(inputs$variance, known)
  )
  if (!is.null(inputs$X)) {
    X <- inputs$X
    dimnames(X) <- list(if (is.null(inputs$names)) inputs$domains else inputs$names, inputs$terms)
    words$X <- X
  }
  if (!is.null(inputs$x)) {
    x <- inputs$x
    dimnames(x) <- list(known, inputs$x_terms)
    words$x <- x
  }
  if (!is.null(inputs$prior)) words$prior <- hbsae_density(inputs$prior)
  do.call(hbsae::fSAE.Area, c(words, inputs$options, list(silent = TRUE)))
}

hbsae_density <- function(text) {
  eval(parse(text = text, keep.source = FALSE), asNamespace("stats"))
}

# What is wrong with R code of a prior, "" for nothing: whether it is one function that R can read.
hbsae_prior <- function(inputs) {
  found <- tryCatch(hbsae_density(inputs$prior), error = function(condition) condition)
  problem <- if (inherits(found, "condition")) {
    conditionMessage(found)
  } else if (!is.function(found)) {
    "it is no function"
  } else {
    ""
  }
  list(problem = problem)
}

# The design matrix of a formula without a left-hand side.
hbsae_design <- function(inputs) shared_design(inputs)
