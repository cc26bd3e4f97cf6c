# Shims that test the door itself; `pybridge doctor` uses the first one.

selftest_echo <- function(inputs) inputs

# What the vectors look like on R's side.
selftest_describe <- function(inputs) {
  list(
    type = vapply(inputs, typeof, ""),
    length = vapply(inputs, length, 0L),
    missing = vapply(inputs, function(x) sum(is.na(x)), 0L),
    na_real = vapply(inputs, function(x) is.double(x) && any(is.na(x) & !is.nan(x)), NA),
    bytes = vapply(inputs, function(x) if (is.character(x)) sum(nchar(x, "bytes"), na.rm = TRUE) else 0L, 0L)
  )
}

selftest_conditions <- function(inputs) {
  cat("printed by cat\n")
  print(c(1.5, 2))
  message("a message")
  warning("a first warning")
  warning("a second one, \uc720\ub2c8\ucf54\ub4dc")
  cat("no newline at the end")
  list(answer = 42)
}

selftest_error <- function(inputs) {
  warning("said before the error")
  stop(inputs$text)
}

selftest_maybe_error <- function(inputs) {
  if (inputs$fail) stop("this item fails")
  list(answer = inputs$number * 2)
}

# All that an item of a batch may do to those after it, and then the error, where it is asked for.
selftest_disturb <- function(inputs) {
  name <- inputs$name
  before <- list(
    digits = getOption("digits"), draw = stats::runif(1L), devices = length(grDevices::dev.list())
  )
  cat("printed by", name, "\n")
  message("message of ", name)
  warning("warning of ", name)
  options(digits = 3L)
  set.seed(nchar(name))
  if (inputs$sink == "leave") sink(rawConnection(raw(0L), "w"))
  if (inputs$sink == "end") sink()
  grDevices::dev.new()
  if (inputs$fail) stop("error of ", name)
  c(before, list(name = name))
}

selftest_sleep <- function(inputs) {
  Sys.sleep(inputs$seconds)
  list(slept = inputs$seconds)
}

# Ends the process as a crash in C would: by a signal, without R's knowing.
selftest_crash <- function(inputs) {
  tools::pskill(Sys.getpid(), as.integer(inputs$signal))
  Sys.sleep(10)
  list()
}

selftest_quit <- function(inputs) quit(save = "no", status = 3L)

selftest_recursion <- function(inputs) {
  down <- function(x) sapply(1:2, down)
  down(1)
}

selftest_random <- function(inputs) {
  if (!is.null(inputs$seed)) set.seed(inputs$seed)
  list(draws = stats::runif(3L), kind = RNGkind())
}

selftest_kind <- function(inputs) {
  before <- RNGkind()
  if (!is.null(inputs$kind)) RNGkind(inputs$kind)
  list(before = before, draw = stats::runif(1L))
}

selftest_session <- function(inputs) {
  list(
    pid = Sys.getpid(), libraries = .libPaths(), home = R.home(), locale = Sys.getlocale("LC_CTYPE"),
    temporary = tempdir(), utf8 = l10n_info()[["UTF-8"]], attached = search(), interactive = interactive(),
    variables = names(Sys.getenv())
  )
}

selftest_environment <- function(inputs) list(value = globalenv())

selftest_plot <- function(inputs) {
  graphics::plot(1:3)
  list(devices = length(grDevices::dev.list()))
}

selftest_packages <- function(inputs) {
  found <- vapply(inputs$packages, function(package) nzchar(system.file(package = package)), NA)
  version <- vapply(inputs$packages, function(package) {
    if (nzchar(system.file(package = package))) utils::packageDescription(package, fields = "Version") else NA_character_
  }, "")
  list(found = found, version = version)
}
