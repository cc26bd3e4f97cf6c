# Direct estimates of the means of m domains by the package survey. Every function takes a named list
# of plain vectors and returns one; an R user can source this file and call them. Inputs:
#   y, w, domain     outcome, weight and domain (1 to m) of the n units
#   auxiliary        n x q matrix, or NULL; means: m x q, their means over the domains' populations
#   size             the domains' numbers of units
#   stratum, psu, fpc  of the units, or NULL; fpc as svydesign takes it
#   poisson, lonely  Poisson sampling; survey.lonely.psu
#   method           "ht", "hajek", "ppi" or "greg"
#   slope, intercept GREG: "pooled", "within", "domain" or q numbers; whether it has an intercept
#   groups           named list of the domains' groups (1, 2, ...), each of length m
# and survey_direct_object() besides:
#   labels           the domains' names
#   level_names      of the levels of `groups`, the first the whole; level_labels: their groups'
#   file             where to keep the object

# Estimates, their covariance, and the covariance with Horvitz-Thompson's:
#   ht       svytotal(y 1_i) / N_i
#   hajek    svyby(~y, ~domain, svymean, covmat = TRUE)
#   ppi      mean of f over the domain's population + svytotal((y - f) 1_i) / N_i
#   greg     the same with y - x'b, b by lm(weights = w) and then held fixed
# Domains are indicators on the whole sample. A group's mean is that of its domains' totals, and for
# hajek the ratio mean of the group.
survey_direct_estimates <- function(inputs) {
  before <- options(survey.lonely.psu = inputs$lonely)
  on.exit(options(before))
  design <- survey_direct_design(inputs)
  m <- length(inputs$size)
  indicator <- outer(inputs$domain, seq_len(m), "==") * 1
  if (inputs$method == "hajek") {
    out <- survey_direct_hajek(inputs, design, indicator)
  } else {
    model <- survey_direct_model(inputs, indicator)
    out <- survey_direct_totals(inputs, design, indicator, model)
    out$coefficients <- model$coefficients
    out$own <- model$own
  }
  out$degrees <- survey_direct_degrees(design, inputs$domain, m)
  for (name in names(inputs$groups)) {
    group <- inputs$groups[[name]]
    out$groups[[name]]$degrees <- survey_direct_degrees(design, group[inputs$domain], max(group))
  }
  out
}

survey_direct_design <- function(inputs) {
  data <- data.frame(y = inputs$y, w = inputs$w)
  data$domain <- factor(inputs$domain, levels = seq_along(inputs$size))
  for (name in names(inputs$groups)) {
    group <- inputs$groups[[name]]
    data[[name]] <- factor(group[inputs$domain], levels = seq_len(max(group)))
  }
  if (isTRUE(inputs$poisson)) {
    data$p <- 1 / data$w
    return(survey::svydesign(
      ids = ~1, probs = ~p, pps = survey::poisson_sampling(data$p), data = data
    ))
  }
  for (name in c("stratum", "psu", "fpc")) data[[name]] <- inputs[[name]]
  named <- function(name) if (is.null(inputs[[name]])) NULL else stats::reformulate(name)
  ids <- if (is.null(inputs$psu)) ~1 else ~psu
  survey::svydesign(
    ids = ids, strata = named("stratum"), fpc = named("fpc"), weights = ~w, data = data
  )
}

