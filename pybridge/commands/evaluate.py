"""``pybridge evaluate``: the main job."""

from __future__ import annotations

import argparse
import json

from pybridge._record import plain
from pybridge.commands.shared import (
    add_unit_arguments,
    design_arguments,
    read_population,
    read_units,
    say,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_unit_arguments(parser)
    parser.add_argument(
        "--engine",
        default="sae",
        metavar="ENGINE",
        help="who fits the Fay-Herriot models: sae (R) or native",
    )
    parser.add_argument(
        "--candidates", default="standard", metavar="SET", help="standard, or direct (no smoothing)"
    )
    parser.add_argument(
        "--reference", default="auto", metavar="R", help="of DB-CV: auto, ht, hajek, ppi or greg"
    )
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write estimates.csv, selection.csv, "
        "means.csv, provenance.json, figure.png and report.html there",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write, print."""
    from pybridge.evaluation import evaluate
    from pybridge.report.files import make_folder

    if arguments.out is not None:
        make_folder(arguments.out)  # before the work, which may be long
    quiet = arguments.json
    found = evaluate(
        read_units(arguments),
        population=read_population(arguments),
        outcome=arguments.outcome,
        domain=arguments.domain,
        auxiliary=arguments.auxiliary,
        taxonomy=arguments.taxonomy,
        candidates=arguments.candidates,
        engine=arguments.engine,
        reference=arguments.reference,
        folds=arguments.folds,
        level=arguments.level,
        seed=arguments.seed,
        announce=None if quiet else say,
        **design_arguments(arguments),  # type: ignore[arg-type]
    )
    written = found.write(arguments.out) if arguments.out is not None else {}
    if arguments.json:
        answer = {
            "selected": found.selection.selected,
            "reference": found.selection.reference,
            "assumptions": list(found.assumptions),
            "selection": plain(found.selection.to_frame().to_dict(orient="records")),
            "files": {kind: str(path) for kind, path in written.items()},
        }
        print(json.dumps(answer, ensure_ascii=False, indent=2))
        return 0
    print(found.summary())
    if written:
        print()
        print("Written: " + ", ".join(str(path) for path in written.values()))
        if "figure" not in written:
            print("No figure: matplotlib is missing (pip install 'pybridge[plot]').")
    return 0
