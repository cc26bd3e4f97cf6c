"""``pybridge smooth``: one area-level fit on a table of direct estimates."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import pandas as pd

from pybridge.commands.smooth_views import add_view_arguments, views
from pybridge.errors import InputError

# Options of the engines, by their own names, as the command line writes them.
_ENGINE_OPTIONS = {
    "transformation": "transformation",
    "backtransformation": "backtransformation",
    "eff_smpsize": "eff_smpsize",
    "mse_type": "mse_type",
    "replicates": "B",
    "k": "k",
    "mult_constant": "mult_constant",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "table", metavar="TABLE", help="one row a domain: estimate, variance, covariates"
    )
    parser.add_argument("--formula", required=True, metavar="F", help="for example 'estimate ~ f'")
    parser.add_argument(
        "--variance",
        default="variance",
        metavar="COLUMN",
        help="sampling variances (squared standard errors)",
    )
    parser.add_argument("--domain", default="domain", metavar="COLUMN")
    parser.add_argument(
        "--levels", metavar="NAMES", help="taxonomy, coarse to fine, the domain last: region,county"
    )
    parser.add_argument(
        "--covariates", metavar="FILE", help="covariates from a table of their own, by domain"
    )
    parser.add_argument(
        "--engine",
        metavar="ENGINE",
        help="sae (default), emdi, hbsae (R) or native; with --levels native (default), rjags or "
        "metafor (R)",
    )
    parser.add_argument(
        "--method", metavar="M", help="REML by default; with --levels bayes by default"
    )
    parser.add_argument("--mode", default="guarded", metavar="MODE", help="guarded or raw")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--encoding", default="utf-8-sig")
    parser.add_argument("--out", metavar="FILE", help="write the table there instead")
    _add_model_arguments(parser.add_argument_group("the model"))
    _add_benchmark_arguments(parser.add_argument_group("benchmarking"))
    add_view_arguments(parser.add_argument_group("checks"))


def _add_model_arguments(group: Any) -> None:
    group.add_argument("--transformation", metavar="T", help="log or arcsin (emdi: logit too)")
    group.add_argument("--backtransformation", metavar="WAY", help="native: bc, naive, bc_sm")
    group.add_argument("--eff-smpsize", metavar="COLUMN", help="effective sizes, for arcsin")
    group.add_argument(
        "--mse-type",
        metavar="KIND",
        help="native: analytical, boot, bootbc; robust: analytical, pseudo, boot",
    )
    group.add_argument("--replicates", type=int, metavar="B", help="of a bootstrap")
    group.add_argument("--k", type=float, help="Huber's constant of reblup and reblupbc")
    group.add_argument("--mult-constant", type=float, metavar="C", help="of reblupbc")
    group.add_argument(
        "--finite-population",
        nargs="?",
        const=True,
        metavar="COLUMN",
        help="count that the mean of a domain's N units differs from the model; N's column, by "
        "default size",
    )
    group.add_argument(
        "--element-variance",
        metavar="COLUMN|NUMBER",
        help="variance of the units within a domain, for that",
    )
    group.add_argument("--proximity", metavar="FILE", help="W, with labels in row and column")
    group.add_argument("--correlation", metavar="C", help="spatial")
    group.add_argument("--time", metavar="COLUMN", help="instants: a model over time")


def _add_benchmark_arguments(group: Any) -> None:
    group.add_argument("--benchmark", metavar="TOTAL", help="a number, or direct")
    group.add_argument("--benchmark-weights", metavar="COLUMN", help="sizes or shares of domains")
    group.add_argument(
        "--benchmark-method", default="difference", metavar="M", help="difference, ratio or mse"
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit and print a CSV table."""
    from pybridge.report.files import write_csv

    rows = read_area_table(arguments)
    fit = _area_fit(rows, arguments) if arguments.levels is None else _tree_fit(rows, arguments)
    table, said = fit.to_frame(), fit.summary()
    if arguments.benchmark is not None:
        table, more = _benchmarked(fit, rows, table, arguments)
        said = f"{said}\n{more}"
    said = "\n\n".join([said, *views(fit, table, arguments)])
    if arguments.out:
        write_csv(table, arguments.out)
        print(said)
    else:
        table.to_csv(sys.stdout, index=False)
        print(said, file=sys.stderr)
    return 0


