# Reference values of the Fay-Herriot model: the package sae, and plain R beside it.
#
#   cd r_reference && Rscript fay_herriot_sae.R
#
# Writes one table of domains a case to golden/inputs/fay_herriot_<case>.csv (domain, estimate,
# variance, then the columns of the design matrix) and the answers to golden/:
#   fay_herriot_<case>__sae.csv    sae::mseFH with its default PRECISION and a tight one
#   fay_herriot_<case>__stats.csv  the exact optimum: dense matrices, a grid over the model variance
#                                  and uniroot() on the score; also Prasad and Rao's moments, which
#                                  sae does not have
# Columns: method, setting, quantity, key, value. Plain R: nothing here knows of the Python package
# it is used to check.

suppressPackageStartupMessages(library(sae))

# ------------------------------------------------------------------------------------ the cases

case <- function(domain, estimate, variance, X) {
  list(domain = as.character(domain), estimate = as.double(estimate),
    variance = as.double(variance), X = X)
}

data(milk)
data(grapes)
data(incomedata)
data(sizeprov)
data(sizeprovedu)

# Direct estimates of mean income of the provinces; covariates: shares of two levels of education.
income <- function() {
  found <- direct(y = income, dom = prov, sweight = weight, domsize = sizeprov[, c("prov", "Nd")],
    data = incomedata)
  size <- sizeprovedu[match(found$Domain, sizeprovedu$prov), ]
  share <- as.matrix(size[, c("educ1", "educ3")]) / rowSums(size[, paste0("educ", 0:3)])
  case(found$Domain, found$Direct, found$SD^2, unname(cbind(1, share)))
}

# Seeded designs with unequal variances, chosen for what sae does on them.
drawn <- function(seed) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  m <- sample(8:30, 1)
  p <- sample(2:3, 1)
  X <- cbind(1, matrix(rnorm(m * (p - 1)), m))
  d <- exp(rnorm(m, 0, sample(c(.5, 1, 1.5), 1)))
  A <- sample(c(0, .05, .3), 1)
  case(seq_len(m), X %*% rep(1, p) + rnorm(m) * sqrt(A + d), d, X)
}

large <- function(m = 200) {
  set.seed(20, "Mersenne-Twister", "Inversion", "Rejection")
  X <- cbind(1, rnorm(m), runif(m) > 0.5)
  d <- exp(rnorm(m, -1, 0.7))
  case(seq_len(m), X %*% c(5, 1, -2) + rnorm(m) * sqrt(0.4 + d), d, X)
}

few <- function() {
  keep <- c(1, 9, 17, 25, 33)
  case(milk$SmallArea[keep], milk$yi[keep], milk$SD[keep]^2, cbind(1, keep / 10))
}

census <- function() {
  found <- large(40)
  found$variance[c(3, 20)] <- 0
  found
}

cases <- list(
  milk = case(milk$SmallArea, milk$yi, milk$SD^2, unname(model.matrix(~ as.factor(MajorArea), milk))),
  grapes = case(seq_len(nrow(grapes)), grapes$grapehect, grapes$var,
    unname(cbind(grapes$area, grapes$workdays))),
  income = income(),
  large = large(),
  few = few(),
  census = census(),
  negative_mse = drawn(21), # method FH: negative mean squared errors
  at_zero = drawn(60), # method FH does not converge, its solution is 0
  fh_fails = drawn(2956), # method FH does not converge, its solution is not 0
  reml_fails = drawn(104), # REML does not converge
  reml_short = drawn(2701), # REML ends at 0, the maximum is elsewhere
  ml_short = drawn(1338), # ML ends at 0, the maximum is elsewhere
  ml_local = drawn(607) # ML ends at a lower maximum, the best is 0
)

# ------------------------------------------------------------------------------------------ sae

rows <- function(method, setting, quantity, key, value) {
  data.frame(method = method, setting = setting, quantity = quantity, key = as.character(key),
    value = as.double(value))
}

by_sae <- function(known, method, setting, ...) {
  y <- known$estimate
  X <- known$X
  vardir <- known$variance
  fit <- try(suppressWarnings(mseFH(y ~ X - 1, vardir, method = method, ...)), silent = TRUE)
  if (inherits(fit, "try-error")) return(rows(method, setting, "error", "", 1))
  est <- fit$est$fit
  if (!est$convergence) return(rows(method, setting, "convergence", "", 0))
  key <- seq_len(ncol(X))
  rbind(
    rows(method, setting, "convergence", "", 1),
    rows(method, setting, "iterations", "", est$iterations),
    rows(method, setting, "model_variance", "", est$refvar),
    rows(method, setting, "coefficient", key, est$estcoef$beta),
    rows(method, setting, "coefficient_se", key, est$estcoef$std.error),
    rows(method, setting, "p_value", key, est$estcoef$pvalue),
    rows(method, setting, names(est$goodness), "", est$goodness),
    rows(method, setting, "estimate", known$domain, fit$est$eblup),
    rows(method, setting, "mse", known$domain, fit$mse)
  )
}

# ---------------------------------------------------------------------------------------- exact

dense <- function(A, known) {
  X <- known$X
  V <- A + known$variance
  WX <- X / V
  Q <- solve(crossprod(X, WX))
  P <- diag(1 / V) - WX %*% Q %*% t(WX)
  beta <- as.vector(Q %*% crossprod(WX, known$estimate))
  r <- known$estimate - as.vector(X %*% beta)
  loglike <- -0.5 * sum(log(2 * pi * V) + r^2 / V)
  logdet <- function(M) as.numeric(determinant(M)$modulus)
  restricted <- loglike + 0.5 * (ncol(X) * log(2 * pi) + logdet(Q) + logdet(crossprod(X)))
  list(V = V, Q = Q, P = P, beta = beta, r = r, loglike = loglike, restricted = restricted)
}

