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

# metafor::rma.mv under its own name. Inputs:
#   data       named list of columns
#   yi, V      the columns of estimates and sampling variances; V NULL where `matrix` holds it
#   matrix, W  V, and weights, as matrices, or NULL
#   mods       formula as text, or NULL; random: formulas as text
#   slab       a column of labels, or NULL; subset: a condition as a formula's text, or NULL;
#              rows: flags of the rows, or NULL
#   functions  what the formulas may call
#   options    the remaining arguments under their own names; control a named list
#   R          named list of list(matrix, labels), or NULL
#   file, labels  where to keep the object, and what its rows are, or NULL
metafor_rma_mv <- function(inputs) {
  fit <- metafor_object(inputs)
  shared_keep(fit, inputs$file, inputs$labels)
  stats <- fit$fit.stats
  out <- list(
    terms = rownames(fit$beta), beta = as.vector(fit$beta), se = fit$se, zval = fit$zval,
    pval = fit$pval, ci.lb = fit$ci.lb, ci.ub = fit$ci.ub, vb = unname(fit$vb),
    statistics = rownames(stats), ML = stats$ML, REML = stats$REML, k = fit$k, p = fit$p,
    QE = fit$QE, QEp = fit$QEp, QM = fit$QM, QMp = fit$QMp, used = metafor_used(fit, length(inputs$data[[1L]])),
    fitted = as.vector(stats::fitted(fit)), X = unname(fit$X)
  )
  for (name in c("sigma2", "tau2", "rho", "gamma2", "phi")) {
    structured <- if (name == "sigma2") fit$withS else if (name %in% c("tau2", "rho")) fit$withG
    if (is.null(structured)) structured <- fit$withH
    if (isTRUE(structured)) out[[name]] <- as.numeric(fit[[name]])
  }
  if (is.matrix(fit$vvc)) {
    out$vvc <- unname(fit$vvc)
    out$vvc.names <- rownames(fit$vvc)
  }
  columns <- shared_columns(inputs$data)
  if (!is.null(inputs$slab)) out$slab <- shared_labels(fit$slab, columns[[inputs$slab]])
  if (isTRUE(fit$withS)) {
    out$s.names <- unname(fit$s.names)
    out$s.nlevels <- as.numeric(fit$s.nlevels)
  }
  c(out, metafor_effects(fit, columns))
}

# Which rows of the table are in the fit: those of the subset without gaps.
metafor_used <- function(fit, m) {
  chosen <- if (is.null(fit$subset)) seq_len(m) else which(fit$subset)
  used <- logical(m)
  used[chosen] <- fit$not.na
  used
}

# The rows that meet a condition; a missing one is not met, as in rma.mv.
metafor_rows <- function(inputs) {
  columns <- shared_columns(inputs$data)
  condition <- shared_formula(inputs$subset, columns, inputs$functions)[[2L]]
  met <- eval(condition, columns, asNamespace("stats"))
  if (!is.logical(met) || length(met) != length(columns[[1L]])) {
    shared_refuse("subset must be true or false in every row")
  }
  list(rows = met & !is.na(met))
}

metafor_object <- function(inputs) {
  place <- new.env(parent = globalenv())
  place$data <- shared_frame(inputs$data)
  columns <- shared_columns(inputs$data)
  formula <- function(text) {
    found <- shared_formula(text, columns, inputs$functions)
    environment(found) <- globalenv()
    found
  }
  words <- list(yi = as.name(inputs$yi))
  if (is.null(inputs$V)) {
    place$V <- inputs$matrix
    words$V <- quote(V)
  } else {
    words$V <- as.name(inputs$V)
  }
  if (!is.null(inputs$W)) {
    place$W <- inputs$W
    words$W <- quote(W)
  }
  if (!is.null(inputs$mods)) words$mods <- formula(inputs$mods)
  if (length(inputs$random)) words$random <- lapply(inputs$random, formula)
  if (!is.null(inputs$R)) {
    place$R <- lapply(inputs$R, function(item) {
      structure(item$matrix, dimnames = list(item$labels, item$labels))
    })
    words$R <- quote(R)
  }
  if (!is.null(inputs$slab)) words$slab <- as.name(inputs$slab)
  if (!is.null(inputs$subset)) words$subset <- formula(inputs$subset)[[2L]]
  if (!is.null(inputs$rows)) {
    place$rows <- inputs$rows
    words$subset <- quote(rows)
  }
  options <- inputs$options
  if (!is.null(options$control)) options$control <- as.list(options$control)
  eval(as.call(c(list(quote(metafor::rma.mv)), words, list(data = quote(data)), options)), place)
}

# Predicted effects of every grouping factor, and the predictions with them (effects of slopes and
# of structured terms are left out, and the predictions then too).
metafor_effects <- function(fit, columns) {
  if (!isTRUE(fit$withS)) return(list(effects = list()))
  found <- try(metafor::ranef(fit), silent = TRUE)
  if (inherits(found, "try-error")) return(list(effects = list())) # with weights there are none
  labels <- unname(fit$s.names)
  effects <- list()
  prediction <- as.vector(stats::fitted(fit))
  for (j in seq_along(labels)) {
    own <- found[[j]]
    effects[[paste0("level", j)]] <- list(
      group = metafor_groups(rownames(own), labels[[j]], columns), effect = own$intrcpt, standard_error = own$se
    )
    prediction <- prediction + as.vector(as.matrix(fit$Z.S[[j]]) %*% own$intrcpt)
  }
  list(effects = effects, prediction = if (!fit$withG && !fit$withH) prediction)
}

# Groups as they are in the column they are of; of nested columns, a/b, their text with numbers
# written out, where R has 1e+05 for 100000. What is no column has R's text.
metafor_groups <- function(text, name, columns) {
  parts <- strsplit(name, "/", fixed = TRUE)[[1L]]
  if (!all(parts %in% names(columns))) return(text)
  own <- unname(columns[parts])
  if (length(own) == 1L) return(shared_labels(text, own[[1L]]))
  out <- lapply(own, function(column) {
    if (!is.numeric(column)) return(as.character(column))
    kinds <- unique(column)
    vapply(kinds, format, "", digits = 15L, scientific = FALSE)[match(column, kinds)]
  })
  theirs <- do.call(paste, c(lapply(own, as.character), sep = "/"))
  place <- match(text, theirs)
  ifelse(is.na(place), text, do.call(paste, c(out, sep = "/"))[place])
}

# The design matrix of the moderators.
metafor_design <- function(inputs) shared_design(inputs)
