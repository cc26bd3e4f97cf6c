"""Simulated populations, repeated sampling and scores, for trying estimators on known truths.

``pb.simulate.deployed_service()``, ``pb.simulate.repeated_sampling(...)``: names are loaded on
first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "FinitePopulation": "populations",
    "finite_population": "populations",
    "simulate_population": "populations",
    "Outcome": "outcomes",
    "Auxiliary": "auxiliaries",
    "verifiable_benchmark": "experiments",
    "deployed_service": "experiments",
    "SamplingPlan": "plans",
    "sampling_plan": "plans",
    "Draw": "repeated",
    "RepeatedSampling": "repeated",
    "repeated_sampling": "repeated",
    "Accuracy": "measures",
    "accuracy": "measures",
    "ScoreQuality": "choices",
    "score_quality": "choices",
    "estimate_candidates": "procedures",
    "EstimateCandidates": "procedures",
    "SelectCandidates": "procedures",
    "TailModel": "tail_scores",
    "simulate_tail_scores": "tail_scores",
    "equal_tail_means": "tail_scores",
    "perturbed_model": "tail_scores",
    "perturbation_pilot": "tail_perturbation",
    "PerturbationPilot": "tail_perturbation",
    "demonstrate": "tail_demonstrations",
}

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; there are {', '.join(sorted(_NAMES))}"
        )
    value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
