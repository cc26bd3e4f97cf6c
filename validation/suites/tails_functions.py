"""evd's, ismev's and evir's functions: the bridge, Rscript, exact optima, reimplementations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tail import TAIL
from pybridge.crosscheck.tolerances import (
    DENSE_SEARCH,
    IDENTICAL,
    LAST_BITS,
    Tolerance,
    likelihood,
)
from pybridge.errors import PybridgeError, PybridgeWarning
from validation.cases.gpd import scores
from validation.cases.tail_calls import FILES, Key, answers, calls, label, numbers_of, trend
from validation.reimplementations import tail_models as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

# How a guarded call's own script shows what it leaves in `result`.
_SHOW = """
show_result <- function(name, result) {
  if (!is.list(result)) result <- list(value = result)
  if (all(grepl("^cluster", names(result)))) result <- list(value = unlist(result))
  for (part in names(result)) show_bits(paste0(name, "|", part), result[[part]])
}
"""
# R takes roots of a covariance before or after it is scaled.
_ROUNDED = ("se", "par.ses")
_EXACT = {
    "parameters": TAIL["guarded"]["shape"],
    "log-likelihood": TAIL["guarded"]["log-likelihood"],
}
_SLOWLY = {
    "parameters": DENSE_SEARCH,
    "log-likelihood": likelihood(DENSE_SEARCH, 1e-7),
    "lower": DENSE_SEARCH,
    "upper": DENSE_SEARCH,
}


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [label(key) for key in calls("raw")]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return tuple(dict.fromkeys(FILES[key[0]] for key in calls("raw") if label(key) in chosen))


def run(plain: PlainR, chosen: set[str], *, anew: bool = True) -> AgreementTable:
    """All comparisons of the chosen cases, with or without the reimplementation's."""
    gathered = Gathered()
    guarded: dict[Key, Any] = {}
    asks = {mode: calls(mode) for mode in ("raw", "guarded")}
    for key in asks["raw"]:
        if label(key) not in chosen:
            continue
        _plain(gathered, plain, key)
        raw = _ask(gathered, "bridge raw", key, asks["raw"][key])
        if raw is not None:
            gathered.say("bridge raw", label(key), numbers_of(raw))
        record = _ask(gathered, "bridge guarded", key, asks["guarded"][key])
        if record is not None:
            guarded[key] = record
            _optimum(gathered, key, record, anew)
    _own_scripts(gathered, plain, guarded)
    return gathered.compared(_pairings(gathered))


def _pairings(gathered: Gathered) -> list[Pairing]:
    names = {name for said in gathered.values.values() for _, name in said}
    same: dict[str, Tolerance] = {
        name: LAST_BITS if name in _ROUNDED else IDENTICAL for name in sorted(names - set(_EXACT))
    }
    return [
        Pairing("bridge raw", "Rscript", {name: IDENTICAL for name in same}),
        Pairing("bridge guarded", "r_script()", same),
        Pairing("bridge guarded", "exact optimum", _EXACT),
        Pairing("native", "reimplementation", _SLOWLY),
    ]


def _ask(gathered: Gathered, producer: str, key: Key, ask: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PybridgeWarning)
            return ask()
    except PybridgeError as error:
        gathered.silent(producer, label(key), error.message)
        return None


def _plain(gathered: Gathered, plain: PlainR, key: Key) -> None:
    script = FILES[key[0]]
    why_not = plain.why_not(script)
    if why_not:
        gathered.silent("Rscript", label(key), why_not)
    else:
        gathered.say("Rscript", label(key), answers(key, plain.answers(script)))


def _comparable(record: Any) -> dict[str, np.ndarray]:
    """A guarded record's numbers by the names that its own script gives them."""
    found = {name: np.asarray(v, dtype=float) for name, v in numbers_of(record).items()}
    if "lower" in found and record.request.function in ("profile", "confint"):
        found = {"ends": np.concatenate([found["lower"], found["upper"]])}
    if record.request.function == "mrl.plot":  # the ends that do not exist are not drawn
        found = {name: value[~np.isnan(value)] for name, value in found.items()}
    return found


