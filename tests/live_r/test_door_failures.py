"""Calls that go wrong: time limit, Ctrl-C, crash, kill. Each names its cause; the next works."""

import os
import signal
import subprocess
import sys
import threading
import time
from textwrap import dedent

import pytest

from pybridge.errors import EngineError, EngineTimeout, EngineUnavailable, WorkerDied
from pybridge.r import call, call_many, shutdown
from pybridge.r.pool import pool

pytestmark = pytest.mark.r("sae")


def works():
    return call("selftest_echo", {"x": [1.0]}).value["x"].tolist() == [1.0]


def running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"


def gone(pid, seconds=5.0):
    end = time.monotonic() + seconds
    while running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not running(pid)


def child_pid():
    assert works()
    return pool().idle[-1].child.pid


def in_its_next_call(action, *arguments):
    """Do it when the worker has its next call, however long that takes to come."""
    worker = pool().idle[-1]
    before = worker.calls

    def wait():
        while worker.calls == before:
            time.sleep(0.01)
        action(*arguments)

    threading.Thread(target=wait).start()


def test_a_call_past_its_time_limit():
    old = child_pid()
    started = time.monotonic()
    with pytest.raises(EngineTimeout) as caught:
        call("selftest_sleep", {"seconds": 30.0}, time_limit=0.3)
    assert 0.3 <= time.monotonic() - started < 5
    assert caught.value.code == "time_limit" and "selftest_sleep" in str(caught.value)
    assert gone(old) and works()


def test_a_call_within_its_time_limit():
    assert call("selftest_sleep", {"seconds": 0.05}, time_limit=60).value["slept"][0] == 0.05


def test_a_batch_past_its_time_limit_on_several_workers():
    with pytest.raises(EngineTimeout):
        call_many("selftest_sleep", [{"seconds": 30.0}] * 2, time_limit=0.3, workers=2)
    assert works()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_crash_names_its_signal_and_its_shim(number):
    with pytest.raises(WorkerDied) as caught:
        call("selftest_crash", {"signal": int(number)})
    assert signal.Signals(number).name in str(caught.value)
    assert caught.value.field == "selftest_crash"
    assert works()


def test_a_function_that_calls_itself_without_end_is_an_error_of_r():
    pid = child_pid()
    with pytest.raises(EngineError, match="C stack usage|nested too deeply"):
        call("selftest_recursion", {})
    replies = call_many("selftest_recursion", [{}, {}])
    assert all(reply.error is not None for reply in replies)
    assert child_pid() == pid


def test_r_that_quits_names_its_status():
    with pytest.raises(WorkerDied, match="exited with status 3"):
        call("selftest_quit", {})
    assert works()


def test_a_worker_killed_from_outside_in_the_middle_of_a_call():
    pid = child_pid()
    in_its_next_call(os.kill, pid, signal.SIGTERM)
    with pytest.raises(WorkerDied, match="SIGTERM"):
        call("selftest_sleep", {"seconds": 30.0})
    assert works()


def test_a_worker_killed_between_calls_is_replaced_without_a_word():
    pid = child_pid()
    os.kill(pid, signal.SIGKILL)
    pool().idle[-1].child.wait(timeout=5)
    assert child_pid() != pid


