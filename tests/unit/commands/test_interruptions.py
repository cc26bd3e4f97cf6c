"""Ctrl-C at any moment of a command: one line, status 130, and no signal handler left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from pybridge.cli import main

BEGINNING = """
    import importlib, os, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us without it
    load = importlib.import_module

    def interrupted(name, *package):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            pass  # as code does that runs while modules are loaded
        return load(name, *package)

    importlib.import_module = interrupted
    from pybridge.cli import main
    sys.argv = ["pybridge", *{words!r}]
    sys.exit(main())
"""


@pytest.mark.parametrize("words", [["doctor"], ["evaluate", "x.csv"], [], ["--version"]])
def test_while_the_commands_are_loaded(words: list[str]) -> None:
    code = textwrap.dedent(BEGINNING).format(words=words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (130, "pybridge: interrupted\n", "")


@pytest.fixture
def takes_ctrl_c() -> Iterator[None]:
    """Python's own handler, which a process that a shell started in the background lacks."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("into", [None, ImportError("the module could not be imported")])
def test_while_a_command_runs(
    takes_ctrl_c: None,
    into: Exception | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from pybridge.commands import doctor

    def run(arguments: object) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            if into is None:
                raise
            raise into from None
        return 0

    monkeypatch.setattr(doctor, "run", run)
    before = signal.getsignal(signal.SIGINT)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "pybridge: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_without_an_interruption_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    from pybridge.commands import doctor

    def run(arguments: object) -> int:
        raise LookupError("a mistake of the program")

    monkeypatch.setattr(doctor, "run", run)
    with pytest.raises(LookupError):
        main(["doctor"])
