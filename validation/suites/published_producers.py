"""Who gives the published numbers today: a function a producer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

import pybridge as pb
from pybridge.crosscheck.tolerances import PRINTED, PRINTED_OTHER_ENGINE, Tolerance
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.tails.generalized_pareto import generalized_pareto
from validation.cases.fay_herriot import load
from validation.cases.gpd import scores

# Income below which a person is poor, in sae's vignette: 0.6 of the median.
_POVERTY_LINE = 6557.143

Producer = Callable[[], Mapping[str, Any]]

# ------------------------------------------------------------------------------------- area level


def _area(name: str, method: str, **words: Any) -> Mapping[str, Any]:
    case = load(name)
    fit = fay_herriot(case.formula, case.frame(), method=method, **words)
    return _numbers_of(fit)


def _numbers_of(fit: Any) -> Mapping[str, Any]:
    return {
        "model variance": fit.model_variance,
        "log-likelihood": fit.log_likelihood,
        "coefficients": fit.fit.coefficients,
        "AIC": fit.aic,
        "BIC": fit.bic,
        "first estimates": fit.fit.estimate[:3],
    }


def _milk_optima() -> Mapping[str, Any]:
    fits = [_area("milk", method, engine="native") for method in ("REML", "ML", "FH")]
    return {"model variances": [fit["model variance"] for fit in fits]}


def _spatial(method: str) -> Mapping[str, Any]:
    fit = pb.engines.sae.eblupSFH(
        pb.datasets.grapes(),
        "grapehect ~ area + workdays - 1",
        "var",
        pb.datasets.grapes_proximity(),
        method=method,
        mode="raw",
    )
    value = fit.value
    return {
        "model variance": value["refvar"],
        "correlation": value["spatialcorr"],
        "log-likelihood": dict(zip(value["goodness_names"], value["goodness"]))["loglike"],
    }


def _spacetime() -> Mapping[str, Any]:
    fit = pb.engines.sae.eblupSTFH(
        pb.datasets.spacetime(),
        "Y ~ X1 + X2",
        "Var",
        pb.datasets.spacetime_proximity(),
        D=11,
        T=3,
        mode="raw",
    )
    return {"components": fit.value["component_estimate"]}


def _corn(mode: str) -> Mapping[str, Any]:
    units = pb.datasets.cornsoybean().drop(index=32)  # segment 33, an outlier
    table = pb.datasets.cornsoybean_means()
    means = table[["CountyIndex", "MeanCornPixPerSeg", "MeanSoyBeansPixPerSeg"]]
    means = means.set_axis(["County", "CornPix", "SoyBeansPix"], axis=1)
    sizes = table[["CountyIndex", "PopnSegments"]].set_axis(["County", "N"], axis=1)
    formula = "CornHec ~ CornPix + SoyBeansPix"
    fit = pb.engines.sae.eblupBHF(units, formula, "County", means, sizes, mode=mode)
    return {
        "model variance": fit.model_variance,
        "error variance": fit.error_variance,
        "log-likelihood": fit.log_likelihood,
        "coefficients": fit.coefficients["estimate"].to_numpy(),
        "estimate": fit.estimate,
    }


@lru_cache(maxsize=1)
def _eusilc() -> pd.DataFrame:
    population = pb.datasets.eusilc("population_aggregates")
    return population.merge(pb.datasets.eusilc(), on="Domain", how="left", validate="1:1")


def _districts(method: str, **words: Any) -> Mapping[str, Any]:
    words = {"variance": "Var_Mean", "domain": "Domain", "method": method, **words}
    return _numbers_of(fay_herriot("Mean ~ cash + self_empl", _eusilc(), **words))


def _emdi(method: str) -> Mapping[str, Any]:
    fit = pb.engines.emdi.fh(
        "Mean ~ cash + self_empl",
        "Var_Mean",
        _eusilc(),
        domains="Domain",
        method=method,
        mode="raw",
    )
    return {
        "model variance": fit.model_variance,
        "coefficients": fit.coefficients,
        "log-likelihood": fit.criteria["loglike"],
        "AIC": fit.criteria["AIC"],
        "BIC": fit.criteria["BIC"],
        "first estimates": fit.estimate[:3],
    }


# ------------------------------------------------------------------------------------------ tails


def _tail(name: str, threshold: float, engine: str, mode: str = "guarded") -> Mapping[str, Any]:
    fit = generalized_pareto(scores(name), threshold=threshold, engine=engine, mode=mode)
    return {
        "scale": fit.scale,
        "shape": fit.shape,
        "log-likelihood": fit.log_likelihood,
        "standard errors": [fit.scale_standard_error, fit.shape_standard_error],
        "scale error": fit.scale_standard_error,
        "exceedance rate": fit.exceedance_rate,
        "exceedances": fit.n_exceedances,
    }


def _level() -> Mapping[str, Any]:
    fit = generalized_pareto(scores("rain"), threshold=30.0, engine="native")
    delta, profile = (
        fit.return_level(100, observations_per_period=365, interval=kind)
        for kind in ("delta", "profile")
    )
    return {
        "return level": delta.estimate,
        "delta interval": [delta.lower[0], delta.upper[0]],
        "profile interval": [profile.lower[0], profile.upper[0]],
    }


def _point_process() -> Mapping[str, Any]:
    fit = pb.engines.evd.fpot(scores("rain"), 30.0, model="pp", npp=365, mode="raw")
    return {"parameters": [float(fit.estimate[name]) for name in ("loc", "scale", "shape")]}


# ------------------------------------------------------------------------------------- unit level


def _persons() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    persons = pb.datasets.incomedata()
    persons["poor"] = 100.0 * (persons["income"] < _POVERTY_LINE)
    education = pb.datasets.from_r("sae", "sizeprovedu")
    return persons, pb.datasets.from_r("sae", "sizeprov"), education


def _provinces(domains: Any, sizes: pd.DataFrame) -> list[str]:
    """Names of the provinces with these numbers."""
    return list(
        sizes.set_index(sizes["prov"].astype(str))["provlab"].loc[[str(d) for d in domains]]
    )


def poverty_by_sae() -> Mapping[str, Any]:
    persons, sizes, education = _persons()
    sae = pb.engines.sae
    persons["educ"] = persons["educ"].astype(int).astype(str)
    by_level = education.drop(columns="provlab").rename(columns={"prov": "domain"})
    by_level.columns = [name.removeprefix("educ") for name in by_level.columns]
    two = sizes[["prov", "Nd"]]
    direct = sae.direct(persons, "poor", "prov", "weight", two)
    synthetic = sae.pssynt(persons, "poor", "weight", "educ", by_level)
    both = sae.ssd(persons, "prov", "weight", two, direct, synthetic)
    frame = direct.to_frame()
    for other in (synthetic, both):
        assert list(other.to_frame()["domain"].astype(str)) == list(frame["domain"].astype(str))
    return {
        "Province": _provinces(frame["domain"], sizes),
        "n": frame["n_labelled"].to_numpy(dtype=float),
        "DIR": frame["estimate"].to_numpy(dtype=float),
        "SD": frame["standard_error"].to_numpy(dtype=float),
        "PSYN": synthetic.to_frame()["estimate"].to_numpy(dtype=float),
        "SSD": both.to_frame()["estimate"].to_numpy(dtype=float),
    }


def poverty_natively() -> Mapping[str, Any]:
    """sae's variance of a Horvitz-Thompson mean is that of independent draws (Poisson sampling)."""
    persons, sizes, _ = _persons()
    design = pb.survey_design(persons, weights="weight", pps="poisson")
    population = pb.population(sizes, domain="prov", size="Nd")
    frame = pb.horvitz_thompson(design, population, outcome="poor", domain="prov").to_frame()
    return {
        "Province": _provinces(frame["domain"], sizes),
        "n": frame["n_labelled"].to_numpy(dtype=float),
        "DIR": frame["estimate"].to_numpy(dtype=float),
        "SD": frame["standard_error"].to_numpy(dtype=float),
    }


