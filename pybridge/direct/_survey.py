"""Adapter of R's survey: direct estimates of domains by svytotal and svyby.

HT is ``svytotal`` of y in the domain over N_i, Hájek ``svyby(~y, ~domain, svymean)``, PPI and GREG
``svytotal`` of the residuals with β (by ``lm``) held fixed; Poisson sampling is
``svydesign(pps = poisson_sampling(p))``. What survey has no notion of (statuses, formal values of
domains without units) is the native record's; every estimate, variance and covariance is R's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge._checks import numeric_column
from pybridge._record import Record
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.aggregates import AggregateEstimates
from pybridge.direct.estimates import DirectEstimates
from pybridge.direct.linear import DirectRequest
from pybridge.direct.statuses import t_quantile
from pybridge.engines.availability import need_engine
from pybridge.errors import InputError
from pybridge.provenance import Provenance, provenance
from pybridge.tables.sample import SampleColumns, sample_columns

CALLS = {
    "ht": "svytotal",
    "hajek": "svyby(svymean)",
    "ppi": "svytotal of the residuals",
    "greg": "svytotal of the residuals",
}
# Tables of units by domains that R holds at once, about, and what may be too much.
_TABLES = 8
_MOST_BYTES = 4e9


@dataclass(frozen=True, eq=False, repr=False)
class SurveyAnswer(Record):
    """What R's survey gave beyond a number a domain.

    Attributes
    ----------
    covariance : numpy.ndarray
        Shape (m, m), of the domains' estimates.
    groups : mapping of str
        For "all" and each level of the taxonomy: ``estimate`` (G,), ``covariance`` (G, G) and
        ``degrees`` (G,).
    conditions : tuple of str
        What R said.
    provenance : Provenance
    """

    covariance: np.ndarray
    groups: Mapping[str, Any]
    conditions: tuple[str, ...]
    provenance: Provenance

    def summary(self) -> str:
        """One line."""
        return self.provenance.summary()

    def of_groups(self, found: AggregateEstimates) -> AggregateEstimates:
        """The native aggregates with R's numbers in their place."""
        own = self.groups.get(found.taxonomy_level)
        if own is None:  # the domains themselves as groups
            return found
        seen = found.n_labelled > 0
        covariance = np.asarray(own["covariance"])
        variance = np.where(seen, np.maximum(covariance.diagonal(), 0.0), np.nan)
        degrees = np.where(seen, np.maximum(own["degrees"], 1.0), np.nan)
        estimate = np.where(np.isnan(found.estimate), np.nan, own["estimate"])
        half = t_quantile(found.level, degrees) * np.sqrt(variance)
        return replace(
            found,
            estimate=estimate,
            variance=variance,
            covariance=covariance,
            degrees_of_freedom=degrees,
            lower=estimate - half,
            upper=estimate + half,
        )


def refuse_variance(variance: str) -> None:
    """InputError for variances that survey does not have, before anything is computed."""
    if variance != "direct":
        raise InputError(
            f"R's survey has no {variance} variances",
            code="not_available",
            field="variance",
            expected="variance='direct'",
            got=variance,
            hint="engine='native' has them, with the same estimates.",
        )


def by_survey(
    found: DirectEstimates, design: SurveyDesign, request: DirectRequest, *, domain: str | None
) -> DirectEstimates:
    """The estimates by R's survey in the native record.

    Parameters
    ----------
    found : DirectEstimates
        The native answer to the same request: checks, counts, statuses.
    design, request, domain
        What was asked.

    Raises
    ------
    InputError
        A sample too large for R's matrices of units by domains.
    EngineUnavailable, EngineError
    """
    from pybridge.r import call

    need_engine("survey", instead="engine='native' (--engine native)")
    levels, inputs = asked_of_survey(found, design, request, domain)
    reply = call("survey_direct_estimates", inputs, packages=("survey",))
    reply.warn("survey", stacklevel=4)
    said = tuple(f"R warning: {text.strip()}" for text in dict.fromkeys(reply.warnings))
    answer = SurveyAnswer(
        covariance=np.array(reply.value["covariance"]),
        groups={
            level or "all": dict(reply.value["groups"][f"level{place}"])
            for place, level in enumerate(levels)
        },
        conditions=said,
        provenance=provenance(
            "survey",
            CALLS[request.method],
            options={"method": request.method, "lonely_psu": design.lonely_psu},
            versions=reply.versions,
        ),
    )
    return _with_numbers(found, reply.value, answer)


