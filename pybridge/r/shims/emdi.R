# Area-level models, direct estimates and what follows from them by the package emdi. Every function
# takes a named list of plain vectors and returns one; an R user can source this file and call them.
#
# A request for emdi::fh, as all functions here but the last two take it:
#   data       named list of columns, as shared_columns() takes them, one row a domain
#   fixed      the formula, as text
#   arguments  the further arguments of emdi::fh, by its own names
#   proximity  corMatrix, of the domains with a direct estimate, or NULL
#   errors     Ci, as a vector, with its three dimensions in errors_dim, or NULL
#   guarded    FALSE: emdi::fh as it is, and nothing else
#   unit       guarded: the estimates are divided by it, their variances by its square
#   covariates_unit  guarded, method "me": the same for each column of the design matrix
#   exact      guarded: TRUE where a bias correction is to be exact

# ------------------------------------------------------------------------------------ the request

# The design matrix, whether each row has it by itself, the names in it, and the levels of the
# columns `text`, which become factors: R's own, in the order of its locale.
emdi_frame <- function(inputs) {
  shared_formula(inputs$fixed, inputs$data, inputs$functions)
  data <- shared_frame(inputs$data)
  for (name in inputs$text) data[[name]] <- factor(data[[name]])
  fixed <- emdi_formula(inputs)
  shared_outcome_once(fixed)
  seen <- !is.na(data[[inputs$outcome]])
  X <- emdi_design(fixed, data)
  apart <- X
  for (part in list(seen, !seen)) {
    if (any(part)) {
      piece <- try(emdi_design(fixed, data[part, , drop = FALSE]), silent = TRUE)
      same <- !inherits(piece, "try-error") && identical(dim(piece), dim(X[part, , drop = FALSE]))
      apart[part, ] <- if (same) piece else NA
    }
  }
  list(
    covariates = unname(X), names = colnames(X),
    own = isTRUE(all.equal(unname(apart), unname(X), tolerance = 1e-12)),
    levels = if (length(inputs$text)) lapply(unclass(data)[inputs$text], levels)
  )
}

emdi_formula <- function(inputs) as.formula(str2lang(inputs$fixed), env = globalenv())

emdi_design <- function(fixed, data) {
  part <- delete.response(terms(fixed))
  X <- model.matrix(part, model.frame(part, data, na.action = na.pass))
  attr(X, "assign") <- attr(X, "contrasts") <- NULL
  X
}

# What the call of emdi::fh sees under the names it uses.
emdi_place <- function(inputs) {
  place <- new.env(parent = globalenv())
  place$combined_data <- shared_frame(inputs$data)
  place$corMatrix <- inputs$proximity
  place$Ci <- if (!is.null(inputs$errors)) array(inputs$errors, inputs$errors_dim)
  place
}

emdi_plain <- function(inputs, fh = quote(emdi::fh)) {
  # set.seed() keeps the kinds of generators that it finds.
  RNGkind("Mersenne-Twister", "Inversion", "Rejection")
  place <- emdi_place(inputs)
  words <- list(fixed = str2lang(inputs$fixed), combined_data = quote(combined_data))
  if (!is.null(inputs$proximity)) words$corMatrix <- quote(corMatrix)
  if (!is.null(inputs$errors)) words$Ci <- quote(Ci)
  object <- eval(as.call(c(list(fh), words, inputs$arguments)), place)
  object$call[[1L]] <- quote(emdi::fh)
  environment(object$fixed) <- globalenv()
  object
}

# -------------------------------------------------------------------------------- the guarded call

emdi_object <- function(inputs) {
  if (!isTRUE(inputs$guarded)) return(emdi_plain(inputs))
  fh <- if (isTRUE(inputs$exact)) emdi_exact_fh() else quote(emdi::fh)
  if (inputs$arguments$method == "me") return(emdi_complete(emdi_scaled_me(inputs), inputs))
  if (inputs$unit == 1) return(emdi_complete(emdi_plain(inputs, fh), inputs))
  scaled <- emdi_divided(inputs, inputs$unit)
  emdi_complete(emdi_multiplied(emdi_plain(scaled, fh), inputs, inputs$unit), inputs)
}

