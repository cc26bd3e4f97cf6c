# Shared by bayes_hbsae.R, taxonomy_metafor.R and taxonomy_rjags.R: the cases, exact writing, and
# the script's own rows of MANIFEST.
#
# A case is a data frame: level columns coarse to fine (the last one is the domain), estimate (NA
# where a domain has no labels), variance, and the design matrix x1..xp.

write_exact <- function(table, path) {
  shown <- lapply(table, function(column) {
    if (!is.double(column)) return(as.character(column))
    text <- formatC(column, digits = 17, format = "g", width = -1)
    short <- formatC(column, digits = 15, format = "g", width = -1)
    same <- !is.na(column) & suppressWarnings(as.numeric(short)) == column
    text[same] <- short[same]
    text[is.na(column)] <- ""
    text
  })
  connection <- file(path, open = "wb") # "\n" on every system
  on.exit(close(connection))
  writeLines(paste(names(table), collapse = ","), connection)
  writeLines(do.call(paste, c(shown, sep = ",")), connection)
}

draw_case <- function(seed, region, county = NULL, spread, beta, d, unit = 1, missing = 0) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  m <- length(region)
  X <- cbind(1, matrix(rnorm(m * (length(beta) - 1)), m))
  d <- if (length(d) == m) d else runif(m, d[1], d[2])
  effect <- function(g, s) rnorm(max(g), sd = sqrt(s))[g]
  groups <- c(list(region), if (is.null(county)) NULL else list(county), list(seq_len(m)))
  theta <- as.vector(X %*% beta)
  for (level in seq_along(groups)) theta <- theta + effect(groups[[level]], spread[level])
  z <- theta + rnorm(m, sd = sqrt(d))
  if (missing > 0) z[sample(m, missing)] <- NA
  out <- data.frame(region = sprintf("r%02d", region))
  if (!is.null(county)) out$county <- sprintf("c%02d", county)
  out$domain <- sprintf("d%03d", seq_len(m))
  out$estimate <- unit * z
  out$variance <- unit^2 * d
  names <- paste0("x", seq_len(ncol(X)))
  cbind(out, setNames(as.data.frame(X), names))
}

milk_case <- function() {
  data(milk, package = "sae", envir = environment())
  data.frame(region = sprintf("r%02d", milk$MajorArea), domain = sprintf("d%03d", milk$SmallArea),
    estimate = milk$yi, variance = milk$SD^2, x1 = 1)
}

taxonomy_cases <- function() {
  three <- rep(seq_len(14), c(2, 5, 3, 6, 1, 4, 5, 3, 2, 6, 4, 5, 8, 6))
  above <- c(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5)
  list(
    milk = milk_case(),
    groups34 = draw_case(1, rep(1:5, c(13, 3, 8, 7, 3)), spread = c(0.6, 0.4), beta = c(2, 1),
      d = c(0.3, 2)),
    cross63 = draw_case(2, rep(1:21, each = 3), spread = c(1, 0.3), beta = c(50, 4, -2),
      d = c(0.2, 1.5), unit = 1e-2),
    flat34 = draw_case(3, rep(1:5, c(13, 3, 8, 7, 3)), spread = c(0, 0.5), beta = c(0, 1),
      d = c(0.2, 0.8), unit = 100),
    three60 = draw_case(4, above[three], three, spread = c(0.5, 0.8, 0.3), beta = c(-1, 1),
      d = c(0.1, 1)),
    gaps60 = draw_case(5, above[three], three, spread = c(0.4, 0.3, 0.6), beta = c(3, 1),
      d = 10^runif(60, -2, 0.5), missing = 7)
  )
}

design_of <- function(case) as.matrix(case[grep("^x[0-9]+$", names(case))])
levels_of <- function(case) intersect(c("region", "county", "domain"), names(case))

# Rows of an answer table: quantity, key (a level, a coefficient or a domain), value.
rows <- function(setting, quantity, key, value) {
  data.frame(setting = setting, quantity = quantity, key = as.character(key),
    value = as.double(value))
}

save_answers <- function(tables, script, packages) {
  dir.create("golden/inputs", recursive = TRUE, showWarnings = FALSE)
  for (path in names(tables)) write_exact(tables[[path]], path)
  versions <- vapply(packages, function(p) paste(p, packageVersion(p)), "")
  engine <- paste(c(paste("R", getRversion()), versions), collapse = "; ")
  mine <- data.frame(file = names(tables), md5 = unname(tools::md5sum(names(tables))),
    script = script, script_md5 = unname(tools::md5sum(script)), engine = engine)
  if (file.exists("MANIFEST")) {
    others <- read.csv("MANIFEST", colClasses = "character")
    mine <- rbind(others[others$script != script, ], mine)
  }
  write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
  cat(length(tables), "files written with", engine, "\n")
}
