"""Threads, forks, spawned processes, event loops, and what is left when Python ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.r("sae")


def gone(pid, seconds=8.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def removed(place, seconds=5.0):
    end = time.monotonic() + seconds
    while os.path.exists(place) and time.monotonic() < end:
        time.sleep(0.05)
    return not os.path.exists(place)


def test_eight_threads_get_their_own_answers(run_python):
    done = run_python(
        """
        import concurrent.futures
        from pybridge.r import call

        def work(i):
            values = [float(i * 1000 + j) for j in range(20)]
            return [call("selftest_echo", {"x": v}).value["x"][0] for v in values] == values

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            print(all(pool.map(work, range(8))))
        """
    )
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(run_python, tmp_path, method):
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(
            f"""
        import multiprocessing, os
        from pybridge.r import call

        def work(i):
            session = call("selftest_session", {{}}).value
            return call("selftest_echo", {{"x": float(i)}}).value["x"][0], session["pid"][0]

        if __name__ == "__main__":
            mine = call("selftest_session", {{}}).value["pid"][0]
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                answers = pool.map(work, range(6), chunksize=3)
            print([value for value, _ in answers] == [float(i) for i in range(6)])
            print(mine not in {{pid for _, pid in answers}})
            # The parent's own worker is as it was.
            print(call("selftest_session", {{}}).value["pid"][0] == mine)
        """
        )
    )
    done = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout.split() == ["True"] * 3, done.stderr


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(run_python, tmp_path, backend):
    """loky starts processes anew, multiprocessing forks them; each call is a fit by sae."""
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(
            f"""
        import joblib
        import pybridge as pb
        from pybridge import datasets

        def fit(shift):
            milk = datasets.milk()
            milk = milk.assign(yi=milk["yi"] + shift, variance=milk["SD"] ** 2)
            fit = pb.fay_herriot("yi ~ C(MajorArea)", milk, domain="SmallArea", engine="sae")
            return fit.model_variance

        if __name__ == "__main__":
            here = fit(0.0)
            found = joblib.Parallel(n_jobs=2, backend={backend!r})(
                joblib.delayed(fit)(float(i)) for i in range(4)
            )
            print(found[0] == here, all(abs(value / here - 1) < 1e-9 for value in found))
            print(fit(0.0) == here)
        """
        )
    )
    done = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout.split() == ["True"] * 3, done.stderr


def test_a_fork_in_the_middle_of_a_call_of_another_thread(run_python):
    done = run_python(
        """
        import os, threading, time
        from pybridge.r import call
        from pybridge.r.pool import pool

        call("selftest_echo", {})
        worker = pool().idle[-1]
        before = worker.calls
        thread = threading.Thread(target=call, args=("selftest_sleep", {"seconds": 1.5}))
        thread.start()
        while worker.calls == before:
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            good = call("selftest_echo", {"x": ["child"]}).value["x"] == ["child"]
            os._exit(0 if good else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread.join()
        print(call("selftest_echo", {"x": ["parent"]}).value["x"][0])
        """
    )
    assert done.stdout.split() == ["0", "parent"]


def test_a_call_of_a_signal_handler_within_a_call(run_python):
    done = run_python(
        """
        import os, signal, threading
        from pybridge.r import call

        def handle(*signal_and_frame):
            print(call("selftest_echo", {"x": ["inner"]}).value["x"][0], flush=True)

        signal.signal(signal.SIGUSR1, handle)
        call("selftest_echo", {})
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        print(call("selftest_sleep", {"seconds": 1.0}).value["slept"][0])
        """
    )
    assert done.stdout.split() == ["inner", "1.0"]


def test_an_event_loop_is_not_disturbed(run_python):
    done = run_python(
        """
        import asyncio
        from pybridge.r import call

        async def main():
            inside = call("selftest_echo", {"x": [1.0]}).value["x"][0]
            other = asyncio.to_thread(call, "selftest_sleep", {"seconds": 0.5})
            task = asyncio.create_task(other)
            ticks = 0
            while not task.done():
                await asyncio.sleep(0.02)
                ticks += 1
            print(inside, ticks > 5, (await task).value["slept"][0])

        asyncio.run(main())
        """
    )
    assert done.stdout.strip() == "1.0 True 0.5"


def test_two_pythons_at_once():
    code = """
        import sys
        from pybridge.r import call
        for i in range(30):
            assert call("selftest_echo", {"x": [sys.argv[1]]}).value["x"] == [sys.argv[1]]
        print("ok")
        """
    both = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), name], stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "두")
    ]
    assert [process.communicate(timeout=90)[0].strip() for process in both] == ["ok", "ok"]


def test_no_process_and_no_file_is_left_when_python_ends(run_python):
    done = run_python(
        """
        from pybridge.r import call
        session = call("selftest_session", {}).value
        print(int(session["pid"][0]))
        print(session["temporary"][0])
        """
    )
    pid, place = done.stdout.split("\n")[:2]
    assert gone(int(pid))
    assert removed(os.path.dirname(place))


def test_no_file_is_left_when_python_ends_beside_a_thread_in_a_call(run_python):
    # The thread is never run again: it cannot put away what it used.
    done = run_python(
        """
        import threading, time
        from pybridge.r import call
        from pybridge.r.pool import pool
        print(call("selftest_session", {}).value["temporary"][0])
        worker = pool().idle[-1]
        before, rest = worker.calls, ("selftest_sleep", {"seconds": 60.0})
        threading.Thread(target=call, args=rest, daemon=True).start()
        while worker.calls == before:
            time.sleep(0.01)
        """
    )
    assert removed(os.path.dirname(done.stdout.strip()))


def test_no_process_and_no_file_is_left_when_python_is_killed_in_a_call():
    code = """
        from pybridge.r import call
        session = call("selftest_session", {}).value
        print(int(session["pid"][0]), session["temporary"][0], flush=True)
        call("selftest_sleep", {"seconds": 120.0})
        """
    host = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    pid, place = host.stdout.readline().split()
    time.sleep(0.5)
    host.send_signal(signal.SIGKILL)
    host.communicate(timeout=10)
    assert gone(int(pid))
    assert removed(os.path.dirname(place))


def test_python_killed_while_r_starts_leaves_nothing(tmp_path):
    code = """
        from pybridge.r import call
        print("starting", flush=True)
        call("selftest_echo", {})
        """
    for delay in (0.0, 0.02, 0.05, 0.1, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6):
        host = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        host.stdout.readline()
        time.sleep(delay)
        host.kill()
        host.communicate(timeout=10)
    end = time.monotonic() + 15
    while os.listdir(tmp_path) and time.monotonic() < end:
        time.sleep(0.1)
    assert os.listdir(tmp_path) == []


def test_the_host_makes_no_file_that_its_sudden_end_would_leave(tmp_path):
    # What the test above meets once in many runs: a file of a moment, whenever that moment is.
    code = """
        import os, sys
        place, found = os.environ["TMPDIR"], []
        def watch(event, arguments):
            for value in arguments:
                if isinstance(value, (str, bytes)) and os.fsdecode(value).startswith(place + "/"):
                    found.append(f"{event} {os.fsdecode(value)}")
        sys.addaudithook(watch)
        open(os.path.join(place, "seen"), "w").close()
        from pybridge.r import call
        call("selftest_echo", {})
        print(*found, sep="\\n")
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=90,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout.splitlines() == [f"open {tmp_path / 'seen'}"]


def test_a_fit_with_a_pool_of_processes_of_concurrent_futures(run_python):
    done = run_python(
        """
        import concurrent.futures, multiprocessing
        from pybridge.r import call

        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            futures = [pool.submit(call, "selftest_echo", {"x": float(i)}) for i in range(4)]
            print([float(future.result().value["x"][0]) for future in futures])
        """
    )
    assert done.stdout.strip() == "[0.0, 1.0, 2.0, 3.0]"
