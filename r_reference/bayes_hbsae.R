# Reference values of the Bayesian area-level model: hbsae::fSAE.Area, and plain R beside it.
#
#   cd r_reference && Rscript bayes_hbsae.R
#
# Cases: those of _taxonomy.R, without their levels, and a few at the edges (inputs in
# golden/inputs/bayes_<case>.csv). Answers:
#   golden/bayes_<case>__hbsae.csv  fSAE.Area with its default rel.int.tol and a tight one
#   golden/bayes_<case>__stats.csv  the same posterior by integrate() over the log variance, one
#                                   integral a number, dense matrices
# Columns: setting, quantity, key, value.

suppressPackageStartupMessages({
  library(hbsae)
  library(sae)
})
source("_taxonomy.R")

edge <- function(seed, m, d) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  x <- rnorm(m)
  variance <- d(m)
  data.frame(domain = sprintf("d%03d", seq_len(m)),
    estimate = 1 + x + rnorm(m, sd = sqrt(0.5 + variance)), variance = variance, x1 = 1, x2 = x)
}

milk_areas <- function() {
  data(milk, package = "sae", envir = environment())
  X <- model.matrix(~ factor(milk$MajorArea))
  colnames(X) <- paste0("x", 1:4)
  cbind(data.frame(domain = sprintf("d%03d", milk$SmallArea), estimate = milk$yi,
    variance = milk$SD^2), X)
}

cases <- c(
  list(milk_areas = milk_areas()),
  lapply(taxonomy_cases()[c("cross63", "flat34", "gaps60")], function(case) {
    case[setdiff(names(case), c("region", "county"))]
  }),
  list(
    few7 = edge(11, 7, function(m) runif(m, 0.5, 2)),
    few5 = edge(12, 5, function(m) runif(m, 0.5, 2)),
    wide40 = edge(13, 40, function(m) 10^runif(m, -4, 2))
  )
)

by_hbsae <- function(case, setting, tolerance) {
  known <- !is.na(case$estimate)
  X <- design_of(case)
  rownames(X) <- case$domain
  fit <- fSAE.Area(setNames(case$estimate[known], case$domain[known]),
    setNames(case$variance[known], case$domain[known]), X,
    silent = TRUE, rel.int.tol = tolerance)
  rbind(
    rows(setting, "variance_mean", "", sv2(fit)),
    rows(setting, "estimate", names(EST(fit)), EST(fit)),
    rows(setting, "mse", names(MSE(fit)), MSE(fit)),
    rows(setting, "coefficient", colnames(X), fit$beta)
  )
}

