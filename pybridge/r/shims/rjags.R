# The taxonomy model by the package rjags (JAGS). Every function takes a named list of plain vectors
# and returns one; an R user can source this file and call them.

# The model's text: normal coefficients with precision `diffuse`, inverse-gamma variances.
#   levels  names of the coarser levels, coarse to fine; may be empty
rjags_taxonomy_text <- function(levels) {
  place <- seq_along(levels)
  sums <- paste0(sprintf(" + v_%s[%s[i]]", levels, levels), collapse = "")
  groups <- paste0(
    sprintf("  for (g in 1:n_%s) { v_%s[g] ~ dnorm(0, tau[%d]) }\n", levels, levels, place),
    collapse = ""
  )
  leaf <- length(levels) + 1
  paste0(
    "model {\n",
    "  for (i in 1:m) {\n",
    "    mu[i] <- inprod(X[i, ], beta)", if (length(levels)) sums, "\n",
    "    theta[i] ~ dnorm(mu[i], tau[", leaf, "])\n",
    "  }\n",
    "  for (k in 1:n) { z[k] ~ dnorm(theta[known[k]], 1 / d[k]) }\n",
    if (length(levels)) groups,
    "  for (r in 1:", leaf, ") { tau[r] ~ dgamma(shape[r], rate[r]) }\n",
    "  for (j in 1:p) { beta[j] ~ dnorm(0, diffuse) }\n}\n"
  )
}

# Draws from the posterior, summarised.
#   estimate, variance  the n domains with a direct estimate
#   place               their rows in covariates, counted from 1
#   covariates          the m x p design matrix of all domains
#   levels              named list of codes 1, 2, ... of length m, coarse to fine, without the
#                       domain; may be empty
#   shape, rate         of the inverse-gamma priors, one a level, coarse to fine, the domain last
#   diffuse             precision of the coefficients
#   n_chains, n_adapt, n_burn, n_draws, thin, seed, tails
rjags_taxonomy <- function(inputs) {
  draws <- rjags_taxonomy_draws(inputs)
  rjags_taxonomy_summary(draws, inputs$covariates, as.list(inputs$levels), inputs)
}

rjags_taxonomy_draws <- function(inputs) {
  X <- inputs$covariates
  levels <- as.list(inputs$levels)
  data <- list(
    m = nrow(X), n = length(inputs$estimate), p = ncol(X), X = X, known = inputs$place,
    z = inputs$estimate, d = inputs$variance, shape = inputs$shape, rate = inputs$rate,
    diffuse = inputs$diffuse
  )
  for (level in names(levels)) {
    data[[level]] <- levels[[level]]
    data[[paste0("n_", level)]] <- max(levels[[level]])
  }
  watched <- c("beta", "tau", "theta", if (length(levels)) paste0("v_", names(levels)))
  rjags_draws(rjags_taxonomy_text(names(levels)), data, watched, inputs)
}

# Chains of a model given as text. Without a seed JAGS takes the clock's. `inits` are starting
# values of every chain, or a list of them, chain1, chain2 ...; n_iter iterations, else n_draws kept.
rjags_draws <- function(model, data, watched, inputs) {
  inits <- lapply(seq_len(inputs$n_chains), function(chain) {
    own <- as.list(inputs$inits)
    if (is.list(own[["chain1"]])) own <- as.list(own[[chain]])
    if (is.null(inputs$seed)) return(own)
    c(own, list(.RNG.name = "base::Mersenne-Twister", .RNG.seed = inputs$seed + chain))
  })
  words <- if (length(inits[[1L]])) list(inits = inits)
  text <- textConnection(model)
  on.exit(close(text))
  fit <- do.call(rjags::jags.model, c(list(text, data), words, list(
    n.chains = inputs$n_chains, n.adapt = inputs$n_adapt, quiet = TRUE
  )))
  if (inputs$n_burn > 0) stats::update(fit, inputs$n_burn, progress.bar = "none")
  iterations <- inputs$n_draws * inputs$thin
  if (!is.null(inputs$n_iter)) iterations <- inputs$n_iter
  rjags::coda.samples(fit, watched, iterations,
    thin = inputs$thin, na.rm = !identical(inputs$na_rm, FALSE), progress.bar = "none"
  )
}