def test_a_large_call_into_a_dying_worker():
    pid = child_pid()
    os.kill(pid, signal.SIGSTOP)
    in_its_next_call(os.kill, pid, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        call("selftest_echo", {"x": [0.0] * 200_000})
    assert works()


def test_shutdown_in_the_middle_of_a_call_of_another_thread():
    child_pid()
    caught = []

    def work():
        try:
            call("selftest_sleep", {"seconds": 30.0})
        except WorkerDied as error:
            caught.append(error)

    in_its_next_call(shutdown)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and len(caught) == 1
    assert works()


def test_temporary_files_go_with_the_worker():
    place = call("selftest_session", {}).value["temporary"][0]
    assert os.path.isdir(place)
    with pytest.raises(EngineTimeout):
        call("selftest_sleep", {"seconds": 30.0}, time_limit=0.2)
    assert not os.path.exists(os.path.dirname(place))


def test_open_files_do_not_pile_up():
    works()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(WorkerDied):
            call("selftest_quit", {})
        works()
    assert len(os.listdir("/proc/self/fd")) == before


def test_ctrl_c_stops_the_call_and_the_next_one_works(run_python):
    done = run_python(
        """
        import os, signal, threading, time
        from pybridge.r import call
        from pybridge.r.pool import pool

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us without it
        call("selftest_echo", {})
        worker = pool().idle[-1]
        pid, before = worker.child.pid, worker.calls

        def interrupt():
            while worker.calls == before:
                time.sleep(0.01)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        started = time.monotonic()
        try:
            call("selftest_sleep", {"seconds": 60.0})
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - started < 10)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            print("stopped")
        print(call("selftest_echo", {"x": ["again"]}).value["x"][0])
        """
    )
    assert done.stdout.split("\n")[:3] == ["interrupted True", "stopped", "again"]
    assert done.stderr == ""


def test_ctrl_c_of_the_terminal_reaches_the_host_alone(run_python):
    # A terminal sends the signal to the whole group of processes; R has a group of its own.
    done = run_python(
        """
        import os
        from pybridge.r import call
        from pybridge.r.pool import pool

        call("selftest_echo", {})
        print(os.getpgid(pool().idle[-1].child.pid) != os.getpgid(0))
        """
    )
    assert done.stdout.strip() == "True"


def test_ctrl_c_while_the_workers_of_a_batch_start(run_python):
    done = run_python(
        """
        import os, signal, threading, time
        from pybridge.r import call, call_many, pool
        from pybridge.r.process import Worker

        signal.signal(signal.SIGINT, signal.default_int_handler)
        start = Worker.start

        def start_and_interrupt(self):
            # The signal is taken while this thread goes on: before R has had any request.
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            start(self)

        Worker.start = start_and_interrupt
        started = time.monotonic()
        try:
            call_many("selftest_sleep", [{"seconds": 60.0}] * 2, workers=2)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - started < 30)
        Worker.start = start
        print(call("selftest_echo", {"x": ["again"]}).value["x"][0])
        """
    )
    assert done.stdout.split("\n")[:2] == ["interrupted True", "again"]


def test_ctrl_c_once_more_while_a_batch_is_stopped(run_python):
    done = run_python(
        """
        import os, signal, threading, time
        from pybridge.r import call, call_many, pool

        signal.signal(signal.SIGINT, signal.default_int_handler)
        call_many("selftest_echo", [{}] * 2, workers=2)
        shutdown, calls = pool.shutdown, []

        def interrupted_once():
            calls.append(0)
            if len(calls) == 1:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            shutdown()

        pool.shutdown = interrupted_once
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        try:
            call_many("selftest_sleep", [{"seconds": 60.0}] * 2, workers=2)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - started < 30, len(calls))
        pool.shutdown = shutdown
        print(call("selftest_echo", {"x": ["again"]}).value["x"][0])
        """
    )
    assert done.stdout.splitlines() == ["interrupted True 2", "again"]


def test_ctrl_c_again_and_again(run_python):
    # As a key that is held down: while the first one ends the call, and while R starts anew.
    done = run_python(
        """
        import os, signal, threading, time
        from pybridge.r import call

        signal.signal(signal.SIGINT, signal.default_int_handler)
        call("selftest_echo", {})
        files = len(os.listdir("/proc/self/fd"))
        over = threading.Event()

        def hold():
            time.sleep(0.3)
            for _ in range(25):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.03)
            over.set()

        def held():
            while not over.is_set():
                try:
                    call("selftest_sleep", {"seconds": 3.0})
                except KeyboardInterrupt:
                    pass

        thread = threading.Thread(target=hold)
        thread.start()
        while thread.is_alive():  # one may come between two calls
            try:
                held()
                thread.join()
            except KeyboardInterrupt:
                pass
        print(call("selftest_echo", {"x": ["again"]}).value["x"][0])
        print(len(os.listdir("/proc/self/fd")) - files)
        """
    )
    # Python itself loses what comes while it makes or drops a Popen, and says so; that child ends
    # by itself, and a file of it may stay open.
    again, files = done.stdout.split()
    assert again == "again" and int(files) <= 2


@pytest.mark.parametrize("limits", ["-n 10", "-f 1", "-f 100"])
def test_a_limit_of_the_system_is_named(run_python, limits):
    code = """
        from pybridge.errors import EngineUnavailable
        from pybridge.r import call
        try:
            call("selftest_echo", {"x": [0.5] * 200_000})
        except EngineUnavailable as error:
            print(error.code, "ulimit -" in error.hint)
        """
    done = subprocess.run(
        ["sh", "-c", f'ulimit {limits}; exec "$@"', "sh", sys.executable, "-c", dedent(code)],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.stdout.strip() == "system_limit True", done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_standard_input_and_output(closed, tmp_path):
    # As a daemon may be: their numbers are free for the files that host and worker share.
    code = """
        import sys
        from pybridge.r import call
        found = call("selftest_echo", {"x": [0.5] * 200_000, "y": ["ok"]}).value
        with open(sys.argv[1], "w") as file:
            file.write(f"{found['x'].sum()} {found['y'][0]}")
        """
    command = f'exec "$@" {closed}'
    path = tmp_path / "answer"
    subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-c", dedent(code), str(path)], timeout=90
    )
    assert path.read_text() == "100000.0 ok"


@pytest.mark.parametrize("program", ["", None, "/no/such/python"])
def test_a_python_whose_program_is_not_known(monkeypatch, program):
    shutdown()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", program)
        with pytest.raises(EngineUnavailable) as caught:
            call("selftest_echo", {})
    assert caught.value.code == "no_python" and works()
