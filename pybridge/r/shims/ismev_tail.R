# ismev's functions for exceedances, each under its own name. Every function takes a named list of
# plain vectors and returns one; an R user can source this file and call them.
#
# Scores and thresholds come as the user has them and are divided by `unit` (1, or a power of two,
# which rounds nothing) before ismev sees them; answers go back in those units. `arguments` are
# further arguments of ismev's function, by its own names, in ismev's units already.

# A link: "identity", or the text of an R function. `unit` and `shift` are those of the scale: its
# linear predictor is in units of the scores under the identity, and moved by log(unit) under exp.
ismev_tail_link <- function(text, unit = 1) {
  if (identical(text, "identity")) return(identity)
  if (identical(text, "exp")) return(exp)
  f <- eval(str2lang(text), globalenv())
  if (unit == 1) f else function(x) f(x) / unit
}

ismev_tail_arguments <- function(inputs) {
  words <- inputs$arguments
  if (!is.null(inputs$covariates)) words$ydat <- inputs$covariates
  if (!is.null(inputs$siglink)) words$siglink <- ismev_tail_link(inputs$siglink, inputs$unit)
  if (!is.null(inputs$shlink)) words$shlink <- ismev_tail_link(inputs$shlink)
  if (!is.null(inputs$mulink)) words$mulink <- ismev_tail_link(inputs$mulink, inputs$unit)
  words
}

ismev_tail_fit <- function(inputs) {
  x <- inputs$xdat / inputs$unit
  threshold <- inputs$threshold / inputs$unit
  words <- ismev_tail_arguments(inputs)
  fit <- do.call(ismev::gpd.fit, c(list(x, threshold), words, list(show = FALSE)))
  # A search that stopped a little short goes on from there, with a new simplex.
  p <- length(words[["sigl"]]) + 1L
  for (again in seq_len(inputs$restarts)) {
    before <- fit$nllh
    words$siginit <- fit$mle[seq_len(p)]
    words$shinit <- fit$mle[-seq_len(p)]
    fit <- do.call(ismev::gpd.fit, c(list(x, threshold), words, list(show = FALSE)))
    if (before - fit$nllh < 1e-10) break
  }
  # The text of a link is that of our call, not of the user's.
  fit$link <- paste0("c(", inputs$siglink, ", ", inputs$shlink, ")")
  fit
}

# Coefficients in the user's units: back times ismev's, moved.
ismev_tail_user <- function(fit, inputs) {
  if (is.null(inputs$back)) return(list(mle_user = fit$mle, cov_user = unname(fit$cov)))
  list(
    mle_user = as.vector(inputs$back %*% fit$mle) + inputs$moved,
    cov_user = unname(inputs$back %*% fit$cov %*% t(inputs$back))
  )
}

ismev_tail_gpd_fit <- function(inputs) {
  fit <- ismev_tail_fit(inputs)
  ismev_tail_kept(fit, inputs)
  c(ismev_tail_user(fit, inputs), list(
    trans = fit$trans, mle = fit$mle, se = fit$se, cov = unname(fit$cov), conv = as.numeric(fit$conv),
    nllh_scaled = fit$nllh, nllh = fit$nllh + fit$nexc * log(inputs$unit),
    nexc = as.numeric(fit$nexc), rate = fit$rate, n = as.numeric(fit$n), npy = as.numeric(fit$npy),
    vals = unname(fit$vals), data = as.numeric(fit$data)
  ))
}

ismev_tail_kept <- function(fit, inputs) {
  if (is.null(inputs$file)) return(invisible(NULL))
  if (inputs$unit != 1) fit$unit <- inputs$unit
  # ismev's own elements are of the data as it saw them: scores over `unit`, covariates about their
  # centre. What the record says stands beside them.
  if (!is.null(inputs$back)) {
    user <- ismev_tail_user(fit, inputs)
    fit$user <- list(mle = user$mle_user, cov = user$cov_user, se = sqrt(diag(user$cov_user)))
  }
  shared_keep(fit, inputs$file)
}

