"""Study 2: a deployed service of 21 systems × 3 kinds of conversation, and the choice among seven.

    python validation/studies/deployed_service.py [--quick] [--repetitions 300]

A tenth of 68,371 conversations is labelled, inside the 63 domains (as the paper's results imply)
and at random over all of them. Candidates: HT; GREG, PP-S and PP-TS with the judge's score, and
with judge and content. Each sample is scored by DB-CV (reference HT as published, and the best
direct estimator), the Dong-Li adjusted score, naive cross-validation, SURE and two hold-out splits.
"""

from __future__ import annotations

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
    scores_of,
    smoothed,
    tidy,
    with_error,
    words,
    write_page,
    write_table,
)

import pybridge as pb
from pybridge.report.selection_figures import reported_against_true_figure
from pybridge.simulate import (
    SelectCandidates,
    accuracy,
    deployed_service,
    estimate_candidates,
    sampling_plan,
    score_quality,
)

FRACTION, FOLDS = 0.10, 5
SCORES = {
    "DB-CV": "db_cv",
    "DB-CV, size-corrected": "db_cv",
    "DB-CV, reference HT": "db_cv_ht",
    "Dong-Li adjusted": "adjusted",
    "naive CV": "naive",
    "split 50/50": "split",
    "split 80/20": "split_80",
    "SURE": "sure",
}
COLOURS = dict(zip(SCORES, (BLUE, "#6fa3dd", "#274b6d", GREEN, ORANGE, RED, "#d98c95", GREY)))


def candidates():
    """The paper's seven."""
    found = [pb.candidate("HT")]
    for label, names in (("judge", ["judge"]), ("judge + content", ["judge", "content"])):
        found.append(pb.candidate(f"GREG, {label}", direct="greg", unit_auxiliary=names))
        found.append(smoothed(f"PP-S, {label}", "greg", names, names, finite=True))
        found.append(smoothed(f"PP-TS, {label}", "greg", names, names, taxonomy=True, finite=True))
    return tuple(found)


def reported_figure(found, title):
    """Mean score over true MSE, a row a candidate; what would be right is the line at 1."""
    made, axes = figure(8.2, 4.2)
    table = found.ratios()
    place = np.arange(len(table))[::-1]
    for k, (name, colour) in enumerate(COLOURS.items()):
        axes.errorbar(
            table[name],
            place - (k - 3.5) * 0.09,
            xerr=2 * table[f"{name}_error"],
            fmt="o",
            markersize=3.5,
            color=colour,
            label=name,
        )
    axes.axvspan(0.9, 1.4, color=BLUE, alpha=0.10, linewidth=0)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    log_ticks(axes.xaxis)
    axes.set_yticks(place, table["candidate"])
    tidy(axes, "mean reported MSE / true MSE (log scale; shaded: 0.9 to 1.4)", "", title)
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return made


def width_figure(table, title):
    """Mean interval widths by quarter of the domains' sizes."""
    made, axes = figure(6.4, 3.8)
    columns = [f"width_q{q}" for q in range(1, 5)]
    colours = ["black", GREY, GREEN, BLUE, "#c5c5c5", "#8cc9a5", "#86b1e6"]
    for k, row in table.reset_index(drop=True).iterrows():
        axes.plot(
            range(4),
            row[columns].to_numpy(float),
            marker="o",
            markersize=3.5,
            color=colours[k],
            linestyle="-" if k < 4 else "--",
            label=row["candidate"],
        )
    axes.set_xticks(range(4), ["smallest", "second", "third", "largest"])
    axes.set_ylim(0, None)
    tidy(axes, "quarter of the domains by size", "mean width of 95 % intervals", title)
    axes.legend(fontsize=7, frameon=False)
    return made


def one_sample(say, population, plan):
    """What an analyst with one sample sees, and what was true of that sample."""
    design = plan.draw(population, np.random.default_rng([say.seed, 20]))
    listed = candidates()
    found = pb.select(design, population.known, listed, folds=FOLDS, seed=say.seed)
    fits = estimate_candidates(design, population.known, listed)
    errors = np.array([fit.estimate - population.truth for fit in fits])
    true = np.sqrt(np.mean(errors**2, axis=1))
    table = found.to_frame()
    table["this_sample"] = table["candidate"].map(dict(zip(found.candidates, true)))
    for key in ("db_cv", "db_cv_ht", "naive"):
        table[f"{key}_error"] = table[f"{key}_standard_error"]
    shown = ["candidate", "rank", "reported_rmse", "this_sample", "db_cv", "db_cv_ht", "naive"]
    made, axes = figure(6.4, 3.6)
    reported_against_true_figure(found, true, axes)
    return [
        "## One sample",
        "",
        f"Drawn inside domains. Chosen: {found.selected}; reference {found.reference}. "
        "`this_sample` is the RMSE that the candidate then had; in brackets standard errors over "
        "domains.",
        "",
        markdown(cells(table, shown)),
        "",
        save(say, "one_sample", made),
        "",
    ]


