"""``pybridge tail``: generalised Pareto fits of scores, with tests, levels and a scan."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybridge.commands.shared import say

if TYPE_CHECKING:
    from pybridge.tables.scores import ScoreTable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_score_arguments(parser)
    begins = parser.add_mutually_exclusive_group()
    begins.add_argument("--quantile", type=float, help="where the tail begins (0.95)")
    begins.add_argument("--threshold", type=float, help="the same, by value")
    begins.add_argument("--exceedances", type=int, metavar="N", help="the same, by count")
    parser.add_argument("--engine", default="evd", metavar="ENGINE", help="evd, ismev or native")
    parser.add_argument("--method", default="ML", metavar="M", help="ML; native: PWM, penalised")
    parser.add_argument(
        "--transform", default="none", metavar="T", help="none, logit, log or complementary_log"
    )
    parser.add_argument(
        "--edge",
        default="refuse",
        metavar="RULE",
        help="for scores at a bound of the transform: refuse, clip or squeeze",
    )
    parser.add_argument("--model", action="append", metavar="NAME", help="only this; repeatable")
    parser.add_argument("--scan", action="store_true", help="fits from 0.95 to 0.99 too")
    parser.add_argument(
        "--return-period", type=float, action="append", metavar="N", help="in scores; repeatable"
    )
    parser.add_argument("--replicates", type=int, default=999, help="for tests of fit (999)")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--out", metavar="DIR", help="write tables (and figures) there")


def add_score_arguments(parser: argparse.ArgumentParser) -> None:
    """The table of scores and its columns."""
    parser.add_argument("scores", metavar="SCORES", help="CSV, CSV.gz or Parquet: a row a score")
    parser.add_argument("--model-column", default="model", metavar="COLUMN")
    parser.add_argument("--item-column", default="item", metavar="COLUMN")
    parser.add_argument("--score-column", default="score", metavar="COLUMN")
    parser.add_argument(
        "--scorer-column", metavar="COLUMN", help="where there are several (scorer, if it is there)"
    )
    parser.add_argument("--encoding", default="utf-8-sig")


def read_scores(arguments: argparse.Namespace) -> ScoreTable:
    """The table, checked."""
    from pybridge.tables.files import read_whole
    from pybridge.tables.scores import score_table

    columns = [arguments.model_column, arguments.item_column]
    labels = [*columns, arguments.scorer_column or "scorer"]
    table = read_whole(arguments.scores, labels=labels, encoding=arguments.encoding)
    return score_table(
        table,
        model=arguments.model_column,
        item=arguments.item_column,
        score=arguments.score_column,
        scorer=arguments.scorer_column,
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit, test and print; status 4 where no model has a usable fit."""
    import pandas as pd

    table = read_scores(arguments)
    models = arguments.model or list(table.models)
    found = {}
    for scorer in table.scorers:
        for model in models:
            name = model if len(table.scorers) == 1 else f"{scorer}/{model}"
            found[name] = _one(table.scores(model, scorer), arguments)
    if arguments.json:
        print(json.dumps({name: one["record"] for name, one in found.items()}, ensure_ascii=False))
    else:
        for name, one in found.items():
            print("\n".join([f"== {name}", *one["text"], ""]))
    if arguments.out:
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [one["fit"].to_frame().assign(model=name) for name, one in found.items()]
        pd.concat(rows, ignore_index=True).to_csv(folder / "fits.csv", index=False)
        _write_more(folder, found)
        say(f"written to {folder}")
    return 0 if any(one["fit"].usable for one in found.values()) else 4


def _one(values: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit, diagnosis, test, levels and scan of one sample."""
    from pybridge.tails.diagnosis import diagnose_scores
    from pybridge.tails.generalized_pareto import generalized_pareto
    from pybridge.tails.scan import tail_scan
    from pybridge.tails.transforms import Transform

    change = Transform(arguments.transform, arguments.edge)
    begins: dict[str, Any] = {"quantile": arguments.quantile}
    if arguments.threshold is not None:
        begins = {"threshold": arguments.threshold}
    elif arguments.exceedances is not None:
        begins = {"n_exceedances": arguments.exceedances}
    elif arguments.quantile is None:
        begins = {"quantile": 0.95}
    fit = generalized_pareto(
        values,
        **begins,
        engine=arguments.engine,
        method=arguments.method,
        transform=change,
        level=arguments.level,
    )
    diagnosis = diagnose_scores(change.apply(values), threshold=fit.threshold)
    text, record = [fit.summary()], {"fit": fit.to_dict(), "diagnosis": diagnosis.to_dict()}
    del record["fit"]["excesses"]
    if fit.method == "ML":
        interval = fit.interval("shape")
        if math.isfinite(interval.lower):
            text.append(interval.summary())
        test = fit.goodness_of_fit(replicates=arguments.replicates, seed=arguments.seed)
        text.append(test.summary())
        record["goodness_of_fit"] = test.to_dict()
    text += [f"- {code}: {words}" for code, words in diagnosis.findings]
    if arguments.return_period:
        levels = fit.return_level(arguments.return_period)
        text.append(levels.summary())
        record["return_levels"] = levels.to_dict()
    out: dict[str, Any] = {"fit": fit, "text": text, "record": record}
    if arguments.scan:
        scan = tail_scan(values, engine=arguments.engine, transform=change, level=arguments.level)
        text.append(scan.summary())
        record["scan"] = scan.to_dict()
        out["scan"] = scan
    return out


def _write_more(folder: Path, found: dict[str, dict[str, Any]]) -> None:
    """Scans as a table, and the figures where matplotlib is there."""
    import pandas as pd

    from pybridge.errors import EngineUnavailable

    scans = [one["scan"].to_frame().assign(model=n) for n, one in found.items() if "scan" in one]
    if scans:
        pd.concat(scans, ignore_index=True).to_csv(folder / "scan.csv", index=False)
    try:
        from pybridge.report.tail_figures import diagnostic_figure

        for name, one in found.items():
            if one["fit"].usable:
                safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
                axes = diagnostic_figure(one["fit"])
                axes[0].figure.savefig(folder / f"fit_{safe}.png", dpi=110)
    except EngineUnavailable as error:
        say(str(error))
