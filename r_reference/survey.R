# Reference values of R's survey package for direct domain estimates.
#
#   cd r_reference && Rscript survey.R
#
# Writes the unit and population tables to golden/inputs/, one golden/<case>__survey.csv a case, and
# this script's rows of MANIFEST. Plain R: nothing here knows of the Python package it is used to
# check. Estimators, per domain i of known size N_i:
#   ht            svytotal(y 1_i) / N_i
#   hajek         svyby(~y, ~domain, svymean, covmat = TRUE)
#   ppi           mean of f over the population's domain + svytotal((y - f) 1_i) / N_i
#   greg, greg2   as ppi with y - x'b, b from lm(y ~ f [+ g], weights = w) and then held fixed
#   greg_within   slope from lm(y ~ domain + f), intercept the weighted mean of y - b f
#   greg_fixed    slope 0.5, intercept the weighted mean of y - 0.5 f
#   greg_domain   one lm a domain (only where every domain is large enough)
#   calibrate     calibrate() on the whole population's totals, then svytotal(y) / N
# Domain "@all" is the whole population, "@A" the group A. covariance:<d> is the covariance with the
# same estimator in domain d, covariance_ht the one with ht in the same domain.

suppressPackageStartupMessages(library(survey))

write_exact <- function(table, path) {
  shown <- lapply(table, function(column) {
    if (!is.double(column)) return(as.character(column))
    text <- formatC(column, digits = 17, format = "g", width = -1)
    short <- formatC(column, digits = 15, format = "g", width = -1)
    exact <- !is.na(column) & as.numeric(short) == column
    text[exact] <- short[exact]
    text[is.na(column)] <- ""
    text
  })
  connection <- file(path, open = "wb") # "\n" on every system
  on.exit(close(connection))
  writeLines(paste(names(table), collapse = ","), connection)
  writeLines(do.call(paste, c(shown, sep = ",")), connection)
}

# ---------------------------------------------------------------------------------- unit tables

data(api)

api_units <- function(sample) {
  data.frame(
    y = as.double(sample$api00), f = as.double(sample$api99), g = as.double(sample$meals),
    w = as.double(sample$pw),
    quarter = paste0("q", sample$cnum %% 4L), half = paste0("h", (sample$cnum %% 4L) %/% 2L),
    fifth = paste0("v", sample$cnum %% 5L), pair = paste0("p", (sample$cnum %% 5L) %/% 3L),
    type = as.character(sample$stype), level = ifelse(sample$stype == "E", "lower", "upper")
  )
}

population_table <- function(frame, domain, group) {
  by_domain <- split(frame, frame[[domain]])
  data.frame(
    domain = names(by_domain),
    group = vapply(by_domain, function(d) d[[group]][1L], ""),
    N = vapply(by_domain, function(d) as.double(nrow(d)), 0),
    f = vapply(by_domain, function(d) mean(d$f), 0),
    g = vapply(by_domain, function(d) mean(d$g), 0),
    row.names = NULL
  )
}

units <- list()
populations <- list()

apipop$pw <- 1
frame <- api_units(apipop)

units$apisrs <- cbind(api_units(apisrs), fpc = as.double(apisrs$fpc))
n_h <- as.vector(table(apistrat$stype)[as.character(apistrat$stype)])
units$apistrat <- cbind(api_units(apistrat),
  fpc = as.double(apistrat$fpc), fraction = n_h / as.double(apistrat$fpc))
units$apiclus1 <- cbind(api_units(apiclus1),
  psu = paste0("d", apiclus1$dnum), fpc = as.double(apiclus1$fpc))
units$apiclus2 <- cbind(api_units(apiclus2),
  psu = paste0("d", apiclus2$dnum), fpc = as.double(apiclus2$fpc1))
populations$api_quarter <- population_table(frame, "quarter", "half")
populations$api_fifth <- population_table(frame, "fifth", "pair")
populations$api_type <- population_table(frame, "type", "level")

