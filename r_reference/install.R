# Installs the R packages that pybridge uses, without Python: Rscript r_reference/install.R [demo]
# The list is pybridge/r/packages.csv; what the system's packages offer is left to the system.
installing_by_hand <- TRUE
here <- dirname(normalizePath(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1L]])))
source(file.path(here, "..", "pybridge", "r", "install.R"))
table <- utils::read.csv(file.path(here, "..", "pybridge", "r", "packages.csv"), colClasses = "character")
if ("demo" %in% commandArgs(trailingOnly = TRUE)) table <- table[table$scope == "demo", ]
found <- vapply(table$package, version_of, "")
old <- mapply(function(a, b) is.na(a) || utils::compareVersion(a, b) < 0, found, table$minimum)
if (any(old)) get_from_cran(table$package[old])
for (package in table$package) {
  loads <- tryCatch(
    {
      loadNamespace(package)
      paste("loads", version_of(package))
    },
    error = function(e) paste("DOES NOT LOAD:", conditionMessage(e))
  )
  cat(format(package, width = 10), loads, "\n")
}
