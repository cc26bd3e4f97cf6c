# The door: everything around a shim that is not the call itself.
#
# A request is list(shim, packages, minimum, items): the name of a function in one of the files
# beside this one, the packages it needs with their least versions, and a list of inputs, each a
# named list of plain vectors. A shim takes one such list and returns one. Here its warnings,
# messages, printed lines and errors are caught as data, and the random stream and options are put
# back, so that a shim holds nothing but the call. To run a shim alone in R:
#   source("_door.R"); door_open("."); door_run(door_shim("sae_fay_herriot"), inputs)

door_state <- new.env(parent = emptyenv())
door_self <- environment()

door_open <- function(directory) {
  door_state$directory <- directory
  door_state$shims <- new.env(parent = door_self)
  door_state$read <- character()
  door_state$versions <- list(R = as.character(getRversion()))
  shared <- file.path(directory, "_shared.R")
  if (file.exists(shared)) door_read(shared)
  invisible(NULL)
}

door_read <- function(file) {
  if (file %in% door_state$read) return(invisible(NULL))
  code <- parse(file, keep.source = FALSE, encoding = "UTF-8")
  for (expression in code) eval(expression, door_state$shims)
  door_state$read <- c(door_state$read, file)
  invisible(NULL)
}

# The function `name`: sae_spatial_fh is looked for in sae_spatial.R, then in sae.R.
door_shim <- function(name) {
  words <- strsplit(name, "_", fixed = TRUE)[[1L]]
  for (count in rev(seq_along(words))) {
    if (exists(name, envir = door_state$shims, mode = "function", inherits = FALSE)) break
    file <- paste0(paste(words[seq_len(count)], collapse = "_"), ".R")
    file <- file.path(door_state$directory, file)
    if (file.exists(file)) door_read(file)
  }
  get(name, envir = door_state$shims, mode = "function", inherits = FALSE)
}

# NULL when every package is there, recent enough and loads; else what is wrong with the first.
door_packages <- function(packages, minimum) {
  for (i in seq_along(packages)) {
    package <- packages[[i]]
    if (!is.null(door_state$versions[[package]])) next
    if (!nzchar(system.file(package = package))) {
      return(list(package = package, why = "missing", text = "", installed = ""))
    }
    failed <- door_load(package)
    installed <- utils::packageDescription(package, fields = "Version")
    if (utils::compareVersion(installed, minimum[[i]]) < 0) {
      return(list(package = package, why = "old", text = "", installed = installed))
    }
    if (!is.null(failed)) {
      return(list(package = package, why = "broken", text = failed, installed = installed))
    }
    door_state$versions[[package]] <- installed
  }
  NULL
}

door_load <- function(package) {
  sink(nowhere <- rawConnection(raw(0L), "w"))
  on.exit({
    sink()
    close(nowhere)
  })
  tryCatch(
    {
      suppressMessages(suppressWarnings(loadNamespace(package)))
      NULL
    },
    error = conditionMessage
  )
}

door_error <- function(condition) {
  call <- conditionCall(condition)
  list(
    message = conditionMessage(condition),
    call = if (is.null(call)) NULL else deparse(call, nlines = 1L)[1L],
    class = class(condition)
  )
}

# A bootstrap may warn in every replicate: what follows the first thousand is not kept.
door_most <- 1000L

door_seed <- function() get0(".Random.seed", envir = globalenv(), inherits = FALSE)

door_put_seed <- function(seed) {
  if (!is.null(seed)) {
    assign(".Random.seed", seed, envir = globalenv())
  } else if (exists(".Random.seed", envir = globalenv(), inherits = FALSE)) {
    rm(".Random.seed", envir = globalenv())
  }
}

# What a user's profile may have changed and a fit may depend on: R's factory settings. Plots go
# nowhere, or R would leave an Rplots.pdf in the working directory.
door_options <- list(
  contrasts = c(unordered = "contr.treatment", ordered = "contr.poly"),
  na.action = "na.omit", OutDec = ".", digits = 7L, scipen = 0L, width = 120L, warn = 0L,
  device = function(...) grDevices::pdf(file = NULL)
)

