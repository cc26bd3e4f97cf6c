"""Repeated sampling: the same bits for any number of processes, and after any interruption."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybridge as pb
from pybridge.errors import FitError, InputError, WorkerDied
from pybridge.simulate import EstimateCandidates, RepeatedSampling, sampling_plan
from pybridge.simulate import repeated_sampling, simulate_population
from pybridge.simulate.auxiliaries import Auxiliary
from pybridge.simulate.progress import Progress
from pybridge.simulate.repeated import Draw

POPULATION = simulate_population([60] * 8, auxiliaries=[Auxiliary("f", 0.4, 0.5)], seed=4)
PLAN = sampling_plan("simple", fraction=0.2)
GREG = EstimateCandidates(
    (pb.candidate("HT"), pb.candidate("GREG", direct="greg", unit_auxiliary="f"))
)


def simulate(procedure: Any = GREG, **words: Any) -> RepeatedSampling:
    return repeated_sampling(POPULATION, PLAN, procedure, **{"repetitions": 6, **words})


def facts(draw: Draw) -> dict[str, Any]:
    return {
        "seed": draw.seed,
        "normal": draw.rng.standard_normal(),
        "rows": draw.design.weights[:2],
    }


def test_repetitions_have_streams_of_their_own() -> None:
    few, many = simulate(facts, repetitions=3), simulate(facts, repetitions=9)
    assert len(set(many["seed"])) == len(set(many["normal"])) == 9
    np.testing.assert_array_equal(few["normal"], many["normal"][:3])
    assert simulate(facts, repetitions=3, seed=2)["normal"][0] != few["normal"][0]
    child = np.random.SeedSequence(1).spawn(3)[2].spawn(3)[1]
    assert few["normal"][2] == np.random.default_rng(child).standard_normal()


def test_the_number_of_processes_does_not_matter(tmp_path: Path) -> None:
    alone = simulate()
    assert alone["estimate"].shape == (6, 2, 8) and alone.n_repetitions == 6
    assert simulate(workers=2, checkpoint=tmp_path) == alone
    # More repetitions later, from the same folder.
    assert simulate(repetitions=8, checkpoint=tmp_path) == simulate(repetitions=8)


def test_an_executor_of_any_kind_will_do() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as executor:
        assert simulate(executor=executor) == simulate()
        # Threads need no sending, so that any function will do.
        noise = simulate(lambda draw: {"noise": draw.rng.random()}, executor=executor)
        assert noise == simulate(lambda draw: {"noise": draw.rng.random()})


class Shaped:
    """What has an executor's methods, and is none by its class."""

    def submit(self, function: Any, *given: Any) -> Any:
        future: Future[Any] = Future()
        future.set_result(function(*given))
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Nothing to leave."""


class Otherwise(Shaped):
    """Answers at once, and gives no future."""

    def submit(self, function: Any, *given: Any) -> Any:
        return function(*given)


def test_what_has_the_methods_of_an_executor_will_do() -> None:
    assert simulate(executor=Shaped()) == simulate()
    with pytest.raises(InputError) as raised:
        simulate(executor=Otherwise())
    assert (raised.value.code, raised.value.field) == ("wrong_type", "executor")
    assert raised.value.expected == "submit that returns a concurrent.futures.Future"


def die(draw: Draw) -> dict[str, Any]:
    os._exit(3)


def test_the_troubles_of_an_executor() -> None:
    from concurrent.futures import ProcessPoolExecutor

    class Client:
        get_executor = None

    class Busy(Shaped):
        def get_executor(self) -> None:
            """As a Dask client, which has submit and shutdown of its own."""

    dask = "Of a Dask client: client.get_executor()."
    wrongs = ((2, None), (Client(), dask), (Busy(), dask), (Shaped, None))
    for wrong, hint in wrongs:
        with pytest.raises(InputError) as raised:
            simulate(executor=wrong)
        error = raised.value
        assert (error.code, error.field, error.hint) == ("wrong_type", "executor", hint)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        with pytest.raises(InputError) as raised:
            simulate(lambda draw: {"a": 1}, executor=executor)
        assert raised.value.code == "not_picklable" and "ThreadPool" in str(raised.value.hint)
        with pytest.raises(WorkerDied) as died:
            simulate(die, executor=executor)
        assert died.value.code == "worker_died" and "BrokenProcessPool" in str(died.value.got)


class Elsewhere(Executor):
    """An executor that loses its work in its own way, as clusters do."""

    def submit(self, *args: Any, **words: Any) -> Any:
        future: Future[Any] = Future()
        future.set_exception(LookupError("the machine is gone"))
        return future


def test_an_error_of_an_executor_of_its_own_kind() -> None:
    with pytest.raises(WorkerDied) as died:
        simulate(executor=Elsewhere())
    assert (died.value.field, died.value.got) == ("executor", "LookupError: the machine is gone")


SCRIPT = """
import os, pathlib, sys, time
from pybridge.simulate import repeated_sampling, sampling_plan, simulate_population

def slow(draw):
    time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1], f"pid-{os.getpid()}").touch()
    return {"mean": draw.design.frame["y"].mean(), "noise": draw.rng.standard_normal(3)}

