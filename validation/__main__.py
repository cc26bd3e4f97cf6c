"""``python -m validation``: every comparison there is, as one table.

    python -m validation                 everything (`make validate`)
    python -m validation --only milk     the cases with this in their name
    python -m validation --list          names of all cases
    python -m validation --csv FILE      the table for programs, too

Producers: R through the bridge (raw and guarded), plain R scripts run afresh by Rscript with no
Python near them, the answers kept in r_reference/golden, the native engines, the independent
reimplementations, and printed numbers. Exit status: 0 all agree, 1 a comparison failed, 2 bad
usage.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from types import ModuleType

# R's worker inherits this, as Rscript does: the same sums in the same order, bit for bit.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pybridge.crosscheck.agreement import (  # noqa: E402
    NOT_POSSIBLE,
    PART,
    AgreementRow,
    AgreementTable,
    joined,
)
from validation.suites.plain_r import PlainR  # noqa: E402

SUITES = (
    *(
        "area",
        "area_variants",
        "area_mse",
        "taxonomy",
        "tails",
        "direct",
        "sae_functions",
        "emdi_functions",
    ),
    *("tails_functions", "package_functions"),
    *("published", "bayes", "kept", "smoothing"),
)
# It takes as long as all others together, and there are two at a time.
LONGEST = "bayes_hbsae.R"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for; returns the exit status."""
    arguments = _parser().parse_args(argv)
    started = time.monotonic()
    suites = {name: importlib.import_module(f"validation.suites.{name}") for name in SUITES}
    cases = {name: chosen_cases(suite, arguments.only) for name, suite in suites.items()}
    if arguments.list:
        print("\n".join(case for named in cases.values() for case in sorted(named)))
        return 0
    if not any(cases.values()):
        print(f"validation: no case has {arguments.only!r} in its name (--list)", file=sys.stderr)
        return 2
    if arguments.csv and not os.access(os.path.dirname(os.path.abspath(arguments.csv)), os.W_OK):
        # Before minutes of work, not after them.
        print(f"validation: {arguments.csv} cannot be written", file=sys.stderr)
        return 2
    tables = run({suites[name]: named for name, named in cases.items() if named})
    table = joined(tables.values())
    if not arguments.brief:
        print(table.text(), end="\n\n")
    if arguments.csv:
        table.to_frame().to_csv(arguments.csv, index=False)
    print(_summary(tables))
    print(f"{table.counts()} ({time.monotonic() - started:.0f} s)")
    return 1 if table.n_failed or not table.n_made else 0


def chosen_cases(suite: ModuleType, only: str | None) -> set[str]:
    """The suite's cases with this text in their names; all of them for None."""
    return {name for name in suite.case_names() if only is None or only.lower() in name.lower()}


def run(cases: dict[ModuleType, set[str]]) -> dict[str, AgreementTable]:
    """The tables of the suites, by name; the scripts of all of them start at once."""
    plain = PlainR.in_temporary_folder()
    tables = {}
    try:
        wanted = [script for suite, named in cases.items() for script in suite.scripts(named)]
        plain.start(sorted(wanted, key=lambda script: script != LONGEST))
        for suite, named in cases.items():
            name = suite.__name__.rpartition(".")[2]
            print(f"· {name}: {len(named)} cases", file=sys.stderr, flush=True)
            tables[name] = _attempt(suite, plain, named)
    finally:
        plain.close()
    return tables


def _attempt(suite: ModuleType, plain: PlainR, named: set[str]) -> AgreementTable:
    """The suite's table; a suite that stops is a comparison that failed, and the others go on."""
    try:
        return suite.run(plain, named)
    except Exception as error:  # noqa: BLE001
        traceback.print_exc()
        row = AgreementRow(
            case=suite.__name__,
            quantity="everything",
            producer="this suite",
            against="itself",
            reason=f"it stopped with {type(error).__name__}: {error}",
            verdict=PART,
        )
        return AgreementTable((row,))


def _summary(tables: dict[str, AgreementTable]) -> str:
    """What failed, what was not possible, and the counts of each suite and pair of producers."""
    lines = []
    everything = joined(tables.values())
    silent: dict[str, int] = {}
    for row in everything.having(NOT_POSSIBLE):
        reason = f"{row.producer} with {row.against}: {row.reason}"
        silent[reason] = silent.get(reason, 0) + 1
    if silent:
        lines += ["Not possible:"]
        lines += [f"  {count:4d} x {reason}" for reason, count in silent.items()]
    failed = everything.having(PART)
    if failed:
        lines += ["Failed:", *(f"  {row.summary()}" for row in failed)]
    lines += ["", f"{'suite':<10} {'producer':>20} {'against':>16}   made failed  not possible"]
    for name, table in tables.items():
        pairs: dict[tuple[str, str], list[str]] = {}
        for row in table.rows:
            pairs.setdefault((row.producer, row.against), []).append(row.verdict)
        for (producer, against), verdicts in pairs.items():
            not_possible, parted = verdicts.count(NOT_POSSIBLE), verdicts.count(PART)
            lines.append(
                f"{name:<10} {producer:>20} {against:>16} {len(verdicts) - not_possible:6d} "
                f"{parted:6d} {not_possible:13d}"
            )
    return "\n".join([*lines, ""])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m validation", description="Compare all producers over all cases."
    )
    parser.add_argument("--only", metavar="CASE", help="cases with this in their name")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--brief", action="store_true", help="leave out the rows that agree")
    parser.add_argument("--csv", metavar="FILE", help="write the table there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
