# What shims of several packages have in common. Read by the door before any of them.

# A request that must not reach the package: an error that the bridge tells from R's own.
shared_refuse <- function(...) {
  stop(structure(
    class = c("shared_refusal", "error", "condition"), list(message = paste0(...), call = NULL)
  ))
}

# A model formula from text, which may hold nothing but the names of columns, constants and calls
# of the named functions: it is parsed, looked through, and never evaluated before that. Its
# variables are found in `columns`, its functions in R's own packages.
shared_formula <- function(text, columns, functions) {
  parsed <- tryCatch(
    parse(text = text, keep.source = FALSE),
    error = function(condition) shared_refuse("R cannot read it: ", conditionMessage(condition))
  )
  if (length(parsed) != 1L) shared_refuse("it must be one formula")
  formula <- parsed[[1L]]
  if (!is.call(formula) || !identical(formula[[1L]], as.name("~"))) shared_refuse("it has no ~")
  for (side in as.list(formula)[-1L]) shared_look(side, names(columns), functions)
  formula <- eval(formula, baseenv())
  environment(formula) <- list2env(columns, parent = asNamespace("stats"))
  formula
}

shared_look <- function(part, columns, functions) {
  if (is.name(part)) {
    if (!as.character(part) %in% columns) shared_refuse("there is no column ", as.character(part))
  } else if (is.call(part)) {
    called <- part[[1L]]
    if (!is.name(called) || !as.character(called) %in% functions) {
      shared_refuse("it may not call ", paste(deparse(called), collapse = " "))
    }
    for (argument in as.list(part)[-1L]) shared_look(argument, columns, functions)
  } else if (!is.null(part) && !(is.atomic(part) && length(part) == 1L)) {
    shared_refuse("it holds something that is neither a name nor a number")
  }
  invisible(NULL)
}

# R drops an outcome that stands among the covariates too, or makes columns of what is in memory
# there: delete.response() takes the variable away and leaves its terms.
shared_outcome_once <- function(formula) {
  parts <- stats::terms(formula)
  factors <- attr(parts, "factors")
  if (length(factors) && any(factors[attr(parts, "response"), ] != 0)) {
    shared_refuse("the outcome stands on the right-hand side too")
  }
}

# Columns as they cross: a factor as its codes (from 0, -1 where missing) and levels.
shared_columns <- function(columns) {
  lapply(columns, function(column) {
    if (!is.list(column)) return(column)
    codes <- as.integer(column$codes) + 1L
    codes[codes == 0L] <- NA
    structure(codes, levels = as.character(column$levels), class = "factor")
  })
}

# A named list of columns as a plain data frame.
shared_frame <- function(columns) {
  columns <- shared_columns(columns)
  structure(columns, class = "data.frame", row.names = seq_along(columns[[1L]]))
}

# Labels as they are in a column: its numbers as numbers (as.character() has 1e+05 for 100000),
# logicals as such, all else as text. `found` are some of its values, or their text; where they
# are not, as numbered twins, they stay text.
shared_labels <- function(found, column) {
  text <- as.character(found)
  if (!is.numeric(column) && !is.logical(column)) return(text)
  own <- as.vector(unclass(unique(column)))
  place <- match(text, as.character(own))
  if (anyNA(place[!is.na(text)])) text else own[place]
}

shared_seed <- function(seed) {
  if (!is.null(seed)) set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
}

# What a guarded fit of exceedances divides them by: their mean, where nothing else is said.
shared_unit <- function(inputs) {
  if (!isTRUE(inputs$guarded)) return(1)
  if (is.null(inputs$unit)) mean(inputs$x) else inputs$unit
}

# The object that R's function returned, in a file for R, where that was asked for. `labels` says
# which row is which, where the rows are not the user's; `columns`, a named list, what made-up names
# of columns stand for.
shared_keep <- function(object, path, labels = NULL, columns = NULL) {
  if (is.null(path)) return(invisible(NULL))
  if (length(columns)) attr(object, "columns") <- unlist(columns)
  if (!is.null(labels)) attr(object, "rows") <- shared_frame(labels)
  file <- gzfile(path, "wb")
  # R says nothing where the disk was full when it closed the file.
  whole <- tryCatch({
    saveRDS(object, file, version = 2L)
    close(file)
    file <- NULL
    readRDS(path)
    TRUE
  }, error = function(condition) FALSE)
  if (whole) return(invisible(NULL))
  if (!is.null(file)) close(file)
  if (isTRUE(file.size(path) > 0)) unlink(path) # and no device
  stop("cannot write all of the object to ", path, call. = FALSE)
}

# The design matrix of a formula without a left-hand side, missing values passed on.
shared_design <- function(inputs) {
  formula <- shared_formula(inputs$formula, shared_columns(inputs$data), inputs$functions)
  frame <- stats::model.frame(formula, na.action = stats::na.pass)
  X <- stats::model.matrix(formula, frame)
  list(X = unname(X[, , drop = FALSE]), terms = colnames(X))
}
