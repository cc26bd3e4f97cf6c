# Design-based estimates by the package survey, under its own names. Inputs of every function:
#   data       the units' columns, a named list
#   design     formulas (ids, strata, fpc, weights, probs) as text, options, pps (NULL or a word),
#              joint (inclusion probabilities, for pps = "ppsmat")
#   steps      a list of list(call = "calibrate" or "postStratify", formula, population, options)
#   lonely, lonely_domain  survey.lonely.psu and survey.adjust.domain.lonely
#   functions  what formulas may call
#   call       function, formulas, options, and for svyglm family and link
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
      brewer = "brewer", overton = "overton", HR = quote(survey::HR()),
      ppsmat = quote(survey::ppsmat(joint)), poisson = quote(survey::poisson_sampling(probability))
    )
    place$joint <- inputs$design$joint
    if (pps == "poisson") place$probability <- stats::model.frame(words$probs, place$data)[[1L]]
  }
  words <- c(words, list(data = quote(data)), inputs$design$options)
  place$design <- eval(as.call(c(list(quote(survey::svydesign)), words)), place)
  for (step in inputs$steps) {
    population <- step$population
    place$population <- if (step$call == "postStratify") {
      shared_frame(population)
    } else {
      stats::setNames(as.numeric(population$value), population$name)
    }
    function_name <- call("::", quote(survey), as.name(step$call))
    words <- c(
      list(quote(design), survey_formula(step$formula, inputs), quote(population)), step$options
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
  if (!is.null(asked$family)) {
    link <- if (!is.null(asked$link)) list(link = asked$link)
    words$family <- as.call(c(list(call("::", quote(stats), as.name(asked$family))), link))
  }
  eval(as.call(c(list(fun), words, asked$options)), place)
}

survey_estimate <- function(inputs) {
  survey_with_options(inputs, function() {
    design <- survey_design(inputs)
    asked <- inputs$call
    by <- asked[["function"]] == "svyby"
    # svyby() stops where it is to give a covariance on a calibrated design, or beside missing
    # values: guarded it is asked without, and the covariance made of the scores.
    scores <- FALSE
    object <- tryCatch(survey_object(inputs, design), error = function(condition) {
      able <- by && asked$FUN %in% c("svymean", "svytotal") && isTRUE(asked$options$covmat)
      if (!isTRUE(inputs$guarded) || !able) stop(condition)
      scores <<- TRUE
      inputs$call$options$covmat <- FALSE
      survey_object(inputs, design)
    })
    shared_keep(object, inputs$file)
    out <- list(
      names = names(stats::coef(object)), estimate = as.vector(stats::coef(object)),
      standard_error = as.vector(survey_errors(object)),
      degrees = as.double(survey::degf(design)),
      weight_total = sum(stats::weights(design)), n = as.double(nrow(design$variables))
    )
    out$by_scores <- scores
    if (!scores) out$covariance <- survey_covariance(object, out$standard_error)
    if (is.null(out$names)) out$names <- as.character(seq_along(out$estimate))
    interval <- try(survey_interval(object, inputs$level, out$degrees), silent = TRUE)
    if (!inherits(interval, "try-error")) {
      out$lower <- as.vector(interval[, 1])
      out$upper <- as.vector(interval[, 2])
    }
    effect <- if (isTRUE(asked$options$deff)) try(survey::deff(object), silent = TRUE)
    if (is.numeric(effect)) out$deff <- as.vector(effect)
    if (by) out <- survey_groups(out, object, design, inputs, scores)
    if (asked[["function"]] == "svyglm") {
      out$degrees <- as.double(object$df.residual)
      out$dispersion <- as.double(summary(object)$dispersion)
    }
    out
  })
}

survey_errors <- function(object) {
  error <- survey::SE(object)
  if (is.data.frame(error)) unlist(error, use.names = FALSE) else as.vector(error)
}

survey_interval <- function(object, level, degrees) {
  if (inherits(object, "svyglm")) return(stats::confint(object, level = level))
  stats::confint(object, level = level, df = degrees)
}

survey_covariance <- function(object, error) {
  if (inherits(object, "svyby")) {
    own <- attr(object, "var") # a number where there is one group; NULL without covmat
    if (is.null(own)) return(diag(error^2, length(error)))
    if (is.null(dim(own))) return(matrix(own, 1L, 1L))
  }
  unname(as.matrix(stats::vcov(object)))
}

# Labels of svyby's groups, their numbers of units, and, where asked for, the covariance that it
# does not have: of the scores (y - mean)/total weight, or of y, in each group.
survey_groups <- function(out, object, design, inputs, by_scores) {
  about <- attr(object, "svyby")
  margins <- names(object)[about$margins]
  out$by <- lapply(stats::setNames(margins, margins), function(name) as.character(object[[name]]))
  out$statistics <- about$variables
  key <- function(columns) do.call(paste, c(lapply(columns, as.character), list(sep = "\037")))
  units <- key(design$variables[margins])
  groups <- key(object[margins])
  w <- stats::weights(design)
  out$n_units <- vapply(groups, function(g) sum(units == g & w != 0), 0, USE.NAMES = FALSE)
  if (by_scores) {
    y <- survey_variables(inputs$call$formulas[[1L]], design, inputs)
    columns <- list()
    for (k in seq_len(ncol(y))) {
      known <- !is.na(y[, k])
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
