# Whether the packages still behave as they did when the bridge was built around them: one small
# probe for each trap, on data that R or the package ships or that quantiles give, so that nothing is
# drawn. A probe says TRUE where the trap is there as described; a plain R user can run them too.

# inputs: name, one of those below
traps_probe <- function(inputs) list(trapped = isTRUE(traps_probes[[inputs$name]]()))

traps_fails <- function(expression, pattern = "") {
  found <- tryCatch({ expression; NULL }, error = conditionMessage)
  !is.null(found) && grepl(pattern, found)
}

traps_shipped <- function(name, package) {
  place <- new.env()
  utils::data(list = name, package = package, envir = place)
  place[[name]]
}

traps_milk <- function() {
  milk <- traps_shipped("milk", "sae")
  data.frame(
    d = milk$SmallArea, y = milk$yi, v = milk$SD^2, area = as.factor(milk$MajorArea)
  )
}

traps_pareto <- function(shape, n, scale = 1) {
  scale * expm1(-shape * log1p(-stats::ppoints(n))) / shape
}

traps_austria <- function() {
  register <- traps_shipped("eusilcA_popAgg", "emdi")
  merge(register, traps_shipped("eusilcA_smpAgg", "emdi"), by = "Domain", sort = FALSE)
}

traps_fh <- function(table, ...) {
  emdi::fh(
    Mean ~ cash + self_empl, "Var_Mean", table, domains = "Domain", seed = NULL, ...
  )
}

traps_share <- function(table, ...) {
  emdi::fh(
    MTMED ~ cash + age_ben + rent + house_allow, "Var_MTMED", table, domains = "Domain",
    seed = NULL, ...
  )
}

traps_small_units <- function() {
  data.frame(
    y = c(3, 5, 4, 6, 9, 8), w = 2, domain = rep(c("a", "b"), each = 3), g = c("u", "v", "u")
  )
}

