# Design-based estimates by the package survey, under its own names. Inputs of every function:
#   data       the units' columns, a named list
#   design     formulas (ids, strata, fpc, weights, probs) as text, options, pps (NULL or a word),
#              joint (inclusion probabilities, for pps = "ppsmat"), psum (of pps = "HR") or NULL
#   steps      a list of list(call = "calibrate" or "postStratify", formula, population, options)
#   lonely, lonely_domain  survey.lonely.psu and survey.adjust.domain.lonely
#   functions  what formulas may call
#   call       function, formulas, options, and for svyglm family, link, variance and
#              expressions (subset, weights, as one-sided formulas)
#   guarded    FALSE: R's function as it is
#   level      of the intervals
#   file       where to keep the object that R's function returned, or NULL

survey_formula <- function(text, inputs) {
  found <- shared_formula(text, shared_columns(inputs$data), inputs$functions)
  environment(found) <- globalenv()
  found
}

# The design, after its steps.
survey_design <- function(inputs) {
  place <- new.env(parent = globalenv())
  place$data <- shared_frame(inputs$data)
  words <- lapply(inputs$design$formulas, survey_formula, inputs)
  pps <- inputs$design$pps
  if (!is.null(pps)) {
    words$pps <- switch(pps,
      brewer = "brewer", overton = "overton",
      HR = if (is.null(inputs$design$psum)) quote(survey::HR()) else quote(survey::HR(psum)),
      ppsmat = quote(survey::ppsmat(joint)), poisson = quote(survey::poisson_sampling(probability))
    )
    place$joint <- inputs$design$joint
    place$psum <- inputs$design$psum
    if (pps == "poisson") place$probability <- stats::model.frame(words$probs, place$data)[[1L]]
  }
  words <- c(words, list(data = quote(data)), inputs$design$options)
  place$design <- eval(as.call(c(list(quote(survey::svydesign)), words)), place)
  for (step in inputs$steps) {
    population <- step$population
    place$population <- if (step$call == "postStratify") {
      shared_frame(population)
    } else if (is.matrix(population$value)) { # a row for each cluster
      lapply(seq_len(nrow(population$value)), function(i) {
        stats::setNames(population$value[i, ], population$name)
      })
    } else {
      stats::setNames(as.numeric(population$value), population$name)
    }
    function_name <- call("::", quote(survey), as.name(step$call))
    options <- step$options
    if (identical(options$calfun, "sinh")) options$calfun <- quote(survey::cal.sinh)
    words <- c(
      list(quote(design), survey_formula(step$formula, inputs), quote(population)), options
    )
    place$design <- eval(as.call(c(list(function_name), words)), place)
  }
  place$design
}

survey_with_options <- function(inputs, body) {
  before <- options(
    survey.lonely.psu = inputs$lonely, survey.adjust.domain.lonely = inputs$lonely_domain
  )
  on.exit(options(before))
  body()
}

# The object that R's function returns.
survey_object <- function(inputs, design) {
  asked <- inputs$call
  words <- lapply(asked$formulas, survey_formula, inputs)
  fun <- call("::", quote(survey), as.name(asked[["function"]]))
  place <- new.env(parent = globalenv())
  place$design <- design
  words$design <- quote(design)
  if (!is.null(asked$FUN)) words$FUN <- call("::", quote(survey), as.name(asked$FUN))
  for (name in names(asked$expressions)) {
    words[[name]] <- survey_formula(asked$expressions[[name]], inputs)[[2L]]
  }
  if (!is.null(asked$family)) {
    given <- c(list(link = asked$link), list(variance = asked$variance))
    given <- given[!vapply(given, is.null, NA)]
    words$family <- as.call(c(list(call("::", quote(stats), as.name(asked$family))), given))
  }
  eval(as.call(c(list(fun), words, asked$options)), place)
}

