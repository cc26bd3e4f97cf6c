"""``pybridge crosscheck``: one fit by every engine that can do it.

Of a table of domains with ``--formula``, the direct estimates of a table of units with
``--outcome``, a tail with ``--score``.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck

ENGINE_MISSING = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from pybridge.commands.crosscheck_scores import add_options
    from pybridge.commands.direct import add_slope
    from pybridge.commands.shared import add_design_arguments

    parser.add_argument(
        "table",
        metavar="FILE",
        help="one row a domain (estimate, variance, covariates) with --formula; "
        "one row a unit with --outcome; one row a score with --score",
    )
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--formula", metavar="F", help="for example 'estimate ~ f'")
    kind.add_argument(
        "--outcome", metavar="COLUMN", help="of units: their direct estimates are cross-checked"
    )
    kind.add_argument(
        "--score", metavar="COLUMN", help="of scores: their generalised Pareto fit is cross-checked"
    )
    parser.add_argument(
        "--variance",
        metavar="COLUMN",
        help="sampling variances (squared standard errors; variance)",
    )
    parser.add_argument("--domain", metavar="COLUMN", help="labels of the domains (domain)")
    parser.add_argument(
        "--levels",
        metavar="A,B",
        help="the taxonomy model: columns, coarse to fine, the domain last",
    )
    parser.add_argument(
        "--method",
        metavar="M",
        help="REML (taken where nothing is said), ML, FH or bayes; of units greg (the same), ht, "
        "hajek or ppi; of scores ML (the same), PWM or penalised",
    )
    add_design_arguments(parser, auxiliary=False)
    add_slope(parser)
    add_options(parser)
    parser.set_defaults(lonely_psu=None)  # so that what was said can be told from what was not
    parser.add_argument("--seed", type=int, help="for engines that draw, with --formula (1)")
    parser.add_argument("--level", type=float, default=0.95, help="confidence level (0.95)")
    parser.add_argument("--encoding", default="utf-8-sig", help="of CSV files (UTF-8)")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--out", metavar="FILE", help="write the table of comparisons there (CSV)")


def run(arguments: argparse.Namespace) -> int:
    """Print the cross-check: 0 where engines were compared, whether they agree or part.

    3 where nothing could be compared because an engine is missing.
    """
    from pybridge.report.files import write_csv

    _refuse_others(arguments)
    found = _compared(arguments)
    if arguments.out:
        write_csv(found.table.to_frame(), arguments.out)
    if arguments.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(found.summary())
    nothing = found.table.n_made == 0
    return ENGINE_MISSING if nothing and found.unavailable else 0


def _compared(arguments: argparse.Namespace) -> FitCrosscheck:
    """The cross-check, with the defaults in place; whose column is missing is told to name it."""
    from pybridge.commands.crosscheck_scores import crosscheck_scores
    from pybridge.errors import InputError

    standard = {"variance": "variance", "domain": "domain", "lonely_psu": "fail", "seed": 1}
    asked = argparse.Namespace(
        **{name: standard.get(name) if v is None else v for name, v in vars(arguments).items()}
    )
    try:
        if asked.outcome is not None:
            return _direct(asked)
        if asked.score is not None:
            return crosscheck_scores(asked)
        return _taxonomy(asked) if asked.levels else _area(asked)
    except InputError as error:
        name = error.field
        if error.code != "missing_column" or name not in ("domain", "variance"):
            raise
        if getattr(arguments, name) is not None:
            raise
        raise InputError(
            error.message,
            code=error.code,
            field=name,
            expected=f"{error.expected}, or --{name} COLUMN",
            got=error.got,
            hint=error.hint,
        ) from error


# What only units have, and what they do not have.
_OF_UNITS = (
    "auxiliary",
    "taxonomy",
    "weights",
    "strata",
    "ids",
    "fpc",
    "poisson",
    "lonely_psu",
    "population",
    "slope",
)
_OF_DOMAINS = ("levels", "variance", "seed")
_KINDS = {
    "formula": "a table of domains (--formula)",
    "outcome": "units (--outcome)",
    "score": "scores (--score)",
}


def _refuse_others(arguments: argparse.Namespace) -> None:
    """InputError for options of one kind of table beside another."""
    from pybridge.commands.crosscheck_scores import OPTIONS
    from pybridge.errors import InputError

    kind = next(name for name in _KINDS if getattr(arguments, name) is not None)
    own = {"formula": _OF_DOMAINS, "outcome": _OF_UNITS, "score": OPTIONS}
    others = {option for name in own if name != kind for option in own[name]}
    others |= {"domain"} if kind == "score" else set()
    for name in vars(arguments):
        value = getattr(arguments, name)
        # What was not said; a seed of 0 is said.
        if name not in others or value is None or value is False or value == []:
            continue
        option = f"--{name.replace('_', '-')}"
        raise InputError(
            f"{option} has no meaning for {_KINDS[kind]}",
            code="not_available",
            field=option,
            expected="--formula with one row a domain, --outcome with one row a unit, or --score "
            "with one row a score",
            got=value,
        )


def _direct(arguments: argparse.Namespace) -> FitCrosscheck:
    """Direct estimates: natively, and by R's survey."""
    from pybridge.commands.direct import estimate
    from pybridge.crosscheck.direct import crosscheck_direct

    words = {"units": arguments.table, "engine": "native", "variance": "direct"}
    method = arguments.method or "greg"
    asked = argparse.Namespace(**{**vars(arguments), **words, "method": method})
    found, design = estimate(asked)
    return crosscheck_direct(found, design, domain=arguments.domain)


def _area(arguments: argparse.Namespace) -> FitCrosscheck:
    """The Fay-Herriot model."""
    from pybridge.commands.smooth import read_area_table
    from pybridge.crosscheck.area import crosscheck_area
    from pybridge.smoothing.fay_herriot import fay_herriot

    fit = fay_herriot(
        arguments.formula,
        read_area_table(arguments),
        variance=arguments.variance,
        domain=arguments.domain,
        engine="native",
        method=arguments.method or "REML",
        level=arguments.level,
    )
    return crosscheck_area(fit)


def _taxonomy(arguments: argparse.Namespace) -> FitCrosscheck:
    """The taxonomy model: metafor for REML and ML, JAGS for bayes."""
    from pybridge.commands.shared import names
    from pybridge.commands.smooth import read_area_table
    from pybridge.crosscheck.taxonomy import crosscheck_taxonomy
    from pybridge.smoothing.taxonomy import taxonomy_model

    fit = taxonomy_model(
        arguments.formula,
        read_area_table(arguments),
        variance=arguments.variance,
        levels=names(arguments.levels),
        engine="native",
        method=arguments.method or "REML",
        level=arguments.level,
        seed=arguments.seed,
    )
    return crosscheck_taxonomy(fit)
