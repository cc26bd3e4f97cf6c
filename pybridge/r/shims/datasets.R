# Data sets of R packages, as plain columns. A matrix stays one; a factor crosses as a factor.

datasets_table <- function(inputs) {
  place <- new.env()
  # Some packages load their data lazily, some ship it under the name of a file that holds several.
  utils::data(list = inputs$file, package = inputs$package, envir = place)
  if (!exists(inputs$name, envir = place, inherits = FALSE)) {
    stop("the R package ", inputs$package, " has no data set ", inputs$name)
  }
  table <- get(inputs$name, envir = place)
  if (!is.data.frame(table)) {
    return(list(values = if (is.matrix(table)) unname(table) else as.vector(table)))
  }
  table <- as.data.frame(table)
  if (identical(inputs$as, "matrix")) return(list(values = unname(as.matrix(table))))
  whole <- vapply(table, function(column) is.integer(column) && !anyNA(column), NA)
  list(columns = as.list(table), whole = names(table)[whole])
}
