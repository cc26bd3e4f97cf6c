# evd's functions for exceedances, each under its own name. Every function takes a named list of
# plain vectors and returns one; an R user can source this file and call them.
#
# Scores x (or data), thresholds and everything else in their units come as the user has them, and
# are divided by `unit` (1, or a power of two, which rounds nothing) before evd sees them; answers
# go back as evd gave them, in those units. `arguments` are further arguments of evd's function, by
# its own names, in evd's units already.

# evd::fpot, called with short names for the data, so that the object's own call is short.
evd_tail_fit <- function(inputs) {
  place <- list2env(
    list(x = inputs$x / inputs$unit, threshold = inputs$threshold / inputs$unit),
    parent = baseenv()
  )
  call <- as.call(c(list(quote(evd::fpot), x = quote(x), threshold = quote(threshold)),
    inputs$arguments))
  eval(call, place)
}

evd_tail_fpot <- function(inputs) {
  fit <- evd_tail_fit(inputs)
  if (!is.null(inputs$file)) evd_tail_keep(fit, inputs)
  evd_tail_values(fit, inputs$unit)
}

evd_tail_values <- function(fit, unit) {
  list(
    names = names(fit$estimate), estimate = unname(fit$estimate),
    std.err = if (is.null(fit$std.err)) NULL else unname(fit$std.err),
    param_names = names(fit$param), param = unname(fit$param), deviance = fit$deviance,
    nllh = fit$deviance / 2 + fit$nhigh * log(unit),
    corr = if (is.null(fit$corr)) NULL else unname(fit$corr),
    var.cov = if (is.null(fit$var.cov)) NULL else unname(fit$var.cov),
    convergence = as.character(fit$convergence), counts = as.numeric(fit$counts),
    message = fit$message, npp = as.numeric(fit$npp), nhigh = as.numeric(fit$nhigh),
    nat = as.numeric(fit$nat), pat = fit$pat, extind = fit$extind,
    exceedances = fit$exceedances, scale = unname(fit$scale)
  )
}

# The object, for readRDS(). That of a guarded fit is of x / unit, and has an element `unit`; its
# element `fixed` tells evd's profile the model, which it forgets to pass on.
evd_tail_keep <- function(fit, inputs) {
  if (isTRUE(inputs$guarded)) {
    fit$unit <- inputs$unit
    fit <- evd_tail_with_model(fit, inputs)
  }
  shared_keep(fit, inputs$file)
}

evd_tail_with_model <- function(fit, inputs) {
  if (identical(inputs$arguments$model, "pp")) fit$fixed <- c(as.list(fit$fixed), model = "pp")
  fit
}

# evd::profile of the fit, and evd::confint of the profile at a level.
#   profile    arguments of profile; level of the interval
#   guarded    pass the model "pp" on, which evd's profile forgets
evd_tail_profile <- function(inputs) {
  fit <- evd_tail_fit(inputs)
  if (isTRUE(inputs$guarded)) fit <- evd_tail_with_model(fit, inputs)
  found <- do.call(stats::profile, c(list(fit), inputs$profile))
  if (!is.null(inputs$file)) {
    if (isTRUE(inputs$guarded)) attr(found, "unit") <- inputs$unit
    shared_keep(found, inputs$file)
  }
  ends <- stats::confint(found, level = inputs$level)
  list(
    names = names(found), columns = lapply(unclass(found)[names(found)], colnames),
    curves = lapply(unclass(found)[names(found)], unname),
    deviance = attr(found, "deviance"), shift = 2 * fit$nhigh * log(inputs$unit),
    lower = unname(ends[, 1L]), upper = unname(ends[, 2L]),
    estimate = unname(fit$estimate[names(found)]), std.err = unname(fit$std.err[names(found)])
  )
}

# evd::confint of the fit itself.
evd_tail_confint <- function(inputs) {
  fit <- evd_tail_fit(inputs)
  ends <- stats::confint(fit, level = inputs$level)
  evd_tail_kept(ends, inputs)
  list(names = rownames(ends), lower = unname(ends[, 1L]), upper = unname(ends[, 2L]),
    estimate = unname(fit$estimate), std.err = unname(fit$std.err))
}

# A device that writes nothing, while f() draws.
evd_tail_undrawn <- function(f) {
  grDevices::pdf(file = NULL)
  device <- grDevices::dev.cur()
  on.exit(grDevices::dev.off(device))
  f()
}

evd_tail_data <- function(inputs) inputs$data / inputs$unit