# Text as UTF-8 and no attribute but dim; anything that is not plain is an error naming its place.
door_plain <- function(x, place) {
  if (is.null(x)) return(NULL)
  if (is.factor(x)) {
    return(structure(as.integer(x), levels = enc2utf8(levels(x)), class = "factor"))
  }
  if (is.list(x)) return(door_plain_list(x, place))
  if (!(is.atomic(x) && typeof(x) %in% c("double", "integer", "logical", "character", "raw"))) {
    stop("a shim returned ", class(x)[1L], ", which is not plain data, at ", place, call. = FALSE)
  }
  if (is.character(x)) x <- enc2utf8(x)
  if (!is.null(attributes(x))) attributes(x) <- if (!is.null(dim(x))) list(dim = dim(x))
  x
}

door_plain_list <- function(x, place) {
  labels <- names(x)
  # The items of a batch come back under the same names.
  if (!is.null(labels) && !identical(labels, door_state$labels)) {
    if (anyDuplicated(labels) || anyNA(labels) || !all(nzchar(labels))) {
      stop("a shim returned a list with empty or repeated names at ", place, call. = FALSE)
    }
    door_state$labels <- labels
  }
  attributes(x) <- NULL
  for (i in seq_along(x)) {
    item <- x[[i]]
    # Most of what comes back is bare numbers, and there may be thousands of replies.
    bare <- switch(typeof(item), double = , logical = , integer = , NULL = TRUE, FALSE)
    if (bare && is.null(attributes(item))) next
    where <- paste0(place, "$", if (is.null(labels)) i else labels[[i]])
    x[[i]] <- door_plain(item, where)
  }
  if (!is.null(labels)) names(x) <- enc2utf8(labels)
  x
}

# One call of a shim: its value, or its error, and what R said meanwhile.
door_item <- function(shim, inputs) {
  warned <- character()
  told <- character()
  failed <- NULL
  value <- tryCatch(
    withCallingHandlers(
      door_plain(shim(inputs), "value"),
      warning = function(condition) {
        if (length(warned) < door_most) warned <<- c(warned, conditionMessage(condition))
        invokeRestart("muffleWarning")
      },
      message = function(condition) {
        if (length(told) < door_most) told <<- c(told, sub("\n$", "", conditionMessage(condition)))
        invokeRestart("muffleMessage")
      }
    ),
    error = function(condition) {
      failed <<- door_error(condition)
      NULL
    }
  )
  list(value = value, warnings = enc2utf8(warned), messages = enc2utf8(told), error = failed)
}

# A shim over several inputs, each with the same options and the same random stream; what is
# printed goes to one connection, cut up at the end.
door_batch <- function(shim, items) {
  depth <- sink.number()
  devices <- grDevices::dev.list()
  paper <- rawConnection(raw(0L), "w")
  seed <- door_seed()
  before <- options(door_options)
  sink(paper)
  on.exit({
    while (sink.number() > depth) sink()
    close(paper)
    for (device in setdiff(grDevices::dev.list(), devices)) grDevices::dev.off(device)
    options(before)
    door_put_seed(seed)
  })
  ends <- numeric(length(items))
  replies <- vector("list", length(items))
  for (i in seq_along(items)) {
    replies[[i]] <- door_item(shim, items[[i]])
    options(door_options)
    door_put_seed(seed)
    # A shim may leave a diversion behind, or end ours.
    if ((open <- sink.number()) != depth + 1L) {
      while (open > depth + 1L) {
        sink()
        open <- open - 1L
      }
      if (open <= depth) sink(paper)
    }
    ends[[i]] <- seek(paper, NA)
  }
  door_printed(replies, rawConnectionValue(paper), ends)
}

door_printed <- function(replies, printed, ends) {
  start <- 0
  for (i in seq_along(replies)) {
    lines <- character()
    if (ends[[i]] > start) {
      text <- rawToChar(printed[(start + 1):ends[[i]]])
      Encoding(text) <- "UTF-8"
      lines <- strsplit(text, "\n", fixed = TRUE)[[1L]]
    }
    replies[[i]]$printed <- lines
    start <- ends[[i]]
  }
  replies
}

door_run <- function(shim, inputs) door_batch(shim, list(inputs))[[1L]]

door_reply <- function(request) {
  trouble <- door_packages(request$packages, request$minimum)
  if (!is.null(trouble)) return(list(trouble = trouble))
  shim <- door_shim(request$shim)
  items <- door_batch(shim, request$items)
  versions <- door_state$versions[c("R", request$packages)]
  list(items = items, versions = versions)
}

door_answer <- function(request) {
  reply <- tryCatch(
    door_reply(unserialize(request)),
    error = function(condition) list(fault = door_error(condition))
  )
  serialize(reply, NULL, xdr = FALSE, version = 2L)
}