survey_estimate <- function(inputs) {
  survey_with_options(inputs, function() {
    design <- survey_design(inputs)
    asked <- inputs$call
    by <- asked[["function"]] == "svyby"
    if (by && isTRUE(inputs$guarded)) {
      apart <- survey_apart(inputs, design)
      if (length(apart)) return(list(apart = apart))
    }
    # svyby() stops where it is to give a covariance on a calibrated design, beside missing values,
    # or of several ratios: guarded it is asked without, and the covariance of means and totals made
    # of the scores. Of ratios there is none then, which is refused to those who asked for it.
    scores <- FALSE
    without <- FALSE
    object <- tryCatch(survey_object(inputs, design), error = function(condition) {
      made <- by && asked$FUN %in% c("svymean", "svytotal")
      able <- by && isTRUE(asked$options$covmat) && (made || isTRUE(asked$covmat_default))
      if (!isTRUE(inputs$guarded) || !able) stop(condition)
      scores <<- made
      without <<- TRUE
      inputs$call$options$covmat <- FALSE
      survey_object(inputs, design)
    })
    shared_keep(object, inputs$file)
    if (by && any(vapply(unclass(object), is.list, NA))) {
      return(list(apart = survey_apart(inputs, design))) # raw: no table of numbers
    }
    if (inherits(object, "svyratio_separate")) return(survey_strata(object, design, inputs))
    out <- list(
      names = names(stats::coef(object)), estimate = as.vector(stats::coef(object)),
      standard_error = as.vector(survey_errors(object)),
      degrees = as.double(survey::degf(design)),
      weight_total = sum(stats::weights(design)), n = as.double(sum(survey_known(design, inputs)))
    )
    out$by_scores <- scores
    out$without_covmat <- without
    if (!scores) out$covariance <- survey_covariance(object, out$standard_error)
    if (is.null(out$names)) out$names <- as.character(seq_along(out$estimate))
    interval <- try(survey_interval(object, inputs$level, out$degrees), silent = TRUE)
    if (!inherits(interval, "try-error")) {
      out$lower <- as.vector(interval[, 1])
      out$upper <- as.vector(interval[, 2])
    }
    if (!is.null(asked$options$deff)) out$deff <- survey_effects(object)
    if (isTRUE(asked$options$influence)) out$influence <- survey_influence(object)
    if (by) {
      out <- survey_groups(out, object, design, inputs, scores)
      out$variation <- survey_variation(object)
    }
    if (asked[["function"]] == "svyglm") out <- survey_search(out, object)
    out
  })
}

# Variables whose levels are not the same in every group of svyby(). It makes the formula's variables
# of each group alone: what is a factor only there, factor(code), cut(x, 3), has the levels of that
# group. R puts the numbers of all under the names of the first group, or makes a list of them.
survey_apart <- function(inputs, design) {
  texts <- inputs$call$formulas
  margins <- stats::model.frame(
    survey_formula(texts$by, inputs), design$variables, na.action = stats::na.pass
  )
  groups <- interaction(unname(as.list(margins)), drop = TRUE, sep = "\037")
  # survey 4.1 has methods of `[` that are found from its own functions only.
  part <- function(design, units) design[units, ]
  environment(part) <- asNamespace("survey")
  found <- character()
  for (text in texts[names(texts) != "by"]) {
    formula <- survey_formula(text, inputs)
    levels_of <- function(units) {
      frame <- stats::model.frame(formula, units, na.action = stats::na.pass)
      lapply(Filter(function(x) is.factor(x) || is.character(x), frame), function(x) {
        levels(as.factor(x))
      })
    }
    whole <- levels_of(design$variables)
    kept <- vapply(names(whole), function(name) is.factor(design$variables[[name]]), NA)
    whole <- whole[!kept]
    if (!length(whole)) next
    for (group in levels(groups)) {
      # As svyby() takes them: a calibrated design keeps all units, and with them all levels.
      own <- levels_of(part(design, groups %in% group)$variables)
      found <- c(found, names(whole)[!mapply(identical, whole, own[names(whole)])])
    }
  }
  unique(found)
}

# How glm's search for the coefficients ended. svyglm() puts the design's degrees of freedom into
# df.residual, those of the fit itself are n - rank. Where the outcome is separated, the
# coefficients have no finite value, yet glm often calls the search converged because the deviance
# moves no more: then a fitted value is 0 or 1 to the last digits, as glm itself warns, or one more
# step would still move the linear predictor (`drift`).
survey_search <- function(out, object) {
  out$n <- as.double(length(object$y))
  out$aliased <- names(object$coefficients)[is.na(object$coefficients)]
  out$degrees <- as.double(object$df.residual)
  out$dispersion <- as.double(summary(object)$dispersion)
  out$converged <- isTRUE(object$converged)
  out$boundary <- isTRUE(object$boundary)
  out$fit_degrees <- as.double(length(object$y) - object$rank)
  family <- object$family
  shares <- family$family %in% c("binomial", "quasibinomial") ||
    identical(family$varfun, "mu(1-mu)")
  counts <- family$family %in% c("poisson", "quasipoisson")
  if (!shares && !counts) return(out)
  mu <- object$fitted.values
  nothing <- 10 * .Machine$double.eps
  out$extreme <- as.double(sum(mu < nothing | (shares & mu > 1 - nothing)))
  used <- object$weights > 0 & is.finite(object$residuals)
  step <- stats::lm.wfit(
    stats::model.matrix(object)[used, , drop = FALSE], object$residuals[used], object$weights[used]
  )
  out$drift <- max(0, abs(step$fitted.values))
  out
}

