# Area-level models with spatially correlated domain effects by the package sae; inputs as in sae.R,
# and
#   proxmat  the proximity matrix, rows and columns in the order of the data (of its domains)

sae_spatial_call <- function(inputs, fun, ...) {
  door_shim("sae_area_reply")
  formula <- sae_formula(inputs)
  vardir <- inputs$data[[inputs$vardir]]
  proxmat <- inputs$proxmat
  o <- inputs$options
  shared_seed(inputs$seed)
  fit <- fun(formula, vardir, proxmat, o)
  shared_keep(fit, inputs$file, inputs$labels, inputs$columns)
  if (is.null(fit$est)) sae_area_reply(formula, fit) else sae_area_reply(formula, fit$est, fit$mse)
}

sae_spatial_eblupSFH <- function(inputs) {
  sae_spatial_call(inputs, function(formula, vardir, proxmat, o) {
    sae::eblupSFH(formula, vardir, proxmat, o$method, o$MAXITER, o$PRECISION)
  })
}

sae_spatial_mseSFH <- function(inputs) {
  sae_spatial_call(inputs, function(formula, vardir, proxmat, o) {
    sae::mseSFH(formula, vardir, proxmat, o$method, o$MAXITER, o$PRECISION)
  })
}

sae_spatial_pbmseSFH <- function(inputs) {
  sae_spatial_call(inputs, function(formula, vardir, proxmat, o) {
    sae::pbmseSFH(formula, vardir, proxmat, o$B, o$method, o$MAXITER, o$PRECISION)
  })
}

sae_spatial_npbmseSFH <- function(inputs) {
  sae_spatial_call(inputs, function(formula, vardir, proxmat, o) {
    sae::npbmseSFH(formula, vardir, proxmat, o$B, o$method, o$MAXITER, o$PRECISION)
  })
}

# A start that is not given is half the median of the sampling variances, as sae has it.
sae_spatial_start <- function(given, vardir) if (is.null(given)) 0.5 * stats::median(vardir) else given

sae_spatial_eblupSTFH <- function(inputs) {
  sae_spatial_call(inputs, function(formula, vardir, proxmat, o) {
    sae::eblupSTFH(formula, o$D, o$T, vardir, proxmat, o$model, o$MAXITER, o$PRECISION,
      o$theta_iter,
      sigma21_start = sae_spatial_start(o$sigma21_start, vardir), rho1_start = o$rho1_start,
      sigma22_start = sae_spatial_start(o$sigma22_start, vardir), rho2_start = o$rho2_start
    )
  })
}

sae_spatial_pbmseSTFH <- function(inputs) {
  sae_spatial_call(inputs, function(formula, vardir, proxmat, o) {
    sae::pbmseSTFH(formula, o$D, o$T, vardir, proxmat, o$B, o$model, o$MAXITER, o$PRECISION,
      o$theta_iter,
      sigma21_start = sae_spatial_start(o$sigma21_start, vardir), rho1_start = o$rho1_start,
      sigma22_start = sae_spatial_start(o$sigma22_start, vardir), rho2_start = o$rho2_start
    )
  })
}