# ismev's functions that only draw, run with a pen that writes down what they draw: plot, lines,
# points, abline and hist keep what they are given, in order, and nothing is drawn.
ismev_tail_drawn <- function(name, arguments) {
  space <- asNamespace("ismev")
  seen <- list()
  keep <- function(what) function(...) {
    seen[[length(seen) + 1L]] <<- c(list(pen = what), list(...))
    invisible(NULL)
  }
  pen <- list2env(list(
    plot = keep("plot"), lines = keep("lines"), points = keep("points"), abline = keep("abline"),
    title = keep("title"), par = function(...) NULL,
    hist = function(x, plot = TRUE, ...) {
      found <- graphics::hist(x, plot = FALSE)
      if (plot) keep("hist")(breaks = found$breaks, density = found$density)
      found
    }
  ), parent = space)
  for (own in c("gpd.pp", "gpd.qq", "gpd.rl", "gpd.his", name)) {
    f <- get(own, envir = space)
    environment(f) <- pen
    assign(own, f, envir = pen)
  }
  do.call(get(name, envir = pen), arguments)
  seen
}

# What ismev::gpd.fitrange gives, each threshold fitted for itself: it stops as a whole where one of
# them has no fit, or no finite interval to draw. NaN there.
ismev_tail_each <- function(data, ends, words) {
  u <- seq(ends[1L], ends[2L], length.out = words$nint)
  words$nint <- NULL
  rows <- vapply(u, function(limit) {
    fit <- tryCatch(
      do.call(ismev::gpd.fit, c(list(data, limit, show = FALSE), words)),
      error = function(condition) NULL
    )
    if (is.null(fit)) return(rep(NaN, 4L))
    d <- c(1, -limit)
    c(fit$mle[1L] - fit$mle[2L] * limit, fit$mle[2L], sqrt(c(d %*% fit$cov %*% d)), fit$se[2L])
  }, numeric(4L))
  mle <- t(rows[1:2, , drop = FALSE])
  se <- t(rows[3:4, , drop = FALSE])
  list(thresholds = u, mle = mle, se = se, ci.low = mle - 1.96 * se, ci.up = mle + 1.96 * se)
}

# ismev::gpd.fitrange, which draws and gives what it draws.
ismev_tail_gpd_fitrange <- function(inputs) {
  if (isTRUE(inputs$each)) {
    ends <- c(inputs$umin, inputs$umax) / inputs$unit
    found <- ismev_tail_each(inputs$data / inputs$unit, ends, inputs$arguments)
    shared_keep(found, inputs$file)
    return(found)
  }
  grDevices::pdf(file = NULL)
  device <- grDevices::dev.cur()
  on.exit(grDevices::dev.off(device))
  found <- do.call(ismev::gpd.fitrange, c(
    list(inputs$data / inputs$unit, inputs$umin / inputs$unit, inputs$umax / inputs$unit),
    inputs$arguments))
  shared_keep(found, inputs$file)
  lapply(found, unname)
}

# ismev::gpd.prof: the profile of a return level, and the two lines across it.
ismev_tail_gpd_prof <- function(inputs) {
  fit <- ismev_tail_fit(inputs)
  words <- inputs$profile
  for (end in c("xlow", "xup")) words[[end]] <- words[[end]] / inputs$unit
  ismev_tail_curve(ismev_tail_drawn("gpd.prof", c(list(fit), words)), fit, inputs)
}

# ismev::gpd.profxi: the profile of the shape.
ismev_tail_gpd_profxi <- function(inputs) {
  fit <- ismev_tail_fit(inputs)
  ismev_tail_curve(ismev_tail_drawn("gpd.profxi", c(list(fit), inputs$profile)), fit, inputs)
}

ismev_tail_curve <- function(seen, fit, inputs) {
  ismev_tail_kept(fit, inputs)
  lines <- Filter(function(part) part$pen == "abline", seen)
  shift <- fit$nexc * log(inputs$unit)
  list(x = seen[[1L]][[2L]], profile = seen[[1L]][[3L]] - shift, top = lines[[1L]]$h - shift,
    cut = lines[[2L]]$h - shift)
}