def _area_fit(rows: pd.DataFrame, arguments: argparse.Namespace) -> Any:
    """The Fay-Herriot model."""
    from pybridge.smoothing.fay_herriot import fay_herriot

    given = {name: getattr(arguments, name) for name in _ENGINE_OPTIONS}
    options = {_ENGINE_OPTIONS[name]: value for name, value in given.items() if value is not None}
    return fay_herriot(
        arguments.formula,
        rows,
        variance=arguments.variance,
        domain=arguments.domain,
        covariates=_covariates(arguments, arguments.domain),
        engine=arguments.engine or "sae",
        method=arguments.method or "REML",
        level=arguments.level,
        mode=arguments.mode,
        seed=arguments.seed,
        correlation=_correlation(arguments),
        proximity=_proximity(arguments),
        time=arguments.time,
        finite_population=arguments.finite_population,
        element_variance=_column_or_number(arguments.element_variance),
        **options,
    )


def _tree_fit(rows: pd.DataFrame, arguments: argparse.Namespace) -> Any:
    """The taxonomy model, which has none of the other model's options."""
    from pybridge.smoothing.taxonomy import taxonomy_model

    foreign = [*_ENGINE_OPTIONS, "finite_population", "element_variance", "proximity"]
    foreign += ["correlation", "time", "benchmark"]
    for name in foreign:
        if getattr(arguments, name) is not None:
            raise InputError(
                "the taxonomy model has no such option",
                code="conflicting_arguments",
                field="--" + name.replace("_", "-"),
                expected="no --levels, or not this option",
                got=getattr(arguments, name),
            )
    levels = [name.strip() for name in arguments.levels.split(",")]
    return taxonomy_model(
        arguments.formula,
        rows,
        variance=arguments.variance,
        levels=levels,
        covariates=_covariates(arguments, levels[-1]),
        engine=arguments.engine or "native",
        method=arguments.method or "bayes",
        level=arguments.level,
        seed=arguments.seed,
    )


def _covariates(arguments: argparse.Namespace, domain: str) -> pd.DataFrame | None:
    from pybridge.tables.files import read_whole

    if arguments.covariates is None:
        return None
    return read_whole(arguments.covariates, labels=[domain], encoding=arguments.encoding)


def _benchmarked(
    fit: Any, rows: pd.DataFrame, table: pd.DataFrame, arguments: argparse.Namespace
) -> tuple[pd.DataFrame, str]:
    from pybridge._checks import numeric_column

    if arguments.benchmark_weights is None:
        raise InputError(
            "benchmarking needs the domains' weights",
            code="missing_argument",
            field="--benchmark-weights",
            expected="a column of sizes (with a total) or of shares (with a mean)",
            got=None,
        )
    found = fit.benchmark(
        total=_column_or_number(arguments.benchmark),
        weights=numeric_column(rows, arguments.benchmark_weights, field="--benchmark-weights"),
        method=arguments.benchmark_method,
        seed=arguments.seed,
    )
    more = found.to_frame()
    table["benchmarked"] = more["benchmarked"]
    for column in ("mse", "lower", "upper"):
        name = "benchmarked_mse" if column == "mse" else column
        table[f"benchmarked_{column}"] = more[name]
    return table, found.summary()


def _column_or_number(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _correlation(arguments: argparse.Namespace) -> str | None:
    if arguments.correlation or arguments.proximity is None or arguments.time:
        return arguments.correlation
    return "spatial"


def _proximity(arguments: argparse.Namespace) -> pd.DataFrame | None:
    """The matrix, its first column the labels of its rows."""
    from pybridge.tables.files import read_whole

    if arguments.proximity is None:
        return None
    header = read_whole(arguments.proximity, labels=(), encoding=arguments.encoding)
    first = str(header.columns[0])
    table = read_whole(arguments.proximity, labels=[first], encoding=arguments.encoding)
    return table.set_index(first)


def read_area_table(arguments: argparse.Namespace) -> pd.DataFrame:
    """Every column of the table, the labels' as text."""
    from pybridge.tables.files import read_whole

    levels = getattr(arguments, "levels", None)
    labels = [arguments.domain] if levels is None else [n.strip() for n in levels.split(",")]
    return read_whole(arguments.table, labels=labels, encoding=arguments.encoding)
