# Reference values of the taxonomy model by likelihood: metafor::rma.mv, and plain R beside it.
#
#   cd r_reference && Rscript taxonomy_metafor.R
#
# Writes the cases to golden/inputs/taxonomy_<case>.csv and the answers to
#   golden/taxonomy_<case>__metafor.csv  rma.mv, REML and ML, with its default stopping rule and a
#                                        tight one
#   golden/taxonomy_<case>__stats.csv    the dense likelihood maximised by optim() and polished by
#                                        nlminb(), from several starts; EBLUPs by dense matrices
# Columns: setting, quantity, key, value.

suppressPackageStartupMessages({
  library(metafor)
  library(sae)
})
source("_taxonomy.R")

by_metafor <- function(case, method, setting, control) {
  known <- case[!is.na(case$estimate), ]
  X <- design_of(known)
  levels <- levels_of(known)
  random <- lapply(levels, function(level) as.formula(paste("~ 1 |", level)))
  fit <- suppressWarnings(rma.mv(known$estimate, known$variance, mods = X, intercept = FALSE,
    random = random, data = known, method = method, control = control))
  label <- paste(method, setting)
  effects <- ranef(fit)
  eblup <- as.vector(X %*% fit$beta)
  for (level in levels) {
    own <- effects[[level]]
    eblup <- eblup + own$intrcpt[match(known[[level]], rownames(own))]
  }
  rbind(
    rows(label, "variance", levels, fit$sigma2),
    rows(label, "coefficient", colnames(X), fit$beta),
    rows(label, "coefficient_error", colnames(X), fit$se),
    rows(label, "log_likelihood", "", as.numeric(logLik(fit))),
    rows(label, "eblup", known$domain, eblup)
  )
}

dense <- function(case, method) {
  known <- !is.na(case$estimate)
  X <- design_of(case)
  levels <- levels_of(case)
  same <- lapply(levels, function(level) outer(case[[level]], case[[level]], "==") * 1)
  y <- case$estimate[known]
  Xs <- X[known, , drop = FALSE]
  unit <- var(lm.fit(Xs, y)$residuals)
  parts <- function(s) {
    S <- Reduce(`+`, Map(`*`, same, s))
    V <- S[known, known] + diag(case$variance[known])
    U <- chol(V)
    A <- backsolve(U, Xs, transpose = TRUE)
    b <- backsolve(U, y, transpose = TRUE)
    fit <- qr(A)
    list(S = S, U = U, beta = qr.coef(fit, b), rest = sum(qr.resid(fit, b)^2),
      ldV = 2 * sum(log(diag(U))), ldI = 2 * sum(log(abs(diag(qr.R(fit))))))
  }
  ldX <- 2 * sum(log(abs(diag(qr.R(qr(Xs))))))
  value <- function(s, restricted = method == "REML") {
    p <- parts(s)
    n <- length(y) - if (restricted) ncol(X) else 0
    -0.5 * (n * log(2 * pi) + p$ldV + p$rest + if (restricted) p$ldI - ldX else 0)
  }
  down <- function(r) -value(unit * r^2) # s = unit r^2 lets a variance be 0
  best <- NULL
  starts <- as.matrix(expand.grid(rep(list(c(0.05, 0.3, 1)), length(levels))))
  for (k in seq_len(nrow(starts))) {
    fit <- optim(sqrt(starts[k, ]), down, method = "BFGS", control = list(reltol = 1e-15, maxit = 500))
    fit <- optim(fit$par, down, method = "Nelder-Mead", control = list(reltol = 1e-16, maxit = 5000))
    fit <- nlminb(fit$par, down, control = list(rel.tol = 1e-15, x.tol = 1e-12))
    if (is.null(best) || fit$objective < best$objective) best <- fit
  }
  s <- unit * best$par^2
  p <- parts(s)
  solve_V <- function(b) backsolve(p$U, backsolve(p$U, b, transpose = TRUE))
  K <- p$S[, known]
  theta <- as.vector(X %*% p$beta + K %*% solve_V(y - Xs %*% p$beta))
  C <- chol2inv(qr.R(qr(backsolve(p$U, Xs, transpose = TRUE))))
  D <- X - K %*% solve_V(Xs)
  g <- diag(p$S) - rowSums(K * t(solve_V(t(K)))) + rowSums((D %*% C) * D)
  rbind(
    rows(method, "variance", levels, s),
    rows(method, "coefficient", colnames(X), p$beta),
    rows(method, "coefficient_error", colnames(X), sqrt(diag(C))),
    rows(method, "log_likelihood", "", value(s)),
    rows(method, "other_log_likelihood", "", value(s, method != "REML")),
    rows(method, "eblup", case$domain, theta),
    rows(method, "naive_mse", case$domain, g)
  )
}

tables <- list()
for (name in names(taxonomy_cases())) {
  case <- taxonomy_cases()[[name]]
  tables[[paste0("golden/inputs/taxonomy_", name, ".csv")]] <- case
  tight <- list(optimizer = "optim", optmethod = "BFGS", reltol = 1e-15, maxit = 2000)
  tables[[paste0("golden/taxonomy_", name, "__metafor.csv")]] <- do.call(rbind, lapply(
    c("REML", "ML"), function(method) {
      rbind(by_metafor(case, method, "default", list()), by_metafor(case, method, "tight", tight))
    }))
  tables[[paste0("golden/taxonomy_", name, "__stats.csv")]] <- rbind(dense(case, "REML"),
    dense(case, "ML"))
}
save_answers(tables, "taxonomy_metafor.R", c("metafor", "sae"))