# The request in units of `unit`. A power of 2 rounds nothing.
emdi_divided <- function(inputs, unit) {
  y <- inputs$outcome
  v <- inputs$arguments$vardir
  inputs$data[[y]] <- inputs$data[[y]] / unit
  inputs$data[[v]] <- inputs$data[[v]] / unit^2
  if (!is.null(inputs$arguments$interval)) {
    inputs$arguments$interval <- inputs$arguments$interval / unit^2
  }
  inputs
}

# An object of emdi::fh back in the units of the data.
emdi_multiplied <- function(object, inputs, unit) {
  object$ind[c("Direct", "FH")] <- object$ind[c("Direct", "FH")] * unit
  if (!is.null(object$MSE)) {
    object$MSE[c("Direct", "FH")] <- object$MSE[c("Direct", "FH")] * unit^2
  }
  model <- object$model
  model$coefficients[1:2] <- model$coefficients[1:2] * unit
  if (is.data.frame(model$variance)) {
    model$variance$variance <- model$variance$variance * unit^2
  } else {
    model$variance <- model$variance * unit^2
  }
  for (name in c("random_effects", "fitted", "real_residuals")) {
    model[[name]] <- model[[name]] * unit
  }
  model$beta_vcov <- model$beta_vcov * unit^2
  criteria <- model$model_select
  if (!is.null(criteria)) {
    shift <- object$framework$N_dom_smp * log(unit)
    for (name in setdiff(names(criteria), c("AdjR2", "FH_R2"))) {
      criteria[[name]] <- criteria[[name]] + (if (name == "loglike") -1 else 2) * shift
    }
    model$model_select <- criteria
  }
  object$model <- model
  object$framework$direct <- object$framework$direct * unit
  object$framework$vardir <- object$framework$vardir * unit^2
  data <- shared_frame(inputs$data)
  for (name in names(data)) object$framework$combined_data[[name]] <- data[[name]]
  if (!is.null(inputs$arguments$interval)) object$call$interval <- inputs$arguments$interval
  object
}

# The measurement error model iterates an inverse square root that fails on covariates of far apart
# scales, and stops at an absolute change: so on columns and estimates in units of their own.
emdi_scaled_me <- function(inputs) {
  unit <- inputs$unit
  by <- inputs$covariates_unit
  fixed <- emdi_formula(inputs)
  X <- emdi_design(fixed, shared_frame(inputs$data))
  columns <- paste0(".design", seq_along(by))
  scaled <- emdi_divided(inputs, unit)
  scaled$data <- scaled$data[c(inputs$outcome, inputs$arguments$vardir, inputs$arguments$domains)]
  scaled$data[columns] <- as.list(as.data.frame(unname(X) / rep(by, each = nrow(X))))
  scaled$fixed <- paste0(
    "`", inputs$outcome, "` ~ -1 + ", paste(columns, collapse = " + ")
  )
  scaled$errors <- as.vector(array(inputs$errors, inputs$errors_dim) / as.vector(outer(by, by)))
  object <- emdi_multiplied(emdi_plain(scaled), scaled, unit)
  model <- object$model
  model$coefficients[1:2] <- model$coefficients[1:2] / by
  rownames(model$coefficients) <- colnames(X)
  model$beta_vcov <- model$beta_vcov / outer(by, by)
  dimnames(model$beta_vcov) <- list(colnames(X), colnames(X))
  object$model <- model
  object$fixed <- fixed
  object$call$fixed <- str2lang(inputs$fixed)
  object$framework$combined_data <- shared_frame(inputs$data)
  object$framework$Ci <- array(inputs$errors, inputs$errors_dim)
  object
}