# The working model: coefficients (m x (1 + q)), residuals of the units, x'b of the domains' means.
survey_direct_model <- function(inputs, indicator) {
  y <- inputs$y
  m <- length(inputs$size)
  if (inputs$method == "ht") return(list(residual = y, base = numeric(m)))
  f <- inputs$auxiliary
  if (inputs$method == "ppi") {
    return(list(residual = y - f[, 1], base = inputs$means[, 1]))
  }
  w <- inputs$w
  slope <- inputs$slope
  if (is.character(slope)) {
    fit <- if (slope == "within") {
      domain <- factor(inputs$domain)
      if (nlevels(domain) > 1) stats::lm(y ~ 0 + domain + f, weights = w)
      else stats::lm(y ~ f, weights = w)
    } else if (inputs$intercept) {
      stats::lm(y ~ f, weights = w)
    } else {
      stats::lm(y ~ 0 + f, weights = w)
    }
    slope <- utils::tail(unname(stats::coef(fit)), ncol(f))
  }
  left <- as.vector(y - f %*% slope)
  first <- if (inputs$intercept) stats::weighted.mean(left, w) else 0
  beta <- matrix(c(first, slope), m, 1 + ncol(f), byrow = TRUE)
  own <- logical(m)
  if (identical(inputs$slope, "domain")) {
    for (i in seq_len(m)) {
      inside <- indicator[, i] == 1
      # A domain needs two units more than it has coefficients.
      if (sum(inside) < ncol(f) + 3) next
      x <- f[inside, , drop = FALSE]
      if (inputs$intercept) x <- cbind(1, x)
      fit <- stats::lm.wfit(x, y[inside], w[inside])
      if (anyNA(fit$coefficients)) next
      own[i] <- TRUE
      beta[i, ] <- c(if (!inputs$intercept) 0, fit$coefficients)
    }
  }
  units <- beta[inputs$domain, , drop = FALSE]
  list(
    residual = as.vector(y - rowSums(cbind(1, f) * units)), own = own, coefficients = beta,
    base = rowSums(cbind(1, inputs$means) * beta)
  )
}

# svytotal of the columns of a matrix, in one call, so that their covariances come along.
survey_direct_columns <- function(columns, design) {
  total <- survey::svytotal(as.data.frame(columns), design)
  list(estimate = as.vector(stats::coef(total)), covariance = unname(as.matrix(stats::vcov(total))))
}

survey_direct_totals <- function(inputs, design, indicator, model) {
  m <- length(inputs$size)
  over <- function(values, size) values * rep(1 / size, each = nrow(values))
  columns <- over(model$residual * indicator, inputs$size)
  ht <- over(inputs$y * indicator, inputs$size)
  parts <- lapply(inputs$groups, function(group) {
    member <- outer(group, seq_len(max(group)), "==") * 1
    size <- as.vector(crossprod(member, inputs$size))
    list(
      columns = over(model$residual * (indicator %*% member), size),
      base = as.vector(crossprod(member, inputs$size * model$base)) / size
    )
  })
  all <- do.call(cbind, c(list(columns, ht), lapply(unname(parts), `[[`, "columns")))
  both <- survey_direct_columns(all, design)
  own <- seq_len(m)
  out <- list(
    estimate = model$base + both$estimate[own],
    covariance = both$covariance[own, own, drop = FALSE],
    covariance_ht = diag(both$covariance[own, m + own, drop = FALSE]), groups = list()
  )
  at <- 2 * m
  for (name in names(parts)) {
    here <- at + seq_along(parts[[name]]$base)
    out$groups[[name]] <- list(
      estimate = parts[[name]]$base + both$estimate[here],
      covariance = both$covariance[here, here, drop = FALSE]
    )
    at <- max(here)
  }
  out
}

survey_direct_hajek <- function(inputs, design, indicator) {
  m <- length(inputs$size)
  out <- survey_direct_means(design, "domain", m)
  total <- colSums(inputs$w * indicator)
  total[total == 0] <- 1
  about <- ifelse(is.na(out$estimate), 0, out$estimate)
  score <- outer(inputs$y, about, "-") * indicator * rep(1 / total, each = nrow(indicator))
  ht <- inputs$y * indicator * rep(1 / inputs$size, each = nrow(indicator))
  both <- survey_direct_columns(cbind(score, ht), design)
  out$covariance_ht <- diag(both$covariance[seq_len(m), m + seq_len(m), drop = FALSE])
  out$groups <- lapply(
    stats::setNames(names(inputs$groups), names(inputs$groups)),
    function(name) survey_direct_means(design, name, max(inputs$groups[[name]]))
  )
  out
}

