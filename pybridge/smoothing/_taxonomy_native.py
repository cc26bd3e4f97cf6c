"""Adapter of the native taxonomy engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybridge._options import choose, whole_number
from pybridge.smoothing._spec import refuse_options
from pybridge.smoothing._taxonomy import INTEGRATIONS, fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood
from pybridge.smoothing._taxonomy_spec import TaxonomyAnswer, TaxonomySpec, arrays
from pybridge.tables.area import AreaTable


def complete_options(given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """``integration`` and ``n_draws`` for the posterior; the likelihood has nothing to tune."""
    if method != "bayes":
        refuse_options(given, (), engine="native")
        return {}
    refuse_options(given, ("integration", "n_draws"), engine="native")
    return {
        "integration": choose("integration", given.get("integration", "auto"), INTEGRATIONS),
        "n_draws": whole_number("n_draws", given.get("n_draws", 1000), least=100),
    }


def fit(area: AreaTable, levels: TaxonomyLevels, spec: TaxonomySpec) -> TaxonomyAnswer:
    """Fit one checked table."""
    if spec.method != "bayes":
        found = fit_taxonomy_likelihood(
            **arrays(area, levels), method=spec.method, level=spec.level
        )
        return TaxonomyAnswer(numbers=found, engine_status=found.status)
    posterior = fit_taxonomy_bayes(
        **arrays(area, levels),
        prior=spec.prior,
        level=spec.level,
        seed=spec.seed,
        integration=spec.options["integration"],
        n_draws=spec.options["n_draws"],
    )
    return TaxonomyAnswer(numbers=posterior, engine_status=posterior.status)
