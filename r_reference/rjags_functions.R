# Reference values of draws by rjags: a normal sample, in JAGS's chains, and by plain R's integrate().
#
#   cd r_reference && Rscript rjags_functions.R
#
# Writes golden/rjags_functions__rjags.csv (the chains, summarised) and rjags_functions__stats.csv
# (the same posterior by integrals), with columns call, quantity, key, value.

suppressPackageStartupMessages({
  library(rjags)
  library(coda)
})
source("_taxonomy.R")

text <- "model {
  for (i in 1:n) { y[i] ~ dnorm(mu, tau) }
  mu ~ dnorm(0, 0.01)
  tau ~ dgamma(2, 1)
}"
y <- c(4.1, 5.3, 3.9, 6.0, 4.4, 5.1, 4.8, 5.9)
inits <- lapply(1:4, function(chain) {
  list(.RNG.name = "base::Mersenne-Twister", .RNG.seed = 11 + chain)
})
model <- jags.model(textConnection(text), list(y = y, n = 8), inits, n.chains = 4, n.adapt = 500,
  quiet = TRUE)
update(model, 500, progress.bar = "none")
draws <- coda.samples(model, c("mu", "tau"), 8000, thin = 2, progress.bar = "none")
all <- as.matrix(draws)
size <- effectiveSize(draws)
named <- function(quantity, value) rows("normal", quantity, c("mu", "tau"), value)
sampled <- rbind(
  named("mean", colMeans(all)), named("deviation", apply(all, 2, sd)),
  named("lower", apply(all, 2, quantile, probs = 0.025)),
  named("upper", apply(all, 2, quantile, probs = 0.975)),
  named("r_hat", gelman.diag(draws, autoburnin = FALSE, multivariate = FALSE)$psrf[, 1]),
  named("effective_size", size), named("error", apply(all, 2, sd) / sqrt(size))
)

# Given tau, mu is normal: what is left is an integral over tau.
given <- function(tau) {
  precision <- 0.01 + 8 * tau
  centre <- tau * sum(y) / precision
  log <- 4 * log(tau) - 0.5 * tau * sum(y^2) + 0.5 * precision * centre^2 - 0.5 * log(precision) +
    dgamma(tau, 2, 1, log = TRUE)
  list(density = exp(log - top), centre = centre, spread = 1 / precision)
}
top <- 0
top <- log(optimize(function(t) given(t)$density, c(1e-3, 20), maximum = TRUE)$objective)
total <- function(f) {
  integrate(function(t) f(t, given(t)) * given(t)$density, 0, Inf, rel.tol = 1e-10)$value
}
norm <- total(function(t, g) 1)
mu <- total(function(t, g) g$centre) / norm
tau <- total(function(t, g) t) / norm
exact <- rbind(
  named("mean", c(mu, tau)),
  named("deviation", sqrt(c(total(function(t, g) g$spread + (g$centre - mu)^2),
    total(function(t, g) (t - tau)^2)) / norm))
)
names(sampled)[1] <- names(exact)[1] <- "call"
save_answers(list(`golden/rjags_functions__rjags.csv` = sampled,
  `golden/rjags_functions__stats.csv` = exact), "rjags_functions.R", c("rjags", "coda"))
