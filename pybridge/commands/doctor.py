"""``pybridge doctor``: what is there, what is missing, and what mends it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybridge.engines.traps import TrapReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--engines", action="store_true", help="what each engine can do")
    parser.add_argument(
        "--traps",
        action="store_true",
        help="whether the installed R packages still behave as documented (some 10 seconds)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; always 0, as a missing engine is an answer here."""
    from pybridge.r import doctor

    found = doctor()
    traps = _traps() if arguments.traps and found.pair_fits else None
    if arguments.json:
        answer = found.to_dict()
        if traps is not None:
            answer["traps"] = traps.to_frame().to_dict("records")
        print(json.dumps(answer, indent=2, ensure_ascii=False))
        return 0
    print(found.summary())
    if arguments.engines:
        from pybridge.engines.arguments import left_out_text
        from pybridge.engines.capabilities import capabilities_text

        print()
        print(capabilities_text())
        print()
        print(left_out_text())
    if arguments.traps:
        print()
        print("traps not probed: R does not start" if traps is None else traps.summary())
    return 0


def _traps() -> TrapReport:
    from pybridge.engines.traps import probe_traps

    return probe_traps()
