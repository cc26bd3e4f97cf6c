"""Direct estimates of ten indicators and their bootstrap variances, by emdi::direct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import (
    key_column,
    listed,
    need_columns,
    need_frame,
    number_vector,
    numeric_column,
)
from pybridge._options import MODES, choose, real_number, whole_number, yes_or_no
from pybridge.engines._emdi_answer import quiet, said
from pybridge.engines._emdi_calibration import DROPPED
from pybridge.engines._emdi_direct_record import (
    SECONDS,
    EmdiDirect,
    crossed,
    direct_inputs,
)
from pybridge.engines._emdi_request import seed_on_record
from pybridge.engines._engine_units import digest
from pybridge.errors import InputError, PybridgeError
from pybridge.provenance import provenance
from pybridge.r import Reply, call_many, r_stopped
from pybridge.tables.labels import need_one_reading

BOOT_TYPES = ("naive", "calibrate")


def direct(
    y: str,
    smp_data: pd.DataFrame,
    smp_domains: str,
    weights: str | None = None,
    design: str | None = None,
    threshold: float | str | None = None,
    var: bool = False,
    boot_type: str = "naive",
    B: int = 50,
    seed: int | None = 123,
    X_calib: Any = None,
    totals: Any = None,
    custom_indicator: Mapping[str, str] | None = None,
    na_rm: bool = False,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> EmdiDirect:
    """Direct estimates of means, poverty and inequality by emdi::direct.

    Parameters
    ----------
    y : str
        Column of the outcome.
    smp_data : pandas.DataFrame
        One row a unit.
    smp_domains : str
        Column of the domains.
    weights, design : str, optional
        Columns of sampling weights and of strata. emdi accepts a design and does not use it.
    threshold : float or str, optional
        Poverty line, or an R function of ``y`` and ``weights`` as text; by default 60 % of the
        (weighted) median.
    var : bool
        Whether variances are estimated, by a bootstrap over units.
    boot_type : {"naive", "calibrate"}
    B : int
    seed : int or None
        emdi's default is 123. None: a fresh one where variances are estimated, kept in the
        record. R's random stream is put back afterwards.
    X_calib, totals : array, optional
        Auxiliary variables (n, q) and their totals (q,), for "calibrate".
    custom_indicator : mapping of str, optional
        Further indicators: R functions of ``y``, ``weights`` and ``threshold`` as text, by name.
    na_rm : bool
        Whether units with a missing outcome or weight are dropped. Guarded, missing values are
        refused without it; emdi itself goes on and gives quantiles only.
    mode : {"guarded", "raw"}
        Raw, whole numbers are R's integers, whose sums end at 2147483647, beyond which emdi has no
        Gini coefficient, say. Guarded, a variance of a domain with one unit and a Gini coefficient
        outside [0, 1] (which negative outcomes give) are NaN, and what ``na_rm`` drops is dropped
        from ``X_calib`` too.
    time_limit : float, optional

    Raises
    ------
    InputError, EngineUnavailable, EngineError
    """
    guarded = choose("mode", mode, MODES) == "guarded"
    arguments = _arguments(
        y=y,
        smp_domains=smp_domains,
        weights=weights,
        design=design,
        threshold=threshold,
        var=var,
        boot_type=boot_type,
        B=B,
        seed=seed,
        totals=totals,
        custom_indicator=custom_indicator,
        na_rm=na_rm,
    )
    table = need_frame("smp_data", smp_data)
    counts = _check_units(table, arguments, guarded=guarded)
    asked = direct_inputs(table, arguments, X_calib, guarded=guarded)
    limit = SECONDS if time_limit is None and guarded else time_limit
    (reply,) = call_many("emdi_direct", [asked], packages=("emdi",), time_limit=limit)
    if reply.error is not None:
        raise _stopped(reply)
    reply.warn("emdi")
    notes = []
    if asked["X_calib"] is not None:
        arguments["X_calib"] = asked["X_calib"].shape
        if len(asked["X_calib"]) < len(table):
            notes.append(DROPPED)
    units = digest(crossed(asked))
    return _record(reply, arguments, counts, notes, guarded=guarded, mode=mode, units=units)


def _stopped(reply: Reply) -> PybridgeError:
    """R's error; one of the user's R functions is wrong input."""
    assert reply.error is not None
    if "shared_refusal" not in reply.error["class"]:
        return r_stopped("emdi::direct", reply)
    message = str(reply.error["message"])
    return InputError(
        message,
        code="bad_function",
        field=message.split()[0],
        expected="an R function as text, 'function(y, weights, threshold) ...'",
        got=message.partition(": ")[2],
    )


def _arguments(**given: Any) -> dict[str, Any]:
    """emdi's arguments by its own names, checked."""
    words = dict(given)
    words["na.rm"] = words.pop("na_rm")
    for name in ("var", "na.rm"):
        yes_or_no(name, words[name])
    choose("boot_type", words["boot_type"], BOOT_TYPES)
    words["B"] = whole_number("B", words["B"], least=2)
    words["seed"] = seed_on_record(words["seed"], drawn=words["var"])
    line = words["threshold"]
    if isinstance(line, str) and "function" not in line:
        raise InputError(
            "a threshold in words is an R function as text",
            code="bad_function",
            field="threshold",
            expected="a number, or 'function(y, weights) ...'",
            got=line,
        )
    if line is not None and not isinstance(line, str):
        words["threshold"] = real_number("threshold", line)
    custom = words["custom_indicator"]
    if custom is not None:
        if not isinstance(custom, Mapping) or not all(
            isinstance(text, str) and "function" in text for text in custom.values()
        ):
            raise InputError(
                "custom indicators are R functions as text, by name",
                code="bad_function",
                field="custom_indicator",
                expected="{'name': 'function(y, weights, threshold) ...'}",
                got=custom,
            )
        words["custom_indicator"] = dict(custom)
    if words["totals"] is not None:
        words["totals"] = number_vector("totals", words["totals"])
    return words


