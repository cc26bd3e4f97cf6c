"""``pybridge setup-r``: install R's packages."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--scope", default="all", metavar="SCOPE", help="demo (what evaluate needs) or all"
    )


def run(arguments: argparse.Namespace) -> int:
    """Install, one line a step; 0 when all that was asked for loads."""
    from pybridge.r import setup_r

    return 0 if setup_r(scope=arguments.scope).complete else 3