def verdicts(found, widths, undecided):
    """What the paper and the prototype say, and the numbers here."""
    quality = found.to_frame().set_index("score")
    ratios = found.ratios()

    def span(name):
        low, high = ratios[name].min(), ratios[name].max()
        return f"{low:.2f} to {high:.2f} (RMSE {np.sqrt(low):.2f} to {np.sqrt(high):.2f})"

    def value(name, column):
        return with_error(quality.loc[name, column], quality.loc[name, f"{column}_error"])

    several = "; ".join(f"{n}: {span(n)}" for n in ("naive CV", "split 50/50", "split 80/20"))
    ht = widths.iloc[0]["width_q1"]
    best = widths.iloc[int(np.argmin(found.true_mse))]
    rows = [
        ("naive CV and splits report several times the true error", several),
        ("DB-CV reports 0.9 to 1.4 of the true MSE", span("DB-CV")),
        ("size-corrected 0.85 to 1.15", span("DB-CV, size-corrected")),
        (
            "the chosen candidate's true MSE within 10 % of the best, no better than naive CV's",
            f"DB-CV {value('DB-CV', 'chosen_mse')}, naive CV {value('naive CV', 'chosen_mse')}, "
            f"adjusted {value('Dong-Li adjusted', 'chosen_mse')}",
        ),
        (
            "80/20 splits choose worse; both splits rank worse than both CV scores",
            f"chosen 50/50 {value('split 50/50', 'chosen_mse')}, "
            f"80/20 {value('split 80/20', 'chosen_mse')}; rank correlation "
            + ", ".join(
                f"{n} {value(n, 'rank_correlation')}"
                for n in ("DB-CV", "naive CV", "split 50/50", "split 80/20")
            ),
        ),
        (
            "Dong and Li's bounds leave every pair undecided",
            f"{100 * undecided:.1f} % of the pairs",
        ),
        (
            "widths in the sparsest quarter about half of HT's",
            f"{best['candidate']}: {best['width_q1'] / ht:.2f}",
        ),
    ]
    return markdown(pd.DataFrame(rows, columns=["expected", "here"]))


def part_of(say, population, title, plan):
    """One design: tables, figures and the page's lines."""
    key = title.replace(" ", "_")
    procedure = SelectCandidates(candidates(), folds=FOLDS)
    runs = say.repeat(population, plan, procedure, part=key)
    found = score_quality(
        runs, procedure.names, scores_of(runs, SCORES, fraction=FRACTION, folds=FOLDS)
    )
    widths = accuracy(runs, procedure.names).to_frame()
    write_table(say, f"accuracy_{key}", widths)
    write_table(say, f"scores_{key}", found.to_frame())
    write_table(say, f"ratios_{key}", found.ratios())
    shown = ["best_chosen", "within_tenth", "chosen_mse", "rank_correlation"]
    shown += ["reported", "reported_rmse", "negative"]
    quality = cells(found.to_frame(), ["score", *shown])
    measures = ["rmse", "coverage", "width", "width_q1", "width_q4", "interval_score"]
    names, counts = np.unique(runs["reference"], return_counts=True)
    picture = [
        save(say, f"reported_{key}", reported_figure(found, title)),
        save(say, f"widths_{key}", width_figure(widths, title)),
    ]
    return [
        f"## {title[0].upper()}{title[1:]}",
        "",
        f"{found.n_repetitions} samples. References chosen: "
        + ", ".join(f"{name} {count}" for name, count in zip(names, counts))
        + ".",
        "",
        verdicts(found, widths, runs["undecided"].mean()),
        "",
        *picture,
        "",
        "Estimates:",
        "",
        markdown(cells(widths, ["candidate", *measures])),
        "",
        "Mean score over true MSE:",
        "",
        markdown(cells(found.ratios(), ["candidate", "true_rmse", *SCORES])),
        "",
        "Choices (`reported`: the chosen candidate's score over its true MSE):",
        "",
        markdown(quality),
        "",
    ]


def main():
    say = words("deployed_service", __doc__, repetitions=300)
    population = deployed_service()
    plans = {
        "sampled inside domains": sampling_plan("stratified", strata="domain", fraction=FRACTION),
        "sampled at random over all": sampling_plan("simple", fraction=FRACTION),
    }
    correlations = population.correlations()
    lines = [
        "# Study 2: a deployed service",
        "",
        f"{population.n_units:,} conversations in {population.known.n_domains} domains, a tenth "
        "labelled. Monte Carlo errors in brackets.",
        "",
        markdown(cells(correlations, list(correlations.columns))),
        "",
    ]
    lines += one_sample(say, population, plans["sampled inside domains"])
    for title, plan in plans.items():
        lines += part_of(say, population, title, plan)
    write_page(say, lines)


if __name__ == "__main__":
    main()
