# The nested-error model of units by the package sae; inputs as in sae.R, and
#   dom                 the column of the units' domains
#   meanxpop, popnsize  tables with the domain first: population means of the covariates, sizes
#   selectdom           the domains wanted, or NULL for those of the sample
#   coded               TRUE where domains are text: sae gets their places in sorted order, because
#                       it makes a matrix of domains and means where there is one covariate

sae_unit_eblupBHF <- function(inputs) {
  sae_unit_call(inputs, function(formula, dom, selectdom, means, sizes, o) {
    sae::eblupBHF(formula, dom, selectdom, means, sizes, o$method)
  })
}

sae_unit_pbmseBHF <- function(inputs) {
  sae_unit_call(inputs, function(formula, dom, selectdom, means, sizes, o) {
    sae::pbmseBHF(formula, dom, selectdom, means, sizes, o$B, o$method)
  })
}

sae_unit_call <- function(inputs, fun) {
  door_shim("sae_formula")
  formula <- sae_formula(inputs)
  dom <- shared_columns(inputs$data)[[inputs$dom]]
  means <- shared_frame(inputs$meanxpop)
  sizes <- shared_frame(inputs$popnsize)
  # What sae does when the argument is missing; units whose outcome or domain is missing are left
  # out by it before.
  selectdom <- shared_columns(list(inputs$selectdom))[[1L]]
  if (is.null(selectdom)) {
    frame <- stats::model.frame(formula, na.action = stats::na.pass)
    here <- if (is.factor(dom)) as.vector(dom) else dom
    selectdom <- unique(here[stats::complete.cases(frame) & !is.na(here)])
  }
  labels <- NULL
  if (isTRUE(inputs$coded)) {
    labels <- sort(unique(c(dom, means[[1L]], sizes[[1L]], selectdom)), method = "radix")
    dom <- match(dom, labels)
    means[[1L]] <- match(means[[1L]], labels)
    sizes[[1L]] <- match(sizes[[1L]], labels)
    selectdom <- match(selectdom, labels)
  }
  shared_seed(inputs$seed)
  fit <- withCallingHandlers(
    fun(formula, dom, selectdom, means, sizes, inputs$options),
    warning = function(condition) sae_unit_warning(condition, labels)
  )
  if (!is.null(labels)) fit <- sae_unit_relabel(fit, labels)
  shared_keep(fit, inputs$file, columns = inputs$columns)
  sae_unit_reply(formula, fit)
}

# The labels in place of their codes, in what sae returned.
sae_unit_relabel <- function(fit, labels) {
  if (!is.null(fit$est)) {
    fit$est <- sae_unit_relabel(fit$est, labels)
    if (is.data.frame(fit$mse)) fit$mse$domain <- labels[fit$mse$domain]
  } else if (is.data.frame(fit$eblup)) {
    fit$eblup$domain <- labels[fit$eblup$domain]
    rownames(fit$fit$random) <- labels[as.integer(rownames(fit$fit$random))]
  }
  fit
}

# And in what it says: it ends a warning with the domains that have no units.
sae_unit_warning <- function(condition, labels) {
  text <- conditionMessage(condition)
  if (is.null(labels) || !grepl("zero sample size", text)) return(invisible(NULL))
  codes <- sub("^.*Domains: *", "", text)
  named <- labels[as.integer(strsplit(codes, " +")[[1L]])]
  warning(substr(text, 1L, nchar(text) - nchar(codes)), paste(named, collapse = " "), call. = FALSE)
  invokeRestart("muffleWarning")
}

sae_unit_reply <- function(formula, fit) {
  est <- if (is.null(fit$est)) fit else fit$est
  if (!is.data.frame(est$eblup)) return(list(convergence = FALSE))
  out <- list(
    convergence = TRUE, domain = est$eblup$domain, eblup = est$eblup$eblup,
    sampsize = as.numeric(est$eblup$sampsize), terms = colnames(stats::model.matrix(formula)),
    fixed = as.numeric(est$fit$fixed), std_error = unname(stats::coef(est$fit$summary)[, "Std. Error"]),
    random_domain = rownames(est$fit$random), random = est$fit$random[[1L]],
    refvar = as.numeric(est$fit$refvar), errorvar = as.numeric(est$fit$errorvar),
    loglike = as.numeric(est$fit$loglike)
  )
  if (is.data.frame(fit$mse)) out$mse <- fit$mse$mse
  out
}