# Which units the estimate is made of: guarded, those with a known value of all its variables, as
# R's na.rm leaves the others out; raw, all.
survey_known <- function(design, inputs) {
  if (!isTRUE(inputs$guarded) || !isTRUE(inputs$call$options$na.rm)) {
    return(rep(TRUE, nrow(design$variables)))
  }
  texts <- inputs$call$formulas
  frames <- lapply(texts[names(texts) != "by"], function(text) {
    stats::model.frame(survey_formula(text, inputs), design$variables, na.action = stats::na.pass)
  })
  stats::complete.cases(do.call(cbind, unname(frames)))
}

# Where R has no standard errors: without variances, and of a table with intervals alone.
survey_errors <- function(object) {
  about <- attr(object, "svyby")
  if (!is.null(about) && (about$vars == 0 || identical(about$vartype, "ci"))) {
    own <- attr(object, "var")
    size <- length(stats::coef(object))
    return(if (about$vars == 0 || is.null(own)) rep(NaN, size) else sqrt(diag(as.matrix(own))))
  }
  error <- survey::SE(object)
  if (is.data.frame(error)) unlist(error, use.names = FALSE) else as.vector(error)
}

# Influence functions, a column an estimate: svyby() has them group by group, its estimates variable
# by variable.
survey_influence <- function(object) {
  found <- unname(as.matrix(attr(object, "influence")))
  count <- attr(object, "svyby")$nstats
  if (is.null(count)) return(found)
  groups <- ncol(found) / count
  found[, as.vector(t(matrix(seq_len(ncol(found)), count, groups))), drop = FALSE]
}

# Design effects. deff() of svyby() looks in other columns beside vartype = "ci", and stops at
# "replace"; of a ratio it takes the diagonal of a table that has none.
survey_effects <- function(object) {
  if (inherits(object, "svyratio")) return(as.vector(attr(object, "deff")))
  if (!inherits(object, "svyby")) return(as.vector(survey::deff(object)))
  count <- attr(object, "svyby")$nstats
  own <- unclass(object)[length(object) - count + seq_len(count)]
  as.vector(as.matrix(as.data.frame(own)))
}

survey_interval <- function(object, level, degrees) {
  if (inherits(object, "svyglm")) return(stats::confint(object, level = level))
  stats::confint(object, level = level, df = degrees)
}

survey_covariance <- function(object, error) {
  if (inherits(object, "svyby")) {
    own <- attr(object, "var") # a number where there is one group; NULL without covmat
    if (is.null(own) && anyNA(error)) return(matrix(NaN, length(error), length(error)))
    if (is.null(own)) return(diag(error^2, length(error)))
    if (is.null(dim(own))) return(matrix(own, 1L, 1L))
  }
  unname(as.matrix(stats::vcov(object)))
}

# The columns that svyby() puts beside its statistics, as `vartype` asks for them.
survey_variation <- function(object) {
  about <- attr(object, "svyby")
  if (about$vars == 0) return(list())
  words <- c("se", "ci", "cv", "cvpct", "var")
  kinds <- list(se = "se", ci = c("ci_l", "ci_u"), cv = "cv", cvpct = "cv%", var = "var")
  kinds <- unlist(kinds[words[words %in% about$vartype]], use.names = FALSE)
  first <- max(about$margins) + about$nstats
  own <- function(k) as.matrix(as.data.frame(unclass(object)[first + (k - 1) * about$nstats +
    seq_len(about$nstats)]))
  stats::setNames(lapply(seq_along(kinds), function(k) as.vector(own(k))), kinds)
}

