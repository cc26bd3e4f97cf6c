"""Arguments that several commands have in common, and reading what they name."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from pybridge.tables.files import read_chunks, read_table


def names(text: str) -> list[str]:
    """Column names from ``a,b``; a name that holds a comma in quotes, ``'"a, b",c'``."""
    rows = csv.reader([text], skipinitialspace=True, strict=True)
    return [part.strip() for row in rows for part in row if part.strip()]


class Names(argparse.Action):
    """Column names, from one option or from several: ``--auxiliary a,b --auxiliary c``."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        try:
            found = names(values)
        except (csv.Error, ValueError) as error:
            parser.error(
                f"{option_string}: {error}: names are separated by commas, and quoted "
                "where they hold one"
            )
        given: Sequence[str] = getattr(namespace, self.dest, None) or []
        setattr(namespace, self.dest, [*given, *found])


def add_unit_arguments(parser: argparse.ArgumentParser, *, auxiliary: bool = True) -> None:
    """The units, their columns, and the design."""
    parser.add_argument(
        "units",
        metavar="UNITS",
        help="CSV, CSV.gz or Parquet: all units, the "
        "outcome empty where a unit has no label; or the sample, with --population",
    )
    parser.add_argument("--outcome", required=True, metavar="COLUMN")
    parser.add_argument("--domain", required=True, metavar="COLUMN")
    add_design_arguments(parser, auxiliary=auxiliary)
    parser.add_argument("--encoding", default="utf-8-sig", help="of CSV files (UTF-8)")
    parser.add_argument("--level", type=float, default=0.95, help="confidence level (0.95)")
    parser.add_argument("--seed", type=int, default=1)


def add_design_arguments(parser: argparse.ArgumentParser, *, auxiliary: bool = True) -> None:
    """The design, the population, and what is known of every unit."""
    parser.add_argument(
        "--auxiliary",
        required=auxiliary,
        default=[],
        action=Names,
        metavar="A[,B]",
        help="columns known on every unit; names that hold a comma in quotes, or one an option",
    )
    parser.add_argument(
        "--taxonomy",
        default=[],
        action=Names,
        metavar="A[,B]",
        help="levels above the domain, coarse to fine",
    )
    parser.add_argument(
        "--weights",
        metavar="COLUMN",
        help="inverse inclusion probabilities; "
        "without them N_h/n_h inside the strata, which is said first",
    )
    parser.add_argument("--strata", metavar="COLUMN")
    parser.add_argument("--ids", metavar="COLUMN", help="primary units (clusters)")
    parser.add_argument(
        "--fpc",
        metavar="COLUMN",
        help="primary units in the population's " "stratum, or the sampling fraction",
    )
    parser.add_argument("--poisson", action="store_true", help="units entered independently")
    parser.add_argument(
        "--lonely-psu",
        default="fail",
        metavar="RULE",
        help="for strata with one " "primary unit: fail, adjust, average, certainty or remove",
    )
    parser.add_argument(
        "--population",
        metavar="FILE",
        help="sizes (column size or N) and " "auxiliary means of the domains, or unit records",
    )


def all_auxiliary(arguments: argparse.Namespace) -> list[str]:
    """Auxiliary columns, those of the sets too, each once."""
    sets = getattr(arguments, "auxiliary_set", [])
    return list(dict.fromkeys([*arguments.auxiliary, *(c for _, own in sets for c in own)]))


def _fields(arguments: argparse.Namespace) -> dict[str, str]:
    """The argument that asked for each column; of several the first, in the order of reading."""
    found: dict[str, str] = {}
    for field in ("domain", "taxonomy", "strata", "ids", "outcome", "weights", "fpc"):
        given = getattr(arguments, field) or []
        for name in [given] if isinstance(given, str) else given:
            found.setdefault(name, field)
    for name in all_auxiliary(arguments):
        found.setdefault(name, "auxiliary")
    return found


def read_units(arguments: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """The file of units, in chunks: only the columns that are used."""
    labels = [arguments.domain, *arguments.taxonomy]
    labels += [name for name in (arguments.strata, arguments.ids) if name]
    numbers = [arguments.outcome, *all_auxiliary(arguments)]
    numbers += [name for name in (arguments.weights, arguments.fpc) if name]
    optional = list(arguments.taxonomy) if arguments.population else []
    return read_chunks(
        arguments.units,
        labels=list(dict.fromkeys(labels)),
        numbers=list(dict.fromkeys(numbers)),
        optional=[name for name in optional if name != arguments.domain],
        fields=_fields(arguments),
        encoding=arguments.encoding,
    )


def read_population(arguments: argparse.Namespace) -> pd.DataFrame | None:
    """The population's file, where one was named."""
    if not arguments.population:
        return None
    from pybridge.design.from_units import SIZE_NAMES

    return read_table(
        arguments.population,
        labels=list(dict.fromkeys([arguments.domain, *arguments.taxonomy])),
        numbers=list(dict.fromkeys([*all_auxiliary(arguments), *SIZE_NAMES])),
        optional=SIZE_NAMES,
        fields=_fields(arguments),
        encoding=arguments.encoding,
    )


def design_arguments(arguments: argparse.Namespace) -> dict[str, object]:
    """The design's keyword arguments."""
    return {
        "weights": arguments.weights,
        "strata": arguments.strata,
        "ids": arguments.ids,
        "fpc": arguments.fpc,
        "pps": "poisson" if arguments.poisson else None,
        "lonely_psu": arguments.lonely_psu,
    }


def say(text: str) -> None:
    """One step, one line, at once; on the error stream, so that stdout holds the answer."""
    print(f"· {text}", file=sys.stderr, flush=True)