score <- function(A, known, method) {
  at <- dense(A, known)
  y <- known$estimate
  Py <- as.vector(at$P %*% y)
  switch(method,
    REML = -0.5 * sum(diag(at$P)) + 0.5 * sum(Py^2),
    ML = -0.5 * sum(1 / at$V) + 0.5 * sum(Py^2),
    FH = sum(y * Py) - (length(y) - ncol(known$X))
  )
}

optimum <- function(known, method) {
  if (method == "PR") {
    h <- hat(known$X, intercept = FALSE)
    r <- lm.fit(known$X, known$estimate)$residuals
    return(max(0, (sum(r^2) - sum(known$variance * (1 - h))) / (length(r) - ncol(known$X))))
  }
  positive <- known$variance[known$variance > 0]
  top <- 10 * max(positive, var(known$estimate))
  grid <- exp(seq(log(min(positive) / 1e3), log(top), length.out = 400))
  if (all(known$variance > 0)) grid <- c(0, grid)
  s <- vapply(grid, score, 0, known, method)
  turns <- which(s[-length(s)] > 0 & s[-1] <= 0)
  found <- vapply(turns, function(i) {
    uniroot(score, grid[i + 0:1], known, method, tol = 1e-15 * grid[i + 1], maxiter = 1000)$root
  }, 0)
  # Beside variances of 0 the likelihood has no value at 0.
  if (s[1] <= 0 && all(known$variance > 0)) found <- c(0, found)
  if (length(found) == 1L) return(found)
  height <- vapply(found, function(A) {
    dense(A, known)[[if (method == "REML") "restricted" else "loglike"]]
  }, 0)
  found[which.max(height)]
}

# Prasad and Rao 1990; Datta and Lahiri 2000; Datta, Rao and Smith 2005.
mean_squared_error <- function(A, at, known, method) {
  d <- known$variance
  m <- length(d)
  B <- d / at$V
  s1 <- sum(1 / at$V)
  s2 <- sum(1 / at$V^2)
  var_A <- switch(method, REML = 2 / s2, ML = 2 / s2, FH = 2 * m / s1^2, PR = 2 * sum(at$V^2) / m^2)
  bias <- switch(method,
    ML = -sum(diag(at$Q %*% t(known$X) %*% diag(1 / at$V^2) %*% known$X)) / s2,
    FH = 2 * (m * s2 - s1^2) / s1^3,
    0
  )
  g2 <- B^2 * diag(known$X %*% at$Q %*% t(known$X))
  A * B + g2 + 2 * B^2 * var_A / at$V - bias * B^2
}

exact <- function(known, method) {
  A <- optimum(known, method)
  at <- dense(A, known)
  estimate <- as.vector(known$X %*% at$beta) + A / at$V * at$r
  key <- seq_along(at$beta)
  rbind(
    rows(method, "exact", "model_variance", "", A),
    rows(method, "exact", "loglike", "", at$loglike),
    rows(method, "exact", "restricted", "", at$restricted),
    rows(method, "exact", "coefficient", key, at$beta),
    rows(method, "exact", "coefficient_se", key, sqrt(diag(at$Q))),
    rows(method, "exact", "estimate", known$domain, estimate),
    rows(method, "exact", "mse", known$domain, mean_squared_error(A, at, known, method))
  )
}

# ---------------------------------------------------------------------------------------- files

write_exact <- function(table, path) {
  shown <- lapply(table, function(column) {
    if (!is.double(column)) return(as.character(column))
    text <- formatC(column, digits = 17, format = "g", width = -1)
    short <- formatC(column, digits = 15, format = "g", width = -1)
    same <- !is.na(column) & as.numeric(short) == column
    text[same] <- short[same]
    text[is.na(column)] <- ""
    text
  })
  connection <- file(path, open = "wb") # "\n" on every system
  on.exit(close(connection))
  writeLines(paste(names(table), collapse = ","), connection)
  writeLines(do.call(paste, c(shown, sep = ",")), connection)
}

dir.create("golden/inputs", recursive = TRUE, showWarnings = FALSE)
written <- character()
keep <- function(table, path) {
  write_exact(table, path)
  written <<- c(written, path)
}

for (name in names(cases)) {
  known <- cases[[name]]
  X <- as.data.frame(known$X)
  names(X) <- paste0("x", seq_along(X))
  keep(cbind(data.frame(domain = known$domain, estimate = known$estimate, variance = known$variance), X),
    paste0("golden/inputs/fay_herriot_", name, ".csv"))
  answers <- do.call(rbind, lapply(c("REML", "ML", "FH"), function(method) {
    rbind(by_sae(known, method, "default"),
      by_sae(known, method, "tight", PRECISION = 1e-12, MAXITER = 1000))
  }))
  keep(answers, paste0("golden/fay_herriot_", name, "__sae.csv"))
  keep(do.call(rbind, lapply(c("REML", "ML", "FH", "PR"), exact, known = known)),
    paste0("golden/fay_herriot_", name, "__stats.csv"))
}

# MANIFEST: which script and which engine made which file, with the md5 of both. A script replaces
# its own rows and leaves those of the others.
engine <- paste0("R ", getRversion(), "; sae ", packageVersion("sae"))
mine <- data.frame(file = written, md5 = unname(tools::md5sum(written)), script = "fay_herriot_sae.R",
  script_md5 = unname(tools::md5sum("fay_herriot_sae.R")), engine = engine)
if (file.exists("MANIFEST")) {
  others <- read.csv("MANIFEST", colClasses = "character")
  mine <- rbind(others[others$script != "fay_herriot_sae.R", ], mine)
}
write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
cat(length(written), "files written with", engine, "\n")
