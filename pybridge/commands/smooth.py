"""``pybridge smooth``: one area-level fit on a table of direct estimates."""

from __future__ import annotations

import argparse
import sys

import pandas as pd


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "table", metavar="TABLE", help="one row a domain: estimate, variance, " "covariates"
    )
    parser.add_argument("--formula", required=True, metavar="F", help="for example 'estimate ~ f'")
    parser.add_argument(
        "--variance",
        default="variance",
        metavar="COLUMN",
        help="sampling variances (squared standard errors)",
    )
    parser.add_argument("--domain", default="domain", metavar="COLUMN")
    parser.add_argument("--engine", default="sae", metavar="ENGINE", help="sae (R) or native")
    parser.add_argument("--method", default="REML", metavar="M")
    parser.add_argument("--mode", default="guarded", metavar="MODE", help="guarded or raw")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--encoding", default="utf-8-sig")
    parser.add_argument("--out", metavar="FILE", help="write the table there instead")


def run(arguments: argparse.Namespace) -> int:
    """Fit and print a CSV table."""
    from pybridge.report.files import write_csv
    from pybridge.smoothing.fay_herriot import fay_herriot

    fit = fay_herriot(
        arguments.formula,
        read_area_table(arguments),
        variance=arguments.variance,
        domain=arguments.domain,
        engine=arguments.engine,
        method=arguments.method,
        level=arguments.level,
        mode=arguments.mode,
    )
    table = fit.to_frame()
    if arguments.out:
        write_csv(table, arguments.out)
        print(fit.summary())
    else:
        table.to_csv(sys.stdout, index=False)
        print(fit.summary(), file=sys.stderr)
    return 0


def read_area_table(arguments: argparse.Namespace) -> pd.DataFrame:
    """Every column of the table, the domain's as text."""
    from pybridge.tables.files import read_whole

    return read_whole(arguments.table, labels=[arguments.domain], encoding=arguments.encoding)
