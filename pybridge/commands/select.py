"""``pybridge select``: the scores of the candidates, and the choice."""

from __future__ import annotations

import argparse
import json

from pybridge._record import plain
from pybridge.commands import evaluate as evaluate_command
from pybridge.commands.shared import design_arguments, read_population, read_units, say

add_arguments = evaluate_command.add_arguments


def run(arguments: argparse.Namespace) -> int:
    """Score, print the table, and write it where a folder was named."""
    from pybridge.evaluation import evaluate
    from pybridge.report.files import make_folder, write_csv

    folder = None if arguments.out is None else make_folder(arguments.out)
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
        announce=None if arguments.json else say,
        **design_arguments(arguments),  # type: ignore[arg-type]
    ).selection
    if folder is not None:
        write_csv(found.to_frame(), folder / "selection.csv")
        write_csv(found.per_domain, folder / "scores_by_domain.csv")
    if arguments.json:
        answer = plain(found.to_frame().to_dict(orient="records"))
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        print(found.summary())
    return 0
