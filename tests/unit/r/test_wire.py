"""R's serialisation format, written and read without R: what goes out comes back unchanged."""

import os
import tempfile

import numpy as np
import pytest

from pybridge.r.reader import decode, decode_file
from pybridge.r.wire import NA_REAL, Factor
from pybridge.r.writer import encode


def round_trip(value):
    return decode(b"".join(encode(value)))


def bits(array):
    return np.ascontiguousarray(array).view(np.uint64).tolist()


def test_doubles_keep_every_bit():
    odd = np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, 1 / 3, np.nan, 2.0**1023])
    assert bits(round_trip({"x": odd})["x"]) == bits(odd)


def test_na_real_comes_back_as_the_quiet_nan():
    assert bits(round_trip({"x": np.array([1.0, NA_REAL])})["x"]) == bits(np.array([1.0, np.nan]))


def test_na_real_is_the_pattern_of_r():
    assert bits(np.array([NA_REAL])) == [0x7FF00000000007A2]


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 1), (0, 4), (2, 3, 4)])
def test_matrices_keep_their_shape_and_order(shape):
    matrix = np.arange(np.prod(shape), dtype=float).reshape(shape)
    for array in (matrix, np.asfortranarray(matrix), matrix[..., ::-1]):
        back = round_trip({"x": array})["x"]
        assert back.shape == shape
        assert np.array_equal(back, array)


def test_text_keeps_its_characters():
    text = ["", "NA", None, 'it\'s "quoted"', "a\\b", "two\nlines", "\t", "서울 특별시", "😀", "é"]
    assert round_trip({"x": text}) == {"x": text}


def test_flags_integers_bytes_and_null():
    back = round_trip(
        {"b": np.array([True, False]), "i": np.array([1, -7], np.int32), "r": b"\0\xff", "n": None}
    )
    assert back["b"].dtype == bool and back["b"].tolist() == [True, False]
    assert back["i"].dtype == np.float64 and back["i"].tolist() == [1.0, -7.0]
    assert back["r"] == b"\0\xff"
    assert back["n"] is None


def test_factor_keeps_codes_levels_and_gaps():
    factor = Factor(np.array([1, -1, 0], np.int32), ("나", "a b"))
    back = round_trip({"f": factor})["f"]
    assert back.codes.tolist() == [1, -1, 0]
    assert back.levels == ("나", "a b")
    assert back.labels() == ["a b", None, "나"]


def test_lists_nest_with_and_without_names():
    value = {"이름": {"x": np.array([1.0]), "y": {"z": ["a"]}}, "u": (["a"], ["b"])}
    back = round_trip(value)
    assert list(back) == ["이름", "u"]
    assert back["이름"]["y"] == {"z": ["a"]}
    assert back["u"] == [["a"], ["b"]]
    assert round_trip({"e": {}, "t": ()}) == {"e": {}, "t": {}}


def test_vectors_without_elements():
    back = round_trip({"x": np.array([]), "b": np.array([], bool), "s": []})
    assert back["x"].shape == (0,) and back["b"].dtype == bool and back["s"] == []


def test_a_large_reply_is_read_from_a_file_as_from_memory():
    rng = np.random.default_rng(1)
    value = {
        "big": rng.normal(size=100_003),
        "text": [f"domain {i}" for i in range(20_000)],
        "matrix": rng.normal(size=(301, 203)),
        "flags": rng.random(90_001) < 0.5,
        "small": np.array([1.0]),
    }
    data = b"".join(encode(value))
    file = os.memfd_create("test")
    try:
        os.pwrite(file, data, 0)
        back = decode_file(file, len(data))
        with pytest.raises(ValueError, match="too early"):
            decode_file(file, 200_000)
    finally:
        os.close(file)
    assert np.array_equal(back["big"], value["big"])
    assert back["text"] == value["text"]
    assert np.array_equal(back["matrix"], value["matrix"])
    assert np.array_equal(back["flags"], value["flags"])


def test_what_is_not_a_reply_is_refused():
    with pytest.raises(ValueError, match="not a reply"):
        decode(b"X\n" + bytes(20))


def test_a_reply_cut_anywhere_is_refused():
    value = {"x": np.ones((2, 2)), "text": ["a", None, "도"], "f": Factor(np.array([0]), ("a",))}
    data = b"".join(encode((value, value, {"flag": np.array([True]), "none": None})))
    for end in range(len(data)):
        with pytest.raises(ValueError, match="too early"):
            decode(data[:end])
        with tempfile.TemporaryFile() as file:
            file.write(data[:end])
            file.flush()
            with pytest.raises(ValueError, match="too early"):
                decode_file(file.fileno(), end)


def test_texts_that_repeat_and_texts_that_do_not():
    texts = [["a", "b"], ["a", "b"], ["a", "c"], ["도", None], ["도", None], ["a", "b"], [], ["a"]]
    items = tuple({"one": text, "two": ["a", str(i)]} for i, text in enumerate(texts))
    back = round_trip(items)
    assert [item["one"] for item in back] == texts
    assert [item["two"][1] for item in back] == [str(i) for i in range(len(texts))]
    back[0]["one"].append("more")
    assert back[1]["one"] == ["a", "b"]


def test_a_name_twice_is_refused():
    data = b"".join(encode({"aa": ["x"], "ab": ["y"]})).replace(b"ab", b"aa")
    with pytest.raises(ValueError, match="twice"):
        decode(data)


def test_what_has_no_form_in_r_is_refused():
    with pytest.raises(TypeError, match="no R form"):
        encode({"x": object()})
