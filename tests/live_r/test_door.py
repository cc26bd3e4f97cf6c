"""What crosses to R and back, and what the door catches around a call."""

import os

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning, InputError
from pybridge.r import Factor, call, call_many, require_packages
from pybridge.r.pool import pool
from pybridge.smoothing.fay_herriot import fay_herriot

pytestmark = pytest.mark.r("sae")

AWKWARD = [
    "it's",
    'say "so"',
    "back\\slash",
    "two\nlines",
    "tab\there",
    "서울 특별시",
    "😀 emoji 👩‍👩‍👧",
    "é",
    "e\u0301",
    "NA",
    "NULL",
    "TRUE",
    "if",
    "007",
    "1e5",
    " leading and trailing ",
    "",
    "%s %d {x} $a `b`",
    "C:\\temp\\n",
    "ﬀ",
]


def echo(value):
    return call("selftest_echo", {"x": value}).value["x"]


def bits(array):
    return np.ascontiguousarray(array).view(np.uint64).tolist()


def test_doubles_cross_bit_by_bit():
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 2**63, 20_000, dtype=np.uint64).view(np.float64)
    numbers = np.r_[numbers[~np.isnan(numbers)], 0.0, -0.0, np.inf, -np.inf, 5e-324, 1 / 3]
    assert bits(echo(numbers)) == bits(numbers)


def test_missing_numbers_are_na_in_r_and_nan_here():
    described = call("selftest_describe", {"x": [1.0, float("nan")], "y": [1.0, 2.0]}).value
    assert described["na_real"].tolist() == [True, False]
    assert described["missing"].tolist() == [1.0, 0.0]
    assert np.isnan(echo([1.0, float("nan")])[1])


def test_names_of_domains_come_back_unchanged():
    assert echo(AWKWARD) == AWKWARD
    assert echo([None, *AWKWARD]) == [None, *AWKWARD]
    factor = echo(pd.Series(pd.Categorical(AWKWARD, categories=AWKWARD[::-1])))
    assert isinstance(factor, Factor) and factor.labels() == AWKWARD


def test_names_of_columns_come_back_unchanged():
    table = {name: [float(i)] for i, name in enumerate(AWKWARD) if name}
    back = call("selftest_echo", table).value
    assert list(back) == list(table)


def test_text_na_is_not_missing_in_r():
    described = call("selftest_describe", {"x": ["NA", None, "b"]}).value
    assert described["missing"].tolist() == [1.0]


def test_types_in_r():
    inputs = {
        "double": [1.5],
        "flags": np.array([True, False]),
        "text": ["a"],
        "integers": np.array([1, 2]),
        "count": 3,
        "factor": pd.Series(pd.Categorical(["a"])),
        "matrix": np.ones((2, 3)),
        "list": {"a": [1.0]},
    }
    described = call("selftest_describe", inputs).value
    assert described["type"] == [
        "double",
        "logical",
        "character",
        "double",
        "integer",
        "integer",
        "double",
        "list",
    ]
    assert described["length"].tolist() == [1, 2, 1, 2, 1, 1, 6, 1]


def test_matrices_are_column_major_in_r():
    matrix = np.arange(6.0).reshape(2, 3)
    back = echo(matrix)
    assert np.array_equal(back, matrix)
    assert np.array_equal(echo(matrix.T), matrix.T)


def test_nested_lists_null_and_flags():
    back = call("selftest_echo", {"a": {"b": {"c": [1.0]}, "d": None}, "e": True}).value
    assert back["a"]["b"]["c"].tolist() == [1.0]
    assert back["a"]["d"] is None
    assert back["e"].dtype == bool


def test_a_large_table_crosses():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"y": rng.normal(size=300_000), "d": [f"도{i}" for i in range(300_000)]})
    back = call("selftest_echo", {"t": table}).value["t"]
    assert bits(back["y"]) == bits(table["y"].to_numpy())
    assert back["d"] == table["d"].tolist()


def test_without_files_in_memory_large_tables_cross_on_disk(monkeypatch):
    from pybridge.r.pool import shutdown

    shutdown()
    monkeypatch.delattr(os, "memfd_create")
    x = np.random.default_rng(1).normal(size=100_000)
    assert bits(echo(x)) == bits(x)
    shutdown()


def test_arrays_of_a_reply_are_read_only():
    with pytest.raises(ValueError):
        echo([1.0])[0] = 2.0


