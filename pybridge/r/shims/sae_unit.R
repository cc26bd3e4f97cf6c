# The nested-error model of units by the package sae; inputs as in sae.R, and
#   dom                 the column of the units' domains
#   meanxpop, popnsize  tables with the domain first: population means of the covariates, sizes
#   selectdom           the domains wanted, or NULL for those of the sample

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
  shared_seed(inputs$seed)
  fit <- fun(formula, dom, selectdom, means, sizes, inputs$options)
  shared_keep(fit, inputs$file)
  sae_unit_reply(formula, fit)
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