def _own_scripts(gathered: Gathered, plain: PlainR, records: dict[Key, Any]) -> None:
    """The guarded calls' own scripts, all in one R."""
    texts = {
        f"{k}": f'{_SHOW}{record.r_script()}\nshow_result("r{k}", result)\n'
        for k, record in enumerate(records.values())
    }
    shown, why_not = plain.bits(texts) if texts else ({}, "")
    for k, (key, record) in enumerate(records.items()):
        if why_not:
            gathered.silent("r_script()", label(key), why_not)
            continue
        known = _comparable(record)
        for name, value in shown.items():
            prefix, _, quantity = name.partition("|")
            if prefix == f"r{k}" and quantity in known:
                gathered.say("r_script()", label(key), {quantity: np.array(value)})
                gathered.say("bridge guarded", label(key), {quantity: known[quantity]})


def _optimum(gathered: Gathered, key: Key, record: Any, anew: bool) -> None:
    """What was found exactly beside R's answer, and by the reimplementation."""
    exact, theirs = getattr(record, "exact", {}), {}
    if "shortfall" in exact:
        terms = [name for name in exact if "log_likelihood" not in name and name != "shortfall"]
        theirs = {"parameters": np.array([exact[name] for name in terms])}
        theirs["log-likelihood"] = np.array([exact["log_likelihood"]])
        gathered.say("exact optimum", label(key), theirs)
        estimate, errors = _estimates(record, terms)
        ours = {"parameters": estimate, "log-likelihood": np.array([record.log_likelihood])}
        gathered.say("bridge guarded", label(key), ours)
        gathered.units[label(key), "parameters"] = errors
    other = _anew(key) if anew else {}
    if not other:
        return
    gathered.say("reimplementation", label(key), other)
    if "lower" not in other:
        gathered.say("native", label(key), theirs)
        return
    for side in ("lower", "upper"):
        ends = np.array(list(getattr(record, f"exact_{side}").values()))
        gathered.say("native", label(key), {side: ends})
        width = np.array(list(record.upper.values())) - np.array(list(record.lower.values()))
        gathered.units[label(key), side] = width / 4.0


def _estimates(record: Any, terms: list[str]) -> tuple[np.ndarray, np.ndarray]:
    table = record.to_frame()
    table = table.set_index(table.columns[0]).reindex(terms)
    errors = table["standard_error"].to_numpy(copy=True)
    missing = ~np.isfinite(errors)
    errors[missing] = np.abs(table["estimate"].to_numpy()[missing]) * 0.1
    return table["estimate"].to_numpy(copy=True), errors


def _anew(key: Key) -> dict[str, np.ndarray]:
    """The reimplementation's answer to some of the calls; empty for the others."""
    x = scores("rain")
    x = x[x > 30.0]
    n_scores = 17531
    if key[1:] == ("fpot", "process"):
        loss = slow.process_loss(x, 30.0, n_scores / 365)
        return _named(slow.fit(loss, [(35.0, 8.0, 0.1), (45.0, 12.0, 0.3)]))
    if key[1:] in (("fpot", "level"), ("profile", "level")):
        loss = slow.level_loss(x, 30.0, 100.0 * 365 * x.size / n_scores)
        best = slow.fit(loss, [(90.0, 0.1), (120.0, 0.3)])
        if key[1] == "fpot":
            return _named(best)
        ends = [slow.profile_interval(loss, *best, k, w) for k, w in enumerate((10.0, 0.1))]
        lower, upper = zip(*ends)
        return {"lower": np.array(lower), "upper": np.array(upper)}
    if key[0] == "trend__ismev" and key[2] != "own_link":
        return _named(_regression(key[2]))
    return {}


def _regression(name: str) -> tuple[np.ndarray, float]:
    table = trend()
    above = table["score"].to_numpy() > 10.0
    excesses = table["score"].to_numpy()[above] - 10.0
    ones = np.ones(excesses.size)
    year, group = (table[word].to_numpy()[above] for word in ("year", "group"))
    scale = np.column_stack([ones, year])
    shape = np.column_stack([ones, group]) if name == "both" else ones[:, np.newaxis]
    links = ("identity" if name == "scale" else "exp", "identity")
    first = excesses.mean() if name == "scale" else np.log(excesses.mean())
    starts = [
        np.concatenate([[first, slope, 0.1], np.zeros(shape.shape[1] - 1)]) for slope in (0.0, 0.5)
    ]
    return slow.fit(slow.regression_loss(excesses, scale, shape, links), starts)


def _named(found: tuple[np.ndarray, float]) -> dict[str, np.ndarray]:
    return {"parameters": np.array(found[0]), "log-likelihood": np.array([found[1]])}