if __name__ == "__main__":
    found = repeated_sampling(
        simulate_population([20] * 5), sampling_plan("simple", n=30), slow, repetitions=40,
        checkpoint=sys.argv[1] if len(sys.argv) > 1 else None,
        workers=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(found["mean"].tobytes().hex(), found["noise"].tobytes().hex(), found.n_repetitions)
"""


def finished(folder: Path) -> set[str]:
    """Numbers of the repetitions that a folder holds."""
    return {key.split("/")[0] for path in folder.glob("r*.npz") for key in np.load(path).files}


def wait_for_end(pid: int) -> None:
    """A process whose parent was killed ends by itself."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} lives on without its parent")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_study_that_was_killed_goes_on(tmp_path: Path, workers: int) -> None:
    script, folder = tmp_path / "study.py", tmp_path / "kept"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script)]
    root = Path(__file__).resolve().parents[3]
    words: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": str(root)}}
    # Slow, so that a test that is held up still comes before its end.
    study = subprocess.Popen([*command, str(folder), str(workers), "0.2"], **words)
    deadline = time.monotonic() + 60
    while not list(folder.glob("r*.npz")) and time.monotonic() < deadline:
        time.sleep(0.005)
    study.send_signal(signal.SIGKILL)
    study.wait()
    before = finished(folder)
    assert 0 < len(before) < 40
    for path in folder.glob("pid-*"):
        wait_for_end(int(path.name[4:]))
    words |= {"capture_output": True, "text": True, "timeout": 60, "check": True}
    again = subprocess.run([*command, str(folder), str(3 - workers)], **words)
    whole = subprocess.run(command, **words)
    assert again.stdout == whole.stdout and again.stdout.endswith(" 40\n")
    assert len(finished(folder)) == 40


def test_a_checkpoint_of_another_study_is_refused(tmp_path: Path) -> None:
    simulate(repetitions=2, checkpoint=tmp_path)
    others: list[Mapping[str, Any]] = [{"seed": 2}, {"procedure": facts}]
    for words, part in zip(others, ("seed", "procedure")):
        with pytest.raises(InputError) as raised:
            simulate(repetitions=2, checkpoint=tmp_path, **words)
        assert raised.value.code == "other_study" and part in raised.value.message
    changed = simulate_population([60] * 8, auxiliaries=[Auxiliary("f", 0.4, 0.5)], seed=5)
    with pytest.raises(InputError, match="population differs"):
        repeated_sampling(changed, PLAN, GREG, repetitions=2, checkpoint=tmp_path)
    assert json.loads((tmp_path / "study.json").read_text())["seed"] == 1
    next(tmp_path.glob("r*.npz")).write_bytes(b"PK")
    with pytest.raises(InputError) as raised:
        simulate(repetitions=2, checkpoint=tmp_path)
    assert raised.value.code == "bad_checkpoint"


def unlucky(draw: Draw) -> dict[str, Any]:
    if draw.rng.random() < 0.5:
        raise FitError("no luck", code="unlucky")
    return {"x": 1.0}


def never(draw: Draw) -> dict[str, Any]:
    raise FitError("no luck", code="unlucky")


def broken(draw: Draw) -> dict[str, Any]:
    raise ZeroDivisionError("a mistake")


def ragged(draw: Draw) -> dict[str, Any]:
    return {"x": np.zeros(1 + draw.seed % 5)}


def odd(draw: Draw) -> dict[str, Any]:
    return {"x": 1j}


def dies(draw: Draw) -> dict[str, Any]:
    os._exit(3)


def test_a_sample_without_a_result_is_counted_and_named() -> None:
    found = simulate(unlucky, repetitions=20)
    assert 0 < found.n_repetitions < 20
    assert found.n_repetitions + len(found.failed) == 20
    assert set(found.failed.values()) == {"FitError: no luck"}
    assert not set(map(str, found.repetitions)) & set(found.failed)
    assert "failed: FitError" in found.summary()
    with pytest.raises(FitError) as raised:
        simulate(never, repetitions=10_000)
    assert raised.value.code == "nothing_simulated"


@pytest.mark.parametrize(
    "procedure, code",
    [(broken, "procedure_failed"), (ragged, "shapes_differ"), (odd, "procedure_failed")],
)
def test_a_procedure_that_is_wrong(procedure: Any, code: str) -> None:
    with pytest.raises(InputError) as raised:
        simulate(procedure, repetitions=6)
    assert raised.value.code == code and raised.value.field == "procedure"


def test_what_goes_wrong_with_processes_is_said() -> None:
    with pytest.raises(InputError) as raised:
        simulate(lambda draw: {"x": 1.0}, workers=2)
    assert raised.value.code == "not_picklable"
    with pytest.raises(WorkerDied, match="checkpoint"):
        simulate(dies, workers=2)


@pytest.mark.parametrize("words", [{"repetitions": 0}, {"workers": 0}, {"seed": -1}])
def test_numbers_that_are_no_counts(words: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        simulate(**words)


def test_the_record_is_like_every_other() -> None:
    found = simulate(facts)
    assert pickle.loads(pickle.dumps(found)) == found
    assert list(found.to_frame().columns) == ["repetition", "seed", "normal"]
    with pytest.raises(ValueError):
        found["normal"][0] = 1.0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_line_is_for_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    simulate(facts)
    assert capsys.readouterr() == ("", "")
    shown, hidden, off = Terminal(), io.StringIO(), Terminal()
    for stream, enabled in ((shown, True), (hidden, True), (off, False)):
        bar = Progress(4, done=1, stream=stream, enabled=enabled)
        bar.advance()
        bar.advance(2)
        bar.close()
    assert hidden.getvalue() == off.getvalue() == ""
    lines = shown.getvalue().split("\r")[1:]
    assert [line.split("] ")[1].split(" ")[0] for line in lines] == ["1/4", "2/4", "4/4"]
    assert lines[-1].endswith("\n") and "left" in lines[1] and "left" not in lines[2]
    assert Progress(10, stream=hidden).line(3.0).startswith("[....")
    half = Progress(10, stream=hidden)
    half.advance(5)
    assert half.line(100.0).endswith("5/10 repetitions, about 1:40 min left")