# Synthetic populations. All values are rounded, so that the text holds them exactly.
set.seed(20240117, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
synthetic <- function(n, share) {
  domain <- sample(names(share), n, replace = TRUE, prob = share)
  level <- c(a = 2, b = 3, c = 5, d = 8, e = 4)[domain]
  f <- round(rnorm(n, level, 1.5), 2)
  g <- round(rgamma(n, 2, 0.1), 1)
  y <- round(0.4 + 0.8 * f - 0.02 * g + rnorm(n, 0, 1), 2)
  group <- ifelse(domain %in% c("a", "b"), "A", "B")
  data.frame(y = y, f = f, g = g, domain = domain, group = group)
}
share <- c(a = 0.4, b = 0.3, c = 0.15, d = 0.1, e = 0.05)

# Unequal probabilities, drawn with replacement: weight 1/(n p).
frame <- synthetic(1500, share)
populations$replacement <- population_table(frame, "domain", "group")
p <- (1 + abs(frame$g)) / sum(1 + abs(frame$g))
drawn <- sample(nrow(frame), 90, replace = TRUE, prob = p)
units$replacement <- cbind(frame[drawn, ], w = round(1 / (90 * p[drawn]), 3))

# Poisson sampling; some units are certain (weight 1).
frame <- synthetic(900, share)
populations$poisson <- population_table(frame, "domain", "group")
p <- pmin(1, 110 * (2 + frame$g)^1.5 / sum((2 + frame$g)^1.5))
kept <- runif(nrow(frame)) < p
units$poisson <- cbind(frame[kept, ], w = ifelse(p[kept] == 1, 1, round(1 / p[kept], 3)))

# Clusters of unequal sizes in strata; weights differ inside clusters; few clusters hold domain e.
cluster_sample <- function(clusters_in_stratum, taken, low, high) {
  parts <- list()
  for (h in seq_along(clusters_in_stratum)) {
    for (k in seq_len(taken[h])) {
      size <- sample(low:high, 1)
      part <- synthetic(size, share)
      part$domain[part$domain == "e" & k > 1] <- "c"
      part$group <- ifelse(part$domain %in% c("a", "b"), "A", "B")
      part$y <- round(part$y + rnorm(1, 0, 0.7), 2)
      part$w <- round(clusters_in_stratum[h] / taken[h] * runif(size, 1, 3), 2)
      part$stratum <- paste0("s", h)
      part$psu <- paste0("s", h, "c", k)
      part$fpc <- as.double(clusters_in_stratum[h])
      parts[[length(parts) + 1L]] <- part
    }
  }
  do.call(rbind, parts)
}
totals_around <- function(sample) {
  # Any sizes and means will do for the totals: these are near what the sample says.
  by_domain <- split(sample, sample$domain)
  data.frame(
    domain = names(by_domain),
    group = vapply(by_domain, function(d) d$group[1L], ""),
    N = vapply(by_domain, function(d) ceiling(1.07 * sum(d$w)), 0),
    f = vapply(by_domain, function(d) round(weighted.mean(d$f, d$w) + 0.15, 2), 0),
    g = vapply(by_domain, function(d) round(weighted.mean(d$g, d$w) - 0.5, 2), 0),
    row.names = NULL
  )
}
units$clusters <- cluster_sample(c(30, 22, 12, 9), c(7, 5, 4, 3), 2, 9)
units$clusters <- units$clusters[sample(nrow(units$clusters)), ] # rows in no order
populations$clusters <- totals_around(units$clusters)

# Strata with one primary unit.
units$lonely <- cluster_sample(c(14, 9, 6, 5, 4), c(5, 4, 3, 1, 1), 2, 8)
populations$lonely <- totals_around(units$lonely)

# A stratum taken whole, one of them of a single unit (R does not call that lonely), and two others.
frame <- synthetic(60, c(a = 0.5, b = 0.3, c = 0.2))
frame$stratum <- rep(c("s1", "s2", "whole", "one"), c(25, 24, 10, 1))
frame$fpc <- rep(c(100, 240, 10, 1), c(25, 24, 10, 1))
frame$w <- rep(c(4, 10, 1, 1), c(25, 24, 10, 1))
units$census <- frame
populations$census <- totals_around(frame)

# ---------------------------------------------------------------------------------------- cases

case <- function(name, units, population, domain = "domain", group = "group", strata = "", ids = "",
                 fpc = "", pps = "", lonely = "fail") {
  data.frame(case = name, units = units, population = population, domain = domain, group = group,
    strata = strata, ids = ids, fpc = fpc, pps = pps, lonely_psu = lonely)
}
cases <- rbind(
  case("srs", "apisrs", "api_fifth", "fifth", "pair", fpc = "fpc"),
  case("srs_without_fpc", "apisrs", "api_type", "type", "level"),
  case("stratified_size", "apistrat", "api_quarter", "quarter", "half", "type", fpc = "fpc"),
  case("stratified_fraction", "apistrat", "api_fifth", "fifth", "pair", "type", fpc = "fraction"),
  case("stratified_domains", "apistrat", "api_type", "type", "level", "type", fpc = "fpc"),
  case("one_stage", "apiclus1", "api_quarter", "quarter", "half", ids = "psu", fpc = "fpc"),
  case("one_stage_replacement", "apiclus1", "api_type", "type", "level", ids = "psu"),
  case("first_stage", "apiclus2", "api_quarter", "quarter", "half", ids = "psu", fpc = "fpc"),
  case("replacement", "replacement", "replacement"),
  case("poisson", "poisson", "poisson", pps = "poisson"),
  case("clusters", "clusters", "clusters", strata = "stratum", ids = "psu", fpc = "fpc"),
  case("clusters_replacement", "clusters", "clusters", strata = "stratum", ids = "psu"),
  case("lonely_adjust", "lonely", "lonely", strata = "stratum", ids = "psu", lonely = "adjust"),
  case("lonely_average", "lonely", "lonely", strata = "stratum", ids = "psu", lonely = "average"),
  case("lonely_certainty", "lonely", "lonely", strata = "stratum", ids = "psu",
    lonely = "certainty"),
  case("lonely_remove", "lonely", "lonely", strata = "stratum", ids = "psu", lonely = "remove"),
  case("lonely_adjust_fpc", "lonely", "lonely", strata = "stratum", ids = "psu", fpc = "fpc",
    lonely = "adjust"),
  case("lonely_average_fpc", "lonely", "lonely", strata = "stratum", ids = "psu", fpc = "fpc",
    lonely = "average"),
  case("census", "census", "census", strata = "stratum", fpc = "fpc")
)

# ----------------------------------------------------------------------------------- estimation

make_design <- function(setup, data) {
  formula_of <- function(name) if (name == "") NULL else reformulate(name)
  if (setup$pps == "poisson") {
    data$p <- 1 / data$w
    return(svydesign(ids = ~1, probs = ~p, pps = poisson_sampling(data$p), data = data))
  }
  ids <- if (setup$ids == "") ~1 else formula_of(setup$ids)
  svydesign(ids = ids, strata = formula_of(setup$strata), fpc = formula_of(setup$fpc),
    weights = ~w, data = data)
}

rows <- function(estimator, domain, quantity, value) {
  data.frame(estimator = estimator, domain = domain, quantity = quantity,
    value = as.double(value))
}

covariance_rows <- function(estimator, domains, matrix) {
  pick <- which(lower.tri(matrix), arr.ind = TRUE)
  if (nrow(pick) == 0L) return(NULL)
  rows(estimator, domains[pick[, 1]], paste0("covariance:", domains[pick[, 2]]), matrix[pick])
}

columns_total <- function(columns, design) {
  # svytotal of the columns of a matrix, one call, so that the covariances come along.
  total <- svytotal(as.data.frame(columns), design)
  list(estimate = as.vector(coef(total)), covariance = unname(as.matrix(vcov(total))))
}

# Estimates, errors, covariances and aggregates of a total-type estimator: base_i + total of
# residual over N_i.
total_type <- function(name, residual, base, known) {
  d <- known$design
  m <- length(known$domains)
  spread <- (residual * known$indicator) %*% diag(1 / known$N, m)
  both <- columns_total(cbind(spread, known$ht_columns), d)
  own <- both$covariance[seq_len(m), seq_len(m), drop = FALSE]
  cross <- both$covariance[seq_len(m), m + seq_len(m), drop = FALSE]
  estimate <- base + both$estimate[seq_len(m)]
  out <- rbind(
    rows(name, known$domains, "estimate", estimate),
    rows(name, known$domains, "se", sqrt(diag(own))),
    covariance_rows(name, known$domains, own),
    if (name != "ht") rows(name, known$domains, "covariance_ht", diag(cross))
  )
  for (a in names(known$parts)) {
    inside <- known$parts[[a]]
    share <- known$N[inside] / sum(known$N[inside])
    member <- rowSums(known$indicator[, inside, drop = FALSE])
    column <- cbind(residual * member) / sum(known$N[inside])
    total <- columns_total(column, d)
    out <- rbind(out, rows(name, a, "estimate", sum(share * base[inside]) + total$estimate),
      rows(name, a, "se", sqrt(total$covariance[1, 1])))
  }
  out
}

hajek <- function(known) {
  by <- svyby(~y, known$by, known$design, svymean, covmat = TRUE)
  stopifnot(identical(as.character(by[[1]]), known$domains))
  V <- unname(as.matrix(vcov(by)))
  estimate <- as.vector(coef(by))
  m <- length(known$domains)
  size <- colSums(known$data$w * known$indicator)
  score <- outer(known$data$y, estimate, "-")
  both <- columns_total(cbind((score * known$indicator) %*% diag(1 / size, m), known$ht_columns),
    known$design)
  out <- rbind(
    rows("hajek", known$domains, "estimate", estimate),
    rows("hajek", known$domains, "se", sqrt(diag(V))),
    covariance_rows("hajek", known$domains, V),
    rows("hajek", known$domains, "covariance_ht",
      diag(both$covariance[seq_len(m), m + seq_len(m), drop = FALSE]))
  )
  names(estimate) <- rownames(by)
  for (a in names(known$parts)) {
    inside <- known$parts[[a]]
    share <- ifelse(seq_len(m) %in% inside, known$N / sum(known$N[inside]), 0)
    mean_of <- svycontrast(by, list(part = share))
    # The ratio mean of the group itself, another estimator than the N_i-weighted mean above. Its
    # error by the linearised score on the whole design: the one that svymean gives on a subset
    # counts, under lonely.psu = "average", the strata of the subset alone (else they are equal).
    member <- rowSums(known$indicator[, inside, drop = FALSE])
    plain <- svymean(~y, subset(known$design, member > 0))
    score <- (known$data$y - coef(plain)) * member / sum(known$data$w * member)
    se <- sqrt(columns_total(cbind(score), known$design)$covariance[1, 1])
    if (known$lonely != "average") stopifnot(all.equal(se, as.vector(SE(plain)), tolerance = 1e-12))
    out <- rbind(out,
      rows("hajek", a, "estimate", coef(mean_of)), rows("hajek", a, "se", SE(mean_of)),
      rows("hajek_of_group", a, "estimate", coef(plain)), rows("hajek_of_group", a, "se", se))
  }
  out
}

greg <- function(name, auxiliary, known, within = FALSE, fixed = NULL) {
  data <- known$data
  X <- as.matrix(data[auxiliary])
  means <- as.matrix(known$population[auxiliary])
  if (!is.null(fixed)) {
    slope <- fixed
    intercept <- weighted.mean(data$y - X %*% slope, data$w)
  } else if (within) {
    fit <- lm(reformulate(c(0, known$domain_name, auxiliary), "y"), data, weights = w)
    slope <- coef(fit)[auxiliary]
    intercept <- weighted.mean(data$y - X %*% slope, data$w)
  } else {
    fit <- lm(reformulate(auxiliary, "y"), data, weights = w)
    slope <- coef(fit)[auxiliary]
    intercept <- coef(fit)[["(Intercept)"]]
  }
  residual <- as.vector(data$y - intercept - X %*% slope)
  base <- as.vector(intercept + means %*% slope)
  rbind(rows(name, "", paste0("coefficient:", c("Intercept", auxiliary)), c(intercept, slope)),
    total_type(name, residual, base, known))
}

greg_domain <- function(known) {
  data <- known$data
  residual <- numeric(nrow(data))
  base <- numeric(length(known$domains))
  for (i in seq_along(known$domains)) {
    inside <- known$indicator[, i] == 1
    fit <- lm(y ~ f, data[inside, ], weights = w)
    residual[inside] <- residuals(fit)
    base[i] <- sum(coef(fit) * c(1, known$population$f[i]))
  }
  total_type("greg_domain", residual, base, known)
}

calibrated <- function(name, auxiliary, known) {
  N <- sum(known$N)
  totals <- c(`(Intercept)` = N, colSums(known$N * known$population[auxiliary]))
  fitted <- calibrate(known$design, reformulate(auxiliary), population = totals, calfun = "linear")
  total <- svytotal(~y, fitted)
  rbind(rows(name, "@all", "estimate", coef(total) / N), rows(name, "@all", "se", SE(total) / N))
}

reference <- function(setup) {
  data <- units[[setup$units]]
  population <- populations[[setup$population]]
  options(survey.lonely.psu = setup$lonely_psu)
  design <- make_design(setup, data)
  domains <- as.character(population$domain)
  indicator <- outer(as.character(data[[setup$domain]]), domains, "==") * 1
  stopifnot(all(colSums(indicator) > 0), all(rowSums(indicator) == 1))
  groups <- split(seq_along(domains), population$group)
  names(groups) <- paste0("@", names(groups))
  known <- list(
    data = data, design = design, population = population, domains = domains, N = population$N,
    indicator = indicator, lonely = setup$lonely_psu, by = reformulate(setup$domain),
    domain_name = setup$domain,
    parts = c(list(`@all` = seq_along(domains)), groups),
    ht_columns = (data$y * indicator) %*% diag(1 / population$N, length(domains))
  )
  df <- vapply(seq_along(domains),
    function(i) as.double(degf(subset(design, indicator[, i] == 1))), 0)
  smallest <- min(colSums(indicator))
  out <- rbind(
    rows("", domains, "n_labelled", colSums(indicator)),
    rows("", domains, "df", df),
    total_type("ht", data$y, numeric(length(domains)), known),
    hajek(known),
    total_type("ppi", data$y - data$f, population$f, known),
    greg("greg", "f", known),
    greg("greg2", c("f", "g"), known),
    greg("greg_within", "f", known, within = TRUE),
    greg("greg_fixed", "f", known, fixed = 0.5),
    if (smallest >= 5) greg_domain(known),
    if (setup$pps == "") calibrated("calibrate", "f", known),
    if (setup$pps == "") calibrated("calibrate2", c("f", "g"), known)
  )
  cbind(case = setup$case, out)
}

# -------------------------------------------------------------------------------------- writing

written <- character()
save <- function(table, path) {
  write_exact(table, path)
  written <<- c(written, path)
}
dir.create("golden/inputs", recursive = TRUE, showWarnings = FALSE)
save(cases, "golden/inputs/survey_cases.csv")
for (name in names(units)) {
  save(units[[name]], file.path("golden/inputs", paste0("survey_", name, "_units.csv")))
}
for (name in names(populations)) {
  save(populations[[name]],
    file.path("golden/inputs", paste0("survey_", name, "_population.csv")))
}
for (row in seq_len(nrow(cases))) {
  setup <- cases[row, ]
  save(reference(setup), file.path("golden", paste0(setup$case, "__survey.csv")))
}

# MANIFEST: which script and which engine made which file, with the md5 of both. A script replaces
# its own rows and leaves those of the others.
engine <- paste0("R ", getRversion(), "; survey ", packageVersion("survey"))
mine <- data.frame(file = written, md5 = unname(tools::md5sum(written)), script = "survey.R",
  script_md5 = unname(tools::md5sum("survey.R")), engine = engine)
if (file.exists("MANIFEST")) {
  others <- read.csv("MANIFEST", colClasses = "character")
  mine <- rbind(others[others$script != "survey.R", ], mine)
}
write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
cat(length(written), "files written with", engine, "\n")