# svyratio(separate = TRUE): ratios of every stratum, which are independent of each other.
survey_strata <- function(object, design, inputs) {
  parts <- object$ratios
  degrees <- as.double(survey::degf(design))
  each <- length(stats::coef(parts[[1L]]))
  covariance <- matrix(0, each * length(parts), each * length(parts))
  intervals <- list()
  for (i in seq_along(parts)) {
    here <- (i - 1) * each + seq_len(each)
    covariance[here, here] <- unname(as.matrix(stats::vcov(parts[[i]])))
    intervals[[i]] <- survey_interval(parts[[i]], inputs$level, degrees)
  }
  intervals <- do.call(rbind, intervals)
  strata <- object$strata
  own <- design$strata[, 1L]
  counts <- vapply(seq_along(strata), function(i) as.double(sum(own == strata[i])), 0)
  names <- names(stats::coef(parts[[1L]]))
  list(
    names = paste(rep(strata, each = each), names, sep = ":"),
    estimate = unlist(lapply(parts, stats::coef), use.names = FALSE),
    standard_error = unlist(lapply(parts, survey::SE), use.names = FALSE),
    covariance = covariance, lower = as.vector(intervals[, 1]), upper = as.vector(intervals[, 2]),
    degrees = degrees, weight_total = sum(stats::weights(design)), by_scores = FALSE,
    without_covmat = FALSE, n = as.double(nrow(design$variables)), separate = TRUE,
    strata = shared_labels(strata, own), statistics = names, n_units = counts
  )
}

# Labels of svyby's groups, their numbers of units, and, where asked for, the covariance that it
# does not have: of the scores (y - mean)/total weight, or of y, in each group.
survey_groups <- function(out, object, design, inputs, by_scores) {
  about <- attr(object, "svyby")
  # What they are groups of: columns, or what R makes of them, cut(x, 3).
  margins <- stats::model.frame(
    survey_formula(inputs$call$formulas$by, inputs), design$variables, na.action = stats::na.pass
  )
  labels <- unclass(object)[about$margins]
  out$by <- Map(shared_labels, labels, margins)
  names(out$by) <- names(margins)
  out$ungrouped <- as.double(sum(!stats::complete.cases(margins)))
  out$statistics <- about$variables
  key <- function(columns) do.call(paste, c(unname(lapply(columns, as.character)), sep = "\037"))
  units <- key(margins)
  groups <- key(labels)
  w <- stats::weights(design)
  used <- units[survey_known(design, inputs) & stats::complete.cases(margins) & w != 0]
  out$n_units <- vapply(groups, function(g) as.double(sum(used == g)), 0, USE.NAMES = FALSE)
  if (by_scores) {
    y <- survey_variables(inputs$call$formulas[[1L]], design, inputs)
    columns <- list()
    known <- stats::complete.cases(y) # R leaves out who lacks any of the variables
    for (k in seq_len(ncol(y))) {
      values <- ifelse(known, y[, k], 0)
      for (g in groups) {
        inside <- (units == g & known) * 1
        columns[[length(columns) + 1L]] <- if (inputs$call$FUN == "svytotal") {
          values * inside
        } else {
          total <- sum(w * inside)
          (values - sum(w * values * inside) / total) * inside / total
        }
      }
    }
    columns <- stats::setNames(as.data.frame(columns), paste0("score", seq_along(columns)))
    out$covariance <- unname(as.matrix(stats::vcov(survey::svytotal(columns, design))))
  }
  out
}

# The variables of a formula as svymean() takes them: a factor as its indicators.
survey_variables <- function(text, design, inputs) {
  frame <- stats::model.frame(
    survey_formula(text, inputs), design$variables, na.action = stats::na.pass
  )
  parts <- lapply(names(frame), function(name) {
    stats::model.matrix(eval(bquote(~ 0 + .(as.name(name)))), frame)
  })
  do.call(cbind, parts)
}

# The weights after all steps.
survey_weights <- function(inputs) {
  survey_with_options(inputs, function() {
    list(weights = as.vector(stats::weights(survey_design(inputs))))
  })
}

# The columns by which a step calibrates.
survey_terms <- function(inputs) {
  formula <- survey_formula(inputs$formula, inputs)
  frame <- stats::model.frame(formula, shared_frame(inputs$data), na.action = stats::na.pass)
  list(terms = colnames(stats::model.matrix(formula, frame)))
}