def _check_units(
    table: pd.DataFrame, words: Mapping[str, Any], *, guarded: bool
) -> dict[str, tuple[Any, int]]:
    """Label and number of units of each domain, in the order in which they come."""
    for name in ("y", "smp_domains", "weights", "design"):
        if words[name] is not None or name in ("y", "smp_domains"):
            need_columns(table, [words[name]], field=name)
    kept = np.ones(len(table), dtype=bool)
    for name in ("y", "weights"):
        if words[name] is None:
            continue
        values = numeric_column(table, words[name], field=name, missing=True)
        absent = np.isnan(values)
        if absent.any() and guarded and not words["na.rm"]:
            raise InputError(
                f"the column {words[name]!r} is missing in {int(absent.sum())} units",
                code="missing_values",
                field=name,
                expected="a number in every row, or na_rm=True",
                got=f"rows {listed(np.flatnonzero(absent))} (counted from 0)",
                hint="emdi itself would give quantiles only, or stop.",
            )
        if name == "weights" and guarded and (values[~absent] <= 0).any():
            raise InputError(
                "sampling weights must be positive",
                code="negative_weights",
                field="weights",
                expected="numbers greater than 0",
                got=f"rows {listed(np.flatnonzero(values <= 0))} (counted from 0)",
            )
        if words["na.rm"]:
            kept &= ~absent
    labels = key_column(table, words["smp_domains"], field="smp_domains")[kept]
    need_one_reading(labels)
    found: dict[str, tuple[Any, int]] = {}
    for label, count in labels.value_counts(sort=False).items():
        found[str(label)] = (label, int(count))
    return {str(label): found[str(label)] for label in labels.unique()}


def _record(
    reply: Reply,
    arguments: dict[str, Any],
    counts: Mapping[str, tuple[Any, int]],
    notes: list[str],
    *,
    guarded: bool,
    mode: str,
    units: str,
) -> EmdiDirect:
    value = reply.value
    names = tuple(value["names"])
    theirs = list(value["domain"])
    place = {label: k for k, label in enumerate(theirs)}
    order = [place[label] for label in counts] if guarded else list(range(len(theirs)))
    domains = np.empty(len(order), dtype=object)
    domains[:] = [counts[theirs[k]][0] for k in order]
    count = np.array([counts[theirs[k]][1] for k in order])
    estimate = quiet(value["estimate"])[order]
    variance = replicates = None
    if value["variance"] is not None:
        variance = quiet(value["variance"])[order]
        rows = {label: k for k, label in enumerate(value["count_domain"])}
        replicates = np.array(value["successful"])[[rows[theirs[k]] for k in order]]
    if arguments["design"] is not None:
        notes.append(
            "emdi accepts a design and does not use it: the bootstrap draws from all units"
        )
    if guarded:
        notes += _cleaned(estimate, variance, names, domains, count)
    return EmdiDirect(
        domains=domains,
        names=names,
        n_labelled=count,
        estimate=estimate,
        variance=variance,
        replicates=replicates,
        arguments=arguments,
        units=units,
        conditions=(*said(reply), *notes),
        provenance=provenance(
            "emdi",
            "direct",
            options={**{k: v for k, v in arguments.items() if k != "seed"}, "mode": mode},
            seed=arguments["seed"],
            versions=reply.versions,
        ),
    )


def _cleaned(
    estimate: np.ndarray,
    variance: np.ndarray | None,
    names: tuple[str, ...],
    domains: np.ndarray,
    units: np.ndarray,
) -> list[str]:
    """Numbers that do not exist become NaN, in place; what was done, as text."""
    notes = []
    gini = names.index("Gini")
    bad = ~((estimate[:, gini] >= 0) & (estimate[:, gini] <= 1)) & ~np.isnan(estimate[:, gini])
    if bad.any():
        notes.append(f"Gini outside [0, 1], from negative outcomes: NaN in {listed(domains[bad])}")
        estimate[bad, gini] = np.nan
        if variance is not None:
            variance[bad, gini] = np.nan
    single = units == 1
    if variance is not None and single.any():
        variance[single] = np.nan
        notes.append(f"one unit, hence no variance: {listed(domains[single])}")
    return notes
