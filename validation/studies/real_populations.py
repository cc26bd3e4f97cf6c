"""Study 4: the same on real populations.

    python validation/studies/real_populations.py [--quick] [--repetitions 150] [--data FOLDER]

From R: California's schools by county (survey's apipop; the index of 1999 predicts that of 2000
very well) and incomes by district (emdi's eusilcA population; skewed, 5 to 5,857 persons a
district). From the folder of --data, where it holds them: `bbh_units.csv`, answers of a large model
to benchmark questions by task (weak auxiliaries), with `bbh_task_covariates.csv`; and
`apipop_units.csv` in place of R's table. Each is sampled at 10 %, at random and inside the domains.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _shared import (
    BLUE,
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
    words,
    write_page,
    write_table,
)

import pybridge as pb
from pybridge.demonstration import region_of_county
from pybridge.simulate import SelectCandidates, accuracy, finite_population, sampling_plan
from pybridge.simulate import score_quality

FRACTION, FOLDS = 0.10, 5
SCORES = {
    "DB-CV": "db_cv",
    "DB-CV, size-corrected": "db_cv",
    "DB-CV, reference HT": "db_cv_ht",
    "naive CV": "naive",
    "split 50/50": "split",
    "split 80/20": "split_80",
}
COLOURS = dict(zip(SCORES, (BLUE, "#6fa3dd", "#274b6d", ORANGE, RED, "#d98c95")))


def schools(say):
    """6,194 schools in 57 counties, 11 regions."""
    path = say.data / "apipop_units.csv" if say.data else None
    if path is not None and path.exists():
        table = pd.read_csv(path, usecols=["domain", "y", "f"])
    else:
        table = pb.datasets.api_schools().rename(columns={"cname": "domain"})
        table = table.rename(columns={"api00": "y", "api99": "f"})[["domain", "y", "f"]]
    table["region"] = table["domain"].map(region_of_county())
    known = {"auxiliary": ["f"], "taxonomy": ["region", "domain"]}
    return finite_population(table, outcome="y", domain="domain", **known), ["f"], ["f"], "f"


def incomes(say):
    """25,000 persons in 94 districts, 9 states: income from cash, self-employment, family size."""
    table = pb.datasets.eusilc("population")
    names = ["cash", "self_empl", "eqsize"]
    table = table[["eqIncome", "state", "district", *names]].rename(columns={"eqIncome": "y"})
    known = {"auxiliary": names, "taxonomy": ["state", "district"]}
    return finite_population(table, outcome="y", domain="district", **known), names, names, None


def benchmark(say):
    """6,511 questions in 27 tasks, 2 categories: chain of thought right, answer only right."""
    if say.data is None or not (say.data / "bbh_units.csv").exists():
        return None
    table = pd.read_csv(say.data / "bbh_units.csv")
    others = pd.read_csv(say.data / "bbh_task_covariates.csv").set_index("task_family")
    # Other systems' accuracy on the family: known for every question, the same inside a task.
    table["others"] = table["task_family"].map(
        others[["instructgpt_cot", "palm540b_cot"]].mean(axis=1) / 100.0
    )
    unit = ["f", "agree"]
    known = {"auxiliary": [*unit, "others"], "taxonomy": ["category", "task"]}
    found = finite_population(table, outcome="y", domain="task", **known)
    return found, unit, [*unit, "others"], "f"


def candidates(unit, area, prediction):
    """HT, Hájek, PPI where a variable is on the outcome's scale, GREG, FH, PP-S, TFH, PP-TS."""
    found = [pb.candidate("HT"), pb.candidate("Hájek", direct="hajek")]
    if prediction:
        found.append(pb.candidate("PPI", direct="ppi", unit_auxiliary=prediction))
    found.append(pb.candidate("GREG", direct="greg", unit_auxiliary=unit))
    found.append(smoothed("FH", "ht", unit, area, finite=True))
    found.append(smoothed("PP-S", "greg", unit, area, finite=True))
    found.append(smoothed("TFH", "ht", unit, area, taxonomy=True, finite=True))
    found.append(smoothed("PP-TS", "greg", unit, area, taxonomy=True, finite=True))
    return tuple(found)


def rmse_figure(tables):
    """True RMSE and what the scores report (root of the mean score), one panel a population."""
    made, axes = figure(3.1 * len(tables) + 1.4, 4.0, nrows=1, ncols=len(tables), squeeze=False)
    for panel, (title, table) in zip(axes[0], tables.items()):
        place = np.arange(len(table))[::-1]
        for k, name in enumerate(("DB-CV", "naive CV", "split 80/20")):
            reported = table["true_rmse"] * np.sqrt(np.maximum(table[name], 0.0))
            panel.plot(
                reported.where(reported > 0),
                place + 0.15 * (1 - k),
                "o",
                markersize=4,
                color=COLOURS[name],
                label=name,
            )
        panel.plot(table["true_rmse"], place, "|", color="black", markersize=16, label="true")
        panel.set_xscale("log")
        log_ticks(panel.xaxis)
        panel.tick_params(axis="x", labelsize=7)
        panel.set_yticks(place, table["candidate"])
        tidy(panel, "RMSE over domains (log scale)", "", title)
    axes[0][-1].legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return made


