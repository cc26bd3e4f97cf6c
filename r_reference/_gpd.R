# Shared by the gpd_*.R scripts: the samples, exact writing, this script's rows of MANIFEST.
# A sample is a vector of scores and the thresholds at which it is fitted.

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

gpd_samples <- function() {
  data(rain, package = "ismev", envir = environment())
  data(danish, package = "evir", envir = environment())
  out <- list(
    rain = list(x = as.numeric(rain), u = c(10, 30)),
    danish = list(x = as.numeric(danish), u = c(5, 10, 20))
  )
  # Seeded samples of known shape in units far from 1: R's optimisers depend on the units.
  set.seed(20240101, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  draw <- function(n, shape, scale) {
    e <- -log(runif(n))
    scale * if (shape == 0) e else expm1(shape * e) / shape
  }
  out$light <- list(x = draw(200, -0.3, 1), u = 0)
  out$exponential <- list(x = draw(1570, 0, 1), u = 0)
  out$heavy <- list(x = draw(400, 0.5, 1), u = 0)
  out$tiny_units <- list(x = draw(300, 0.1, 1e-5), u = 0)
  out$huge_units <- list(x = draw(300, 0.1, 1e6), u = 0)
  out
}

# Rows of the long answer table of one case.
gpd_rows <- function(case, threshold, variant, values) {
  data.frame(case = case, threshold = threshold, variant = variant, quantity = names(values),
    value = as.numeric(values))
}

gpd_save <- function(tables, script, packages) {
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
