"""pybridge: domain estimates from few labels, and tail-shape claims that survive scrutiny.

R's ``sae`` and ``emdi`` do the established small-area fits, ``evd`` and ``ismev`` the established
tail fits; pybridge asks them and gives typed records back, computes the design-based part and the
choice among estimators natively, and can check every number three ways.

Names are loaded on first use: importing pybridge starts neither R nor matplotlib.
"""

from __future__ import annotations

import importlib
from typing import Any

from pybridge._version import __version__

_NAMES = {
    "survey_design": "pybridge.design.survey_design",
    "SurveyDesign": "pybridge.design.survey_design",
    "population": "pybridge.tables.population",
    "Population": "pybridge.tables.population",
    "combine_populations": "pybridge.tables.population",
    "horvitz_thompson": "pybridge.direct.api",
    "hajek": "pybridge.direct.api",
    "prediction_powered": "pybridge.direct.api",
    "generalized_regression": "pybridge.direct.api",
    "self_selected_auxiliary": "pybridge.direct.self_selected",
    "DirectEstimates": "pybridge.direct.estimates",
    "fay_herriot": "pybridge.smoothing.fay_herriot",
    "FayHerriotFit": "pybridge.smoothing.fay_herriot",
    "BenchmarkedEstimates": "pybridge.smoothing.benchmarking",
    "taxonomy_model": "pybridge.smoothing.taxonomy",
    "TaxonomyFit": "pybridge.smoothing.taxonomy_fit",
    "TaxonomyPrior": "pybridge.smoothing._taxonomy_prior",
    "candidate": "pybridge.selection.candidates",
    "Candidate": "pybridge.selection.candidates",
    "standard_candidates": "pybridge.selection.standard",
    "select": "pybridge.selection.select",
    "Selection": "pybridge.selection.record",
    "contributions": "pybridge.selection.contributions",
    "Contributions": "pybridge.selection.contributions",
    "LeaveDomainOut": "pybridge.smoothing.leave_domain_out",
    "FitDiagnostics": "pybridge.smoothing.diagnostics",
    "evaluate": "pybridge.evaluation",
    "Evaluation": "pybridge.report.record",
    "generalized_pareto": "pybridge.tails.generalized_pareto",
    "ParetoFit": "pybridge.tails.records",
    "tail_scan": "pybridge.tails.scan",
    "TailScan": "pybridge.tails.scan",
    "goodness_of_fit": "pybridge.tails.goodness",
    "mean_residual_life": "pybridge.tails.mean_residual_life",
    "choose_threshold": "pybridge.tails.threshold_choice",
    "diagnose_scores": "pybridge.tails.diagnosis",
    "decluster": "pybridge.tails.dependence",
    "tail_value_at_risk": "pybridge.tails.tail_means",
    "required_exceedances": "pybridge.tails.planning",
    "detectable_difference": "pybridge.tails.planning",
    "planning_table": "pybridge.tails.planning",
    "required_scores": "pybridge.tails.planning",
    "rule_power": "pybridge.tails.planning",
    "required_for_rule": "pybridge.tails.planning",
    "simulated_power": "pybridge.tails.planning",
    "Transform": "pybridge.tails.transforms",
    "extremal_index": "pybridge.tails.dependence",
    "block_bootstrap": "pybridge.tails.dependence",
    "protocol_template": "pybridge.protocol.template",
    "load_protocol": "pybridge.protocol.reading",
    "make_protocol": "pybridge.protocol.reading",
    "run_protocol": "pybridge.protocol.run",
    "Protocol": "pybridge.protocol.plan",
    "Verdict": "pybridge.protocol.verdict",
    "doctor": "pybridge.r",
    "setup_r": "pybridge.r",
    "PybridgeError": "pybridge.errors",
    "InputError": "pybridge.errors",
    "EngineUnavailable": "pybridge.errors",
    "EngineError": "pybridge.errors",
    "EngineTimeout": "pybridge.errors",
    "WorkerDied": "pybridge.errors",
    "FitError": "pybridge.errors",
    "PybridgeWarning": "pybridge.errors",
    "EngineWarning": "pybridge.errors",
    "DesignWarning": "pybridge.errors",
}
_MODULES = ("datasets", "engines", "errors", "simulate")

__all__ = ["__version__", *_NAMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"pybridge.{name}")
    else:
        raise AttributeError(f"module 'pybridge' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