def coverage_figure(tables):
    """Coverage over all domains that have an interval."""
    made, axes = figure(3.1 * len(tables) + 0.6, 3.6, nrows=1, ncols=len(tables), squeeze=False)
    for panel, (title, table) in zip(axes[0], tables.items()):
        place = np.arange(len(table))[::-1]
        panel.errorbar(
            table["coverage"],
            place,
            xerr=2 * table["coverage_error"],
            fmt="o",
            markersize=4,
            color=BLUE,
        )
        panel.axvline(0.95, color=GREY, linewidth=0.8, linestyle=":")
        panel.set_yticks(place, table["candidate"])
        panel.set_xlim(min(0.85, table["coverage"].min() - 0.02), 1.0)
        tidy(panel, "coverage of 95 % intervals", "", title)
    return made


def part_of(say, title, population, plan, procedure):
    """One population under one design: the page's lines, and the tables of the figures."""
    key = title.replace(", ", "_").replace(" ", "_")
    runs = say.repeat(population, plan, procedure, part=key)
    found = score_quality(
        runs, procedure.names, scores_of(runs, SCORES, fraction=FRACTION, folds=FOLDS)
    )
    measured = accuracy(runs, procedure.names).to_frame()
    write_table(say, f"accuracy_{key}", measured)
    write_table(say, f"scores_{key}", found.to_frame())
    write_table(say, f"ratios_{key}", found.ratios())
    references, counts = np.unique(runs["reference"], return_counts=True)
    labelled = runs["n_labelled"]
    lines = [
        f"## {title}",
        "",
        f"{found.n_repetitions} samples of {labelled.sum(axis=1).mean():,.0f} labels; "
        f"{runs['scored'].sum(axis=1).mean():.1f} of {population.known.n_domains} domains scored, "
        f"{(labelled == 0).sum(axis=1).mean():.1f} without labels. References chosen: "
        + ", ".join(f"{name} {count}" for name, count in zip(references, counts))
        + ".",
        "",
        "Estimates, over all domains where they exist:",
        "",
        markdown(cells(measured, ["candidate", "rmse", "coverage", "width", "interval_score"])),
        "",
        "Mean score over true MSE, over the domains scored:",
        "",
        markdown(cells(found.ratios(), ["candidate", "true_rmse", *SCORES])),
        "",
        markdown(
            cells(
                found.to_frame(),
                ["score", "best_chosen", "chosen_mse", "rank_correlation", "reported"],
            )
        ),
        "",
    ]
    if runs.failed:
        lines += [f"{len(runs.failed)} samples gave no result: {next(iter(runs.failed.values()))}"]
    return lines, found.ratios(), measured


def main():
    say = words("real_populations", __doc__, repetitions=150)
    made = {"schools": schools, "incomes": incomes, "benchmark": benchmark}
    lines, ratios, measured = [], {}, {}
    for name, make in made.items():
        given = make(say)
        if given is None:
            lines += [f"The population `{name}` is left out: its table is not in --data.", ""]
            continue
        population, unit, area, prediction = given
        plans = {
            "at random": sampling_plan("simple", fraction=FRACTION),
            "inside domains": sampling_plan(
                "stratified", strata=population.domain, fraction=FRACTION
            ),
        }
        lines += [f"# {name}", "", population.summary().replace("\n", "; "), ""]
        procedure = SelectCandidates(candidates(unit, area, prediction), folds=FOLDS)
        for how, plan in plans.items():
            title = f"{name}, {how}"
            text, ratios[title], measured[title] = part_of(say, title, population, plan, procedure)
            lines += text
    head = ["# Study 4: real populations", "", f"{say.repetitions} samples of 10 % each; Monte "]
    head[-1] += "Carlo errors in brackets."
    pictures = []
    for how in ("at random", "inside domains"):
        key = how.replace(" ", "_")
        own = {t.split(", ")[0]: ratios[t] for t in ratios if t.endswith(how)}
        pictures.append(save(say, f"rmse_{key}", rmse_figure(own)))
        own = {t.split(", ")[0]: measured[t] for t in measured if t.endswith(how)}
        pictures.append(save(say, f"coverage_{key}", coverage_figure(own)))
    write_page(say, [*head, "", *pictures, "", *lines])


if __name__ == "__main__":
    main()
