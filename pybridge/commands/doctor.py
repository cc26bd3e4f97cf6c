"""``pybridge doctor``: what is there, what is missing, and what mends it."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--engines", action="store_true", help="what each engine can do")


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis; always 0, as a missing engine is an answer here."""
    from pybridge.r import doctor

    found = doctor()
    if arguments.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return 0
    print(found.summary())
    if arguments.engines:
        from pybridge.engines.capabilities import capabilities_text

        print()
        print(capabilities_text())
    return 0
