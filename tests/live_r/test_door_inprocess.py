"""R inside this process: the same answers, one owner process and thread, a clean environment."""

import pytest

pytestmark = pytest.mark.r("sae")


def test_the_same_answers_as_the_worker(run_python):
    run_python(
        """
        import numpy as np
        from pybridge.r import call, call_many
        x = np.r_[1 / 3, np.nan, np.inf]
        inputs = {"x": x, "names": ["서울", None, "NA"], "m": np.ones((2, 3))}
        here = call("selftest_echo", inputs, transport="inprocess")
        there = call("selftest_echo", inputs)
        assert here.value["names"] == there.value["names"]
        for name in ("x", "m"):
            assert here.value[name].tobytes() == there.value[name].tobytes()
        reply = call("selftest_conditions", {}, transport="inprocess")
        assert reply.warnings == ("a first warning", "a second one, 유니코드")
        many = call_many("selftest_maybe_error",
                         [{"fail": i == 1, "number": i} for i in range(3)], transport="inprocess")
        assert [reply.error is None for reply in many] == [True, False, True]
        """
    )


def test_the_environment_is_put_back(run_python):
    run_python(
        """
        import os
        before = dict(os.environ)
        from pybridge.r import call
        call("selftest_session", {}, transport="inprocess")
        assert dict(os.environ) == before, set(os.environ) ^ set(before)
        """
    )


def test_nothing_is_left_when_python_ends(run_python, tmp_path):
    done = run_python(
        """
        import os, sys
        from pybridge.r import call
        place = call("selftest_session", {}, transport="inprocess").value["temporary"][0]
        child = os.fork()
        if child == 0:
            sys.exit()
        os.waitpid(child, 0)
        print(os.listdir(os.environ["TMPDIR"]) == [os.path.basename(place)])
        """,
        TMPDIR=str(tmp_path),
    )
    assert done.stdout.strip() == "True"
    assert list(tmp_path.iterdir()) == []


def test_the_r_of_a_host_keeps_its_folder_while_the_host_lives(run_python, tmp_path):
    done = run_python(
        """
        import atexit, os
        from rpy2 import rinterface
        rinterface.initr()
        place = rinterface.baseenv["tempdir"]()[0]
        atexit.register(lambda: print(os.path.isdir(place)))  # runs after what pybridge registers
        from pybridge.r import call
        call("selftest_session", {}, transport="inprocess")
        """,
        PYTHONWARNINGS=None,
        TMPDIR=str(tmp_path),
    )
    assert done.stdout.strip() == "True"


def test_another_thread_and_a_forked_child_are_refused(run_python):
    done = run_python(
        """
        import os, threading
        from pybridge.errors import EngineError
        from pybridge.r import call

        def ask():
            try:
                call("selftest_echo", {}, transport="inprocess")
            except EngineError as error:
                print(error.code, flush=True)

        call("selftest_echo", {}, transport="inprocess")
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        child = os.fork()
        if child == 0:
            ask()
            os._exit(0)
        os.waitpid(child, 0)
        # The worker may be used from anywhere.
        print(call("selftest_echo", {"x": ["ok"]}).value["x"][0])
        """
    )
    assert done.stdout.split() == ["wrong_thread", "wrong_process", "ok"]


def test_the_transport_may_be_named_by_the_environment(run_python):
    done = run_python(
        """
        import os
        from pybridge.r import call
        print(call("selftest_session", {}).value["pid"][0] == os.getpid())
        """,
        PYBRIDGE_R_TRANSPORT="inprocess",
    )
    assert done.stdout.strip() == "True"


def test_r_that_does_not_start_does_not_end_this_process(run_python, tmp_path):
    package = tmp_path / "rpy2"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "situation.py").write_text("")
    (package / "rinterface.py").write_text("import os; os._exit(7)")
    done = run_python(
        """
        from pybridge.errors import EngineUnavailable
        from pybridge.r import call
        try:
            call("selftest_echo", {}, transport="inprocess")
        except EngineUnavailable as error:
            print(error.code)
        """,
        PYTHONPATH=str(tmp_path),
    )
    assert done.stdout.strip() == "r_does_not_start"
