"""Matrices and errors by label, for emdi."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines._emdi_matrices import error_array, labelled_matrix, proximity
from pybridge.errors import InputError
from tests.unit.engines.emdi_words import refused


LABELS = np.array(["a", "b", "c", 4], dtype=object)


W = pd.DataFrame(
    [[0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5], [0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0]],
    index=["a", "b", "c", "4"],
    columns=["a", "b", "c", "4"],
)


def of(given, sampled=None, guarded=True):
    inside = np.ones(4, dtype=bool) if sampled is None else np.array(sampled)
    return proximity(given, domains=LABELS, sampled=inside, wanted=True, guarded=guarded)


def test_a_matrix_is_put_in_the_order_of_the_table():
    mixed = W.loc[["4", "b", "a", "c"], ["c", "a", "4", "b"]]
    np.testing.assert_array_equal(of(mixed)[0], W.to_numpy())
    np.testing.assert_array_equal(of(W.to_numpy(), guarded=False)[0], W.to_numpy())
    assert of(W)[1] == ()


def test_domains_without_estimate_are_cut_and_rows_scaled_anew():
    matrix, remarks = of(W, sampled=[True, True, True, False])
    np.testing.assert_array_equal(matrix, [[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]])
    assert "cut from W: 4" in remarks[0] and "scaled" in remarks[1]
    binary, remarks = of(np.sign(W), sampled=[True, True, True, False])
    assert binary.sum() == 4 and "do not add up to 1" in " ".join(remarks)


def test_what_emdi_takes_without_a_word_is_said():
    alone = W.copy()
    alone.loc["a"] = 0.0
    assert "without neighbours: a" in " ".join(of(alone)[1])
    own = W.copy()
    own.loc["a", "a"] = 1.0
    assert "diagonal" in " ".join(of(own)[1])


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("missing_argument", None),
        ("unlabelled_proximity", W.to_numpy()),
        ("unknown_domain", W.rename(index={"a": "z"})),
        ("unknown_domain", W.rename(columns={"a": "z"})),
        ("duplicate_domain", W.iloc[[0, 0, 1, 2]]),
        ("missing_values", W.replace(0.5, np.nan)),
        ("no_neighbours", W * 0),
        ("not_numeric", W.astype(object).replace(0.5, "half")),
    ],
)
def test_bad_matrices(code, given):
    refused(code, of, given)


def test_raw_wants_the_sampled_domains():
    refused("not_square", of, np.eye(5), guarded=False)
    with pytest.raises(InputError):
        labelled_matrix(W, np.array(["a", "zz"], dtype=object))


def test_errors_of_covariates_by_label_or_as_in_r():
    matrices = {label: np.diag([0.0, k]) for k, label in enumerate([4, "c", "b", "a"])}
    found = error_array(matrices, domains=LABELS, n_coefficients=2, wanted=True)
    assert found.shape == (2, 2, 4)
    np.testing.assert_array_equal(found[1, 1], [3.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(
        error_array(found, domains=LABELS, n_coefficients=2, wanted=True), found
    )
    assert error_array(None, domains=LABELS, n_coefficients=2, wanted=False) is None


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("bad_errors", None),
        ("bad_errors", np.zeros((4, 2, 2))),
        ("bad_errors", np.full((2, 2, 4), np.nan)),
        ("bad_errors", -np.ones((2, 2, 4))),
        ("bad_errors", np.array([[[0.0] * 4, [1.0] * 4], [[0.0] * 4, [1.0] * 4]])),
        ("bad_errors", "C"),
        ("unknown_domain", {"a": np.eye(2)}),
        ("bad_shape", {"a": np.eye(2), "b": np.eye(3), "c": np.eye(2), "4": np.eye(2)}),
    ],
)
def test_bad_errors(code, given):
    refused(code, error_array, given, domains=LABELS, n_coefficients=2, wanted=True)