# One integral for every number, over y = log s with the tails mapped by the logistic function.
by_integrate <- function(case) {
  known <- !is.na(case$estimate)
  X <- design_of(case)
  y <- case$estimate[known]
  d <- case$variance[known]
  Xs <- X[known, , drop = FALSE]
  m <- length(y)
  p <- ncol(X)
  given <- function(s) {
    w <- 1 / (d + s)
    fit <- qr(sqrt(w) * Xs)
    b <- sqrt(w) * y
    list(beta = qr.coef(fit, b), R = qr.R(fit),
      log = 0.5 * sum(log(w)) - sum(log(abs(diag(qr.R(fit))))) - 0.5 * sum(qr.resid(fit, b)^2))
  }
  centre <- optimize(function(t) given(exp(t))$log + t, log(var(y)) + c(-25, 10), maximum = TRUE,
    tol = 1e-10)
  mode <- centre$maximum
  top <- centre$objective
  # Break points where the integrand lives, then the tails: integrate() needs to see the peak.
  width <- 1 / sqrt(max(-(given(exp(mode + 0.01))$log + given(exp(mode - 0.01))$log -
    2 * given(exp(mode))$log) / 1e-4, 0.05))
  cuts <- mode + c(-90, -30, -12, -6, -3, -1, 0, 1, 3, 6, 12, 30, 90) * max(width, 0.2)
  total <- function(f) {
    g <- function(t) vapply(t, function(one) {
      s <- exp(one)
      now <- given(s)
      exp(now$log + one - top) * f(s, now)
    }, 0)
    sum(vapply(seq_len(length(cuts) - 1), function(k) {
      integrate(g, cuts[k], cuts[k + 1], rel.tol = 1e-11, abs.tol = 0, subdivisions = 2000,
        stop.on.error = FALSE)$value
    }, 0))
  }
  norm <- total(function(s, now) 1)
  mean_of <- function(f) total(f) / norm
  has_mean <- m > p + 4
  out <- rows("exact", "variance_mean", "", if (has_mean) mean_of(function(s, now) s) else NA)
  below <- function(t) {
    g <- function(t) vapply(t, function(one) exp(given(exp(one))$log + one - top), 0)
    edges <- c(cuts[cuts < t], t)
    sum(vapply(seq_len(length(edges) - 1), function(k) {
      integrate(g, edges[k], edges[k + 1], rel.tol = 1e-11, abs.tol = 0, subdivisions = 2000,
        stop.on.error = FALSE)$value
    }, 0)) / norm
  }
  median <- uniroot(function(t) below(t) - 0.5, mode + c(-6, 6) * max(width, 0.2), tol = 1e-12,
    extendInt = "yes")$root
  out <- rbind(out, rows("exact", "variance_median", "", exp(median)))
  for (j in seq_len(p)) {
    out <- rbind(out, rows("exact", "coefficient", colnames(X)[j],
      mean_of(function(s, now) now$beta[j])))
  }
  for (i in c(which(known)[1:2], which(!known)[seq_len(min(1, sum(!known)))])) {
    variance <- if (known[i]) case$variance[i] else Inf
    z <- if (known[i]) case$estimate[i] else 0
    now_mean <- function(s, now) {
      r <- if (known[i]) variance / (s + variance) else 1
      (1 - r) * z + r * sum(X[i, ] * now$beta)
    }
    now_var <- function(s, now) {
      r <- if (known[i]) variance / (s + variance) else 1
      own <- if (known[i]) s * r else s
      own + r^2 * sum(backsolve(now$R, X[i, ], transpose = TRUE)^2)
    }
    centre_i <- mean_of(now_mean)
    out <- rbind(out, rows("exact", "estimate", case$domain[i], centre_i))
    if (known[i] || has_mean) {
      inner <- mean_of(now_var)
      between <- mean_of(function(s, now) (now_mean(s, now) - centre_i)^2)
      out <- rbind(out, rows("exact", "mse", case$domain[i], inner + between))
    }
    for (level in c(0.025, 0.975)) {
      spread <- sqrt(max(mean_of(now_var), 1e-12))
      if (!is.finite(spread)) spread <- sd(y)
      cdf <- function(q) mean_of(function(s, now) {
        pnorm((q - now_mean(s, now)) / sqrt(now_var(s, now)))
      })
      q <- uniroot(function(q) cdf(q) - level, centre_i + c(-5, 5) * sd(y), tol = 1e-11,
        extendInt = "yes")$root
      out <- rbind(out, rows("exact", paste0("quantile_", level), case$domain[i], q))
    }
  }
  out
}

tables <- list()
for (name in names(cases)) {
  case <- cases[[name]]
  tables[[paste0("golden/inputs/bayes_", name, ".csv")]] <- case
  tables[[paste0("golden/bayes_", name, "__stats.csv")]] <- by_integrate(case)
  if (sum(!is.na(case$estimate)) > ncol(design_of(case)) + 4) {
    tables[[paste0("golden/bayes_", name, "__hbsae.csv")]] <- rbind(
      by_hbsae(case, "default", 0.01), by_hbsae(case, "tight", 1e-7))
  }
  cat(name, "\n")
}
save_answers(tables, "bayes_hbsae.R", c("hbsae", "sae"))