# emdi::fh with bias corrections that hold: its integral of sin(x)^2 over [0, pi/2] steps over a
# narrow density, and that of the logistic function stops at a variance of 0. Copies of emdi's own
# functions see these three in place of the package's; the package itself is not touched.
emdi_exact_fh <- function() {
  own <- new.env(parent = asNamespace("emdi"))
  own$integrate <- function(f, lower, upper, mean = environment(f)$mu_dri,
                            sd = sqrt(environment(f)$Var_dri)) {
    list(value = emdi_mean_sin2(mean, sd^2))
  }
  own$logit_inverse <- stats::plogis
  own$logit_bc <- function(M, mu, var, obs_dom) {
    ifelse(obs_dom, emdi_mean_plogis(mu, ifelse(obs_dom, var, 0)), stats::plogis(mu))
  }
  copies <- c(
    "arcsin_bc", "arcsin_point", "arcsin_mse", "arcsin_bt", "boot_arcsin_2", "logit_naive",
    "logit_point", "logit_mse", "logit_bt", "boot_logit", "backtransformed", "fh"
  )
  for (name in copies) {
    copy <- get(name, envir = asNamespace("emdi"))
    environment(copy) <- own
    assign(name, copy, envir = own)
  }
  own$fh
}

# E sin(x)^2 for x ~ N(mean, var), over the whole line.
emdi_mean_sin2 <- function(mean, var) (1 - exp(-2 * var) * cos(2 * mean)) / 2

# E plogis(x) for x ~ N(mean, var): the trapezoidal rule, which converges geometrically here; the
# step keeps to the poles of the logistic function, at imaginary part pi / sd.
emdi_mean_plogis <- function(mean, var) {
  sd <- sqrt(var)
  step <- min(0.25, 0.5 / max(1, sd))
  nodes <- seq(-ceiling(9 / step), ceiling(9 / step)) * step
  weights <- dnorm(nodes) / sum(dnorm(nodes))
  as.vector(plogis(outer(as.vector(sd), nodes) + as.vector(mean)) %*% weights)
}

# ------------------------------------------------------------- what emdi leaves out or has wrong

# Each change is kept beside the number that it replaces, in object$pybridge.
emdi_complete <- function(object, inputs) {
  kept <- list(estimate = object$ind$FH, mse = object$MSE$FH)
  object <- emdi_jackknife(object, inputs)
  outside <- object$ind$Out == 1
  if (any(outside)) object <- emdi_outside(object, inputs, outside)
  if (isTRUE(inputs$exact)) kept$bias_corrected <- emdi_own_correction(object, inputs)
  robust <- inputs$arguments$method %in% c("reblup", "reblupbc")
  if (robust && is.null(inputs$proximity)) kept$tight <- emdi_tight_variance(inputs)
  object$pybridge <- kept
  object
}

# emdi's numbers where the exact ones were asked for; NULL where it stops.
emdi_own_correction <- function(object, inputs) {
  inputs$arguments$MSE <- FALSE
  found <- try(suppressWarnings(emdi_plain(inputs)), silent = TRUE)
  if (inherits(found, "try-error")) NULL else found$ind$FH
}

# saeRobust stops at its limit of iterations without a word: the variance by a tighter tolerance.
emdi_tight_variance <- function(inputs) {
  tight <- emdi_divided(inputs, inputs$unit)
  tight$arguments$MSE <- FALSE
  tight$arguments$tol <- inputs$arguments$tol / 100
  tight$arguments$maxit <- 1000
  emdi_plain(tight)$model$variance * inputs$unit^2
}

# The delta method takes the square of the derivative of sin(x)^2; emdi takes the derivative.
emdi_jackknife <- function(object, inputs) {
  a <- inputs$arguments
  jackknife <- isTRUE(a$MSE) && a$mse_type %in% c("jackknife", "weighted_jackknife")
  if (!jackknife || a$method == "me") return(object)
  inside <- object$ind$Out == 0
  object$MSE$FH[inside] <- object$MSE$FH[inside] *
    sin(2 * as.vector(object$model$fitted + object$model$random_effects))
  object
}