# A fit without covariates in the user's units: breaks of histograms depend on them.
ismev_tail_back <- function(fit, unit) {
  if (fit$trans) return(fit)
  by <- c(unit, 1)
  fit$mle <- fit$mle * by
  fit$cov <- fit$cov * outer(by, by)
  for (part in c("threshold", "data", "xdata")) fit[[part]] <- fit[[part]] * unit
  fit
}

# ismev::gpd.diag: the points and curves of its plots.
ismev_tail_gpd_diag <- function(inputs) {
  fit <- ismev_tail_fit(inputs)
  ismev_tail_kept(fit, inputs)
  fit <- ismev_tail_back(fit, inputs$unit)
  ismev_tail_parts(ismev_tail_drawn("gpd.diag", list(fit)))
}

# What gpd.diag draws, by name.
ismev_tail_parts <- function(seen) {
  seen <- Filter(function(part) part$pen %in% c("plot", "lines", "points", "hist"), seen)
  # plot pp, plot qq, plot rl, lines (level, upper, lower), points, hist, lines (density)
  found <- list(
    pp_empirical = seen[[1L]][[2L]], pp_model = seen[[1L]][[3L]],
    qq_model = seen[[2L]][[2L]], qq_empirical = seen[[2L]][[3L]]
  )
  if (length(seen) == 2L) return(found)
  c(found, list(
    rl_period = seen[[4L]][[2L]], rl_level = seen[[4L]][[3L]], rl_upper = seen[[5L]][[3L]],
    rl_lower = seen[[6L]][[3L]], rl_point_period = seen[[7L]][[2L]],
    rl_point_level = seen[[7L]][[3L]], breaks = seen[[8L]]$breaks, density = seen[[8L]]$density,
    density_x = seen[[9L]][[2L]], density_model = seen[[9L]][[3L]]
  ))
}

# ismev::mrl.plot: the mean excess and its band.
ismev_tail_mrl_plot <- function(inputs) {
  seen <- ismev_tail_drawn("mrl.plot", c(list(inputs$data / inputs$unit), inputs$arguments))
  shared_keep(seen, inputs$file)
  list(u = seen[[1L]][[2L]], mean = seen[[1L]][[3L]],
    lower_u = seen[[2L]][[2L]], lower = seen[[2L]][[3L]],
    upper_u = seen[[3L]][[2L]], upper = seen[[3L]][[3L]])
}

# ismev::pp.fit, the point process.
ismev_tail_pp_fit <- function(inputs) {
  x <- inputs$xdat / inputs$unit
  threshold <- inputs$threshold / inputs$unit
  words <- ismev_tail_arguments(inputs)
  fit <- do.call(ismev::pp.fit, c(list(x, threshold), words, list(show = FALSE)))
  mu <- seq_len(length(words[["mul"]]) + 1L)
  sig <- length(mu) + seq_len(length(words[["sigl"]]) + 1L)
  for (again in seq_len(inputs$restarts)) {
    before <- fit$nllh
    words$muinit <- fit$mle[mu]
    words$siginit <- fit$mle[sig]
    words$shinit <- fit$mle[-c(mu, sig)]
    fit <- do.call(ismev::pp.fit, c(list(x, threshold), words, list(show = FALSE)))
    if (before - fit$nllh < 1e-10) break
  }
  fit$link <- paste0("c(", inputs$mulink, ", ", inputs$siglink, ", ", inputs$shlink, ")")
  ismev_tail_kept(fit, inputs)
  c(ismev_tail_user(fit, inputs), list(
    trans = fit$trans, mle = fit$mle, se = fit$se, cov = unname(fit$cov), conv = as.numeric(fit$conv),
    nllh_scaled = fit$nllh, nllh = fit$nllh + fit$nexc * log(inputs$unit),
    nexc = as.numeric(fit$nexc), npy = as.numeric(fit$npy), vals = unname(fit$vals),
    data = as.numeric(fit$data)
  ))
}
