# Reference values of ismev's functions for exceedances: gpd.fit with covariates and links,
# gpd.fitrange, pp.fit, and what gpd.prof, gpd.profxi, gpd.diag and mrl.plot draw.
#
#   cd r_reference && Rscript tail_ismev.R
#
# The drawing functions give nothing back, so their curves are computed here once more, line for
# line as they do it. The scores of the rain are those of golden/inputs/gpd_rain.csv.

source("_gpd.R")
data(rain, package = "ismev")
rain <- as.numeric(rain)

# Scores whose scale grows with a covariate, and whose shape depends on another.
set.seed(20240202, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
n <- 800
trend <- data.frame(year = seq(0, 1, length.out = n), group = as.numeric(runif(n) < 0.4))
e <- -log(runif(n))
shape <- 0.1 + 0.2 * trend$group
trend$score <- 10 + exp(0.5 + 0.8 * trend$year) * expm1(shape * e) / shape

rows <- function(call, setting, quantity, values, key = "") {
  data.frame(call = call, setting = setting, quantity = quantity, key = key,
    value = as.numeric(values))
}
fit_rows <- function(call, setting, fit) {
  rbind(rows(call, setting, "mle", fit$mle), rows(call, setting, "se", fit$se),
    rows(call, setting, "cov", fit$cov), rows(call, setting, "nllh", fit$nllh),
    rows(call, setting, "nexc", fit$nexc), rows(call, setting, "conv", fit$conv))
}
gpd <- function(x, u, ...) suppressWarnings(ismev::gpd.fit(x, u, show = FALSE, ...))

fit <- gpd(rain, 30)
rain_fits <- rbind(
  fit_rows("gpd.fit", "default", fit),
  fit_rows("gpd.fit", "tight", gpd(rain, 30, reltol = 1e-14)),
  fit_rows("gpd.fit", "bfgs", gpd(rain, 30, method = "BFGS", siginit = 7, shinit = 0.2)),
  fit_rows("gpd.fit", "varying", gpd(rain, rep(c(25, 30), length.out = length(rain)))),
  fit_rows("pp.fit", "default", suppressWarnings(ismev::pp.fit(rain, 30, show = FALSE))),
  fit_rows("pp.fit", "started", ismev::pp.fit(rain, 30, show = FALSE, muinit = 40, siginit = 9,
    shinit = 0.2))
)
pdf(NULL)
range <- ismev::gpd.fitrange(rain, 10, 40, nint = 4, show = FALSE)
ranges <- do.call(rbind, lapply(names(range), function(name) {
  rows("gpd.fitrange", "plain", name, range[[name]])
}))

covariates <- as.matrix(trend[, c("year", "group")])
link <- function(x) 1 / (1 + exp(-x))
trend_fits <- rbind(
  fit_rows("gpd.fit", "scale", gpd(trend$score, 10, ydat = covariates, sigl = 1)),
  fit_rows("gpd.fit", "scale_exp", gpd(trend$score, 10, ydat = covariates, sigl = 1,
    siglink = exp)),
  fit_rows("gpd.fit", "both", gpd(trend$score, 10, ydat = covariates, sigl = 1, shl = 2,
    siglink = exp)),
  fit_rows("gpd.fit", "own_link", gpd(trend$score, 10, ydat = covariates, shl = 2, shlink = link))
)

# gpd.prof: the loop of ismev, with its chain of starts.
level_profile <- function(z, m, low, high, npy = 365, nint = 100) {
  xdat <- z$data
  u <- z$threshold
  la <- z$rate
  m <- m * npy
  sol <- z$mle[2]
  x <- seq(low, high, length = nint)
  v <- numeric(nint)
  for (i in 1:nint) {
    xp <- x[i]
    opt <- optim(sol, function(a) {
      sc <- (a * (xp - u)) / ((m * la)^a - 1)
      if (abs(a) < 10^(-4)) return(length(xdat) * log(sc) + sum(xdat - u) / sc)
      y <- (xdat - u) / sc
      y <- 1 + a * y
      if (any(y <= 0) || sc <= 0) return(10^6)
      length(xdat) * log(sc) + sum(log(y)) * (1 / a + 1)
    }, method = "BFGS")
    sol <- opt$par
    v[i] <- opt$value
  }
  rbind(rows("gpd.prof", "plain", "x", x), rows("gpd.prof", "plain", "profile", -v),
    rows("gpd.prof", "plain", "cut", -z$nllh - 0.5 * qchisq(0.95, 1)))
}
shape_profile <- function(z, low, high, nint = 100) {
  xdat <- z$data
  u <- z$threshold
  x <- seq(high, low, length = nint)
  v <- numeric(nint)
  sol <- z$mle[1]
  for (i in 1:nint) {
    xi <- x[i]
    opt <- optim(sol, function(a) {
      if (abs(xi) < 10^(-4)) return(length(xdat) * log(a) + sum(xdat - u) / a)
      y <- (xdat - u) / a
      y <- 1 + xi * y
      if (any(y <= 0) || a <= 0) return(10^6)
      length(xdat) * log(a) + sum(log(y)) * (1 / xi + 1)
    }, method = "BFGS")
    sol <- opt$par
    v[i] <- opt$value
  }
  rbind(rows("gpd.profxi", "plain", "x", x), rows("gpd.profxi", "plain", "profile", -v),
    rows("gpd.profxi", "plain", "cut", -z$nllh - 0.5 * qchisq(0.95, 1)))
}
profiles <- suppressWarnings(rbind(level_profile(fit, 100, 75, 200), shape_profile(fit, -0.1, 0.6)))

# gpd.diag: PP, QQ, return levels with their band, density.
diagnosis <- function(z) {
  k <- length(z$data)
  u <- z$threshold
  a <- z$mle
  m <- c(1 / z$rate, 10^seq(-1, 3.75 + log10(z$npy), by = 0.1))
  q <- ismev:::gpdq2(a, u, z$rate, m)
  d <- t(ismev:::gpd.rl.gradient(a = c(z$rate, a), m = m))
  v <- matrix(c((z$rate * (1 - z$rate)) / z$n, 0, 0, 0, z$cov[1, 1], z$cov[1, 2], 0,
    z$cov[2, 1], z$cov[2, 2]), ncol = 3)
  s <- sqrt(apply(d, 1, ismev:::q.form, m = v))
  shown <- q > u - 1
  h <- hist(z$data, plot = FALSE)
  x <- seq(u, max(h$breaks), length = 100)
  put <- function(quantity, values) rows("gpd.diag", "plain", quantity, values)
  rbind(
    put("pp_empirical", (1:k) / k), put("pp_model", ismev:::gpdf(a, u, sort(z$data))),
    put("qq_model", ismev:::gpdq(a, u, 1 - (1:k) / (k + 1))), put("qq_empirical", sort(z$data)),
    put("rl_period", m[shown] / z$npy), put("rl_level", q[shown]),
    put("rl_upper", q[shown] + 1.96 * s[shown]), put("rl_lower", q[shown] - 1.96 * s[shown]),
    put("rl_point_period", (1 / (1 - (1:z$n) / (z$n + 1)) / z$npy)[sort(z$xdata) > u]),
    put("rl_point_level", sort(z$xdata)[sort(z$xdata) > u]), put("breaks", h$breaks), put("density", h$density),
    put("density_x", x), put("density_model", ismev:::gpd.dens(a, u, x))
  )
}

# mrl.plot with its defaults but for the number of thresholds.
life <- function(data, nint) {
  u <- seq(min(data), max(data) - 0.1, length = nint)
  value <- t(vapply(u, function(limit) {
    x <- data[data > limit]
    half <- qnorm(0.975) * sqrt(var(x)) / sqrt(length(x))
    c(mean(x - limit), mean(x - limit) - half, mean(x - limit) + half)
  }, numeric(3)))
  rbind(rows("mrl.plot", "plain", "u", u), rows("mrl.plot", "plain", "mean", value[, 1]),
    rows("mrl.plot", "plain", "lower", value[, 2]), rows("mrl.plot", "plain", "upper", value[, 3]))
}

gpd_save(list(
  "golden/inputs/tail_trend.csv" = trend,
  "golden/tail_rain__ismev.csv" = rbind(rain_fits, ranges, profiles, diagnosis(fit), life(rain, 6)),
  "golden/tail_trend__ismev.csv" = trend_fits
), "tail_ismev.R", "ismev")
