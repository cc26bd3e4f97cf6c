"""``pybridge protocol``: plan, register, run and demo of a pre-registered tail-shape claim."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pybridge.commands.shared import names, say
from pybridge.commands.tail import add_score_arguments, file_name, read_scores

if TYPE_CHECKING:
    from pybridge.protocol.verdict import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands and their arguments."""
    steps = parser.add_subparsers(title="steps", metavar="STEP", dest="step", required=True)
    plan = steps.add_parser("plan", help="write a commented protocol file, and a planning table")
    plan.add_argument("--out", default="claim.toml", metavar="FILE")
    plan.add_argument("--models", type=names, metavar="A,B[,C]", help="written into it")
    plan.add_argument("--scorers", type=names, metavar="S[,T]", help="written into it")
    register = steps.add_parser("register", help="write its canonical form, SHA-256 and the date")
    register.add_argument("plan", metavar="CLAIM.toml")
    register.add_argument("--out", metavar="FILE", help="default: beside the plan")
    run_it = steps.add_parser("run", help="the verdict on every pair of models")
    run_it.add_argument("plan", metavar="CLAIM.toml")
    add_score_arguments(run_it)
    run_it.add_argument("--registration", metavar="FILE", help="default: beside the plan")
    run_it.add_argument(
        "--exploratory", action="store_true", help="without a registration, and marked so"
    )
    run_it.add_argument("--json", action="store_true", help="print JSON")
    run_it.add_argument("--out", metavar="DIR", help="write tables, verdict and figure there")
    demo = steps.add_parser("demo", help="claims on simulated scores whose truth is known")
    demo.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        help="sample_size, bounded_scores, threshold_fishing, true_difference, perturbation "
        "(default: all)",
    )
    demo.add_argument("--engine", default="native", metavar="ENGINE")
    demo.add_argument("--replicates", type=int, default=1000)
    demo.add_argument("--out", metavar="DIR", help="write texts, tables and figures there")


def run(arguments: argparse.Namespace) -> int:
    """Carry out one step."""
    return {"plan": _plan, "register": _register, "run": _run, "demo": _demo}[arguments.step](
        arguments
    )


def _plan(arguments: argparse.Namespace) -> int:
    from pybridge.errors import InputError
    from pybridge.protocol.template import protocol_template
    from pybridge.tails.planning import planning_table

    target = Path(arguments.out)
    if target.exists():
        raise InputError(
            "the file is there already",
            code="file_exists",
            field="out",
            expected="a new file: a plan is never overwritten",
            got=str(target),
        )
    text = protocol_template(models=arguments.models, scorers=arguments.scorers)
    target.write_text(text, encoding="utf-8", newline="\n")
    print(f"{target} written; decide the values marked EXAMPLE, then register it")
    print("\nExceedances a model, scores at the 95 % quantile, and the power of both criteria:")
    print(planning_table().to_string(index=False, float_format=lambda v: f"{v:.4g}"))
    return 0


def _register(arguments: argparse.Namespace) -> int:
    from pybridge.protocol.reading import load_protocol

    found = load_protocol(arguments.plan).register(arguments.out)
    print(f"{found.path}\nSHA-256 {found.sha256}\nregistered {found.registered_at}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from pybridge.protocol.reading import load_protocol
    from pybridge.protocol.registration import need_registered
    from pybridge.protocol.run import run_protocol

    plan = load_protocol(arguments.plan)
    if not arguments.exploratory:
        need_registered(plan, arguments.registration)  # before a large table is read
    verdict = run_protocol(
        plan,
        read_scores(arguments),
        registration=arguments.registration,
        exploratory=arguments.exploratory,
    )
    if arguments.json:
        print(json.dumps(verdict.to_dict(), ensure_ascii=False))
    else:
        print(verdict.summary())
    if arguments.out:
        verdict.write(arguments.out)
        _draw(verdict, Path(arguments.out))
        say(f"written to {arguments.out}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from pybridge._options import choose
    from pybridge.simulate.tail_demonstrations import NAMES, demonstrate
    from pybridge.simulate.tail_perturbation import perturbation_pilot

    known = (*NAMES, "perturbation")
    for name in [choose("name", one, known) for one in arguments.name] or known:
        say(f"running {name}")
        if name == "perturbation":
            pilot = perturbation_pilot()
            print(pilot.summary() + "\n")
            if arguments.out:
                Path(arguments.out).mkdir(parents=True, exist_ok=True)
                target = Path(arguments.out) / "perturbation.csv"
                pilot.to_frame().to_csv(target, index=False)
            continue
        found = demonstrate(name, engine=arguments.engine, replicates=arguments.replicates)
        print(found.summary() + "\n")
        if arguments.out:
            for number, (_, verdict) in enumerate(found.runs, start=1):
                folder = Path(arguments.out) / f"{name}_{number}"
                verdict.write(folder)
                _draw(verdict, folder)
    return 0


def _draw(verdict: Verdict, folder: Path) -> None:
    """The page and a figure a scorer, where matplotlib is there."""
    from pybridge.errors import EngineUnavailable
    from pybridge.report.canvas import known_glyphs_only
    from pybridge.report.tail_family import family_figure

    try:
        figures = {
            f"verdict_{file_name(one)}": verdict.plot(one)[0].figure for one in verdict.scans
        }
        if len(verdict.scans) > 1:
            figures["family"] = family_figure(verdict).figure
        with known_glyphs_only():
            for name, figure in figures.items():
                figure.savefig(folder / f"{name}.png", dpi=110)
        verdict.to_html(folder / "verdict.html")
    except EngineUnavailable as error:
        say(str(error))
