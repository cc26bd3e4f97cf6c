"""Study: what smoothing must hold, over populations whose truth is known.

    python validation/studies/smoothing_coverage.py [--quick] [--repetitions 300] [--data FOLDER]

Coverage of 95 % intervals and RMSE under repeated 10 % samples: 34 domains in 5 groups and 63 as
21 x 3, drawn inside domains and at random; a linking model that is wrong; groups all alike; designs
whose domains are no strata, with binary and skewed outcomes. Then the table HT → FH without
covariates → FH → PP-S → PP-TS on two real populations (100 samples each): California's schools, and
answers of a large model to benchmark questions, from the folder of --data or (the schools) from R.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from _shared import (
    BLUE,
    GREY,
    ORANGE,
    cells,
    figure,
    markdown,
    save,
    tidy,
    with_error,
    words,
    write_page,
    write_table,
)
from _smoothing import LEVEL, settings
from _smoothing_claims import LOW, claims, measured
from real_populations import benchmark, schools

import pybridge as pb
from pybridge.simulate import EstimateCandidates, accuracy, sampling_plan
from pybridge.simulate.measures import mean_of_known, ratio_with_error

REAL_REPETITIONS = 100
STEPS = ("HT", "FH, intercept only", "FH", "PP-S", "PP-TS")


def simulated(say):
    """Tables and claims of all simulated settings."""
    tables, found = [], []
    for one in settings():
        part = one.name.replace(", ", "_").replace(" ", "_")
        runs = say.repeat(one.population, one.plan, one.procedure, part=part)
        table = measured(one, runs)
        tables.append(table)
        found += claims(one, runs, table)
    return pd.concat(tables, ignore_index=True), found


def claim_table(found):
    """Claims as text."""
    rows = [
        {
            "population and sample": item.setting,
            "claim": item.claim,
            "found": with_error(item.value, item.error),
            "bound": item.bound,
            "holds": ("yes" if item.holds else "**no**") + (f" ({item.note})" if item.note else ""),
        }
        for item in found
    ]
    return markdown(pd.DataFrame(rows))


def coverage_figure(table):
    """Coverage of every estimator in every setting, with two Monte Carlo errors."""
    wanted = {"GREG": GREY, "PP-S": ORANGE, "PP-TS": BLUE}
    names = list(dict.fromkeys(table["setting"]))
    made, axes = figure(7.5, 0.3 * len(names) + 1.4)
    place = np.arange(len(names))[::-1].astype(float)
    for k, (name, colour) in enumerate(wanted.items()):
        rows = table[table["candidate"] == name].set_index("setting").reindex(names)
        axes.errorbar(
            rows["coverage"],
            place + 0.2 * (1 - k),
            xerr=2 * rows["coverage_error"],
            fmt="o",
            markersize=3.5,
            color=colour,
            label=name,
        )
    axes.axvline(LEVEL, color="black", linewidth=0.8)
    axes.axvline(LOW, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_yticks(place, names, fontsize=8)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(axes, "coverage of 95 % intervals, over domains (two Monte Carlo errors)")
    return made


def steps_of(unit, area, prediction):
    """The estimators of `pybridge.contributions`, with GREG and PPI beside them."""
    model = {"smoothing": "fay_herriot", "method": "bayes", "finite_population": True}
    greg = {"direct": "greg", "unit_auxiliary": unit}
    link = "~ " + " + ".join(area)
    found = [
        pb.candidate("HT"),
        pb.candidate("FH, intercept only", area_formula="~ 1", **model),
        pb.candidate("FH", area_formula=link, **model),
        pb.candidate("PP-S", area_formula=link, **greg, **model),
        pb.candidate("PP-TS", area_formula=link, **greg, **{**model, "smoothing": "taxonomy"}),
        pb.candidate("GREG", **greg),
    ]
    if prediction:
        found.append(pb.candidate("PPI", direct="ppi", unit_auxiliary=prediction))
    return EstimateCandidates(tuple(found), LEVEL)


def real_part(say, name, given, how, plan):
    """One real population under one plan: the page's table, and all digits."""
    population, unit, area, prediction = given
    procedure = steps_of(unit, area, prediction)
    runs = say.repeat(
        population,
        plan,
        procedure,
        part=f"{name}_{how}".replace(" ", "_"),
        repetitions=min(say.repetitions, REAL_REPETITIONS),
    )
    table = accuracy(runs, procedure.names, level=LEVEL).to_frame()
    # Every step over the same domains of the same samples: those with labels.
    seen = runs["n_labelled"] > 0
    error = np.where(seen[:, None, :], runs["estimate"] - runs.truth, np.nan)
    square = mean_of_known(error**2)
    less = [np.nan] * len(table)
    names = list(procedure.names)
    for before, after in zip(STEPS, STEPS[1:]):
        ratio, _ = ratio_with_error(square[:, names.index(after)], square[:, names.index(before)])
        less[names.index(after)] = 1.0 - float(ratio)
    table["rmse_labelled"] = np.sqrt(mean_of_known(square.T))
    table["mse_less"] = less
    table.insert(0, "population", f"{name}, {how}")
    shown = cells(table, ["candidate", "rmse_labelled", "rmse", "coverage", "width"])
    shown.insert(2, "MSE less", [f"{100 * v:.0f} %" if np.isfinite(v) else "" for v in less])
    shown.columns = [
        *("estimator", "RMSE, domains with labels", "MSE less than the step before"),
        *("RMSE, all", "coverage, all", "width"),
    ]
    return markdown(shown), table


def real(say):
    """Both real populations under both plans."""
    lines, tables = [], []
    for name, make in (("schools", schools), ("benchmark", benchmark)):
        given = make(say)
        if given is None:
            lines += [f"The population `{name}` is left out: its table is not in --data.", ""]
            continue
        lines += [f"### {name}", "", given[0].summary().replace("\n", "; "), ""]
        plans = {
            "at random": sampling_plan("simple", fraction=0.1),
            "inside domains": sampling_plan("stratified", strata=given[0].domain, fraction=0.1),
        }
        for how, plan in plans.items():
            text, table = real_part(say, name, given, how, plan)
            tables.append(table)
            lines += [f"{how}:", "", text, ""]
    return lines, pd.concat(tables, ignore_index=True)


def main():
    say = words("smoothing_coverage", __doc__, repetitions=300)
    table, found = simulated(say)
    write_table(say, "accuracy", table)
    write_table(say, "claims", pd.DataFrame([dataclasses.asdict(item) for item in found]))
    held = sum(item.holds for item in found)
    lines = [
        "# What smoothing must hold",
        "",
        f"{say.repetitions} samples of 10 % a setting; Monte Carlo errors in brackets. A bound "
        f"counts as met where it lies within two of them: {held} of {len(found)} are.",
        "",
        save(say, "coverage", coverage_figure(table)),
        "",
        claim_table(found),
        "",
        "## Every estimator",
        "",
    ]
    for name, part in table.groupby("setting", sort=False):
        columns = ["candidate", "rmse", "coverage", "width", "interval_score"]
        lines += [f"{name}:", "", markdown(cells(part, columns)), ""]
    lines += ["## Two real populations", ""]
    text, numbers = real(say)
    write_table(say, "real", numbers)
    write_page(say, [*lines, *text])


if __name__ == "__main__":
    main()
