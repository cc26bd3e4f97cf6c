# Design-based estimators of domains by the package sae. Inputs:
#   data                   the units' columns, a named list
#   y, dom, sweight, ps    which columns they are; sweight may be NULL
#   domsize, domsizebyps, direct, synthetic  tables with the domain first
#   options                the remaining arguments
#   file                   where to keep the data frame that R returned, or NULL

sae_direct_direct <- function(inputs) {
  data <- shared_columns(inputs$data)
  arguments <- list(y = data[[inputs$y]], dom = data[[inputs$dom]])
  if (!is.null(inputs$sweight)) arguments$sweight <- data[[inputs$sweight]]
  if (!is.null(inputs$domsize)) arguments$domsize <- shared_frame(inputs$domsize)
  found <- do.call(sae::direct, c(arguments, inputs$options))
  shared_keep(found, inputs$file, columns = inputs$columns)
  as.list(found)
}

sae_direct_pssynt <- function(inputs) {
  data <- shared_columns(inputs$data)
  found <- sae::pssynt(
    data[[inputs$y]], data[[inputs$sweight]], data[[inputs$ps]], shared_frame(inputs$domsizebyps)
  )
  shared_keep(found, inputs$file, columns = inputs$columns)
  as.list(found)
}

sae_direct_ssd <- function(inputs) {
  data <- shared_columns(inputs$data)
  found <- sae::ssd(
    data[[inputs$dom]], data[[inputs$sweight]], shared_frame(inputs$domsize),
    shared_frame(inputs$direct), shared_frame(inputs$synthetic), inputs$options$delta
  )
  shared_keep(found, inputs$file, columns = inputs$columns)
  as.list(found)
}