# Domains without a direct estimate: the prediction where emdi has none, and a mean squared error
# that is the limit of the method's own as the sampling variance grows, A + x'Cov(beta)x - bias.
# emdi's own numbers stay where they are right: by REML, and after a bootstrap.
emdi_outside <- function(object, inputs, outside) {
  a <- inputs$arguments
  how <- paste(a$transformation, a$backtransformation)
  spatial <- !is.null(inputs$proximity)
  if (!spatial && a$method == "reml" && a$transformation %in% c("no", "log")) return(object)
  X <- emdi_design(emdi_formula(inputs), shared_frame(inputs$data))
  out <- X[outside, , drop = FALSE]
  A <- if (spatial) emdi_marginal(object, inputs) else object$model$variance
  beta <- object$model$coefficients[[1L]]
  mean <- as.vector(out %*% beta)
  bias <- if (spatial) 0 else {
    emdi_bias(A, object$framework$vardir, X[!outside, , drop = FALSE], a$method)
  }
  mse <- A + rowSums((out %*% object$model$beta_vcov) * out) - bias
  if (a$method == "me") mse <- mse + emdi_errors(inputs, outside, beta)
  if (how == "log bc_crude") {
    object$ind$FH[outside] <- exp(mean + 0.5 * mse)
    mse <- object$ind$FH[outside]^2 * mse
  } else if (how == "log bc_sm") {
    object$ind$FH[outside] <- exp(mean + 0.5 * A)
    mse <- exp(2 * mean + A) * (expm1(A) + mse - A)
  } else if (how == "arcsin bc") {
    object$ind$FH[outside] <- sin(pmin(pmax(mean, 0), pi / 2))^2
  } else if (a$transformation == "no") {
    absent <- outside & is.na(object$ind$FH)
    object$ind$FH[absent] <- mean[absent[outside]]
  }
  if (isTRUE(a$MSE) && a$mse_type != "boot" || isTRUE(a$MSE) && a$transformation == "no") {
    if (a$transformation == "arcsin") mse <- mse * sin(2 * mean)^2
    object$MSE$FH[outside] <- mse
  }
  object
}

# The mean marginal variance of the sampled domains' effects: what a domain elsewhere may have.
emdi_marginal <- function(object, inputs) {
  if (abs(object$model$variance$correlation) >= 0.9999) return(NA_real_)
  root <- diag(nrow(inputs$proximity)) - object$model$variance$correlation * inputs$proximity
  object$model$variance$variance * mean(diag(solve(crossprod(root))))
}

# beta'C beta, what the errors in the covariates add.
emdi_errors <- function(inputs, which, beta) {
  Ci <- array(inputs$errors, inputs$errors_dim)[, , which, drop = FALSE]
  apply(Ci, 3L, function(C) sum(beta * (C %*% beta)))
}

# The bias of the estimate of A, as emdi itself takes it for domains with a direct estimate.
emdi_bias <- function(A, vardir, X, method) {
  if (!method %in% c("ml", "amrl", "ampl", "ampl_yl")) return(0)
  Vi <- 1 / (A + vardir)
  trace <- 0
  if (method != "amrl") {
    trace <- -sum(diag(solve(crossprod(X * Vi, X)) %*% crossprod(X * Vi, X * Vi)))
  }
  (trace + if (method %in% c("amrl", "ampl")) 2 / A else 0) / sum(Vi^2)
}

# ------------------------------------------------------------------------------------- the answers

emdi_fh <- function(inputs) emdi_values(emdi_object(inputs))