def test_what_cannot_cross_is_refused_before_r_is_called():
    with pytest.raises(InputError) as caught:
        call("selftest_crash", {"signal": 9, "county": ["a", 1]})
    assert caught.value.field == "county"


def test_conditions_and_printing_are_data():
    reply = call("selftest_conditions", {})
    assert reply.value["answer"].tolist() == [42.0]
    assert reply.warnings == ("a first warning", "a second one, 유니코드")
    assert reply.messages == ("a message",)
    assert reply.printed == ("printed by cat", "[1] 1.5 2.0", "no newline at the end")
    assert reply.error is None


def test_nothing_is_printed_here(capfd):
    call("selftest_conditions", {})
    assert capfd.readouterr() == ("", "")


def test_warnings_of_r_can_be_handed_on():
    reply = call("selftest_conditions", {})
    with pytest.warns(EngineWarning) as caught:
        reply.warn("sae", stacklevel=1)
    assert [str(item.message) for item in caught][0] == "sae: a first warning"
    assert caught[0].filename == __file__


def test_an_error_of_r_is_raised_with_its_words():
    with pytest.raises(EngineError) as caught:
        call("selftest_error", {"text": '오류: it\'s 100% "wrong"'})
    assert caught.value.code == "r_error"
    assert caught.value.got == '오류: it\'s 100% "wrong"'
    assert "said before the error" in caught.value.hint
    # Whatever the function is: nothing about columns that it may not have.
    assert "R's own words" in caught.value.hint and "r_script()" in caught.value.hint
    assert "column" not in caught.value.hint
    assert type(caught.value) is EngineError


def test_an_error_does_not_spoil_the_next_call():
    with pytest.raises(EngineError):
        call("selftest_error", {"text": "no"})
    assert echo(["yes"]) == ["yes"]


def test_a_shim_that_is_not_there():
    with pytest.raises(EngineError, match="selftest_nothing"):
        call("selftest_nothing", {})


def test_a_reply_that_is_not_plain_is_an_error():
    with pytest.raises(EngineError, match="environment, which is not plain data"):
        call("selftest_environment", {})


def test_an_error_in_one_of_many_leaves_the_others_alone():
    inputs = [{"fail": i == 2, "number": float(i)} for i in range(5)]
    replies = call_many("selftest_maybe_error", inputs)
    assert [reply.error is None for reply in replies] == [True, True, False, True, True]
    assert replies[2].error["message"] == "this item fails"
    assert "simpleError" in replies[2].error["class"]
    assert [reply.value["answer"][0] for reply in replies if reply.error is None] == [0, 2, 6, 8]


def test_what_one_of_many_does_stays_with_it():
    sinks, names = ["", "leave", "end", "leave"], ["가", "b", "c"]
    inputs = [
        {"name": f"{names[i % 3]}{i}", "fail": i % 5 in (0, 3), "sink": sinks[i % 4]}
        for i in range(70)
    ]
    replies = call_many("selftest_disturb", inputs)
    draws = [reply.value["draw"][0] for reply in replies if reply.error is None]
    assert len(set(draws)) == len(draws)  # no item draws from the seed that another one set
    for item, reply in zip(inputs, replies):
        name = item["name"]
        assert reply.printed == (f"printed by {name} ",)
        assert reply.messages == (f"message of {name}",)
        assert reply.warnings == (f"warning of {name}",)
        if item["fail"]:
            assert reply.error["message"] == f"error of {name}" and reply.value == {}
        else:
            assert reply.error is None and reply.value["name"] == [name]
            assert reply.value["digits"] == 7 and reply.value["devices"] == 0
    assert call("selftest_plot", {}).value["devices"] == 1


def test_a_kind_of_generator_stays_with_the_item_that_set_it():
    kinds = [{"kind": "Wichmann-Hill"}, {"kind": None}, {"kind": "Marsaglia-Multicarry"}]
    replies = call_many("selftest_kind", [*kinds, {"kind": None}])
    usual = ["Mersenne-Twister", "Inversion", "Rejection"]
    assert [reply.value["before"] for reply in replies] == [usual] * 4
    assert call("selftest_kind", {"kind": None}).value["before"] == usual


def test_a_package_named_twice_is_asked_for_once():
    assert set(call("selftest_echo", {}, packages=("sae", "sae")).versions) == {"R", "sae"}


def test_no_inputs_no_replies():
    assert call_many("selftest_echo", []) == []


def test_several_workers_answer_in_order():
    inputs = [{"fail": False, "number": float(i)} for i in range(11)]
    replies = call_many("selftest_maybe_error", inputs, workers=3)
    assert [reply.value["answer"][0] for reply in replies] == [2.0 * i for i in range(11)]


