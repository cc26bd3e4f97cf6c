"""Design check: is DB-CV's reported error true under other designs, folds, sizes and outcomes?

    python validation/studies/design_check.py [--quick] [--repetitions 200]

Mean DB-CV over true MSE of four candidates in each setting; 0.9 to 1.4 is what the folds' smaller
training sets allow, 0.85 to 1.15 after the correction for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from _shared import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    cells,
    figure,
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
    Auxiliary,
    Outcome,
    SelectCandidates,
    accuracy,
    finite_population,
    sampling_plan,
    score_quality,
    simulate_population,
)

NAMES = ("HT", "GREG", "FH", "PP-S")
COLOURS = dict(zip(NAMES, ("black", GREY, ORANGE, GREEN)))
FOLDS = 5


def candidates():
    """HT, GREG, FH and PP-S with one auxiliary variable."""
    return (
        pb.candidate("HT"),
        pb.candidate("GREG", direct="greg", unit_auxiliary=["f"]),
        smoothed("FH", "ht", ["f"], ["f"], finite=True),
        smoothed("PP-S", "greg", ["f"], ["f"], finite=True),
    )


@dataclass(frozen=True)
class UnequalFolds(SelectCandidates):
    """Folds of 35, 25, 20, 10 and 10 % of the sample."""

    shares: tuple[float, ...] = (0.35, 0.25, 0.20, 0.10, 0.10)

    def split(self, draw):
        """Labels (n,), drawn at random over the sample."""
        ends = np.round(np.cumsum(self.shares) * draw.design.n_units)
        return np.searchsorted(ends, draw.rng.permutation(draw.design.n_units), side="right")


def population(seed, *, sizes=None, outcome=None, unit=0.6, domain=0.8, kind="continuous", **more):
    """30 domains of about 400 units in three regions, unless told otherwise."""
    rng = np.random.default_rng([seed, 5])
    counts = np.exp(rng.normal(np.log(350), 0.4, size=30)).astype(int) if sizes is None else sizes
    regions = [f"r{i % 3}" for i in range(len(counts))]
    return simulate_population(
        counts,
        groups={"region": regions},
        outcome=outcome or Outcome("continuous", mean=5.0, domain_sd=0.5, level_sd={"region": 0.3}),
        auxiliaries=[Auxiliary("f", unit, domain, kind, between=0.2)],
        seed=seed,
        **more,
    )


def settings(seed):
    """Name -> (population, plan, procedure)."""
    plain = population(seed)
    grouped = population(
        seed,
        outcome=Outcome("continuous", mean=5.0, domain_sd=0.5, cluster_share=0.2),
        cluster_size=12,
    )
    rng = np.random.default_rng([seed, 6])
    third = np.array(["a", "b", "c"])[rng.integers(3, size=plain.n_units)]
    crossed = plain.with_column("stratum", third)
    sized = plain.with_column("size", np.exp(0.5 * rng.standard_normal(plain.n_units)))
    rare = {"domain_sd": 0.015, "level_sd": {"region": 0.01}}
    wide = np.geomspace(20, 5000, 30).astype(int)
    tenth, select = sampling_plan("simple", fraction=0.1), SelectCandidates(candidates())
    inside = sampling_plan("stratified", strata="domain", fraction=0.1)
    made = {
        "simple random": (plain, tenth, select),
        "domains are strata": (plain, inside, select),
        "strata across domains": (
            crossed,
            sampling_plan("stratified", strata="stratum", fraction=0.1),
            select,
        ),
        "domains inside regions": (
            plain,
            sampling_plan("stratified", strata="region", fraction=0.1),
            select,
        ),
        "clusters": (grouped, sampling_plan("clustered", ids="cluster", fraction=0.1), select),
        "unequal probabilities": (
            sized,
            sampling_plan("unequal", size="size", fraction=0.1),
            select,
        ),
        "Poisson": (sized, sampling_plan("poisson", size="size", fraction=0.1), select),
        "unequal folds": (plain, tenth, UnequalFolds(candidates())),
        "2 to 500 labels a domain": (population(seed, sizes=wide), inside, select),
    }
    for mean in (0.04, 0.96):
        outcome = Outcome("binary", mean=mean, **rare)
        one = population(seed, outcome=outcome, unit=0.3, domain=0.6)
        made[f"binary, mean {mean:g}"] = (one, tenth, select)
    useless = population(seed, unit=0.0, domain=0.0)
    perfect = finite_population(
        plain.units.assign(f=plain.units["y"]),
        outcome="y",
        domain="domain",
        auxiliary=["f"],
        taxonomy=["region"],
    )
    near = population(seed, unit=0.995, domain=0.999)
    made["useless f"] = (useless, tenth, select)
    made["nearly perfect f"] = (near, tenth, select)
    made["perfect f"] = (perfect, tenth, select)
    return made


def checked(say, name, made):
    """One setting: a row a candidate."""
    population_, plan, procedure = made
    part = "".join(c if c.isalnum() else "_" for c in name)
    runs = say.repeat(population_, plan, procedure, part=part)
    scores = {"db_cv": runs["score_db_cv"], "db_cv_ht": runs["score_db_cv_ht"]}
    scores["naive"] = runs["score_naive"]
    found = score_quality(runs, procedure.names, scores)
    table = found.ratios()
    # Where the true error is rounding only, so is the score: their ratio says nothing.
    spread = population_.units[population_.outcome].std()
    table.loc[table["true_rmse"] < 1e-9 * spread, ["db_cv", "db_cv_ht", "naive"]] = np.nan
    table["corrected"] = table["db_cv"] * (FOLDS - 1) / FOLDS
    table["corrected_error"] = table["db_cv_error"] * (FOLDS - 1) / FOLDS
    covered = accuracy(runs, procedure.names).to_frame()
    table["coverage"], table["coverage_error"] = covered["coverage"], covered["coverage_error"]
    quality = found.to_frame().set_index("score").loc["db_cv"]
    table["rank_correlation"] = quality["rank_correlation"]
    table["chosen_mse"] = quality["chosen_mse"]
    references, counts = np.unique(runs["reference"], return_counts=True)
    table.insert(0, "reference", references[np.argmax(counts)])
    table.insert(0, "scored", runs["scored"].mean())
    table.insert(0, "failed", len(runs.failed))
    table.insert(0, "setting", name)
    return table


def check_figure(table):
    """The ratio of every candidate in every setting."""
    names = list(table["setting"].unique())
    made, axes = figure(7.6, 0.34 * len(names) + 1.2)
    for k, name in enumerate(NAMES):
        own = table[table["candidate"] == name].set_index("setting").loc[names]
        axes.errorbar(
            own["db_cv"],
            np.arange(len(names))[::-1] - 0.15 * (k - 1.5),
            xerr=2 * own["db_cv_error"],
            fmt="o",
            markersize=3.5,
            color=COLOURS[name],
            label=name,
        )
    axes.axvspan(0.9, 1.4, color=BLUE, alpha=0.10, linewidth=0)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlim(0, 2.5)
    axes.set_yticks(np.arange(len(names))[::-1], names)
    tidy(axes, "mean DB-CV / true MSE (shaded: 0.9 to 1.4)")
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return made


def main():
    say = words("design_check", __doc__, repetitions=200)
    parts, left_out = [], []
    for name, made in settings(say.seed).items():
        try:
            parts.append(checked(say, name, made))
        except pb.errors.FitError as error:
            left_out.append(f"- {name}: {error.message}")
    table = pd.concat(parts, ignore_index=True)
    write_table(say, "ratios", table)
    rows = []
    for name, own in table.groupby("setting", sort=False):
        row = {"setting": name, "reference": own["reference"].iloc[0]}
        for _, one in own.iterrows():
            row[one["candidate"]] = with_error(one["db_cv"], one["db_cv_error"])
        row["naive CV"] = f"{own['naive'].min():.1f} to {own['naive'].max():.1f}"
        row["rank correlation"] = f"{own['rank_correlation'].iloc[0]:.2f}"
        row["chosen / best"] = f"{own['chosen_mse'].iloc[0]:.2f}"
        row["domains scored"] = f"{100 * own['scored'].iloc[0]:.0f} %"
        rows.append(row)
    outside = table[
        (table["db_cv"] + 2 * table["db_cv_error"] < 0.9)
        | (table["db_cv"] - 2 * table["db_cv_error"] > 1.4)
    ]
    said = [
        f"- {r.setting}, {r.candidate}: {with_error(r.db_cv, r.db_cv_error)}"
        for r in outside.itertuples()
    ]
    lines = [
        "# Design check of DB-CV",
        "",
        f"{say.repetitions} samples a setting, Monte Carlo errors in brackets; mean DB-CV over "
        "true MSE.",
        "",
        markdown(pd.DataFrame(rows)),
        "",
        save(say, "ratios", check_figure(table)),
        "",
        "Outside 0.9 to 1.4 by more than two Monte Carlo errors:",
        "",
        *(said or ["- none"]),
        "",
    ]
    if left_out:
        lines += ["Without a result:", "", *left_out, ""]
    text = cells(table, ["true_rmse", "db_cv", "corrected", "db_cv_ht", "naive", "coverage"])
    text.insert(0, "candidate", table["candidate"])
    text.insert(0, "setting", table["setting"])
    write_page(say, [*lines, "## All numbers", "", markdown(text)])


if __name__ == "__main__":
    main()