evd_tail_tcplot <- function(inputs) {
  if (isTRUE(inputs$each)) {
    thresholds <- evd_tail_thresholds(inputs)
    found <- evd_tail_each(evd_tail_data(inputs), thresholds / inputs$unit, inputs$arguments)
    evd_tail_kept(found, inputs)
    return(c(lapply(found, unname), list(thresholds = thresholds)))
  }
  found <- evd_tail_undrawn(function() {
    do.call(evd::tcplot, c(list(evd_tail_data(inputs), inputs$tlim / inputs$unit),
      inputs$arguments))
  })
  evd_tail_kept(found, inputs)
  c(lapply(found, unname), list(thresholds = evd_tail_thresholds(inputs)))
}

# What evd::tcplot gives, each threshold fitted for itself: tcplot stops as a whole where one of
# them has no fit, or no finite interval to draw. NaN there.
evd_tail_each <- function(data, u, words) {
  own <- c("nt", "conf", "pscale")
  beyond <- stats::qnorm((1 + words$conf) / 2)
  fit <- function(...) do.call(evd::fpot, c(list(data, ...), words[setdiff(names(words), own)]))
  rows <- lapply(u, function(limit) {
    z <- tryCatch(fit(limit, corr = TRUE), error = function(condition) NULL)
    if (is.null(z)) z <- tryCatch(fit(limit, std.err = FALSE), error = function(condition) NULL)
    if (is.null(z)) return(NULL)
    at <- z$estimate
    err <- if (is.null(z$std.err)) at * NaN else z$std.err
    if (identical(words$model, "gpd")) {
      shared <- if (is.null(z$corr)) NaN else z$corr[1L, 2L] * prod(err)
      err[["scale"]] <- sqrt(err[["scale"]]^2 - 2 * limit * shared + (limit * err[["shape"]])^2)
      at[["scale"]] <- at[["scale"]] - at[["shape"]] * limit
    }
    list(at = at, err = err)
  })
  table <- function(name) {
    t(vapply(rows, function(row) {
      if (is.null(row)) return(rep(NaN, 3L))
      row$at[[name]] + c(-1, 0, 1) * beyond * row$err[[name]]
    }, numeric(3L)))
  }
  found <- list(scales = table("scale"), shapes = table("shape"))
  if (identical(words$model, "pp")) c(list(locs = table("loc")), found) else found
}

# The thresholds of tcplot, which gives them back rounded only; in the user's units.
evd_tail_thresholds <- function(inputs) {
  words <- inputs$arguments
  ends <- inputs$tlim
  if (!isTRUE(words$pscale)) return(seq(ends[1L], ends[2L], length.out = words$nt))
  share <- vapply(ends, function(end) mean(inputs$data <= end, na.rm = TRUE), 0)
  share <- seq(share[1L], share[2L], length.out = words$nt)
  unname(stats::quantile(inputs$data, probs = share, na.rm = TRUE))
}

evd_tail_mrlplot <- function(inputs) {
  found <- evd_tail_undrawn(function() {
    words <- if (is.null(inputs$tlim)) list() else list(tlim = inputs$tlim / inputs$unit)
    do.call(evd::mrlplot, c(list(evd_tail_data(inputs)), words, inputs$arguments))
  })
  evd_tail_kept(found, inputs)
  list(x = unname(found$x), y = unname(found$y))
}

evd_tail_exiplot <- function(inputs) {
  found <- evd_tail_undrawn(function() {
    do.call(evd::exiplot, c(list(inputs$data, inputs$tlim), inputs$arguments))
  })
  evd_tail_kept(found, inputs)
  list(x = unname(found$x), y = unname(found$y))
}

evd_tail_kept <- function(found, inputs) {
  shared_keep(found, inputs$file)
}

# evd::clusters: the values of each cluster with their places, and the largest of each.
evd_tail_clusters <- function(inputs) {
  data <- structure(inputs$data, names = as.character(seq_along(inputs$data)))
  found <- do.call(evd::clusters, c(list(data, inputs$u), inputs$arguments))
  evd_tail_kept(found, inputs)
  acs <- attr(found, "acs")
  if (isTRUE(inputs$arguments$cmax)) {
    return(list(largest = as.numeric(found), place = as.numeric(names(found)), acs = acs))
  }
  list(
    cluster = as.numeric(rep(seq_along(found), lengths(found))),
    place = as.numeric(unlist(lapply(found, names), use.names = FALSE)),
    value = as.numeric(unlist(found, use.names = FALSE)), acs = acs
  )
}

evd_tail_exi <- function(inputs) {
  found <- do.call(evd::exi, c(list(inputs$data, inputs$u), inputs$arguments))
  evd_tail_kept(found, inputs)
  list(extremal_index = as.numeric(found))
}

# evd::dgpd, pgpd, qgpd by name.
evd_tail_distribution <- function(inputs) {
  f <- getExportedValue("evd", inputs$which)
  value <- do.call(f, c(list(inputs$x), inputs$arguments))
  evd_tail_kept(value, inputs)
  list(value = value)
}