# An object of class "fh" as plain vectors.
emdi_values <- function(object) {
  model <- object$model
  variance <- model$variance
  spatial <- is.data.frame(variance)
  list(
    domain = as.character(object$ind$Domain), direct = object$ind$Direct,
    estimate = as.vector(object$ind$FH), out = as.numeric(object$ind$Out),
    direct_variance = as.numeric(object$MSE$Direct), mse = as.vector(object$MSE$FH),
    coefficients = as.vector(model$coefficients[[1L]]), std_error = model$coefficients[[2L]],
    t_value = as.vector(model$coefficients[[3L]]), p_value = as.vector(model$coefficients[[4L]]),
    coefficient_names = rownames(model$coefficients),
    beta_vcov = unname(as.matrix(model$beta_vcov)),
    variance = if (spatial) variance$variance else as.numeric(variance),
    correlation = if (spatial) variance$correlation,
    convergence = if (spatial && !is.null(variance$convergence)) variance$convergence,
    gamma = model$gamma$Gamma,
    random_effects = as.vector(model$random_effects), fitted = as.vector(model$fitted),
    real_residuals = as.vector(model$real_residuals),
    std_real_residuals = as.vector(model$std_real_residuals),
    criteria = as.numeric(unlist(model$model_select)), criteria_names = names(model$model_select),
    mse_method = object$method$MSE_method,
    successful_bootstraps = object$successful_bootstraps,
    sampling_variance = as.vector(object$framework$vardir),
    transformed = as.vector(object$framework$direct),
    replaced = object$pybridge
  )
}

# Save the object for readRDS(), benchmarked where that was asked for.
emdi_save <- function(inputs) {
  object <- emdi_object(inputs)
  if (!is.null(inputs$benchmark)) object <- emdi_benchmarked(object, inputs$benchmark, TRUE)
  shared_keep(object, inputs$path)
  list(saved = inputs$path)
}

# ------------------------------------------------------------------------- what follows from a fit

# As much of an object of class "fh" or "direct" as the functions below look at, from what is known:
#   class, domain, direct, estimate, out, direct_variance, mse (or NULL), gamma, random_effects,
#   benchmarked (or NULL)
#   or, for "direct", domain, names, estimate and variance as matrices
emdi_light <- function(known) {
  domain <- data.frame(Domain = known$domain)
  if (known$class == "direct") {
    as_table <- function(values) {
      if (is.null(values)) return(NULL)
      cbind(domain, structure(as.data.frame(values), names = known$names))
    }
    object <- list(ind = as_table(known$estimate), MSE = as_table(known$variance))
    return(structure(object, class = c("direct", "emdi")))
  }
  ind <- cbind(domain, data.frame(Direct = known$direct, FH = known$estimate))
  ind$FH_Bench <- known$benchmarked
  ind$Out <- known$out
  mse <- NULL
  if (!is.null(known$mse)) {
    mse <- cbind(domain, data.frame(
      Direct = known$direct_variance, FH = known$mse, Out = known$out
    ))
  }
  model <- list(random_effects = known$random_effects)
  if (!is.null(known$gamma)) model$gamma <- cbind(domain, data.frame(Gamma = known$gamma))
  framework <- list(N_dom_smp = sum(known$out == 0), N_dom_unobs = sum(known$out == 1))
  structure(
    list(ind = ind, MSE = mse, model = model, framework = framework), class = c("fh", "emdi")
  )
}

emdi_benchmarked <- function(object, b, overwrite) {
  emdi::benchmark(object, b$benchmark, b$share, type = b$type, overwrite = overwrite)
}

emdi_benchmark <- function(inputs) {
  found <- emdi_benchmarked(emdi_light(inputs$object), inputs$benchmark, FALSE)
  list(domain = found$Domain, benchmarked = as.vector(found$FH_Bench))
}

emdi_compare <- function(inputs) {
  found <- emdi::compare(emdi_light(inputs$object))
  list(
    statistic = found$Brown$W.value, df = as.numeric(found$Brown$Df), p_value = found$Brown$p.value,
    correlation = found$syndir
  )
}

