# Reference values of the diagnostics of a Fay-Herriot fit, as R's emdi defines them.
#
#   cd r_reference && Rscript emdi_diagnostics.R
#
# golden/emdi_diagnostics__emdi.csv, columns fit, quantity, key, value: emdi's variance, residuals,
# random effects, shares, criteria, Brown's test, correlation and moments, for the case of emdi_fh.R
# (golden/inputs/emdi_small.csv, two domains without a direct estimate) and for the incomes of
# emdi's own data (its vignette's model, domains in the order of the file).
# golden/inputs/emdi_incomes.csv: those data.

suppressPackageStartupMessages(library(emdi))

rows <- function(fit, quantity, key, value) {
  data.frame(fit = fit, quantity = quantity, key = as.character(key), value = as.double(value))
}
answers <- function(name, fixed, vardir, data, domains, method) {
  fit <- suppressMessages(emdi::fh(fixed = fixed, vardir = vardir, combined_data = data,
    domains = domains, method = method, MSE = TRUE, mse_type = "analytical", seed = NULL))
  inside <- fit$ind$Out == 0
  label <- as.character(fit$ind$Domain)
  beside <- suppressMessages(emdi::compare(fit))
  normal <- suppressMessages(summary(fit))$normality
  moments <- outer(rownames(normal), names(normal), paste)
  name <- paste(name, method)
  rbind(
    rows(name, "variance", "", fit$model$variance),
    rows(name, "estimate", label, fit$ind$FH),
    rows(name, "mse", label, fit$MSE$FH),
    rows(name, "realised_residual", label[inside], fit$model$std_real_residuals),
    rows(name, "random_effect", label[inside], fit$model$random_effects),
    rows(name, "shrinkage", label[inside], fit$model$gamma$Gamma[inside]),
    rows(name, "criterion", names(fit$model$model_select), unlist(fit$model$model_select)),
    rows(name, "brown", names(beside$Brown), unlist(beside$Brown)),
    rows(name, "correlation", "", beside$syndir),
    rows(name, "normality", as.vector(moments), unlist(normal))
  )
}

small <- read.csv("golden/inputs/emdi_small.csv")
data("eusilcA_popAgg", package = "emdi")
data("eusilcA_smpAgg", package = "emdi")
place <- match(eusilcA_popAgg$Domain, eusilcA_smpAgg$Domain)
incomes <- data.frame(Domain = as.character(eusilcA_popAgg$Domain),
  Mean = eusilcA_smpAgg$Mean[place], Var_Mean = eusilcA_smpAgg$Var_Mean[place],
  cash = eusilcA_popAgg$cash, self_empl = eusilcA_popAgg$self_empl)
stopifnot(!anyNA(incomes))

found <- rbind(
  answers("small", level ~ x + z, "spread", small, "domain", "reml"),
  answers("small", level ~ x + z, "spread", small, "domain", "ml"),
  answers("incomes", Mean ~ cash + self_empl, "Var_Mean", incomes, "Domain", "reml"),
  answers("incomes", Mean ~ cash + self_empl, "Var_Mean", incomes, "Domain", "ml")
)

write_exact <- function(table, path) {
  shown <- lapply(table, function(column) {
    if (!is.double(column)) return(as.character(column))
    text <- formatC(column, digits = 17, format = "g", width = -1)
    short <- formatC(column, digits = 15, format = "g", width = -1)
    same <- as.numeric(short) == column
    text[same] <- short[same]
    text
  })
  connection <- file(path, open = "wb")
  on.exit(close(connection))
  writeLines(paste(names(table), collapse = ","), connection)
  writeLines(do.call(paste, c(shown, sep = ",")), connection)
}

tables <- list(
  "golden/inputs/emdi_incomes.csv" = incomes,
  "golden/emdi_diagnostics__emdi.csv" = found
)
for (path in names(tables)) write_exact(tables[[path]], path)

engine <- paste0("R ", getRversion(), "; emdi ", packageVersion("emdi"))
mine <- data.frame(file = names(tables), md5 = unname(tools::md5sum(names(tables))),
  script = "emdi_diagnostics.R", script_md5 = unname(tools::md5sum("emdi_diagnostics.R")),
  engine = engine)
if (file.exists("MANIFEST")) {
  others <- read.csv("MANIFEST", colClasses = "character")
  mine <- rbind(others[others$script != "emdi_diagnostics.R", ], mine)
}
write_exact(mine[order(mine$script, mine$file), ], "MANIFEST")
cat(length(tables), "files written with", engine, "\n")
