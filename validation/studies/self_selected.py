"""Study 3: labels that select themselves, and what repairs them.

    python validation/studies/self_selected.py [--quick] [--repetitions 200]

Conversations with a bad outcome enter with twice the odds. (1) Taken for a random sample: the bias
does not fall with the budget, coverage collapses, and no judge repairs it. (2) The odds, where they
are known, as weights. (3) A small probability sample combined with many volunteers, whose outcomes
are an auxiliary variable and never truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from _shared import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    cells,
    figure,
    log_ticks,
    markdown,
    save,
    smoothed,
    tidy,
    with_error,
    words,
    write_page,
    write_table,
)

import pybridge as pb
from pybridge.simulate import (
    EstimateCandidates,
    accuracy,
    deployed_service,
    estimate_candidates,
    sampling_plan,
)

BAD, BUDGETS = 50.0, (0.05, 0.10, 0.20, 0.40)
JUDGED = ["judge", "content"]
VOLUNTEERS = ["volunteered", "volunteer_prediction"]
COLOURS = {"Hájek (mean)": "black", "PPI": ORANGE, "GREG": GREY, "PP-S": GREEN, "PP-TS": BLUE}
SHOWN = ["bias", "rmse", "coverage", "width", "interval_score"]


def candidates(names=JUDGED, area=JUDGED, direct_too=True):
    """Hájek and PPI where wanted, GREG, PP-S and PP-TS with these variables."""
    found = []
    if direct_too:
        found += [pb.candidate("Hájek (mean)", direct="hajek")]
        found += [pb.candidate("PPI", direct="ppi", unit_auxiliary=["judge"])]
    found.append(pb.candidate("GREG", direct="greg", unit_auxiliary=names))
    found.append(smoothed("PP-S", "greg", names, area, finite=True))
    found.append(smoothed("PP-TS", "greg", names, area, taxonomy=True, finite=True))
    return tuple(found)


def selected(say, population, kind):
    """One way of getting labels at every budget: accuracy of every estimator."""
    plans = {
        "random sample": lambda b: sampling_plan("simple", fraction=b),
        "self-selected": lambda b: sampling_plan(
            "self_selected", size="odds", fraction=b, weights="none"
        ),
        "odds known": lambda b: sampling_plan("self_selected", size="odds", fraction=b),
    }
    parts = []
    for budget in BUDGETS:
        procedure = EstimateCandidates(candidates())
        part = f"{kind.replace(' ', '_')}_{100 * budget:g}"
        runs = say.repeat(population, plans[kind](budget), procedure, part=part)
        table = accuracy(runs, procedure.names).to_frame()
        table.insert(0, "budget", budget)
        table.insert(0, "labels", kind)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class Combined:
    """A probability sample alone, and with volunteers of whom ``share`` of all units are."""

    odds: float
    share: float = 0.30
    names = (
        "GREG, alone",
        "PP-S, alone",
        "PP-TS, alone",
        "GREG, with volunteers",
        "PP-S, with volunteers",
        "PP-TS, with volunteers",
        "volunteers' mean",
        "mean of both pooled",
    )

    def __call__(self, draw):
        units, design = draw.population.units, draw.design
        odds = np.where(units[draw.outcome] < BAD, self.odds, 1.0)
        came = draw.rng.random(len(units)) < self.share * odds / odds.mean()
        rated = units.assign(rating=units[draw.outcome].where(came))
        extra = pb.self_selected_auxiliary(
            rated, outcome="rating", predictors=JUDGED, domain=draw.domain
        )
        both = pb.population(
            units.join(extra),
            domain=draw.domain,
            auxiliary=JUDGED + VOLUNTEERS,
            taxonomy=list(draw.known.taxonomy),
        )
        sample = design.frame.join(extra)
        fits = estimate_candidates(design, draw.known, candidates(direct_too=False))
        fits += estimate_candidates(
            replace(design, frame=sample),
            both,
            candidates(VOLUNTEERS, ["volunteer_prediction"], direct_too=False),
        )
        found = list(fits)
        pooled = came | np.isin(np.arange(len(units)), sample.index.to_numpy())
        for rows in (came, pooled):
            frame = units[rows].assign(weight=len(units) / rows.sum())
            found.append(pb.hajek(pb.survey_design(frame, weights="weight"), draw.known))
        return {k: np.stack([getattr(f, k) for f in found]) for k in ("estimate", "lower", "upper")}


def combined(say, population):
    """Probability samples of 2 and 5 %, volunteers of mild and strong selection."""
    parts = []
    for fraction in (0.02, 0.05):
        for odds in (2.0, 6.0):
            plan = sampling_plan("stratified", strata="domain", fraction=fraction)
            procedure, part = Combined(odds), f"combined_{100 * fraction:g}_{odds:g}"
            runs = say.repeat(population, plan, procedure, part=part)
            table = accuracy(runs, procedure.names).to_frame()
            table.insert(0, "odds", odds)
            table.insert(0, "fraction", fraction)
            parts.append(table)
    return pd.concat(parts, ignore_index=True)


def paradox_figure(table):
    """Bias and coverage against the budget, for the three kinds of labels."""
    kinds = list(table["labels"].unique())
    made, axes = figure(9.6, 5.6, nrows=2, ncols=len(kinds), sharey="row", sharex=True)
    for k, kind in enumerate(kinds):
        for name, colour in COLOURS.items():
            own = table[(table["labels"] == kind) & (table["candidate"] == name)]
            for row, measure in enumerate(("bias", "coverage")):
                axes[row][k].errorbar(
                    100 * own["budget"],
                    own[measure],
                    yerr=2 * own[f"{measure}_error"],
                    color=colour,
                    marker="o",
                    markersize=3.5,
                    linewidth=1.2,
                    label=name,
                )
        axes[0][k].axhline(0.0, color="black", linewidth=0.7, linestyle=":")
        axes[1][k].axhline(0.95, color="black", linewidth=0.7, linestyle=":")
        tidy(axes[0][k], "", "mean bias" if k == 0 else "", kind)
        tidy(axes[1][k], "labelled, % of all", "coverage of 95 % intervals" if k == 0 else "")
    axes[1][0].legend(fontsize=8, frameon=False, loc="lower left")
    return made


def remedy_figure(table):
    """RMSE and coverage of the probability sample alone, combined, and of the volunteers."""
    made, axes = figure(9.6, 3.8, nrows=1, ncols=2, sharey=True)
    names = list(Combined.names)
    for k, ((fraction, odds), own) in enumerate(table.groupby(["fraction", "odds"], sort=True)):
        own = own.set_index("candidate").loc[names]
        for panel, measure in zip(axes, ("rmse", "coverage")):
            panel.errorbar(
                own[measure],
                np.arange(len(names))[::-1] + 0.12 * (1.5 - k),
                xerr=2 * own[f"{measure}_error"],
                fmt="o",
                markersize=3.5,
                color=(GREY, ORANGE, BLUE, RED)[k],
                label=f"{100 * fraction:g} % sampled, odds {odds:g}",
            )
    axes[0].set_yticks(np.arange(len(names))[::-1], names)
    axes[1].axvline(0.95, color="black", linewidth=0.7, linestyle=":")
    axes[0].set_xscale("log")
    log_ticks(axes[0].xaxis)
    tidy(axes[0], "RMSE over domains (log scale)")
    tidy(axes[1], "coverage of 95 % intervals")
    axes[1].legend(fontsize=7, frameon=False, loc="center left")
    return made


def verdicts(table, remedy):
    """The paper's statements and the remedies, with the numbers here."""

    def get(kind, name, measure, budget):
        row = table[
            (table["labels"] == kind) & (table["candidate"] == name) & (table["budget"] == budget)
        ].iloc[0]
        return with_error(row[measure], row[f"{measure}_error"])

    def over(kind, name, measure):
        return ", ".join(
            f"{100 * b:g} % {get(kind, name, measure, b)}" for b in table["budget"].unique()
        )

    gains = []
    for (fraction, odds), own in remedy.groupby(["fraction", "odds"]):
        own = own.set_index("candidate")
        for name in ("GREG", "PP-S", "PP-TS"):
            ratio = own.loc[f"{name}, with volunteers", "rmse"] / own.loc[f"{name}, alone", "rmse"]
            cover = own.loc[f"{name}, with volunteers", "coverage"]
            gains.append(
                f"{100 * fraction:g} %, odds {odds:g}: {name} RMSE × {ratio:.2f}, "
                f"coverage {cover:.3f}"
            )
    rows = [
        ("the bias does not fall with the budget", over("self-selected", "Hájek (mean)", "bias")),
        ("coverage collapses", over("self-selected", "Hájek (mean)", "coverage")),
        (
            "PPI does not repair it",
            f"bias {over('self-selected', 'PPI', 'bias')}; coverage "
            f"{over('self-selected', 'PPI', 'coverage')}",
        ),
        (
            "known odds as weights repair it",
            "; ".join(
                f"{name}: bias {over('odds known', name, 'bias')}, coverage "
                f"{over('odds known', name, 'coverage')}"
                for name in ("Hájek (mean)", "PP-S")
            ),
        ),
        ("a probability sample with volunteers beats it alone, and covers", "; ".join(gains)),
    ]
    return markdown(pd.DataFrame(rows, columns=["the paper, and the remedies", "here"]))