traps_probes <- list(
  sae_offset = function() {
    milk <- cbind(traps_milk(), o = seq_len(43) / 10)
    plain <- sae::eblupFH(y ~ area, v, data = milk)
    with <- sae::eblupFH(y ~ area + offset(o), v, data = milk)
    identical(unname(plain$eblup), unname(with$eblup))
  },
  sae_vardir_symbol = function() {
    traps_fails(sae::eblupFH(y ~ area, "v", data = traps_milk()), "undefined columns")
  },
  sae_precision = function() {
    found <- sae::eblupFH(y ~ area, v, data = traps_milk())$fit$refvar
    abs(found / 0.0185503347627667 - 1) > 1e-6
  },
  sae_silent_limit = function() {
    fit <- sae::eblupFH(y ~ area, v, MAXITER = 1, data = traps_milk())
    identical(fit$fit$convergence, FALSE) && identical(as.vector(fit$eblup), NA)
  },
  sae_negative_variance = function() {
    milk <- transform(traps_milk(), v = replace(v, 1L, -0.001))
    any(sae::mseFH(y ~ area, v, data = milk)$mse < 0)
  },
  sae_zero_variance = function() {
    milk <- transform(traps_milk(), v = 100 * v)
    fit <- sae::eblupFH(y ~ area, v, data = milk)$fit
    fit$refvar == 0 && isTRUE(fit$convergence)
  },
  sae_spatial_limit = function() {
    grapes <- traps_shipped("grapes", "sae")
    near <- traps_shipped("grapesprox", "sae")
    traps_fails(
      sae::eblupSFH(grapehect ~ area + workdays - 1, var, near, MAXITER = 2, data = grapes),
      "comparison|diff"
    )
  },
  sae_factor_labels = function() {
    units <- transform(traps_small_units(), domain = factor(domain, c("a", "b", "c")))
    sizes <- data.frame(domain = factor(c("a", "b", "c")), N = c(6, 6, 5))
    all(as.character(sae::direct(y, domain, w, sizes, units)$Domain) %in% as.character(1:3))
  },
  sae_post_strata = function() {
    known <- data.frame(domain = c("a", "b"), U = 4, V = 2)
    all(sae::pssynt(y, w, g, known, traps_small_units())$PsSynthetic == 0)
  },
  emdi_absolute_tolerance = function() {
    milk <- transform(traps_milk(), y = y / 100, v = v / 1e4)
    found <- emdi::fh(y ~ area, "v", milk, domains = "d", seed = NULL)$model$variance
    abs(1e4 * found / 0.0185503347627667 - 1) > 0.05
  },
  emdi_underflow = function() {
    found <- traps_fh(traps_austria(), method = "amrl_yl")$model$variance
    found > 10 * 1464714.148
  },
  emdi_bias_outside = function() {
    table <- traps_austria()
    table[4L, c("Mean", "Var_Mean")] <- NA
    outside <- traps_fh(table, method = "ml", MSE = TRUE)
    X <- c(1, table$cash[[4L]], table$self_empl[[4L]])
    least <- outside$model$variance + drop(X %*% outside$model$beta_vcov %*% X)
    outside$MSE$FH[[4L]] < least
  },
  emdi_robust_k = function() {
    milk <- traps_milk()
    found <- lapply(c(1, 100), function(k) {
      emdi::fh(y ~ area, "v", milk, domains = "d", method = "reblup", k = k, seed = NULL)$ind$FH
    })
    identical(found[[1L]], found[[2L]])
  },
  emdi_logit = function() {
    traps_fails(
      traps_share(traps_austria(), transformation = "logit", backtransformation = "bc"),
      "non-finite"
    )
  },
  emdi_arcsin = function() {
    table <- cbind(traps_austria(), large = 1e5)
    found <- traps_share(
      table, transformation = "arcsin", backtransformation = "bc", eff_smpsize = "large"
    )
    near <- table$MTMED > 0.25 & table$MTMED < 0.35
    any(found$ind$FH[near] < 1e-3)
  },
  emdi_order = function() {
    ours <- traps_shipped("eusilcA_popAgg", "emdi")
    theirs <- emdi::combine_data(
      ours, "Domain", traps_shipped("eusilcA_smpAgg", "emdi"), "Domain"
    )
    !identical(as.character(ours$Domain), as.character(theirs$Domain))
  },
  emdi_raking = function() {
    table <- traps_austria()
    share <- table$ratio_n * 2
    found <- emdi::benchmark(traps_fh(table), benchmark = 20140, share = share, type = "raking")
    abs(sum(found$FH_Bench * share / sum(share)) / 20140 - 1) > 0.01
  },
  emdi_seed = function() {
    set.seed(1)
    before <- get(".Random.seed", globalenv())
    emdi::fh(y ~ area, "v", traps_milk(), domains = "d")
    !identical(before, get(".Random.seed", globalenv()))
  },
  evd_units = function() {
    x <- traps_pareto(0.2, 300)
    one <- evd::fpot(x, 0, std.err = FALSE)$param[["shape"]]
    other <- evd::fpot(1e4 * x, 0, std.err = FALSE)$param[["shape"]]
    abs(one - other) > 0.01
  },
  evd_unbounded = function() {
    fit <- evd::fpot(c(1, 2, 3, 4, 5), 0)
    fit$convergence == "successful" && fit$param[["shape"]] < -0.99 && fit$std.err[[2L]] < 1e-4
  },
  evd_point_process_profile = function() {
    rain <- traps_shipped("rain", "ismev")
    fit <- evd::fpot(rain, 30, model = "pp", npp = 365)
    traps_fails(stats::profile(fit), "unused argument")
  },
  evd_density_at_location = function() evd::dgpd(0, scale = 2) == 0,
  evd_tiny_shape = function() abs(evd::pgpd(1, shape = 1e-15) / -expm1(-1) - 1) > 1e-6,
  evd_return_level = function() {
    rain <- traps_shipped("rain", "ismev")
    fit <- evd::fpot(rain, 30, mper = 100, npp = 365, std.err = FALSE)
    abs(fit$param[["shape"]] - 0.184499) > 1e-3
  },
  evd_no_exceedance = function() is.nan(evd::exi(c(1, 2, 3), 10, r = 0)),
  ismev_simplex = function() {
    fit <- ismev::gpd.fit(traps_shipped("rain", "ismev"), 30, show = FALSE)
    abs(fit$mle[[2L]] - 0.18449904) > 1e-4
  },
  ismev_point_process = function() {
    fit <- ismev::pp.fit(traps_shipped("rain", "ismev"), 30, show = FALSE)
    fit$conv == 0 && fit$nllh > 462.5
  },
  ismev_units = function() {
    x <- traps_pareto(0.2, 300)
    error <- function(unit) ismev::gpd.fit(unit * x, 0, show = FALSE)$se[[2L]]
    wrong <- suppressWarnings(tryCatch(error(1e6), error = function(condition) NaN))
    !isTRUE(abs(wrong / error(1) - 1) < 0.05)
  },
  ismev_missing = function() {
    traps_fails(ismev::gpd.fit(c(traps_pareto(0.1, 60), NA), 0.2, show = FALSE))
  },
  ismev_shape_zero = function() {
    traps_fails(ismev::gpd.fit(traps_pareto(0.1, 100), 0, shinit = 0, show = FALSE))
  },
  ismev_default_range = function() {
    identical(formals(ismev::mrl.plot)$umax, quote(max(data) - 0.1))
  },
  survey_lonely_adjust = function() {
    before <- options(survey.lonely.psu = "adjust")
    on.exit(options(before))
    # Centred, the error of a total would not depend on where zero is.
    units <- data.frame(s = c(1, 1, 2, 2, 3), w = 1, y = 1000 + c(1, 3, 6, 10, 30))
    design <- survey::svydesign(~1, strata = ~s, weights = ~w, data = units)
    survey::SE(survey::svytotal(~y, design))[[1L]] > 500
  },
  survey_lone_unit = function() {
    units <- data.frame(w = 2, y = c(1, 4, 9), d = c("a", "b", "b"))
    design <- survey::svydesign(~1, weights = ~w, data = units)
    survey::SE(survey::svyby(~y, ~d, design, survey::svymean))[[1L]] == 0
  }
)
