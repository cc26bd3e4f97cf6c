# Reference values of evd's functions for exceedances: fpot with all its models and options,
# profiles and their intervals, threshold stability, clusters, the distribution itself.
#
#   cd r_reference && Rscript tail_evd.R
#
# Plain calls on the daily rain; the scores are those of golden/inputs/gpd_rain.csv.

source("_gpd.R")
data(rain, package = "ismev")
rain <- as.numeric(rain)

rows <- function(call, setting, quantity, values, key = "") {
  data.frame(call = call, setting = setting, quantity = quantity, key = key,
    value = as.numeric(values))
}

fit_rows <- function(setting, fit) {
  found <- rbind(
    rows("fpot", setting, "param", fit$param, names(fit$param)),
    rows("fpot", setting, "nllh", fit$deviance / 2),
    rows("fpot", setting, "nhigh", fit$nhigh), rows("fpot", setting, "pat", fit$pat)
  )
  if (is.null(fit$std.err)) return(found)
  rbind(found, rows("fpot", setting, "std.err", fit$std.err, names(fit$std.err)),
    rows("fpot", setting, "var.cov", fit$var.cov))
}

fits <- list(
  default = evd::fpot(rain, 30),
  corr = evd::fpot(rain, 30, corr = TRUE),
  start = evd::fpot(rain, 30, start = list(scale = 8, shape = 0.1)),
  nelder = evd::fpot(rain, 30, method = "Nelder-Mead"),
  box = evd::fpot(rain, 30, method = "L-BFGS-B", lower = c(1, -0.4), upper = c(50, 1)),
  control = evd::fpot(rain, 30, control = list(reltol = 1e-12)),
  without_errors = evd::fpot(rain, 30, std.err = FALSE),
  scale_held = evd::fpot(rain, 30, scale = 8),
  shape_held = evd::fpot(rain, 30, shape = 0),
  clusters = evd::fpot(rain, 30, cmax = TRUE, r = 3),
  clusters_low = evd::fpot(rain, 30, cmax = TRUE, r = 5, ulow = 10, rlow = 2),
  level = evd::fpot(rain, 30, mper = 100, npp = 365),
  level_held = evd::fpot(rain, 30, mper = 100, npp = 365, rlevel = 100),
  level_clusters = evd::fpot(rain, 30, mper = 100, npp = 365, cmax = TRUE, r = 3),
  process = evd::fpot(rain, 30, model = "pp", npp = 365),
  process_held = evd::fpot(rain, 30, model = "pp", npp = 365, loc = 40),
  process_clusters = evd::fpot(rain, 30, model = "pp", npp = 365, cmax = TRUE, r = 3)
)
fitted <- do.call(rbind, lapply(names(fits), function(name) fit_rows(name, fits[[name]])))

profile_rows <- function(setting, fit, ...) {
  invisible(capture.output(found <- profile(fit, ...)))
  ends <- confint(found)
  parts <- lapply(names(found), function(name) {
    curve <- found[[name]]
    rows("profile", setting, paste(name, rep(colnames(curve), each = nrow(curve))), curve)
  })
  rbind(do.call(rbind, parts),
    rows("profile", setting, "lower", ends[, 1], rownames(ends)),
    rows("profile", setting, "upper", ends[, 2], rownames(ends)))
}
wald <- confint(fits$default, level = 0.9)
intervals <- rbind(
  profile_rows("default", fits$default),
  profile_rows("shape", fits$default, which = "shape", conf = 0.99, mesh = 0.01),
  profile_rows("level", fits$level),
  rows("confint", "default", "lower", wald[, 1], rownames(wald)),
  rows("confint", "default", "upper", wald[, 2], rownames(wald))
)

pdf(NULL)
plot_rows <- function(call, setting, found) {
  do.call(rbind, lapply(names(found), function(name) rows(call, setting, name, found[[name]])))
}
plots <- rbind(
  plot_rows("tcplot", "gpd", evd::tcplot(rain, c(10, 40), nt = 5)),
  plot_rows("tcplot", "pp", evd::tcplot(rain, c(10, 40), model = "pp", npp = 365, nt = 4)),
  plot_rows("tcplot", "pscale", evd::tcplot(rain, c(10, 40), pscale = TRUE, nt = 4, conf = 0.9)),
  plot_rows("tcplot", "clusters", evd::tcplot(rain, c(20, 40), cmax = TRUE, r = 3, nt = 3)),
  plot_rows("mrlplot", "plain", evd::mrlplot(rain, tlim = c(5, 60), nt = 12)),
  plot_rows("mrlplot", "pscale", evd::mrlplot(rain, tlim = c(5, 40), pscale = TRUE, nt = 6)),
  plot_rows("exiplot", "runs", evd::exiplot(rain, c(5, 60), r = 3, nt = 8)),
  plot_rows("exiplot", "intervals", evd::exiplot(rain, c(5, 60), r = 0, nt = 8))
)

cluster_rows <- function(setting, found) {
  rbind(rows("clusters", setting, "cluster", rep(seq_along(found), lengths(found))),
    rows("clusters", setting, "value", unlist(found)),
    rows("clusters", setting, "acs", attr(found, "acs")))
}
dependence <- rbind(
  cluster_rows("runs", evd::clusters(rain, 40, r = 3)),
  cluster_rows("low", evd::clusters(rain, 30, r = 5, ulow = 10, rlow = 2)),
  rows("clusters", "largest", "value", evd::clusters(rain, 30, r = 3, cmax = TRUE)),
  rows("exi", "runs", "extremal_index", evd::exi(rain, 30, r = 3)),
  rows("exi", "intervals", "extremal_index", evd::exi(rain, 30, r = 0))
)

x <- c(0.1, 0.5, 1, 3, 10)
p <- c(0.001, 0.5, 0.9, 0.999)
distribution <- do.call(rbind, lapply(c(-0.4, 0, 0.3), function(shape) {
  setting <- format(shape)
  rbind(
    rows("dgpd", setting, "value", evd::dgpd(x, scale = 2, shape = shape)),
    rows("pgpd", setting, "value", evd::pgpd(x, scale = 2, shape = shape)),
    rows("qgpd", setting, "value", evd::qgpd(p, loc = 1, scale = 2, shape = shape))
  )
}))

gpd_save(list("golden/tail_rain__evd.csv" = rbind(fitted, intervals, plots, dependence,
  distribution)), "tail_evd.R", c("evd", "ismev"))
