"""``pybridge direct``: one direct estimator, as a table."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pybridge.commands.shared import (
    add_unit_arguments,
    design_arguments,
    read_population,
    read_units,
    say,
)
from pybridge.errors import InputError

if TYPE_CHECKING:
    from pybridge.design.survey_design import SurveyDesign
    from pybridge.direct.estimates import DirectEstimates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_unit_arguments(parser, auxiliary=False)
    parser.add_argument("--method", default="greg", metavar="M", help="ht, hajek, ppi or greg")
    add_slope(parser)
    parser.add_argument(
        "--variance", default="direct", metavar="V", help="direct, smoothed, pooled or gvf"
    )
    parser.add_argument(
        "--engine", default="native", metavar="ENGINE", help="native, or survey (R's package)"
    )
    parser.add_argument("--out", metavar="FILE", help="write the table there instead")


def add_slope(parser: argparse.ArgumentParser) -> None:
    """The slope of GREG."""
    parser.add_argument(
        "--slope",
        type=_slope,
        metavar="S",
        help="of GREG: pooled (taken where nothing is said), within, domain, or a number for each "
        "auxiliary variable",
    )


def _slope(text: str) -> str | list[float]:
    """A word, or numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def run(arguments: argparse.Namespace) -> int:
    """Estimate and print a CSV table."""
    from pybridge.report.files import write_csv

    found, _ = estimate(arguments)
    table = found.to_frame()
    if arguments.out:
        write_csv(table, arguments.out)
        print(found.summary())
    else:
        table.to_csv(sys.stdout, index=False)
    return 0


def estimate(arguments: argparse.Namespace) -> tuple[DirectEstimates, SurveyDesign]:
    """One direct estimator of the units that the arguments name, and their design."""
    from pybridge.design.from_units import prepare_units
    from pybridge.direct.api import check_engine, estimates_by, request_of
    from pybridge.direct.inputs import domain_sample

    check_engine(arguments.engine, arguments.variance)
    _refuse_slope(arguments)
    prepared = prepare_units(
        read_units(arguments),
        population=read_population(arguments),
        outcome=arguments.outcome,
        domain=arguments.domain,
        auxiliary=arguments.auxiliary,
        taxonomy=arguments.taxonomy,
        **design_arguments(arguments),  # type: ignore[arg-type]
    )
    for text in prepared.assumptions:
        say(text)
    slope = "pooled" if arguments.slope is None else arguments.slope
    request = request_of(arguments.method, prepared.population, slope=slope)
    sample = domain_sample(
        prepared.design, prepared.population, outcome=arguments.outcome, domain=arguments.domain
    )
    found = estimates_by(
        prepared.design,
        sample,
        request,
        domain=arguments.domain,
        variance=arguments.variance,
        level=arguments.level,
        engine=arguments.engine,
    )
    return found, prepared.design


def _refuse_slope(arguments: argparse.Namespace) -> None:
    """InputError for a slope beside an estimator that has none."""
    if arguments.slope is not None and arguments.method in ("ht", "hajek", "ppi"):
        raise InputError(
            f"--slope has no meaning for --method {arguments.method}",
            code="not_available",
            field="--slope",
            expected="--method greg, or no --slope",
            got=arguments.slope,
        )
