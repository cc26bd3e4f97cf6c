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

# What a .Renviron or .Rprofile may have changed in a process of the door's own: names need UTF-8,
# orders of text must not depend on the machine, and R's words are looked through for what they say.
door_settle <- function(locale) {
  for (category in c("LC_CTYPE", "LC_COLLATE")) {
    if (Sys.getlocale(category) != locale) Sys.setlocale(category, locale)
  }
  if (!identical(Sys.getenv("LANGUAGE"), "en")) {
    if (exists("Sys.setLanguage", envir = baseenv())) {
      Sys.setLanguage("en")
    } else {
      Sys.setenv(LANGUAGE = "en")
    }
  }
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

# The names in R's own list of devices, which R changes in place; grDevices' function for it takes
# several times as long.
door_devices <- function() as.character(get0(".Devices", envir = baseenv(), inherits = FALSE))

door_close_devices <- function(before) {
  for (device in setdiff(grDevices::dev.list(), before)) grDevices::dev.off(device)
}

door_seed <- function() get0(".Random.seed", envir = globalenv(), inherits = FALSE)

# A stream holds the kind of its generators; where there is none, `kinds` are put back.
door_put_seed <- function(seed, kinds) {
  if (!is.null(seed)) {
    assign(".Random.seed", seed, envir = globalenv())
  } else if (exists(".Random.seed", envir = globalenv(), inherits = FALSE)) {
    if (!identical(RNGkind(), kinds)) do.call(RNGkind, as.list(kinds))
    rm(".Random.seed", envir = globalenv())
  }
}

# What a user's profile may have changed and a fit may depend on: R's factory settings. Plots go
# nowhere, or R would leave an Rplots.pdf in the working directory.
door_options <- list(
  contrasts = c(unordered = "contr.treatment", ordered = "contr.poly"),
  na.action = "na.omit", OutDec = ".", digits = 7L, scipen = 0L, width = 120L, warn = 0L,
  warnPartialMatchArgs = FALSE, warnPartialMatchAttr = FALSE, warnPartialMatchDollar = FALSE,
  survey.ultimate.cluster = FALSE,
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
    # Most of what comes back is bare numbers and text, and there may be thousands of replies.
    if (is.null(attributes(item))) {
      if (is.double(item) || is.logical(item) || is.integer(item) || is.null(item)) next
      if (is.character(item)) {
        x[[i]] <- enc2utf8(item)
        next
      }
    }
    x[[i]] <- door_plain(item, paste0(place, "$", if (is.null(labels)) i else labels[[i]]))
  }
  if (!is.null(labels)) names(x) <- enc2utf8(labels)
  x
}

# A shim over several inputs, each with the same options and the same random stream; what is
# printed goes to one connection, cut up at the end. One set of handlers serves as long as nothing
# stops: an item that does is put down as such, and a new set takes up after it.
door_batch <- function(shim, items) {
  depth <- sink.number()
  devices <- grDevices::dev.list()
  drawn <- door_devices()
  paper <- rawConnection(raw(0L), "w")
  seed <- door_seed()
  kinds <- RNGkind()
  before <- options(door_options)
  sink(paper)
  on.exit({
    while (sink.number() > depth) sink()
    close(paper)
    door_close_devices(devices)
    options(before)
    door_put_seed(seed, kinds)
  })
  count <- length(items)
  said <- list(warnings = vector("list", count), messages = vector("list", count))
  values <- failed <- vector("list", count)
  ends <- numeric(count)
  at <- 0L
  hear <- function(kind, text) {
    heard <- said[[kind]][[at]]
    if (length(heard) < door_most) said[[kind]][[at]] <<- c(heard, text)
  }
  tidy_up <- function() {
    options(door_options)
    door_put_seed(seed, kinds)
    if (!identical(door_devices(), drawn)) {
      door_close_devices(devices)
      drawn <<- door_devices()
    }
    # A shim may leave a diversion behind, or end ours.
    if ((open <- sink.number()) != depth + 1L) {
      while (open > depth + 1L) {
        sink()
        open <- open - 1L
      }
      if (open <= depth) sink(paper)
    }
    ends[[at]] <<- seek(paper, NA)
  }
  while (at < count) {
    tryCatch(
      withCallingHandlers(
        while (at < count) {
          at <- at + 1L
          value <- door_plain(shim(items[[at]]), "value")
          if (!is.null(value)) values[[at]] <- value
          tidy_up()
        },
        warning = function(condition) {
          hear("warnings", conditionMessage(condition))
          invokeRestart("muffleWarning")
        },
        message = function(condition) {
          hear("messages", sub("\n$", "", conditionMessage(condition)))
          invokeRestart("muffleMessage")
        }
      ),
      error = function(condition) {
        failed[[at]] <<- door_error(condition)
        tidy_up()
      }
    )
  }
  door_replies(values, said, failed, rawConnectionValue(paper), ends)
}

# The replies of a batch: each with its value, or its error, and what R said meanwhile.
door_replies <- function(values, said, failed, printed, ends) {
  start <- 0
  replies <- vector("list", length(values))
  for (i in seq_along(values)) {
    lines <- character()
    if (ends[[i]] > start) {
      text <- rawToChar(printed[(start + 1):ends[[i]]])
      Encoding(text) <- "UTF-8"
      lines <- strsplit(text, "\n", fixed = TRUE)[[1L]]
    }
    replies[[i]] <- list(
      value = values[[i]], warnings = enc2utf8(as.character(said$warnings[[i]])),
      messages = enc2utf8(as.character(said$messages[[i]])), printed = lines, error = failed[[i]]
    )
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
