"""``pybridge select``: the scores of the candidates, and the choice."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pybridge.commands import evaluate as evaluate_command
from pybridge.commands.shared import design_arguments, read_population, read_units, say

add_arguments = evaluate_command.add_arguments


def run(arguments: argparse.Namespace) -> int:
    """Score, print the table, and write it where a folder was named."""
    from pybridge.evaluation import evaluate

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
    if arguments.out:
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        found.to_frame().to_csv(folder / "selection.csv", index=False)
        found.per_domain.to_csv(folder / "scores_by_domain.csv", index=False)
    if arguments.json:
        print(json.dumps(json.loads(found.to_frame().to_json(orient="records")), indent=2))
    else:
        print(found.summary())
    return 0
