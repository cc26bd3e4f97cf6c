# Shared by the sae_*.R scripts: rows of answers, exact writing, a script's rows of MANIFEST.

sae_seed <- function(seed) set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")

sae_rows <- function(call, setting, quantity, key, value) {
  data.frame(call = call, setting = setting, quantity = quantity, key = as.character(key),
    value = as.double(value))
}

write_exact <- function(table, path) {
  shown <- lapply(table, function(column) {
    if (!is.double(column)) return(as.character(column))
    text <- formatC(column, digits = 17, format = "g", width = -1)
    short <- formatC(column, digits = 15, format = "g", width = -1)
    same <- !is.na(column) & as.numeric(short) == column
    text[same] <- short[same]
    text[is.na(column)] <- ""
    text
  })
  connection <- file(path, open = "wb") # "\n" on every system
  on.exit(close(connection))
  writeLines(paste(names(table), collapse = ","), connection)
  writeLines(do.call(paste, c(shown, sep = ",")), connection)
}

# A matrix as row, column and value of what is not 0 in it.
sae_triplets <- function(W) {
  W <- unname(as.matrix(W))
  at <- which(W != 0, arr.ind = TRUE)
  data.frame(row = as.double(at[, 1]), column = as.double(at[, 2]), value = W[at])
}

sae_save <- function(tables, script) {
  dir.create("golden/inputs", recursive = TRUE, showWarnings = FALSE)
  for (path in names(tables)) write_exact(tables[[path]], path)
  engine <- paste0("R ", getRversion(), "; sae ", packageVersion("sae"), "; lme4 ",
    packageVersion("lme4"))
  mine <- data.frame(file = names(tables), md5 = unname(tools::md5sum(names(tables))),
    script = script, script_md5 = unname(tools::md5sum(script)), engine = engine)
  if (file.exists("MANIFEST")) {
    others <- read.csv("MANIFEST", colClasses = "character")
    mine <- rbind(others[others$script != script, ], mine)
  }
  write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
  cat(length(tables), "files written with", engine, "\n")
}
