# Reference values of emdi::fh: every legal combination of its options on one small seeded case, and
# the exact optima of its six likelihoods and of its spatial model, in plain R by another route.
#
#   cd r_reference && Rscript emdi_fh.R
#
# golden/inputs/emdi_small.csv, emdi_small_proximity.csv, emdi_small_errors.csv: the case, two of its
# domains without a direct estimate. golden/emdi_small__emdi.csv: emdi's answers to the plain calls.
# golden/emdi_small__stats.csv: optima by dense matrices, a grid and R's optimize on the logarithm of
# the variance with a tight tolerance.

suppressPackageStartupMessages(library(emdi))

# ----------------------------------------------------------------------------------------- the case

set.seed(11, "Mersenne-Twister", "Inversion", "Rejection")
m <- 16L
domain <- sprintf("d%02d", seq_len(m))
x <- round(runif(m, 1, 4), 3)
z <- round(rnorm(m), 3)
spread <- round(runif(m, 2, 8), 3)
level <- round(10 + 3 * x + z + rnorm(m, 0, 2) + rnorm(m, 0, sqrt(spread)), 4)
n <- round(runif(m, 20, 90))
mean_share <- plogis(-1.5 + 0.6 * x + 0.4 * rnorm(m))
share <- round(rbinom(m, n, mean_share) / n, 4)
share_variance <- round(share * (1 - share) / n, 8)
outside <- c(5L, 11L)
level[outside] <- spread[outside] <- share[outside] <- share_variance[outside] <- NA
data <- data.frame(domain, x, z, level, spread, share, share_variance, n)
stopifnot(all(share > 0.02 & share < 0.98, na.rm = TRUE))

inside <- setdiff(seq_len(m), outside)
ring <- matrix(0, length(inside), length(inside))
for (i in seq_along(inside)) {
  ring[i, (i %% length(inside)) + 1] <- ring[i, ((i - 2) %% length(inside)) + 1] <- 0.5
}
errors <- array(0, c(2L, 2L, m))
errors[2L, 2L, ] <- round(runif(m, 0.01, 0.06), 4)

# --------------------------------------------------------------------------------- what is legal

combination <- function(method, transformation = "no", backtransformation = NULL,
                        correlation = "no", mse_type = NULL) {
  list(method = method, transformation = transformation, backtransformation = backtransformation,
    correlation = correlation, mse_type = mse_type)
}
legal <- list()
add <- function(methods, mse_types, ...) {
  for (method in methods) {
    legal[[length(legal) + 1L]] <<- combination(method, ...)
    for (kind in mse_types) legal[[length(legal) + 1L]] <<- combination(method, ..., mse_type = kind)
  }
}
add(c("reml", "ml", "amrl", "ampl", "amrl_yl", "ampl_yl"), "analytical")
add(c("reblup", "reblupbc"), c("pseudo", "boot"))
add("me", "jackknife")
add(c("reml", "ml"), "analytical", "log", "bc_crude")
add("ml", "analytical", "log", "bc_sm")
add(c("reml", "ml"), c("boot", "jackknife", "weighted_jackknife"), "arcsin", "naive")
add(c("reml", "ml"), "boot", "arcsin", "bc")
add(c("reml", "ml"), "boot", "logit", "naive")
add(c("reml", "ml"), "boot", "logit", "bc")
add("reml", c("analytical", "spatialparboot", "spatialparbootbc", "spatialnonparboot",
  "spatialnonparbootbc"), correlation = "spatial")
add("ml", c("analytical", "spatialparboot", "spatialparbootbc"), correlation = "spatial")
add(c("reblup", "reblupbc"), c("pseudo", "boot"), correlation = "spatial")
stopifnot(length(legal) == 62L)

name_of <- function(one) {
  paste(c(one$method, one$transformation, if (is.null(one$backtransformation)) "" else
    one$backtransformation, one$correlation, if (is.null(one$mse_type)) "" else one$mse_type),
    collapse = "|")
}

run <- function(one) {
  plain <- one$transformation == "no"
  words <- list(fixed = if (plain) level ~ x + z else share ~ x,
    vardir = if (plain) "spread" else "share_variance", combined_data = data, domains = "domain",
    method = one$method, transformation = one$transformation,
    backtransformation = one$backtransformation, correlation = one$correlation,
    MSE = !is.null(one$mse_type), B = c(4, 0), seed = 123)
  if (!is.null(one$mse_type)) words$mse_type <- one$mse_type
  if (one$transformation == "arcsin") words$eff_smpsize <- "n"
  if (one$correlation == "spatial") words$corMatrix <- ring
  if (one$method == "me") {
    words$Ci <- errors
    words$fixed <- level ~ x
  }
  suppressMessages(suppressWarnings(do.call(emdi::fh, words)))
}

# ------------------------------------------------------------------------------------- the answers

rows <- function(name, quantity, key, value) {
  data.frame(combination = name, quantity = quantity, key = as.character(key),
    value = as.double(value))
}
answers <- function(one) {
  fit <- run(one)
  name <- name_of(one)
  variance <- fit$model$variance
  spatial <- is.data.frame(variance)
  rbind(
    rows(name, "variance", "", if (spatial) variance$variance else variance),
    if (spatial) rows(name, "correlation", "", variance$correlation),
    rows(name, "coefficient", rownames(fit$model$coefficients), fit$model$coefficients[[1]]),
    rows(name, "standard_error", rownames(fit$model$coefficients), fit$model$coefficients[[2]]),
    rows(name, "estimate", fit$ind$Domain, fit$ind$FH),
    if (!is.null(fit$MSE$FH)) rows(name, "mse", fit$MSE$Domain, fit$MSE$FH),
    if (!is.null(fit$model$model_select)) {
      rows(name, "criterion", names(fit$model$model_select), unlist(fit$model$model_select))
    }
  )
}

