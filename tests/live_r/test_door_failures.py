"""Calls that go wrong: time limit, Ctrl-C, crash, kill. Each names its cause; the next works."""

import os
import signal
import threading
import time

import pytest

from pybridge.errors import EngineError, EngineTimeout, WorkerDied
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
    threading.Timer(0.3, os.kill, (pid, signal.SIGTERM)).start()
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
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
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

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    shutdown()
    thread.join(10)
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
        pid = pool().idle[-1].child.pid
        threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
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