def test_the_random_stream_is_put_back():
    one = call("selftest_random", {"seed": 5}).value["draws"]
    call("selftest_random", {"seed": None})
    two = call("selftest_random", {"seed": 5}).value["draws"]
    free = [call("selftest_random", {"seed": None}).value["draws"].tolist() for _ in range(2)]
    assert one.tolist() == two.tolist()
    # A seed set in one call does not fix the draws of the next.
    assert free[0] != free[1]


def test_r_draws_as_it_always_does():
    reply = call("selftest_random", {"seed": 42}).value
    assert reply["kind"] == ["Mersenne-Twister", "Inversion", "Rejection"]
    # set.seed(42); sprintf("%.17g", runif(3)) in plain R
    draws = [0.91480604349635541, 0.93707541329786181, 0.28613953478634357]
    assert reply["draws"].tolist() == draws


def test_packages_are_loaded_and_named_but_not_attached():
    reply = call("selftest_session", {}, packages=("sae",))
    assert set(reply.versions) == {"R", "sae"}
    assert not any("sae" in name or "MASS" in name for name in reply.value["attached"])
    assert not reply.value["interactive"][0]


def test_a_package_that_is_not_installed():
    with pytest.raises(EngineUnavailable) as caught:
        call("selftest_echo", {}, packages=("sae", "notapackage"))
    assert caught.value.code == "package_missing" and caught.value.field == "notapackage"
    # Not one that setting up would bring.
    assert caught.value.hint.startswith("Run: Rscript -e")
    assert caught.value.exit_status == 3


def test_a_package_that_is_too_old(monkeypatch):
    monkeypatch.setattr("pybridge.r.door.minimum", lambda name: "99.0")
    with pytest.raises(EngineUnavailable) as caught:
        # Not loaded by another test, whose answer would be remembered.
        call("selftest_echo", {}, packages=("splines",))
    assert caught.value.code == "package_too_old"


def test_versions_of_what_is_needed():
    versions = require_packages("sae")
    assert versions["sae"][0].isdigit()


def test_plots_leave_no_file_behind(tmp_path, run_python):
    run_python(
        f"""
        import os
        os.chdir({str(tmp_path)!r})
        from pybridge.r import call
        assert call("selftest_plot", {{}}).value["devices"][0] == 1
        assert call("selftest_plot", {{}}).value["devices"][0] == 1
        assert os.listdir(".") == []
        """
    )


def test_a_time_limit_that_makes_no_sense_is_refused():
    for bad in (0, -1, float("nan"), "soon"):
        with pytest.raises(InputError) as caught:
            call("selftest_echo", {}, time_limit=bad)
        assert caught.value.field == "time_limit"


def test_an_unknown_transport_is_refused():
    with pytest.raises(InputError, match="worker, inprocess"):
        call("selftest_echo", {}, transport="telepathy")


def resident(pid):
    """Megabytes in memory."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_a_thousand_fits_in_flat_memory():
    milk = datasets.milk().assign(variance=lambda table: table["SD"] ** 2)
    x = np.random.default_rng(1).normal(size=2_000)

    def run(count):
        for _ in range(count):
            fit = fay_herriot("yi ~ C(MajorArea)", milk, variance="variance", domain="SmallArea")
            call("selftest_echo", {"x": x, "name": "도"})
        assert fit.provenance.engine == "sae"

    run(100)
    child = pool().idle[-1].child.pid
    before = resident(os.getpid()), resident(child)
    run(1_000)
    after = resident(os.getpid()), resident(child)
    assert after[0] - before[0] < 10 and after[1] - before[1] < 25
    assert pool().idle[-1].child.pid == child


def test_the_missing_number_of_r_is_a_quiet_nan():
    for count in (1, 2_000_000):
        value = echo(np.full(count, np.nan))
        with np.errstate(all="raise"):
            assert np.isnan(value + 1.0).all()
        assert set(value.view(np.uint64) & np.uint64(1 << 51)) == {np.uint64(1 << 51)}


def test_a_batch_in_several_blocks_keeps_order_and_its_own_errors():
    from pybridge.r.door import _BLOCK

    inputs = [{"x": float(i)} for i in range(2 * _BLOCK + 3)]
    replies = call_many("selftest_echo", inputs)
    assert [float(reply.value["x"][0]) for reply in replies] == [
        float(i) for i in range(len(inputs))
    ]