def main():
    say = words("self_selected", __doc__, repetitions=200)
    population = deployed_service()
    bad = population.units[population.outcome] < BAD
    population = population.with_column("odds", np.where(bad, 2.0, 1.0))
    kinds = ("random sample", "self-selected", "odds known")
    table = pd.concat([selected(say, population, kind) for kind in kinds], ignore_index=True)
    remedy = combined(say, population)
    write_table(say, "labels", table)
    write_table(say, "combined", remedy)
    lines = [
        "# Study 3: labels that select themselves",
        "",
        f"{say.repetitions} samples of each kind and budget, Monte Carlo errors in brackets. "
        f"{100 * bad.mean():.0f} % of {population.n_units:,} conversations have an outcome below "
        f"{BAD:g} and twice the odds to be labelled.",
        "",
        verdicts(table, remedy),
        "",
        save(say, "paradox", paradox_figure(table)),
        save(say, "remedy", remedy_figure(remedy)),
        "",
    ]
    for (kind, budget), own in table.groupby(["labels", "budget"], sort=False):
        if budget in (BUDGETS[0], BUDGETS[-1]):
            lines += [f"## {kind}, {100 * budget:g} %", ""]
            lines += [markdown(cells(own, ["candidate", *SHOWN])), ""]
    for (fraction, odds), own in remedy.groupby(["fraction", "odds"], sort=False):
        lines += [f"## {100 * fraction:g} % sampled, volunteers 30 % of all with odds {odds:g}", ""]
        lines += [markdown(cells(own, ["candidate", *SHOWN])), ""]
    write_page(say, lines)


if __name__ == "__main__":
    main()
