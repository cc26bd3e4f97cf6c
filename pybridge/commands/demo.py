"""``pybridge demo``: the main job on real data whose truth is known."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from pybridge.commands.shared import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--engine", default="sae", metavar="ENGINE", help="sae (R) or native")
    parser.add_argument("--share", type=float, default=0.1, help="of the labels kept (0.1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="pybridge-demo", metavar="DIR")


def run(arguments: argparse.Namespace) -> int:
    """Load, sample, evaluate, compare with the truth."""
    from pybridge import datasets
    from pybridge.demonstration import compare_with_truth, draw_labels, region_of_county
    from pybridge.evaluation import evaluate
    from pybridge.report.files import make_folder, save_figure

    make_folder(arguments.out)  # before the work
    say("loading California's schools from R's package survey (apipop)")
    schools = datasets.api_schools()
    units = pd.DataFrame(
        {
            "county": schools["cname"],
            "region": schools["cname"].map(region_of_county()),
            "school_type": schools["stype"],
            "api00": schools["api00"],
            "api99": schools["api99"],
        }
    )
    hidden = draw_labels(
        units, outcome="api00", strata="school_type", share=arguments.share, seed=arguments.seed
    )
    say(
        f"hiding api00 of all but a stratified {100 * arguments.share:g} % sample "
        f"(seed {arguments.seed}): {int(hidden['api00'].notna().sum())} labels stay"
    )
    found = evaluate(
        hidden,
        outcome="api00",
        domain="county",
        auxiliary=["api99"],
        taxonomy=["region", "county"],
        strata="school_type",
        engine=arguments.engine,
        seed=arguments.seed,
        announce=say,
    )
    written = found.write(arguments.out)
    print(found.summary())
    truth = units.groupby("county")["api00"].mean().reindex(found.population.domains)
    print()
    print(compare_with_truth(found, truth.to_numpy(dtype=np.float64)).summary())
    if "figure" in written:
        place = written["figure"].with_name("truth.png")
        written["truth"] = save_figure(found.plot_truth(truth).figure, place)
    print()
    print("Written: " + ", ".join(str(path) for path in written.values()))
    return 0