emdi_compare_pred <- function(inputs) {
  emdi_table(emdi::compare_pred(
    emdi_light(inputs$object1), emdi_light(inputs$object2), MSE = inputs$MSE
  ))
}

emdi_estimators <- function(inputs) {
  found <- emdi::estimators(
    emdi_light(inputs$object), indicator = inputs$indicator, MSE = inputs$MSE, CV = inputs$CV
  )
  c(emdi_table(found$ind), list(ind_name = found$ind_name))
}

emdi_table <- function(table) {
  list(domain = table$Domain, names = names(table)[-1L], values = unname(as.matrix(table[-1L])))
}

# The call in the object is evaluated again and again: with its data inside, that works anywhere.
# Guarded: in the units of the guarded fit, where criteria differ by a constant only.
emdi_step <- function(inputs) {
  if (isTRUE(inputs$guarded)) inputs <- emdi_divided(inputs, inputs$unit)
  inputs$arguments$MSE <- FALSE
  object <- emdi_plain(inputs)
  object$call$combined_data <- shared_frame(inputs$data)
  if (!is.null(inputs$proximity)) object$call$corMatrix <- inputs$proximity
  words <- inputs$step
  scope <- lapply(words$scope, function(text) {
    shared_formula(text, inputs$data, inputs$functions)
    as.formula(str2lang(text), env = globalenv())
  })
  words$scope <- if (length(scope) > 1L) scope else if (length(scope)) scope[[1L]]
  found <- do.call(emdi::step, c(list(object), words))
  list(
    fixed = paste(deparse(found$fixed, width.cutoff = 500L), collapse = " "),
    criterion = found$model$model_select[[words$criteria]]
  )
}

# ----------------------------------------------------------------------------- units, not domains

# emdi::direct: smp_data is a named list of columns, arguments are its own by its own names;
# threshold and custom_indicator may hold R functions as text.
emdi_direct <- function(inputs) {
  found <- emdi_direct_object(inputs)
  count <- found$successful_bootstraps
  list(
    domain = as.character(found$ind$Domain), names = names(found$ind)[-1L],
    estimate = unname(as.matrix(found$ind[-1L])),
    variance = if (!is.null(found$MSE)) unname(as.matrix(found$MSE[-1L])),
    successful = unname(matrix(as.numeric(count), nrow(count))), count_domain = rownames(count)
  )
}

# The function that an R user's text makes.
emdi_function <- function(text, what) {
  made <- tryCatch(eval(str2lang(text), globalenv()), error = function(condition) {
    shared_refuse(what, " is not R: ", gsub("\\s+", " ", conditionMessage(condition)))
  })
  if (!is.function(made)) shared_refuse(what, " is no function: ", class(made)[1L])
  made
}

emdi_direct_object <- function(inputs) {
  RNGkind("Mersenne-Twister", "Inversion", "Rejection")
  a <- inputs$arguments
  if (is.character(a$threshold)) a$threshold <- emdi_function(a$threshold, "threshold")
  for (name in names(a$custom_indicator)) {
    a$custom_indicator[[name]] <- emdi_function(
      a$custom_indicator[[name]], paste0("custom_indicator '", name, "'")
    )
  }
  place <- new.env(parent = globalenv())
  place$smp_data <- shared_frame(inputs$smp_data)
  place$X_calib <- inputs$X_calib
  if (!is.null(inputs$X_calib)) a$X_calib <- quote(X_calib)
  eval(as.call(c(list(quote(emdi::direct), smp_data = quote(smp_data)), a)), place)
}

emdi_direct_save <- function(inputs) {
  shared_keep(emdi_direct_object(inputs), inputs$path)
  list(saved = inputs$path)
}

emdi_spatialcor_tests <- function(inputs) {
  found <- emdi::spatialcor.tests(inputs$direct, inputs$proximity)
  list(statistic = found$Statistics, value = found$Value, p_value = found$p.value)
}
