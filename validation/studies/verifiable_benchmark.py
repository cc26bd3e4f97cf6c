"""Study 1: a verifiable benchmark of 34 task types in 5 benchmarks, three auxiliary variables.

    python validation/studies/verifiable_benchmark.py [--quick] [--repetitions 300]

Budgets of 5, 10 and 20 %, drawn inside every task type (as the paper's results imply: PPI can be
worse than HT only where n_i is fixed), and 10 % of all questions at random beside it. RMSE,
coverage, widths and interval score of every estimator under every set of auxiliary variables.
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
    markdown,
    save,
    smoothed,
    tidy,
    words,
    write_page,
    write_table,
)

import pybridge as pb
from pybridge.simulate import EstimateCandidates, accuracy, sampling_plan, verifiable_benchmark
from pybridge.simulate.measures import mean_with_error, ratio_with_error

SETS = {
    "specialist": ["specialist"],
    "small": ["small"],
    "difficulty": ["difficulty"],
    "all three": ["specialist", "small", "difficulty"],
}
ESTIMATORS = ("HT", "PPI", "GREG", "FH", "PP-S", "TFH", "PP-TS")
COLOURS = dict(zip(ESTIMATORS, ("black", ORANGE, GREY, "#b9a44c", GREEN, RED, BLUE)))
STEPS = ("HT", "FH, intercept only", "FH", "PP-S", "PP-TS")
BUDGETS = (0.05, 0.10, 0.20)


def candidates():
    """(set, estimator) -> candidate; those without auxiliary variables under the set ''."""
    found = {("", "HT"): pb.candidate("HT")}
    found["", "FH, intercept only"] = smoothed("FH, intercept only", "ht", None, [], finite=True)
    for label, names in SETS.items():
        if len(names) == 1:
            found[label, "PPI"] = pb.candidate(f"PPI [{label}]", direct="ppi", unit_auxiliary=names)
        found[label, "GREG"] = pb.candidate(f"GREG [{label}]", direct="greg", unit_auxiliary=names)
        for name, direct, tree in (
            ("FH", "ht", False),
            ("PP-S", "greg", False),
            ("TFH", "ht", True),
            ("PP-TS", "greg", True),
        ):
            found[label, name] = smoothed(
                f"{name} [{label}]", direct, names, names, taxonomy=tree, finite=True
            )
    return found


def measured(say, population, plan, part, keys, procedure):
    """Accuracy of every candidate as a table, and the squared errors (R, C) of every sample."""
    runs = say.repeat(population, plan, procedure, part=part)
    table = accuracy(runs, procedure.names).to_frame()
    table.insert(0, "auxiliary", [label for label, _ in keys])
    table["candidate"] = [name for _, name in keys]
    table.insert(0, "sample", part)
    square = np.nanmean((runs["estimate"] - runs.truth) ** 2, axis=-1)
    return table, square


def components(square, keys):
    """RMSE over HT's, step by step, with Monte Carlo errors; one row a set."""
    rows = []
    for label in SETS:
        row = {"auxiliary": label}
        for step in STEPS:
            j = keys.index((label, step) if (label, step) in keys else ("", step))
            ratio, error = ratio_with_error(square[:, j], square[:, 0])
            row[step] = float(np.sqrt(ratio))
            row[f"{step}_error"] = float(error / (2 * np.sqrt(ratio))) if error > 0 else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def error_figure(table, measure, label):
    """RMSE (or another measure) against the budget, one panel a set of auxiliary variables."""
    made, axes = figure(11.0, 3.4, nrows=1, ncols=len(SETS), sharey=True)
    budgets = [f"{100 * budget:g} %" for budget in BUDGETS]
    for panel, name in zip(axes, SETS):
        for estimator in ESTIMATORS:
            own = table[
                (table["candidate"] == estimator) & table["auxiliary"].isin(["", name])
            ].set_index("sample")
            own = own.reindex([budget for budget in budgets if budget in own.index])
            if own.empty:
                continue
            panel.errorbar(
                range(len(own)),
                own[measure],
                yerr=2 * own[f"{measure}_error"],
                color=COLOURS[estimator],
                marker="o",
                markersize=3.5,
                linewidth=1.2,
                label=estimator,
            )
        panel.set_xticks(range(len(budgets)), budgets)
        panel.set_yscale("log")
        tidy(panel, "labelled", label if panel is axes[0] else "", name)
        panel.yaxis.set_major_formatter("{x:.2g}")
        panel.yaxis.set_minor_formatter("{x:.2g}")
        panel.tick_params(axis="y", which="both", labelsize=7)
    axes[0].legend(fontsize=7, frameon=False, ncols=2)
    return made