rjags_taxonomy_summary <- function(draws, X, levels, inputs) {
  all <- as.matrix(draws)
  column <- function(name, count) {
    if (count == 1 && name %in% colnames(all)) name else paste0(name, "[", seq_len(count), "]")
  }
  beta_names <- column("beta", ncol(X))
  tau_names <- column("tau", length(levels) + 1)
  beta <- all[, beta_names, drop = FALSE]
  s <- 1 / all[, tau_names, drop = FALSE]
  theta <- all[, column("theta", nrow(X)), drop = FALSE]
  synthetic <- beta %*% t(X)
  effects <- list()
  for (level in names(levels)) {
    v <- all[, column(paste0("v_", level), max(levels[[level]])), drop = FALSE]
    synthetic <- synthetic + v[, levels[[level]], drop = FALSE]
    effects[[level]] <- list(mean = colMeans(v), standard_error = apply(v, 2, stats::sd))
  }
  own <- theta - synthetic
  leaf <- s[, ncol(s)]
  gamma <- rep(0, nrow(X))
  gamma[inputs$place] <- vapply(inputs$variance, function(d) mean(leaf / (leaf + d)), 0)
  bounds <- apply(theta, 2, stats::quantile, probs = inputs$tails)
  watched <- draws[, c(tau_names, beta_names), drop = FALSE]
  logged <- coda::as.mcmc.list(lapply(watched, function(chain) {
    chain[, tau_names] <- log(chain[, tau_names])
    chain
  }))
  several <- length(draws) > 1
  list(
    estimate = colMeans(theta), mse = apply(theta, 2, stats::var), lower = bounds[1, ],
    upper = bounds[2, ], synthetic = colMeans(synthetic), shrinkage = gamma,
    median = apply(s, 2, stats::median), mean = colMeans(s), beta = colMeans(beta),
    vb = as.vector(stats::cov(beta)), effects = effects, own = colMeans(own),
    own_error = apply(own, 2, stats::sd),
    r_hat = if (several) {
      as.vector(coda::gelman.diag(logged, autoburnin = FALSE, multivariate = FALSE)$psrf[, 1])
    } else {
      rep(NA_real_, ncol(s) + ncol(beta))
    },
    effective_size = as.vector(coda::effectiveSize(logged)), n_draws = nrow(all)
  )
}

# The chains themselves: of a model given as text (`model`, `data`, `variable_names`), or of the
# taxonomy model, back in the units of the data and with the variances as sigma2.
rjags_object <- function(inputs) {
  if (!is.null(inputs$model)) {
    return(rjags_draws(inputs$model, inputs$data, inputs$variable_names, inputs))
  }
  draws <- rjags_taxonomy_draws(inputs)
  coda::as.mcmc.list(lapply(draws, function(chain) {
    precision <- grepl("^tau", colnames(chain))
    chain[, precision] <- inputs$unit^2 / chain[, precision]
    chain[, !precision] <- chain[, !precision] * inputs$unit
    colnames(chain) <- sub("^tau", "sigma2", colnames(chain))
    chain
  }))
}

# The same, summarised: a row a parameter.
rjags_samples <- function(inputs) {
  draws <- rjags_object(inputs)
  shared_keep(draws, inputs$file, inputs$labels)
  all <- as.matrix(draws)
  known <- !apply(is.na(all), 2, any) # na.rm = FALSE keeps nodes that miss values
  bounds <- matrix(NA_real_, 3L, ncol(all))
  bounds[, known] <- apply(all[, known, drop = FALSE], 2, stats::quantile,
    probs = c(inputs$tails[1], 0.5, inputs$tails[2])
  )
  size <- rep(NA_real_, ncol(all))
  if (any(known)) size[known] <- as.vector(coda::effectiveSize(draws[, known, drop = FALSE]))
  spread <- apply(all, 2, stats::sd)
  r_hat <- rep(NA_real_, ncol(all))
  moving <- vapply(seq_len(ncol(all)), function(k) {
    known[k] && all(vapply(draws, function(chain) stats::var(chain[, k]) > 0, TRUE))
  }, TRUE)
  if (length(draws) > 1 && any(moving)) {
    found <- coda::gelman.diag(draws[, moving, drop = FALSE], autoburnin = FALSE,
      multivariate = FALSE)
    r_hat[moving] <- found$psrf[, 1]
  }
  list(
    parameter = coda::varnames(draws, allow.null = FALSE), mean = colMeans(all),
    standard_deviation = spread, lower = bounds[1, ], median = bounds[2, ], upper = bounds[3, ],
    r_hat = r_hat, effective_size = size, monte_carlo_error = spread / sqrt(size),
    n_draws = nrow(all)
  )
}

# The two sides of a formula, missing outcomes passed on.
rjags_design <- function(inputs) shared_design(inputs)
