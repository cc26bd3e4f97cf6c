"""What ``pybridge smooth`` says and draws of a fit beside its table."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from pybridge.errors import InputError


def add_view_arguments(group: Any) -> None:
    """Declare the options."""
    group.add_argument(
        "--diagnostics", action="store_true", help="residuals, Brown's test, criteria, R²"
    )
    group.add_argument(
        "--leave-domain-out",
        action="store_true",
        help="predict every domain without its own labels, and see how often that holds",
    )
    group.add_argument("--figure", metavar="FILE", help="draw the fit, as .png, .pdf or .svg")
    group.add_argument(
        "--figure-kind",
        default="overview",
        metavar="KIND",
        help="overview, caterpillar, domains, direct, shrinkage, residuals or qq",
    )


def views(fit: Any, table: pd.DataFrame, arguments: argparse.Namespace) -> list[str]:
    """Texts, and columns that are added to the table, of what was asked for."""
    said = []
    if arguments.diagnostics:
        found = fit.diagnostics()
        rows = found.to_frame()
        for name in ("standardised_residual", "realised_residual", "random_effect", "leverage"):
            table[name] = rows[name]
        said.append(found.summary())
    if arguments.leave_domain_out:
        left_out = fit.leave_domain_out()
        rows = left_out.to_frame().set_index("domain")
        for name in ("prediction", "standardised_error", "covered"):
            table[f"left_out_{name}"] = rows[name].reindex(table["domain"]).to_numpy()
        said.append(left_out.summary())
    if arguments.figure:
        said.append(f"figure: {_draw(fit, arguments)}")
    return said


def _draw(fit: Any, arguments: argparse.Namespace) -> str:
    import numpy as np

    from pybridge.report.figures import known_glyphs_only

    axes = np.ravel(fit.plot(arguments.figure_kind))
    with known_glyphs_only():
        try:
            axes[0].figure.savefig(arguments.figure, dpi=130)
        except (OSError, ValueError) as error:
            raise InputError(
                f"the figure cannot be written: {error}",
                code="bad_file",
                field="--figure",
                expected="a file in a folder that is there, ending in .png, .pdf or .svg",
                got=arguments.figure,
            ) from error
    return str(arguments.figure)
