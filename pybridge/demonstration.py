"""The demonstration: California's schools, estimated from a tenth of their labels.

Every school's result is known (R's ``survey`` ships the whole population), so what the estimates
say can be held against the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._options import whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.report.record import Evaluation

# Service regions of California's county offices of education.
REGIONS = {
    "North Coast": "Del Norte, Humboldt, Lake, Mendocino, Sonoma",
    "Northeast": "Butte, Glenn, Lassen, Modoc, Plumas, Shasta, Siskiyou, Tehama, Trinity",
    "Capital": "Alpine, Colusa, El Dorado, Nevada, Placer, Sacramento, Sierra, Sutter, Yolo, Yuba",
    "Bay": "Alameda, Contra Costa, Marin, Napa, San Francisco, San Mateo, Solano",
    "South Bay": "Monterey, San Benito, Santa Clara, Santa Cruz",
    "Delta Sierra": "Amador, Calaveras, San Joaquin, Stanislaus, Tuolumne",
    "Central Valley": "Fresno, Kings, Madera, Mariposa, Merced, Tulare",
    "Central Coast": "Kern, San Luis Obispo, Santa Barbara, Ventura",
    "South": "Imperial, Orange, San Diego",
    "Inland": "Inyo, Mono, Riverside, San Bernardino",
    "Los Angeles": "Los Angeles",
}


def region_of_county() -> dict[str, str]:
    """County -> region."""
    return {
        county.strip(): region
        for region, counties in REGIONS.items()
        for county in counties.split(",")
    }


def draw_labels(
    population: pd.DataFrame, *, outcome: str, strata: str, share: float, seed: int
) -> pd.DataFrame:
    """Hide the outcome of all but a stratified simple random sample.

    At least two units a stratum stay, so that every stratum has a variance.
    """
    if not 0.0 < share < 1.0:
        raise InputError(
            "the share of labels that stay lies between 0 and 1",
            code="bad_share",
            field="share",
            expected="0 < share < 1",
            got=share,
        )
    rng = np.random.default_rng(whole_number("seed", seed, least=0))
    code, labels = pd.factorize(population[strata], sort=True)
    keep = np.zeros(len(population), dtype=bool)
    for h in range(len(labels)):
        rows = np.flatnonzero(code == h)
        count = min(len(rows), max(2, round(share * len(rows))))
        keep[rng.choice(rows, size=count, replace=False)] = True
    return population.assign(**{outcome: population[outcome].where(keep)})


@dataclass(frozen=True, eq=False, repr=False)
class TruthComparison(Record):
    """Every candidate against the truth, over the domains that DB-CV scored.

    Attributes
    ----------
    candidates : tuple of str
    n_domains : int
    true_rmse, reported_rmse, coverage, mean_width : numpy.ndarray
        Shape (C,).
    true_rmse_all, coverage_all : numpy.ndarray
        Shape (C,), over all domains in which the candidate has an estimate (an interval).
    level : float
    """

    candidates: tuple[str, ...]
    n_domains: int
    true_rmse: np.ndarray
    reported_rmse: np.ndarray
    coverage: np.ndarray
    mean_width: np.ndarray
    true_rmse_all: np.ndarray
    coverage_all: np.ndarray
    level: float

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate."""
        names = ("true_rmse", "reported_rmse", "coverage", "mean_width")
        table: dict[str, object] = {"candidate": self.candidates}
        table.update({name: getattr(self, name) for name in names})
        table.update(true_rmse_all=self.true_rmse_all, coverage_all=self.coverage_all)
        return pd.DataFrame(table)

    def summary(self) -> str:
        """The table, and what one sample can and cannot show."""
        from pybridge.report.text import number, table_text

        rows = [
            [
                row.candidate,
                number(row.true_rmse),
                number(row.reported_rmse),
                f"{100 * row.coverage:.0f} %",
                number(row.mean_width),
                number(row.true_rmse_all),
                f"{100 * row.coverage_all:.0f} %",
            ]
            for row in self.to_frame().itertuples(index=False)
        ]
        header = ["candidate", "true RMSE", "DB-CV said", "coverage", "mean width"]
        header += ["all: RMSE", "coverage"]
        lines = [
            f"Against the truth, over the {self.n_domains} domains that were scored (and over all "
            "domains):"
        ]
        lines += table_text(rows, header)
        lines.append(
            f"One sample only: over {self.n_domains} domains the coverage of a "
            f"{100 * self.level:g} % interval has a standard error of "
            f"{100 * self._coverage_error():.0f} points."
        )
        return "\n".join(lines)

    def _coverage_error(self) -> float:
        return float(np.sqrt(self.level * (1 - self.level) / max(self.n_domains, 1)))


def compare_with_truth(evaluation: Evaluation, truth: np.ndarray) -> TruthComparison:
    """Hold every candidate against the true domain means, shape (m,)."""
    selection = evaluation.selection
    scored = np.isfinite(selection.domain_scores[selection.score]).any(axis=0)
    rows: dict[str, list[float]] = {}

    def add(key: str, value: float) -> None:
        rows.setdefault(key, []).append(value)

    for fit, reported in zip(evaluation.fits, selection.reported_rmse):
        error = (fit.estimate - truth) ** 2
        inside = np.where(
            np.isfinite(fit.lower), (fit.lower <= truth) & (truth <= fit.upper), np.nan
        ).astype(float)
        add("true_rmse", float(np.sqrt(error[scored].mean())))
        add("reported_rmse", float(reported))
        add("coverage", _mean(inside[scored]))
        add("mean_width", _mean((fit.upper - fit.lower)[scored]))
        add("true_rmse_all", float(np.sqrt(_mean(error))))
        add("coverage_all", _mean(inside))
    return TruthComparison(
        candidates=tuple(fit.candidate.name for fit in evaluation.fits),
        n_domains=int(scored.sum()),
        level=evaluation.level,
        **{key: np.array(values) for key, values in rows.items()},
    )


def _mean(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if kept.size else float("nan")
