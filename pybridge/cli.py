"""The command line: one parser, one place where errors become a line and an exit status.

0 done, 2 bad usage or input, 3 an engine is missing, 4 a fit failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

from pybridge._version import __version__
from pybridge.errors import InputError, PybridgeError, PybridgeWarning

# Each command is a module with add_arguments(parser) and run(arguments) -> exit status.
_COMMANDS = {
    "evaluate": ("evaluate", "every estimate of every domain, and the one to report"),
    "direct": ("direct", "one direct estimator: HT, Hájek, PPI or GREG"),
    "smooth": ("smooth", "one area-level fit on a table of direct estimates"),
    "select": ("select", "scores of the candidates only"),
    "tail": ("tail", "a generalised Pareto fit, or a scan over thresholds"),
    "protocol": ("protocol", "a pre-registered claim about tail shapes: plan, register, run"),
    "crosscheck": (
        "crosscheck",
        "one fit, direct estimates of units, or a tail of scores, by every engine",
    ),
    "demo": ("demo", "the California schools, estimated from a tenth of their labels"),
    "setup-r": ("setup_r", "install R's packages into the user's R library"),
    "doctor": ("doctor", "what is there, what is missing, and what mends it"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    with _interrupts() as seen:
        try:
            return _run(argv)
        except (Exception, KeyboardInterrupt) as error:
            # In the middle of an import C code may make another error of the interruption.
            if not seen and not isinstance(error, KeyboardInterrupt):
                raise
            print("pybridge: interrupted", file=sys.stderr)
            return 130


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Signals of an interruption (Ctrl-C) that came meanwhile; each is a KeyboardInterrupt too."""
    seen: list[int] = []

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    if not _takes_signals() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _takes_signals() -> bool:
    """Whether an interruption comes to this thread, and is not ignored."""
    own = threading.current_thread() is threading.main_thread()
    return own and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """An interruption ends the process: code that runs during imports may swallow an exception."""

    def leave(number: int, frame: Any) -> None:
        os.write(2, b"pybridge: interrupted\n")
        os._exit(130)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run(argv: Sequence[str] | None) -> int:
    """The command itself: what it raises on purpose becomes a line and a status."""
    _unbreakable_output()
    # In a process of its own nothing is lost while the commands are loaded.
    with _leaving_at_once() if argv is None and _takes_signals() else nullcontext():
        parser = _parser()
    arguments = parser.parse_args(argv)
    if not getattr(arguments, "run", None):
        parser.print_help()
        return 2
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PybridgeWarning)
            status = int(arguments.run(arguments))
        for text in dict.fromkeys(str(w.message) for w in caught if _ours(w)):
            print(f"pybridge: warning: {text}", file=sys.stderr)
        if sys.stdout is not None:
            sys.stdout.flush()  # while a reader that went away can still be noticed
        return status
    except PybridgeError as error:
        if arguments.debug:
            raise
        return _report(error, getattr(arguments, "json", False))
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        _drop_output()
        return 0
    except OSError as error:
        if arguments.debug:
            raise
        name = error.filename or "file"
        if error.filename is None:  # perhaps the output itself: what is left fails again at exit
            _drop_output()
        wrong = InputError(
            f"{name} cannot be read or written",
            code="no_access",
            field="path",
            got=error.strerror or str(error),
        )
        return _report(wrong, getattr(arguments, "json", False))
    except MemoryError:
        print("pybridge: error: not enough memory for this", file=sys.stderr)
        return 4


def _drop_output() -> None:
    """Let what is still to be printed go nowhere."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ours(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, PybridgeWarning)


def _report(error: PybridgeError, as_json: bool) -> int:
    if as_json:
        print(json.dumps(error.to_dict(), ensure_ascii=False))
    text = " ".join(str(error).split())
    print(f"pybridge: error: {text}", file=sys.stderr)
    return error.exit_status if error.exit_status > 1 else 4


def _unbreakable_output() -> None:
    """Names of domains may hold what the terminal's encoding does not: show it escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a command in one line, as all errors are said."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"pybridge: error: {message} (all options: {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pybridge",
        description="Domain estimates from few labels, with R's small-area packages as engines.",
    )
    parser.add_argument("--version", action="version", version=f"pybridge {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (module, text) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        found = importlib.import_module(f"pybridge.commands.{module}")
        found.add_arguments(command)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(run=found.run)
    return parser
