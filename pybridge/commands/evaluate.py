"""``pybridge evaluate``: the main job."""

from __future__ import annotations

import argparse
import json

from typing import TYPE_CHECKING

from pybridge._record import plain
from pybridge.commands.shared import (
    add_unit_arguments,
    design_arguments,
    names,
    read_population,
    read_units,
    say,
)
from pybridge.errors import InputError

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_unit_arguments(parser, auxiliary=False)
    parser.add_argument(
        "--auxiliary-set",
        action="append",
        default=[],
        type=auxiliary_set,
        metavar="NAME=A[,B]",
        help="a set of auxiliary columns to compare with other sets; once a set",
    )
    parser.add_argument(
        "--engine",
        default="sae",
        metavar="ENGINE",
        help="who fits the Fay-Herriot models: sae or emdi (R), or native",
    )
    parser.add_argument(
        "--candidates", default="standard", metavar="SET", help="standard, or direct (no smoothing)"
    )
    add_scoring_arguments(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write estimates.csv, selection.csv, "
        "means.csv, provenance.json, figure.png and report.html there",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def add_scoring_arguments(parser: argparse.ArgumentParser) -> None:
    """How candidates are scored."""
    parser.add_argument(
        "--score",
        default="db-cv",
        metavar="SCORE",
        help="that chooses: db-cv, naive, adjusted, sure, split or all",
    )
    parser.add_argument(
        "--reference", default="auto", metavar="R", help="of DB-CV: auto, ht, hajek, ppi or greg"
    )
    parser.add_argument(
        "--covariance", default="jackknife", metavar="C", help="jackknife or linearised"
    )
    parser.add_argument(
        "--size-corrected", action="store_true", help="scale DB-CV for the smaller training sets"
    )
    parser.add_argument("--split", type=float, default=0.5, help="part to fit on, of --score split")
    parser.add_argument(
        "--folds",
        type=int,
        help="of the cross-validation, no more than some domain has labels (primary units with "
        "--ids); by default 5, whatever the labels",
    )
    parser.add_argument("--repetitions", type=int, default=1, help="of the folds, averaged")


def auxiliary_set(text: str) -> tuple[str, list[str]]:
    """A set from ``name=a,b``."""
    name, sign, columns = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=column,column")
    try:
        return name.strip(), names(columns)
    except ValueError as error:  # quotes that do not close
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def evaluation_of(arguments: argparse.Namespace) -> Evaluation:
    """What the arguments ask for."""
    from pybridge.evaluation import evaluate

    return evaluate(
        read_units(arguments),
        population=read_population(arguments),
        outcome=arguments.outcome,
        domain=arguments.domain,
        auxiliary=arguments.auxiliary,
        taxonomy=arguments.taxonomy,
        candidates=arguments.candidates,
        engine=arguments.engine,
        auxiliary_sets=sets_of(arguments),
        score=arguments.score,
        reference=arguments.reference,
        covariance=arguments.covariance,
        size_corrected=arguments.size_corrected,
        split=arguments.split,
        repetitions=arguments.repetitions,
        folds=arguments.folds,
        level=arguments.level,
        seed=arguments.seed,
        announce=None if arguments.json else say,
        **design_arguments(arguments),  # type: ignore[arg-type]
    )


def sets_of(arguments: argparse.Namespace) -> dict[str, list[str]] | None:
    """The sets of auxiliary columns by name; None where none was named."""
    found: dict[str, list[str]] = {}
    for name, columns in arguments.auxiliary_set:
        if name in found:
            raise InputError(
                f"two sets of auxiliary variables have the name {name!r}",
                code="duplicate_name",
                field="auxiliary_sets",
                expected="names of their own",
                got=name,
            )
        found[name] = columns
    # Read with the units, whichever set they are in.
    known = [*arguments.auxiliary, *(name for columns in found.values() for name in columns)]
    if not known:
        raise InputError(
            "an auxiliary variable is needed",
            code="missing_argument",
            field="auxiliary",
            expected="--auxiliary A[,B], or --auxiliary-set NAME=A[,B]",
            got="none",
        )
    return found or None


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write, print."""
    from pybridge.report.files import make_folder

    if arguments.out is not None:
        make_folder(arguments.out)  # before the work, which may be long
    found = evaluation_of(arguments)
    written = found.write(arguments.out) if arguments.out is not None else {}
    if arguments.json:
        answer = {
            "selected": found.selection.selected,
            "default": found.selection.default or None,
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
