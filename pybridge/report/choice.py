"""Which candidate was chosen and why, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._checks import listed
from pybridge.report.words import counted, number, percent, plain_text, table_text
from pybridge.selection.words import score_name

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation
    from pybridge.selection.record import Selection

_WHO = {"native": "pybridge"}
# Scored domains below which a choice is said to rest on little.
_FEW = 5


def engine_of(fit: Any) -> str:
    """Who computed a candidate, and how."""
    item = fit.candidate
    if item.function is not None:
        return "your function"
    if item.smoothing is None:
        return "pybridge"
    who = f"{_WHO.get(item.engine, 'R ' + item.engine)}, {item.method}"
    return f"{who}, finite N" if item.finite_population else who


def choice(evaluation: Evaluation) -> list[str]:
    """The chosen candidate, its reported error, and what could be as good."""
    selection = evaluation.selection
    if selection.default:
        return _no_choice(evaluation)
    i = selection.candidates.index(selection.selected)
    count, m = selection.n_domains_scored[selection.score], evaluation.population.n_domains
    lines = [
        f"Chosen: {plain_text(selection.selected)}, with the smallest estimated mean squared error "
        f"of {counted(len(selection.candidates), 'candidate')}, over {count} of {m} domains",
        f"  ({_how(selection)}).",
    ]
    lines.append(_reported(selection, i))
    ties = [plain_text(n) for n in selection.indistinguishable() if n != selection.selected]
    if ties:
        lines.append(
            f"  As good for all that these labels can tell ({percent(selection.level)}, all "
            f"comparisons at once): {listed(ties, most=8)}."
        )
    if count < _FEW:
        lines.append("  With so few scored domains the choice rests on little.")
    lines += _narrow(evaluation)
    if selection.score == "db_cv":
        lines.append("  What DB-CV adds is an honest error; naive CV usually picks about as well.")
    return lines


def _reported(selection: Selection, i: int) -> str:
    """The chosen candidate's error, as far as the score is one of it."""
    rmse = float(selection.reported_rmse[i])
    if not np.isfinite(rmse):
        return "  Its score is negative: the error is too small for these labels to measure."
    if selection.score in ("db_cv", "db_cv_ht", "sure"):
        return (
            f"  Its reported RMSE, the typical error of one of these estimates, is {number(rmse)}."
        )
    honest = number(_root(float(selection.scores["db_cv"][i])))
    return (
        f"  Its reported RMSE is {number(rmse)}, which holds error of the labels too; DB-CV says "
        f"{honest}."
    )


def _how(selection: Selection) -> str:
    folds = f"{selection.n_folds} folds"
    if selection.repetitions > 1:
        folds += f", {selection.repetitions} times"
    if selection.score == "db_cv":
        return (
            f"DB-CV: cross-validation over {folds}, corrected for the labels' own sampling error; "
            f"reference {plain_text(selection.reference)}"
        )
    if selection.score == "sure":
        return f"SURE; reference {plain_text(selection.reference)}"
    if selection.score.startswith("split"):
        return f"{score_name(selection.score)}: fitted on one part, held against the other"
    return f"{score_name(selection.score)} over {folds}"


def _narrow(evaluation: Evaluation) -> list[str]:
    """What a reader must know before using the chosen candidate's intervals."""
    few = evaluation.selected.too_narrow
    if not few.any():
        return []
    better = [f.candidate.name for f in evaluation.fits if f.candidate.finite_population]
    text = (
        f"  Its intervals are too narrow in {counted(int(few.sum()), 'domain')} of few units, "
        "which scatter about the model by themselves"
    )
    named = listed((plain_text(name) for name in better), most=4)
    return [text + (f"; those of {named} count that." if better else ".")]


def _no_choice(evaluation: Evaluation) -> list[str]:
    selection = evaluation.selection
    reasons = [f"{len(domains)} with {text}" for text, domains in selection.not_scored.items()]
    lines = [
        "Nothing could be chosen by cross-validation: of the "
        f"{evaluation.population.n_domains} domains none can be scored ({'; '.join(reasons)}).",
        f"  {plain_text(selection.selected)} by default: what needs the fewest labels a domain. "
        "Its errors rest on its own model and are not checked here.",
        "  More labels a domain (two at least, in different folds) would make a choice possible.",
    ]
    if set(selection.not_scored) <= {"all units labelled", "no labels"}:
        lines[1:] = [
            f"  {plain_text(selection.selected)} by default: where all units are labelled every "
            "candidate is the mean itself."
        ]
    return lines


def candidate_table(evaluation: Evaluation) -> list[str]:
    """All candidates, best first, and what the columns are."""
    selection = evaluation.selection
    frame = selection.to_frame()
    scored = np.isfinite(selection.domain_scores[selection.score]).any(axis=0)
    shown = scored if scored.any() else np.ones(len(scored), dtype=bool)
    rows = []
    for row in frame.to_dict(orient="records"):
        fit = evaluation.fit(row["candidate"])
        mark = " *" if row["candidate"] == selection.selected else ""
        error = np.sqrt(np.where(fit.mse >= 0, fit.mse, np.nan))
        own = [number(_mean(error[shown])), number(_mean((fit.upper - fit.lower)[shown]))]
        scores = [
            number(row["reported_rmse"]),
            number(row["score"]),
            number(row["score_standard_error"], 3),
            number(_root(row["naive"])),
        ]
        values = own if selection.default else [*scores, own[1]]
        rows.append([f"{plain_text(row['candidate'])}{mark}", *values, engine_of(fit)])
    name = score_name(selection.score)
    header = ["RMSE", name, "± se", "naive RMSE", "mean width"]
    if selection.default:
        header = ["mean se", "mean width"]
    lines = table_text(rows, ["candidate", *header, "computed by"])
    lines += [
        f"  {plain_text(who)} has no {'estimates' if selection.default else 'score'}: "
        f"{plain_text(why)}"
        for who, why in selection.failed.items()
    ]
    return lines if selection.default else [*lines, *_legend(evaluation, name)]


def _legend(evaluation: Evaluation, name: str) -> list[str]:
    width = f"mean width: of the {percent(evaluation.level)} intervals in the scored domains"
    lines = [f"  RMSE: root of {name} (– where it is negative); {width}."]
    if evaluation.selection.n_domains_scored["adjusted"] and len(evaluation.fits) > 1:
        lines.append(f"  {evaluation.selection.verdicts()}.")
    return lines


def _mean(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if kept.size else float("nan")


def _root(value: float) -> float:
    return float(np.sqrt(value)) if value >= 0 else float("nan")
