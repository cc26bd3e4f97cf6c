"""Proximity matrices and covariances of errors, put in the order of the domains by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, real_array
from pybridge.errors import InputError

_ROUNDING = 1e-8


def proximity(
    given: Any, *, domains: np.ndarray, sampled: np.ndarray, wanted: bool, guarded: bool
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """W of the sampled domains (n, n) in the order of ``domains``, and what there is to say of it.

    Parameters
    ----------
    given : pandas.DataFrame or array
        Guarded: a DataFrame with the domains as index and columns, in any order; those without a
        direct estimate may be in it and are cut out, rows that added up to 1 scaled anew. Raw:
        anything square, by position.
    domains : numpy.ndarray
        Shape (m,), object.
    sampled : numpy.ndarray
        Shape (m,), bool.
    wanted : bool
        Whether the model has correlated effects.
    guarded : bool
    """
    if given is None or not wanted:
        if wanted:
            raise _bad("correlation 'spatial' needs a proximity matrix", "missing_argument", None)
        return None, ()
    if not guarded:
        return _square(_numbers(given), int(sampled.sum())), ()
    if not isinstance(given, pd.DataFrame):
        raise _bad(
            "the proximity matrix has no labels, so its rows cannot be matched to the domains",
            "unlabelled_proximity",
            type(given).__name__,
            hint="pd.DataFrame(W, index=labels, columns=labels) with the labels in W's own order; "
            "mode='raw' takes rows by position, as R does.",
        )
    return _by_label(given, domains, sampled)


def labelled_matrix(given: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
    """The rows and columns of these labels (n, n), in their order.

    Raises
    ------
    InputError
        ``duplicate_domain``, ``unknown_domain``, ``not_numeric``, ``missing_values``.
    """
    places = [_positions(axis, labels) for axis in (given.index, given.columns)]
    found = _numbers(given)[np.ix_(*places)]
    if not np.isfinite(found).all():
        bad = labels[~np.isfinite(found).all(axis=1)]
        raise _bad(
            "the proximity matrix has values that are missing or infinite",
            "missing_values",
            f"in the rows of {listed(bad)}",
        )
    if not found.any():
        raise _bad(
            "the proximity matrix is 0 everywhere: no correlation can be estimated",
            "no_neighbours",
            "zeros",
        )
    return np.ascontiguousarray(found)


def _by_label(
    given: pd.DataFrame, domains: np.ndarray, sampled: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    kept = domains[sampled]
    outside = {str(label) for label in domains[~sampled]}
    known = {str(label) for label in domains}
    extra = [label for label in map(str, given.index) if label not in known]
    if extra:
        raise _bad(
            "the labels of the proximity matrix are not the domains of the table",
            "unknown_domain",
            f"not in the table: {listed(extra)}",
        )
    matrix = labelled_matrix(given, kept)
    remarks: list[str] = []
    cut = [label for label in map(str, given.index) if label in outside]
    if cut:
        whole = given.set_axis([str(label) for label in given.index], axis=0)
        before = _numbers(whole.loc[[str(label) for label in kept]]).sum(axis=1)
        remarks.append(f"domains without a direct estimate were cut from W: {listed(cut)}")
        if np.allclose(before[before != 0], 1.0, atol=_ROUNDING):
            sums = matrix.sum(axis=1, keepdims=True)
            matrix = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums != 0)
            remarks.append("its rows were scaled to add up to 1 again")
    return matrix, (*remarks, *_remarks(matrix, kept))


def _remarks(matrix: np.ndarray, labels: np.ndarray) -> tuple[str, ...]:
    """What emdi takes without a word and a reader should know."""
    said = []
    alone = ~matrix.any(axis=1)
    if alone.any():
        said.append(f"domains without neighbours: {listed(labels[alone])}")
    if (np.abs(matrix.sum(axis=1)[~alone] - 1.0) > _ROUNDING).any():
        said.append(
            "the rows of W do not add up to 1, as emdi wants them: its spatial parameter is then "
            "not a correlation"
        )
    if matrix.diagonal().any():
        said.append("domains are neighbours of themselves: W has a diagonal")
    return tuple(said)


def _positions(have: pd.Index, labels: np.ndarray) -> np.ndarray:
    there = [str(label) for label in have]
    place = {label: k for k, label in enumerate(there)}
    if len(place) < len(there):
        twice = [label for label in place if there.count(label) > 1]
        raise _bad("the proximity matrix has a label twice", "duplicate_domain", listed(twice))
    missing = [label for label in map(str, labels) if label not in place]
    if missing:
        raise _bad(
            "the labels of the proximity matrix are not the domains of the table",
            "unknown_domain",
            f"not in the matrix: {listed(missing)}",
        )
    return np.array([place[str(label)] for label in labels], dtype=np.intp)


def _numbers(given: Any) -> np.ndarray:
    return real_array("corMatrix", given, expected="a square matrix of numbers")


def _square(matrix: np.ndarray, n: int) -> np.ndarray:
    if matrix.shape != (n, n):
        raise _bad(
            f"the proximity matrix must be {n} by {n}: the domains with a direct estimate",
            "not_square",
            f"shape {matrix.shape}",
        )
    return matrix


def _bad(message: str, code: str, got: Any, *, hint: str | None = None) -> InputError:
    return InputError(
        message,
        code=code,
        field="corMatrix",
        expected="pandas.DataFrame with the domains as index and as columns",
        got=got,
        hint=hint,
    )


def error_array(
    given: Any, *, domains: np.ndarray, n_coefficients: int, wanted: bool
) -> np.ndarray | None:
    """Covariances of the covariates' errors (p, p, m) in the order of ``domains``.

    Parameters
    ----------
    given : mapping or array
        A (p, p) matrix for each label, or R's array of shape (p, p, m) in the table's order; the
        intercept's row and column are 0.
    """
    if not wanted:
        return None
    p, m = n_coefficients, len(domains)
    if isinstance(given, Mapping):
        given = _by_domain(given, domains)
    try:
        array = real_array("Ci", given)
    except InputError as error:
        raise _bad_errors(error.message, p, m, error.got) from None
    if array.shape != (p, p, m):
        raise _bad_errors("Ci has another shape than the model", p, m, f"shape {array.shape}")
    bad = ~np.isfinite(array).all(axis=(0, 1))
    if bad.any():
        raise _bad_errors("Ci has missing values", p, m, f"domains {listed(domains[bad])}")
    turned = np.moveaxis(array, 2, 0)
    size = np.abs(turned).max(axis=(1, 2), keepdims=True)
    bad = (np.abs(turned - turned.transpose(0, 2, 1)) > 1e-8 * size).any(axis=(1, 2))
    bad |= np.linalg.eigvalsh(turned)[:, 0] < -1e-8 * size[:, 0, 0]
    if bad.any():
        raise _bad_errors(
            "Ci holds matrices that are not covariances", p, m, f"domains {listed(domains[bad])}"
        )
    return array


def _by_domain(given: Mapping[Any, Any], domains: np.ndarray) -> np.ndarray:
    by_label = {str(label): matrix for label, matrix in given.items()}
    missing = [str(label) for label in domains if str(label) not in by_label]
    if missing:
        raise InputError(
            "Ci has no covariance for some domains",
            code="unknown_domain",
            field="Ci",
            expected="a matrix for every domain of the table",
            got=f"missing: {listed(missing)}",
        )
    try:
        return np.stack([np.asarray(by_label[str(label)], dtype=float) for label in domains], -1)
    except ValueError:
        raise InputError(
            "the matrices of Ci have different shapes",
            code="bad_shape",
            field="Ci",
            expected="(p, p) matrices",
            got=listed({np.shape(matrix) for matrix in by_label.values()}),
        ) from None


def _bad_errors(message: str, p: int, m: int, got: Any) -> InputError:
    return InputError(
        message,
        code="bad_errors",
        field="Ci",
        expected=f"shape ({p}, {p}, {m}), or a ({p}, {p}) matrix for each label",
        got=got,
        hint="Method 'me' needs the covariance of each domain's covariates, the intercept's row "
        "and column 0.",
    )
