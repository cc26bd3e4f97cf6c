"""Estimates that add up to a known mean, by emdi::benchmark."""

from __future__ import annotations

import dataclasses
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge import _r_text as r
from pybridge._files import write_text
from pybridge._options import MODES, choose, real_number, yes_or_no
from pybridge._record import Record
from pybridge.engines._emdi_answer import quiet, said
from pybridge.engines._emdi_fit import save
from pybridge.engines._emdi_known import light, made_by, need_fit
from pybridge.engines._emdi_record import EmdiFit
from pybridge.errors import InputError
from pybridge.provenance import Provenance
from pybridge.r import call
from pybridge.tables.labels import weights_by_label

TYPES = ("raking", "ratio", "MSE_adj")
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiBenchmark(Record):
    """Estimates that add up to a known total.

    Attributes
    ----------
    fit : EmdiFit
    type : str
    benchmark : float
        The target, Σ share × estimate.
    share : numpy.ndarray
        Shape (m,), as used: they add up to 1 in guarded mode.
    benchmarked : numpy.ndarray
        Shape (m,).
    achieved : float
        Σ share × benchmarked.
    conditions : tuple of str
    provenance : Provenance
    """

    fit: EmdiFit
    type: str
    benchmark: float
    share: np.ndarray
    benchmarked: np.ndarray
    achieved: float
    conditions: tuple[str, ...]
    provenance: Provenance

    def to_frame(self) -> pd.DataFrame:
        """One row a domain: domain, direct, estimate, benchmarked, share, out_of_sample."""
        return pd.DataFrame(
            {
                "domain": np.array(self.fit.domains),
                "direct": np.array(self.fit.direct),
                "estimate": np.array(self.fit.estimate),
                "benchmarked": np.array(self.benchmarked),
                "share": np.array(self.share),
                "out_of_sample": np.array(self.fit.out_of_sample),
            }
        )

    def summary(self) -> str:
        """The target and how it was met."""
        lines = [
            f"benchmark {self.benchmark:.10g} by {self.type}: the estimates gave "
            f"{float(self.share @ self.fit.estimate):.10g}, the benchmarked ones "
            f"{self.achieved:.10g}",
            "emdi has no mean squared errors of benchmarked estimates",
        ]
        return "\n".join([*lines, *self.conditions])

    def r_script(self, path: str | PathLike[str] | None = None) -> str:
        """A complete R script, data and fit included, that gives the same numbers.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        """
        from pybridge.engines._emdi_script import fh_script

        share = r.vector(map(r.number, np.asarray(self.share)[self.fit.request.order]))
        text = fh_script(self.fit.request) + (
            f"\nshare <- {share}\n"
            f"benchmarked <- emdi::benchmark(object, {r.number(self.benchmark)}, share,\n"
            f'  type = "{self.type}")\nprint(benchmarked, digits = 10)\n'
        )
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | PathLike[str], data: Any = None) -> Path:
        """Save emdi's object with the benchmarked estimates, as ``overwrite = TRUE`` gives it."""
        request = self.fit.request
        words = {"benchmark": self.benchmark, "type": self.type}
        share = np.asarray(self.share)[request.order]
        return save(request, path, benchmark={**words, "share": share})


def benchmark(
    object: EmdiFit,
    benchmark: float,
    share: Any,
    type: str = "raking",
    overwrite: bool = False,
    *,
    mode: str = "guarded",
) -> EmdiBenchmark:
    """Adjust estimates so that they add up to a known mean, by emdi::benchmark.

    Parameters
    ----------
    object : EmdiFit
    benchmark : float
        The mean that Σ share × estimate is to meet.
    share : Series, mapping or array
        Share of each domain in the population, by label, or in the order of the fit's table.
        Guarded: divided by their sum, which emdi's raking takes to be 1.
    type : {"raking", "ratio", "MSE_adj"}
    overwrite : bool
        In R, whether the object is changed. A record never is: `EmdiBenchmark.to_rds` saves what
        R would return for TRUE.
    mode : {"guarded", "raw"}

    Raises
    ------
    InputError
        Shares that are missing, negative or of other domains; estimates or mean squared errors
        that are missing; a benchmark that no weighted mean of the estimates comes near.
    """
    fit = need_fit(object)
    target = real_number("benchmark", benchmark)
    choose("type", type, TYPES)
    yes_or_no("overwrite", overwrite)
    guarded = choose("mode", mode, MODES) == "guarded"
    weights = _shares(share, fit)
    _need_numbers(fit, type)
    notes = []
    if guarded:
        total = float(weights.sum())
        if abs(total - 1.0) > _ROUNDING:
            notes.append(f"shares added up to {total:.10g} and were divided by that")
        weights = weights / total
        _refuse_far(target, fit.estimate)
    words = {"benchmark": target, "share": weights, "type": type}
    reply = call(
        "emdi_benchmark",
        {"object": light(fit), "benchmark": words},
        packages=("emdi",),
        what="emdi::benchmark",
    )
    found = quiet(reply.value["benchmarked"])
    achieved = float(weights @ found)
    if guarded and not abs(achieved - target) <= 1e-8 * max(abs(target), 1e-300):
        notes.append(f"the benchmark is not met: {achieved:.10g} for {target:.10g}")
    return EmdiBenchmark(
        fit=fit,
        type=type,
        benchmark=target,
        share=weights,
        benchmarked=found,
        achieved=achieved,
        conditions=(*notes, *said(reply)),
        provenance=made_by("benchmark", reply, {"type": type, "mode": mode}),
    )


def _shares(share: Any, fit: EmdiFit) -> np.ndarray:
    return weights_by_label(
        share,
        list(fit.domains),
        field="share",
        code="bad_share",
        what="share must give each domain's share of the population",
    )


def _need_numbers(fit: EmdiFit, type: str) -> None:
    for what, values in (("estimate", fit.estimate), ("mse", fit.mse)):
        if np.isnan(values).any() and (what == "estimate" or type == "MSE_adj"):
            raise InputError(
                f"benchmarking needs the {what} of every domain",
                code="missing_values",
                field="object",
                expected=f"{what} without missing values",
                got=f"{int(np.isnan(values).sum())} missing",
                hint="Fit with MSE=True." if what == "mse" else None,
            )


def _refuse_far(target: float, estimate: np.ndarray) -> None:
    low, high = float(estimate.min()), float(estimate.max())
    span = high - low
    if not low - span <= target <= high + span:
        raise InputError(
            "the benchmark is far from every weighted mean of the estimates",
            code="far_benchmark",
            field="benchmark",
            expected=f"a mean, somewhere around {low:.6g} to {high:.6g}",
            got=target,
            hint="For a total, divide it by the size of the population. mode='raw' takes it as "
            "it is.",
        )