def _both(name: str, threshold: float) -> dict[str, tuple[Producer, Tolerance]]:
    """Every engine, where the printed digits are few."""
    return {
        "evd guarded": (lambda: _tail(name, threshold, "evd"), PRINTED_OTHER_ENGINE),
        "ismev guarded": (lambda: _tail(name, threshold, "ismev"), PRINTED_OTHER_ENGINE),
        "native": (lambda: _tail(name, threshold, "native"), PRINTED_OTHER_ENGINE),
    }


PRODUCERS: dict[str, dict[str, tuple[Producer, Tolerance]]] = {
    "milk REML": {"sae raw": (lambda: _area("milk", "REML", mode="raw"), PRINTED)},
    "milk at the optimum": {"native": (_milk_optima, PRINTED)},
    "grapes REML": {"sae raw": (lambda: _area("grapes", "REML", mode="raw"), PRINTED)},
    "grapes spatial REML": {"sae raw": (lambda: _spatial("REML"), PRINTED)},
    "grapes spatial ML": {"sae raw": (lambda: _spatial("ML"), PRINTED)},
    "spacetime": {"sae raw": (_spacetime, PRINTED)},
    "corn and soybean": {
        "sae raw": (lambda: _corn("raw"), PRINTED),
        "sae guarded": (lambda: _corn("guarded"), PRINTED),
    },
    "eusilcA ML": {
        "emdi raw": (lambda: _emdi("ml"), PRINTED),
        "sae tight": (lambda: _districts("ML", PRECISION=1e-12), PRINTED_OTHER_ENGINE),
        "native": (lambda: _districts("ML", engine="native"), PRINTED_OTHER_ENGINE),
    },
    "eusilcA REML": {
        "emdi raw": (lambda: _emdi("reml"), PRINTED),
        "sae tight": (lambda: _districts("REML", PRECISION=1e-12), PRINTED_OTHER_ENGINE),
        "native": (lambda: _districts("REML", engine="native"), PRINTED_OTHER_ENGINE),
    },
    "rain over 30": _both("rain", 30.0),
    "rain over 30, ismev": {"ismev raw": (lambda: _tail("rain", 30.0, "ismev", "raw"), PRINTED)},
    "rain over 30, evd": {"evd raw": (lambda: _tail("rain", 30.0, "evd", "raw"), PRINTED)},
    "rain over 10, ismev": {"ismev raw": (lambda: _tail("rain", 10.0, "ismev", "raw"), PRINTED)},
    "rain, level of 100 years": {"native": (_level, PRINTED_OTHER_ENGINE)},
    "rain, point process": {"evd raw": (_point_process, PRINTED)},
    "Danish fires over 10": _both("danish", 10.0),
    "Danish fires over 20": _both("danish", 20.0),
    "Danish fires over 10, evd": {
        "evd raw": (lambda: _tail("danish", 10.0, "evd", "raw"), PRINTED)
    },
}