def coverage_figure(table):
    """Coverage of every estimator in every setting, with two Monte Carlo errors."""
    made, axes = figure(8.0, 4.2)
    width = 0.11
    groups = [(s, a) for s in table["sample"].unique() for a in SETS]
    short = {s: "10 % SRS" if "random" in s else s for s, _ in groups}
    for k, estimator in enumerate(ESTIMATORS):
        own = table[table["candidate"] == estimator]
        for place, (sample, label) in enumerate(groups):
            row = own[(own["sample"] == sample) & own["auxiliary"].isin(["", label])]
            if len(row):
                axes.errorbar(
                    place + (k - 3) * width,
                    row["coverage"],
                    yerr=2 * row["coverage_error"],
                    fmt="o",
                    markersize=3,
                    color=COLOURS[estimator],
                    label=estimator if place == 2 else None,
                )
    axes.axhline(0.95, color="black", linewidth=0.7, linestyle=":")
    axes.set_xticks(
        range(len(groups)),
        [f"{a}, {short[s]}" for s, a in groups],
        fontsize=7,
        rotation=45,
        ha="right",
    )
    tidy(axes, "", "coverage of 95 % intervals")
    axes.legend(fontsize=7, frameon=False, ncols=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return made


def page(say, population, table, steps, slopes, pictures):
    """What the paper found beside what is found here."""
    shown = ["rmse", "coverage", "width", "interval_score"]
    lines = [
        "# Study 1: a verifiable benchmark",
        "",
        f"{say.repetitions} samples a budget; Monte Carlo errors in brackets. "
        f"{population.n_units:,} questions, {population.known.n_domains} task types; sampled "
        "inside task types but for the last table.",
        "",
        markdown(cells(population.correlations(), list(population.correlations().columns))),
        "",
        f"Mean slope of GREG at 10 %: {slopes}.",
        "",
        *pictures,
        "",
    ]
    for sample, part in table.groupby("sample", sort=False):
        text = cells(part, shown)
        text.insert(0, "estimator", part["candidate"])
        text.insert(0, "auxiliary", part["auxiliary"].replace("", "–"))
        lines += [f"## {sample}", "", markdown(text), ""]
    text = cells(steps, list(STEPS))
    text.insert(0, "auxiliary", steps["auxiliary"])
    lines += ["## Where the gain comes from (RMSE over HT's, 10 %)", "", markdown(text), ""]
    write_page(say, lines + verdicts(table))


def verdicts(table):
    """The paper's statements, each with the numbers here."""
    ten = table[table["sample"] == "10 %"].set_index(["auxiliary", "candidate"])
    best = []
    for label in SETS:
        own = ten.loc[label]
        for measure in ("rmse", "interval_score"):
            best.append(f"{label}, {measure}: {own[measure].idxmin()}")

    def span(names):
        here = ten[ten.index.get_level_values("candidate").isin(names)]["coverage"]
        return f"{here.min():.3f} to {here.max():.3f}"

    ht = ten.loc[("", "HT"), "rmse"]
    weak = ", ".join(
        f"{label}: PPI {ten.loc[(label, 'PPI'), 'rmse'] / ht:.2f}, "
        f"GREG {ten.loc[(label, 'GREG'), 'rmse'] / ht:.2f} of HT's RMSE"
        for label in ("specialist", "small", "difficulty")
    )
    rows = pd.DataFrame(
        [
            ("PP-TS is best in RMSE and interval score at 10 %, in every set", "; ".join(best)),
            (
                "coverage of all estimators 0.93 to 0.95 (10 %)",
                f"smoothers {span(['FH', 'PP-S', 'TFH', 'PP-TS'])}; "
                f"direct {span(['HT', 'PPI', 'GREG'])}",
            ),
            (
                "weak auxiliaries: PPI above HT, GREG stays at HT; with difficulty both coincide",
                weak,
            ),
            (
                "FH with an intercept only hardly improves HT; domain covariates and taxonomy do",
                "the table of steps above",
            ),
        ],
        columns=["the paper", "here"],
    )
    return ["## The paper beside this", "", markdown(rows)]


def main():
    say = words("verifiable_benchmark", __doc__, repetitions=300)
    population = verifiable_benchmark()
    found = candidates()
    keys, procedure = list(found), EstimateCandidates(tuple(found.values()))
    parts, steps = [], None
    plans = {
        f"{100 * b:g} %": sampling_plan("stratified", strata="domain", fraction=b) for b in BUDGETS
    }
    plans["10 % of all at random"] = sampling_plan("simple", fraction=0.10)
    for part, plan in plans.items():
        table, square = measured(say, population, plan, part, keys, procedure)
        parts.append(table)
        if part == "10 %":
            steps = components(square, keys)
    table = pd.concat(parts, ignore_index=True)
    write_table(say, "accuracy", table)
    write_table(say, "components", steps)
    pictures = [
        save(say, "rmse", error_figure(table, "rmse", "RMSE over task types")),
        save(say, "interval_score", error_figure(table, "interval_score", "interval score")),
        save(say, "coverage", coverage_figure(table)),
    ]
    page(say, population, table, steps, mean_slopes(say, population, plans["10 %"]), pictures)


def mean_slopes(say, population, plan):
    """GREG's slope with each single auxiliary variable, over a few samples."""
    found = {label: [] for label, names in SETS.items() if len(names) == 1}
    for r in range(min(say.repetitions, 50)):
        design = plan.draw(population, np.random.default_rng([say.seed, r]))
        for label in found:
            fit = pb.generalized_regression(design, population.known, auxiliary=SETS[label])
            found[label].append(fit.coefficients[0, -1])
    texts = []
    for label, values in found.items():
        mean, error = mean_with_error(np.array(values))
        texts.append(f"{label} {mean:.2f} ({error:.2g})")
    return ", ".join(texts)


if __name__ == "__main__":
    main()
