# Reference values of what emdi and the native engine both have beside REML and ML: adjusted
# likelihoods, logarithms and arcsines, Huber's robust fits, benchmarking.
#
#   cd r_reference && Rscript fay_herriot_emdi.R
#
# golden/inputs/fh_<case>.csv: domain, estimate, variance, n, x2, ... (an intercept goes with them).
# golden/fh_<case>__stats.csv: exact optima in plain R, by dense matrices and R's optimize on the
# logarithm of the variance. golden/fh_<case>__emdi.csv: emdi's numbers at these optima: its own
# search is led there by an interval of relative width 2e-9 around each, since its tolerance is
# absolute; robust fits by saeRobust with a tight tolerance.
# Columns: setting, quantity, key, value.

suppressPackageStartupMessages(library(emdi))

draw <- function(seed) set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")

# ----------------------------------------------------------------------------------------- the cases

data(milk, package = "sae")
area <- unname(model.matrix(~ as.factor(MajorArea), milk))
cases <- list(milk = data.frame(domain = paste0("a", milk$SmallArea), estimate = milk$yi,
  variance = milk$SD^2, n = as.double(milk$ni), x2 = area[, 2], x3 = area[, 3], x4 = area[, 4]))

draw(31)
m <- 28L
x <- round(rnorm(m), 3)
d <- round(runif(m, 0.3, 2.5), 3)
y <- round(5 + 2 * x + rnorm(m) + sqrt(d) * rnorm(m), 4)
y[c(4, 15, 22)] <- y[c(4, 15, 22)] + c(9, -8, 7)
y[c(9, 18)] <- d[c(9, 18)] <- NA
cases$outlying <- data.frame(domain = sprintf("d%02d", 1:m), estimate = y, variance = d,
  n = round(runif(m, 20, 60)), x2 = x)

draw(32)
x <- round(runif(m), 3)
level <- exp(7 + 0.8 * x + 0.3 * rnorm(m))
spread <- round((level * runif(m, 0.1, 0.4))^2)
income <- round(pmax(level + sqrt(spread) * rnorm(m), 50))
income[c(2, 13, 27)] <- spread[c(2, 13, 27)] <- NA
cases$income <- data.frame(domain = sprintf("d%02d", 1:m), estimate = income, variance = spread,
  n = round(runif(m, 20, 60)), x2 = x)

draw(33)
n <- round(runif(m, 40, 160))
x <- round(runif(m, -1, 1), 3)
mean_share <- sin(0.75 + 0.25 * x + 0.08 * rnorm(m))^2
share <- round(rbinom(m, n, mean_share) / n, 4)
share_variance <- round(share * (1 - share) / n, 8)
share[c(5, 20)] <- share_variance[c(5, 20)] <- NA
cases$shares <- data.frame(domain = sprintf("d%02d", 1:m), estimate = share,
  variance = share_variance, n = n, x2 = x)

# ------------------------------------------------------------------------------------------- exact

objective <- function(A, method, y, d, X) {
  V <- diag(A + d)
  Vi <- solve(V)
  Q <- solve(t(X) %*% Vi %*% X)
  P <- Vi - Vi %*% X %*% Q %*% t(X) %*% Vi
  value <- -0.5 * (as.numeric(determinant(V)$modulus) + as.numeric(t(y) %*% P %*% y))
  if (method %in% c("reml", "amrl", "amrl_yl")) {
    value <- value + 0.5 * as.numeric(determinant(Q)$modulus)
  }
  if (method %in% c("amrl", "ampl")) value <- value + log(A)
  if (method %in% c("amrl_yl", "ampl_yl")) value <- value + log(atan(sum(A / (A + d)))) / length(d)
  value
}
exact <- function(method, y, d, X) {
  grid <- seq(log(min(d)) - 8, log(max(d, var(y))) + 3, length.out = 120)
  f <- function(a) objective(exp(a), method, y, d, X)
  k <- which.max(vapply(grid, f, 0))
  f0 <- f(grid[k])
  exp(optimize(function(a) f(a) - f0, grid[c(max(1, k - 1), min(120, k + 1))], maximum = TRUE,
    tol = 1e-12)$maximum)
}
on_model_scale <- function(data, transformation) {
  keep <- !is.na(data$estimate)
  y <- data$estimate[keep]
  d <- data$variance[keep]
  if (transformation == "log") return(list(y = log(y), d = d / y^2, keep = keep))
  if (transformation == "arcsin") {
    return(list(y = asin(sqrt(y)), d = 1 / (4 * data$n[keep]), keep = keep))
  }
  list(y = y, d = d, keep = keep)
}

# -------------------------------------------------------------------------------------------- emdi