# ------------------------------------------------------------------------------------------- exact

X <- cbind(1, x, z)[inside, ]
y <- level[inside]
d <- spread[inside]

dense <- function(V) {
  Vi <- solve(V)
  Q <- solve(t(X) %*% Vi %*% X)
  P <- Vi - Vi %*% X %*% Q %*% t(X) %*% Vi
  ordinary <- -0.5 * (length(y) * log(2 * pi) + as.numeric(determinant(V)$modulus) +
    as.numeric(t(y) %*% P %*% y))
  list(ordinary = ordinary,
    restricted = ordinary + 0.5 * (ncol(X) * log(2 * pi) + as.numeric(determinant(Q)$modulus) +
      as.numeric(determinant(t(X) %*% X)$modulus)))
}
objective <- function(A, method) {
  at <- dense(diag(A + d))
  value <- if (method %in% c("reml", "amrl", "amrl_yl")) at$restricted else at$ordinary
  if (method %in% c("amrl", "ampl")) value <- value + log(A)
  if (method %in% c("amrl_yl", "ampl_yl")) value <- value + log(atan(sum(A / (A + d)))) / length(d)
  value
}
best <- function(f, grid) {
  heights <- vapply(grid, f, 0)
  k <- which.max(heights)
  optimize(f, grid[c(max(1, k - 1), min(length(grid), k + 1))], maximum = TRUE, tol = 1e-10)
}
exact <- do.call(rbind, lapply(c("reml", "ml", "amrl", "ampl", "amrl_yl", "ampl_yl"), function(k) {
  found <- best(function(a) objective(exp(a), k), seq(log(1e-4), log(1e3), length.out = 60))
  at <- dense(diag(exp(found$maximum) + d))
  rbind(rows(k, "variance", "", exp(found$maximum)), rows(k, "loglike", "", at$ordinary),
    rows(k, "restricted", "", at$restricted))
}))
spatial <- function(parameters, method) {
  root <- diag(length(y)) - tanh(parameters[2]) * ring
  at <- dense(exp(parameters[1]) * solve(t(root) %*% root) + diag(d))
  if (method == "reml") at$restricted else at$ordinary
}
exact <- rbind(exact, do.call(rbind, lapply(c("reml", "ml"), function(method) {
  starts <- expand.grid(log(c(0.5, 3, 10)), atanh(c(-0.8, -0.3, 0.3, 0.8)))
  ends <- lapply(seq_len(nrow(starts)), function(i) {
    at <- as.numeric(starts[i, ])
    for (again in 1:4) {
      at <- optim(at, function(p) tryCatch(spatial(p, method), error = function(e) -1e10),
        control = list(fnscale = -1, reltol = 1e-16, maxit = 5000))$par
    }
    at
  })
  end <- ends[[which.max(vapply(ends, spatial, 0, method = method))]]
  name <- paste("spatial", method)
  rbind(rows(name, "variance", "", exp(end[1])), rows(name, "correlation", "", tanh(end[2])),
    rows(name, "objective", "", spatial(end, method)))
})))
# The measurement error model's fixed point, on covariates of scale 1.
X <- cbind(1, x)[inside, ]
C <- errors[, , inside]
w <- rep(1, length(y))
for (step in 1:500) {
  G <- t(X) %*% (w * X) - apply(C, 1:2, function(v) sum(w * v))
  b <- solve(G, t(X) %*% (w * y))
  q <- apply(C, 3, function(v) sum(b * (v %*% b)))
  A <- max(0, sum((y - X %*% b)^2 - d - q) / (length(y) - 2))
  w <- 1 / (A + d + q)
}
exact <- rbind(exact, rows("me", "variance", "", A), rows("me", "coefficient", 1:2, b))

# ------------------------------------------------------------------------------------------- files

write_exact <- function(table, path) {
  shown <- lapply(table, function(column) {
    if (!is.double(column)) return(as.character(column))
    text <- formatC(column, digits = 17, format = "g", width = -1)
    short <- formatC(column, digits = 15, format = "g", width = -1)
    same <- !is.na(column)
    same[same] <- as.numeric(short[same]) == column[same]
    text[same] <- short[same]
    text[is.na(column)] <- ""
    text
  })
  connection <- file(path, open = "wb")
  on.exit(close(connection))
  writeLines(paste(names(table), collapse = ","), connection)
  writeLines(do.call(paste, c(shown, sep = ",")), connection)
}

dir.create("golden/inputs", recursive = TRUE, showWarnings = FALSE)
tables <- list(
  "golden/inputs/emdi_small.csv" = data,
  "golden/inputs/emdi_small_proximity.csv" = structure(as.data.frame(ring), names = domain[inside]),
  "golden/inputs/emdi_small_errors.csv" = data.frame(domain, variance = errors[2L, 2L, ]),
  "golden/emdi_small__emdi.csv" = do.call(rbind, lapply(legal, answers)),
  "golden/emdi_small__stats.csv" = exact
)
for (path in names(tables)) write_exact(tables[[path]], path)

engine <- paste0("R ", getRversion(), "; emdi ", packageVersion("emdi"))
mine <- data.frame(file = names(tables), md5 = unname(tools::md5sum(names(tables))),
  script = "emdi_fh.R", script_md5 = unname(tools::md5sum("emdi_fh.R")), engine = engine)
if (file.exists("MANIFEST")) {
  others <- read.csv("MANIFEST", colClasses = "character")
  mine <- rbind(others[others$script != "emdi_fh.R", ], mine)
}
write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
cat(length(tables), "files written with", engine, "\n")