def asked_of_survey(
    found: DirectEstimates, design: SurveyDesign, request: DirectRequest, domain: str | None
) -> tuple[list[str | None], dict[str, Any]]:
    """Levels of groups, coarse to fine after the whole, and the named list that the shim takes."""
    population = found.sample.population
    _refuse_size(design, population.n_domains, len(population.taxonomy))
    columns = sample_columns(
        design.frame, population, outcome=found.sample.outcome, domain=domain or population.domain
    )
    levels: list[str | None] = [None, *population.taxonomy]
    groups = {f"level{place}": _codes(found, level) for place, level in enumerate(levels)}
    return levels, {**_inputs(design, found, columns, request), "groups": groups}


def survey_script(found: DirectEstimates, design: SurveyDesign, *, domain: str | None) -> str:
    """The sample, the functions by which the bridge asks survey, and the estimates they give."""
    _, inputs = asked_of_survey(found, design, found.request, domain)
    body = ",\n  ".join(f"{name} = {r.item(value)}" for name, value in inputs.items())
    shims = resources.files("pybridge.r") / "shims" / "survey_direct.R"
    labels = r.vector(r.text(str(label)) for label in found.sample.population.domains)
    title = f"{found.method} estimates of {len(found.estimate)} domains, {found.sample.design}"
    return "\n".join(
        [
            f"# {r.ascii_line(title)}",
            *r.EXACT_NUMBERS,
            shims.read_text(encoding="utf-8"),
            f"inputs <- list(\n  {body}\n)",
            "answer <- survey_direct_estimates(inputs)",
            f"result <- data.frame(domain = {labels},",
            "  estimate = answer$estimate, standard_error = sqrt(diag(answer$covariance)))",
            "print(result, digits = 10)\n",
        ]
    )


def _codes(found: DirectEstimates, level: str | None) -> np.ndarray:
    """The group of every domain, counted from 1."""
    population = found.sample.population
    if level is None:
        return np.ones(population.n_domains)
    return population.group_codes(level)[0] + 1.0


def _inputs(
    design: SurveyDesign, found: DirectEstimates, columns: SampleColumns, request: DirectRequest
) -> dict[str, Any]:
    """The named list that the shim takes: codes for labels, so that no label need cross."""
    population = found.sample.population
    used = list(request.auxiliary)
    name = design.names["fpc"]
    slope = request.slope
    return {
        "y": columns.outcome,
        "w": design.weights,
        "domain": columns.domain + 1.0,
        "auxiliary": np.column_stack([columns.auxiliary[j] for j in used]) if used else None,
        "means": population.auxiliary_means[:, used] if used else None,
        "size": population.size,
        "stratum": None if design.names["strata"] is None else design.stratum + 1.0,
        "psu": None if design.psu is None else design.psu + 1.0,
        "fpc": None if name is None else numeric_column(design.frame, name, field="fpc"),
        "poisson": design.poisson,
        "lonely": design.lonely_psu,
        "method": request.method,
        "slope": slope if isinstance(slope, str) else np.asarray(slope, dtype=np.float64),
        "intercept": request.intercept,
    }


def _refuse_size(design: SurveyDesign, m: int, n_levels: int) -> None:
    size = _TABLES * 8.0 * design.n_units * m * (2 + n_levels)
    if size > _MOST_BYTES:
        raise InputError(
            f"R's survey would hold tables of {design.n_units:,} units by {m:,} domains",
            code="too_large",
            field="engine",
            expected=f"about {_MOST_BYTES / 1e9:.0f} GB at most",
            got=f"{size / 1e9:.1f} GB",
            hint="engine='native' gives the same numbers in one pass over the units.",
        )


def _with_numbers(
    found: DirectEstimates, value: Mapping[str, Any], answer: SurveyAnswer
) -> DirectEstimates:
    """R's numbers in the record; NaN where there is none (R gives one unit the variance 0)."""
    undefined = np.isnan(found.variance)
    estimate = np.where(np.isnan(found.estimate), np.nan, value["estimate"])
    variance = np.where(undefined, np.nan, np.maximum(answer.covariance.diagonal(), 0.0))
    empty = found.n_labelled == 0
    degrees = np.where(empty, np.nan, np.maximum(value["degrees"], 1.0))
    half = t_quantile(found.level, degrees) * np.sqrt(variance)
    words: dict[str, Any] = {}
    if value.get("coefficients") is not None:
        words["coefficients"] = np.array(value["coefficients"])
        words["own_slope"] = np.array(value["own"])
    return replace(
        found,
        estimate=estimate,
        variance=variance,
        covariance_ht=np.where(undefined, np.nan, value["covariance_ht"]),
        degrees_of_freedom=degrees,
        lower=estimate - half,
        upper=estimate + half,
        formal=np.nan_to_num(value["estimate"]),
        answer=answer,
        **words,
    )