rows <- function(setting, quantity, key, value) {
  data.frame(setting = setting, quantity = quantity, key = as.character(key),
    value = as.double(value))
}
ask <- function(data, ...) {
  covariates <- grep("^x", names(data), value = TRUE)
  fixed <- as.formula(paste("estimate ~", paste(covariates, collapse = " + ")))
  words <- list(fixed = fixed, vardir = "variance", combined_data = data, domains = "domain", ...)
  suppressMessages(suppressWarnings(do.call(emdi::fh, words)))
}
told <- function(setting, fit) {
  rbind(
    rows(setting, "variance", "", fit$model$variance),
    rows(setting, "coefficient", rownames(fit$model$coefficients), fit$model$coefficients[[1]]),
    rows(setting, "estimate", fit$ind$Domain, fit$ind$FH),
    if (!is.null(fit$MSE$FH)) rows(setting, "mse", fit$MSE$Domain, fit$MSE$FH)
  )
}

adjusted <- c("reml", "ml", "amrl", "ampl", "amrl_yl", "ampl_yl")
ways <- list(
  milk = list(methods = adjusted, transformation = "no"),
  outlying = list(methods = adjusted, transformation = "no"),
  income = list(methods = c("reml", "ml"), transformation = "log", back = c("bc_sm", "bc_crude")),
  shares = list(methods = c("reml", "ml"), transformation = "arcsin", back = c("naive", "bc"))
)
stats <- list()
answers <- list()
for (name in names(cases)) {
  data <- cases[[name]]
  way <- ways[[name]]
  on <- on_model_scale(data, way$transformation)
  X <- as.matrix(cbind(1, data[on$keep, grep("^x", names(data))]))
  for (method in way$methods) {
    A <- exact(method, on$y, on$d, X)
    stats[[name]] <- rbind(stats[[name]], rows(method, "variance", "", A))
    led <- A * c(1 - 1e-9, 1 + 1e-9)
    for (back in c(way$back, if (is.null(way$back)) "none")) {
      if (back == "bc_sm" && method != "ml") next
      words <- list(data, method = method, interval = led, transformation = way$transformation)
      words$MSE <- way$transformation != "arcsin"
      if (back != "none") words$backtransformation <- back
      if (way$transformation == "arcsin") words$eff_smpsize <- "n"
      fit <- do.call(ask, words)
      setting <- paste(c(method, if (back != "none") back), collapse = "|")
      answers[[name]] <- rbind(answers[[name]], told(setting, fit))
    }
  }
}
for (name in c("milk", "outlying")) {
  for (k in c(1.345, 0.7)) {
    for (method in c("reblup", "reblupbc")) {
      fit <- ask(cases[[name]], method = method, k = k, mult_constant = 1, tol = 1e-13,
        maxit = 100000, MSE = TRUE, mse_type = "pseudo")
      answers[[name]] <- rbind(answers[[name]], told(paste(method, k, sep = "|"), fit))
    }
  }
}

# Benchmarking of the milk fit by ML, to a mean 2 % above the direct estimates' own.
fit <- ask(cases$milk, method = "ml", interval = stats$milk$value[stats$milk$setting == "ml"] *
  c(1 - 1e-9, 1 + 1e-9), MSE = TRUE)
share <- cases$milk$n / sum(cases$milk$n)
target <- 1.02 * sum(share * cases$milk$estimate)
for (type in c("raking", "ratio", "MSE_adj")) {
  found <- benchmark(fit, benchmark = target, share = share, type = type)
  answers$milk <- rbind(answers$milk,
    rows(paste("benchmark", type, sep = "|"), "estimate", found$Domain, found$FH_Bench))
}

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
tables <- c(
  setNames(cases, sprintf("golden/inputs/fh_%s.csv", names(cases))),
  setNames(answers, sprintf("golden/fh_%s__emdi.csv", names(answers))),
  setNames(stats, sprintf("golden/fh_%s__stats.csv", names(stats)))
)
for (path in names(tables)) write_exact(tables[[path]], path)

script <- "fay_herriot_emdi.R"
engine <- paste0("R ", getRversion(), "; emdi ", packageVersion("emdi"), "; saeRobust ",
  packageVersion("saeRobust"), "; sae ", packageVersion("sae"))
mine <- data.frame(file = names(tables), md5 = unname(tools::md5sum(names(tables))),
  script = script, script_md5 = unname(tools::md5sum(script)), engine = engine)
if (file.exists("MANIFEST")) {
  others <- read.csv("MANIFEST", colClasses = "character")
  mine <- rbind(others[others$script != script, ], mine)
}
write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
cat(length(tables), "files written with", engine, "\n")
