"""``pybridge tail``: generalised Pareto fits of scores, with tests, levels and a scan."""

from __future__ import annotations

import argparse
import dataclasses
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
    add_begins(parser).add_argument(
        "--choose", action="store_true", help="let a sequence of tests of fit choose the quantile"
    )
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
    parser.add_argument("--epsilon", type=float, default=1e-6, help="for --edge clip (1e-6)")
    parser.add_argument(
        "--ordered", action="store_true", help="items are in the order of time: look for clusters"
    )
    parser.add_argument(
        "--decluster",
        type=int,
        metavar="N",
        help="fit the largest score of each cluster; N scores below the threshold end one",
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


def add_begins(parser: argparse.ArgumentParser, kind: str = "") -> Any:
    """Where the tail begins: a group of options that exclude each other."""
    begins = parser.add_mutually_exclusive_group()
    begins.add_argument("--quantile", type=float, help=f"{kind}where the tail begins (0.95)")
    begins.add_argument("--threshold", type=float, help="the same, by value")
    begins.add_argument("--exceedances", type=int, metavar="N", help="the same, by count")
    return begins


def begins_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same as words of `generalized_pareto`."""
    if arguments.threshold is not None:
        return {"threshold": arguments.threshold}
    if arguments.exceedances is not None:
        return {"n_exceedances": arguments.exceedances}
    return {"quantile": 0.95 if arguments.quantile is None else arguments.quantile}


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

    from pybridge.tails.dependence import label_order

    table = read_scores(arguments)
    models = arguments.model or list(table.models)
    found = {}
    for scorer in table.scorers:
        for model in models:
            name = model if len(table.scorers) == 1 else f"{scorer}/{model}"
            values = table.scores(model, scorer)
            if arguments.ordered or arguments.decluster:
                values = values[label_order(table.items[scorer, model])]
            found[name] = _one(values, arguments)
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

    change = Transform(arguments.transform, arguments.edge, arguments.epsilon)
    values = change.apply(values)
    begins, text = _begins(values, arguments)
    fitted = values
    ordered = arguments.ordered or bool(arguments.decluster)
    if arguments.decluster:
        fitted, begins, words = _clustered(values, begins, arguments.decluster)
        text.append(words)
    fit = generalized_pareto(
        fitted,
        **begins,
        engine=arguments.engine,
        method=arguments.method,
        level=arguments.level,
    )
    fit = dataclasses.replace(fit, transform=change)
    diagnosis = diagnose_scores(values, threshold=fit.threshold, ordered=ordered)
    text.append(fit.summary())
    record: dict[str, Any] = {"fit": fit.to_dict(), "diagnosis": diagnosis.to_dict()}
    del record["fit"]["excesses"]
    out: dict[str, Any] = {"fit": fit, "text": text, "record": record, "values": values}
    _tests(out, arguments)
    text += [f"- {code}: {words}" for code, words in diagnosis.findings]
    if arguments.return_period:
        levels = fit.return_level(arguments.return_period)
        text.append(levels.summary())
        record["return_levels"] = levels.to_dict()
    if arguments.scan:
        scan = tail_scan(values, engine=arguments.engine, level=arguments.level)
        text.append(scan.summary())
        record["scan"] = scan.to_dict()
        out["scan"] = scan
    return out


def _begins(values: Any, arguments: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Where the tail begins, and what there is to say about it."""
    from pybridge.tails.threshold_choice import choose_threshold

    if arguments.choose:
        choice = choose_threshold(values, seed=arguments.seed)
        after = "Chosen after looking at the scores: intervals and tests below are too favourable."
        if math.isnan(choice.quantile):
            return {"quantile": 0.95}, [f"{choice.reason}; 0.95 is shown"]
        return {"quantile": choice.quantile}, [choice.reason, after]
    return begins_of(arguments), []


def _clustered(values: Any, begins: dict[str, Any], run: int) -> tuple[Any, dict[str, Any], str]:
    """Scores with one exceedance a cluster, the threshold by value, and the clusters in words."""
    from pybridge.tails.dependence import decluster
    from pybridge.tails.thresholds import find_exceedances

    threshold = find_exceedances(values, **begins).threshold
    clusters = decluster(values, threshold=threshold, run=run)
    return clusters.scores, {"threshold": threshold}, clusters.summary()


def _tests(out: dict[str, Any], arguments: argparse.Namespace) -> None:
    """The profile interval and the tests of fit, for maximum likelihood."""
    fit = out["fit"]
    if fit.method != "ML":
        return
    interval = fit.interval("shape")
    if math.isfinite(interval.lower):
        out["text"].append(interval.summary())
    test = fit.goodness_of_fit(replicates=arguments.replicates, seed=arguments.seed)
    out["text"].append(test.summary())
    out["record"]["goodness_of_fit"] = test.to_dict()


def _write_more(folder: Path, found: dict[str, dict[str, Any]]) -> None:
    """Scans as a table, and the figures where matplotlib is there."""
    import pandas as pd

    from pybridge.errors import EngineUnavailable
    from pybridge.tails.mean_residual_life import mean_residual_life
    from pybridge.tails.scan import joined_scans

    scans = {name: one["scan"] for name, one in found.items() if "scan" in one}
    if scans:
        tables = [scan.to_frame().assign(model=name) for name, scan in scans.items()]
        pd.concat(tables, ignore_index=True).to_csv(folder / "scan.csv", index=False)
    try:
        from pybridge.report.canvas import known_glyphs_only, plain
        from pybridge.report.tail_figures import diagnostic_figure

        figures = {}
        for name, one in found.items():
            safe = file_name(name)
            life = mean_residual_life(one["values"]).plot()
            life.set_title(plain(f"Mean residual life, {name}"), fontsize=10)
            figures[f"life_{safe}"] = life.figure
            if one["fit"].usable:
                figures[f"fit_{safe}"] = diagnostic_figure(one["fit"])[0].figure
        if scans:
            figures["scan"] = joined_scans(scans).plot().figure
        with known_glyphs_only():
            for name, figure in figures.items():
                figure.savefig(folder / f"{name}.png", dpi=110)
    except EngineUnavailable as error:
        say(str(error))


def file_name(name: str) -> str:
    """A name as part of a file's."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
