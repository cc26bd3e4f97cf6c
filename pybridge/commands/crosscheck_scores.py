"""``pybridge crosscheck FILE --score COLUMN``: one generalised Pareto fit by every engine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from pybridge.crosscheck.fits import FitCrosscheck

# What only a table of scores has.
OPTIONS = ("quantile", "threshold", "exceedances", "transform", "model", "model_column")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only a table of scores has."""
    from pybridge.commands.tail import add_begins

    add_begins(parser, "of scores: ")
    parser.add_argument(
        "--transform", metavar="T", help="of scores: none, logit, log or complementary_log"
    )
    parser.add_argument("--model", metavar="NAME", help="of scores: only the rows of this model")
    parser.add_argument("--model-column", metavar="COLUMN", help="where the models are (model)")


def crosscheck_scores(arguments: argparse.Namespace) -> FitCrosscheck:
    """The fit natively, by evd and by ismev.

    Raises
    ------
    InputError
        A column that is not there or holds no numbers; several models of which none is named.
    """
    from pybridge._checks import need_columns, numeric_column
    from pybridge.commands.tail import begins_of
    from pybridge.tables.files import read_whole
    from pybridge.tails.generalized_pareto import generalized_pareto

    models = arguments.model_column or "model"
    table = read_whole(arguments.table, labels=[models], encoding=arguments.encoding)
    need_columns(table, [arguments.score], field="score")
    table = _of_one_model(table, models, arguments.model, named=bool(arguments.model_column))
    fit = generalized_pareto(
        numeric_column(table, arguments.score, field="score"),
        engine="native",
        method=arguments.method or "ML",
        transform=arguments.transform,
        level=arguments.level,
        **begins_of(arguments),
    )
    return fit.crosscheck()


def _of_one_model(
    table: pd.DataFrame, column: str, model: str | None, *, named: bool
) -> pd.DataFrame:
    """The rows of one model; all of them where the table has no models."""
    from pybridge._checks import listed, need_columns
    from pybridge.errors import InputError

    if named or model is not None:
        need_columns(table, [column], field="model_column")
    if column not in table.columns:
        return table
    known = list(dict.fromkeys(table[column]))
    if model is None and len(known) == 1:
        return table
    if model not in known:
        raise InputError(
            "one fit is of the scores of one model",
            code="unknown_model" if model is not None else "several_models",
            field="model",
            expected=f"--model with one of {listed(known)}",
            got=model,
        )
    return table[table[column] == model]
