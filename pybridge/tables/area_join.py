"""Covariates of domains from a table of their own, joined by the domains' labels."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pybridge._checks import key_column, listed, need_frame
from pybridge.errors import InputError


def with_covariates(
    area: pd.DataFrame, covariates: Any, *, domain: str, field: str = "covariates"
) -> pd.DataFrame:
    """The table of domains with the columns of a second one, rows matched by label.

    Parameters
    ----------
    area : pandas.DataFrame
        One row a domain.
    covariates : pandas.DataFrame
        One row a domain, the same domains in any order, in a column of the same name.
    domain : str
        That column.
    field : str
        The argument's name, for errors.

    Raises
    ------
    InputError
        ``domains_differ`` with the domains that one table has and the other lacks, both lists;
        ``duplicate_domain``; ``duplicate_column`` for columns that both have; ``missing_column``.
    """
    need_frame(field, covariates)
    mine = key_column(area, domain, field="domain")
    theirs = key_column(covariates, domain, field=field)
    twice = theirs[theirs.duplicated()].unique()
    if len(twice):
        raise InputError(
            f"the table of covariates has domains more than once: {listed(twice)}",
            code="duplicate_domain",
            field=field,
            expected="one row a domain",
            got=listed(twice),
        )
    shared = [name for name in covariates.columns if name in area.columns and name != domain]
    if shared:
        raise InputError(
            f"both tables have the columns {listed(shared)}",
            code="duplicate_column",
            field=field,
            expected="columns that the table of estimates does not have",
            got=listed(shared),
            hint="Drop or rename them in one of the tables.",
        )
    _need_same(mine, theirs, field)
    added = covariates.set_index(domain).loc[mine]
    return pd.concat([area.reset_index(drop=True), added.reset_index(drop=True)], axis="columns")


def _need_same(mine: pd.Series, theirs: pd.Series, field: str) -> None:
    """The same domains in both tables, or an error with both lists."""
    here, there = set(mine), set(theirs)
    without = [label for label in mine if label not in there]
    beyond = [label for label in theirs if label not in here]
    if not without and not beyond:
        return
    alike = {str(label) for label in without} & {str(label) for label in beyond}
    raise InputError(
        "the estimates and the covariates are of different domains",
        code="domains_differ",
        field=field,
        expected="the same domains in both tables",
        got=f"only with estimates: {listed(without) or 'none'}; "
        f"only with covariates: {listed(beyond) or 'none'}",
        hint=(
            "Labels of one table are text and of the other numbers."
            if alike
            else "A domain without labels has a row with an empty estimate."
        ),
    )
