# Looks at R packages and gets them from CRAN. Run by pybridge/r/setup.py and by
# r_reference/install.R; plain R, base packages only.
#
#   Rscript install.R look PACKAGE...     the version of each, nothing loaded
#   Rscript install.R load PACKAGE        whether it loads, in this process
#   Rscript install.R plan PACKAGE...     what would have to be got for these, dependencies included
#   Rscript install.R get PACKAGE...      get them, into the user's library

# A newer Matrix breaks a packaged lme4, which sae needs: it stays as the system has it.
kept <- "Matrix"

repository <- function() {
  found <- getOption("repos")[["CRAN"]]
  if (is.null(found) || found == "@CRAN@") utils::getCRANmirrors(local.only = TRUE)$URL[[1L]] else found
}

version_of <- function(package) {
  if (nzchar(system.file(package = package))) {
    utils::packageDescription(package, fields = "Version")
  } else {
    NA_character_
  }
}

user_library <- function() {
  path <- strsplit(Sys.getenv("R_LIBS_USER"), .Platform$path.sep, fixed = TRUE)[[1L]]
  path <- if (length(path) && nzchar(path[[1L]]) && path[[1L]] != "NULL") path.expand(path[[1L]]) else .libPaths()[[1L]]
  dir.create(path, recursive = TRUE, showWarnings = FALSE)
  if (file.access(path, 2L) != 0L) stop("cannot write to R's user library ", path, call. = FALSE)
  .libPaths(c(path, .libPaths()))
  path
}

# One row a requirement: package and the least version, "0" where any will do.
requirements <- function(fields) {
  text <- unlist(strsplit(fields[!is.na(fields)], ",", fixed = TRUE))
  text <- gsub("[[:space:]]+", "", text)
  text <- text[nzchar(text)]
  package <- sub("\\(.*$", "", text)
  version <- ifelse(grepl("(>=", text, fixed = TRUE), gsub("^.*\\(>=|\\)$", "", text), "0")
  keep <- package != "R"
  data.frame(package = package[keep], version = version[keep])
}

# Walks from the wanted packages over what their CRAN versions need. install.packages() by itself
# leaves an installed dependency alone though it is too old; here it is found.
plan <- function(wanted, index = utils::available.packages(repos = repository())) {
  if (!nrow(index)) stop("CRAN cannot be reached", call. = FALSE)
  base <- rownames(utils::installed.packages(priority = "base"))
  queue <- data.frame(package = wanted, version = "0")
  missing <- old <- seen <- character()
  while (nrow(queue)) {
    package <- queue$package[[1L]]
    least <- queue$version[[1L]]
    queue <- queue[-1L, ]
    if (package %in% c(base, kept, missing, old)) next
    installed <- version_of(package)
    if (is.na(installed)) {
      missing <- c(missing, package)
    } else if (package %in% wanted && !(package %in% seen) ||
               utils::compareVersion(installed, least) < 0) {
      old <- c(old, package)
    } else {
      next
    }
    seen <- c(seen, package)
    if (!(package %in% rownames(index))) next
    needs <- requirements(index[package, c("Depends", "Imports", "LinkingTo")])
    queue <- rbind(queue, needs)
  }
  list(missing = missing, old = setdiff(old, wanted), wanted = wanted)
}

get_from_cran <- function(wanted) {
  library <- user_library()
  options(Ncpus = 2L, timeout = 300)
  todo <- plan(wanted)
  # What is too old goes first, or the build of a package that needs it fails.
  if (length(todo$old)) utils::install.packages(todo$old, lib = library, repos = repository())
  utils::install.packages(wanted, lib = library, repos = repository())
  invisible(NULL)
}

main <- function(command, packages) {
  switch(command,
    look = for (package in packages) cat("look", package, version_of(package), "\n"),
    load = {
      suppressPackageStartupMessages(loadNamespace(packages[[1L]]))
      cat("loads", packages[[1L]], version_of(packages[[1L]]), "\n")
    },
    plan = for (package in unlist(plan(packages)[c("missing", "old")])) cat("plan", package, "\n"),
    get = get_from_cran(packages),
    library = cat("library", user_library(), "\n"),
    stop("no such command: ", command, call. = FALSE)
  )
}

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) && !exists("installing_by_hand")) main(arguments[[1L]], arguments[-1L])