# The ratio means by a factor of the design, NA and covariance 0 where it has no units.
survey_direct_means <- function(design, by, count) {
  estimate <- rep(NA_real_, count)
  covariance <- matrix(0, count, count)
  group <- as.integer(design$variables[[by]])
  if (length(unique(group)) == 1L) { # svyby() has no covariance of a single group
    found <- survey::svymean(~y, design)
    estimate[group[1]] <- stats::coef(found)
    covariance[group[1], group[1]] <- stats::vcov(found)
    return(list(estimate = estimate, covariance = covariance))
  }
  found <- survey::svyby(
    ~y, stats::reformulate(by), design, survey::svymean, covmat = TRUE
  )
  place <- as.integer(as.character(found[[by]]))
  estimate[place] <- as.vector(stats::coef(found))
  covariance[place, place] <- unname(as.matrix(stats::vcov(found)))
  list(estimate = estimate, covariance = covariance)
}

# R's degrees of freedom of the part of the sample in each of `count` groups; 0 without units.
survey_direct_degrees <- function(design, group, count) {
  vapply(seq_len(count), function(i) {
    inside <- group == i
    if (any(inside)) as.double(survey::degf(subset(design, inside))) else 0
  }, 0)
}

# Hajek's estimates as svyby() returns them, others as svytotal() does, with the population's part of
# the working model added: coef(), SE(), vcov(), confint() and cv() know both. The attribute
# "survey.design" is the svydesign, with the domains' labels.
survey_direct_object <- function(inputs) {
  before <- options(survey.lonely.psu = inputs$lonely)
  on.exit(options(before))
  design <- survey_direct_labelled(inputs)
  seen <- unique(inputs$domain)
  if (inputs$method == "hajek" && length(seen) > 1L) {
    object <- survey::svyby(~outcome, ~domain, design, survey::svymean, covmat = TRUE)
  } else {
    answer <- survey_direct_estimates(inputs)
    labels <- as.character(inputs$labels)
    object <- stats::setNames(answer$estimate, labels)
    attr(object, "var") <- structure(answer$covariance, dimnames = list(labels, labels))
    attr(object, "statistic") <- "mean"
    class(object) <- "svystat"
  }
  attr(object, "survey.design") <- design
  attr(object, "survey.lonely.psu") <- inputs$lonely
  shared_keep(object, inputs$file)
  list(kept = TRUE)
}

# The design with labels instead of codes; its variables are outcome, weight, domain, the levels of
# the taxonomy, x1, x2 ... and, where there is a working model, its residual.
survey_direct_labelled <- function(inputs) {
  design <- survey_direct_design(inputs)
  data <- design$variables
  named <- function(codes, labels) {
    factor(as.character(labels)[codes], levels = unique(as.character(labels)))
  }
  more <- list(outcome = data$y, domain = named(inputs$domain, inputs$labels))
  for (k in seq_along(inputs$level_names)[-1L]) {
    codes <- inputs$groups[[k]][inputs$domain]
    more[[inputs$level_names[[k]]]] <- named(codes, inputs$level_labels[[k]])
  }
  f <- inputs$auxiliary
  for (j in seq_len(NCOL(f))[!is.null(f)]) more[[paste0("x", j)]] <- f[, j]
  if (!inputs$method %in% c("ht", "hajek")) {
    indicator <- outer(inputs$domain, seq_along(inputs$size), "==") * 1
    more$residual <- survey_direct_model(inputs, indicator)$residual
  }
  more$weight <- data$w
  for (name in c("stratum", "psu", "fpc", "p")) more[[name]] <- data[[name]]
  design$variables <- as.data.frame(more, optional = TRUE)
  design
}
