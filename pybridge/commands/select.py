"""``pybridge select``: the scores of the candidates, and the choice."""

from __future__ import annotations

import argparse
import json

from pybridge._record import plain
from pybridge.commands import evaluate as evaluate_command

add_arguments = evaluate_command.add_arguments


def run(arguments: argparse.Namespace) -> int:
    """Score, print the table, and write it where a folder was named."""
    from pybridge.report.files import has_matplotlib, make_folder, save_figure, write_csv

    folder = None if arguments.out is None else make_folder(arguments.out)
    found = evaluate_command.evaluation_of(arguments).selection
    if folder is not None:
        write_csv(found.to_frame(), folder / "selection.csv")
        write_csv(found.per_domain, folder / "scores_by_domain.csv")
        write_csv(found.pairwise, folder / "pairs.csv")
        write_csv(found.references, folder / "references.csv")
        if found.auxiliary is not None:
            write_csv(found.auxiliary.to_frame(), folder / "auxiliary.csv")
        if has_matplotlib():
            save_figure(found.plot().figure, folder / "scores.png")
    if arguments.json:
        answer = plain(found.to_frame().to_dict(orient="records"))
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        print(found.summary())
    return 0
