"""Labels of domains, groups, strata and primary units: codes in, labels out unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed
from pybridge.errors import InputError


_BLOCK = 1 << 17


@dataclass(frozen=True)
class Labels:
    """Codes of a column of labels.

    Attributes
    ----------
    codes : numpy.ndarray
        Shape (n,), integers in [0, m).
    labels : numpy.ndarray
        Shape (m,), object: the labels themselves, sorted where they can be sorted.
    counts : numpy.ndarray
        Shape (m,), how often each label stands in the column.
    """

    codes: np.ndarray
    labels: np.ndarray
    counts: np.ndarray


def encode(column: pd.Series) -> Labels:
    """Codes and sorted labels of a column without missing values.

    A categorical keeps the order of its categories, of which only the used ones stay. Cost O(n)
    and, for integers in a short range, no hash table.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.asarray(column.cat.codes)
        counts = counted(codes, len(column.cat.categories))
        used = counts > 0
        labels = np.asarray(column.cat.categories, dtype=object)[used]
        refuse_unreadable(labels, str(column.name))
        refuse_twins(labels, str(column.name))
        codes = codes if used.all() else (np.cumsum(used) - 1)[codes]
        return Labels(codes, labels, counts[used])
    if _is_int64(column.dtype) and len(column):
        values = column.to_numpy(dtype=np.int64)
        from_zero = _counts_from_zero(values)
        if from_zero is not None:
            return _from_counts(values, from_zero, 0)
        low, high = int(values.min()), int(values.max())
        if high - low < _short(len(values)):
            offset = values - low
            return _from_counts(offset, np.bincount(offset, minlength=high - low + 1), low)
    # As an array, or pandas would guess a type for the labels it found.
    values = column.to_numpy() if column.dtype == object else column
    _refuse_null(values, str(column.name))
    try:
        codes, found = pd.factorize(values, sort=False)
    except TypeError as error:
        raise _no_label(column, error) from error
    labels = np.asarray(found, dtype=object)
    refuse_unreadable(labels, str(column.name))
    refuse_twins(labels, str(column.name))
    order = _sorted_order(labels)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    counts = np.bincount(codes, minlength=len(order))
    return Labels(rank[codes], labels[order], counts[order])


def counted(codes: np.ndarray, m: int) -> np.ndarray:
    """np.bincount of narrow integers, block by block: it widens all of them at once otherwise."""
    counts = np.zeros(m, dtype=np.intp)
    for start in range(0, len(codes), _BLOCK):
        counts += np.bincount(codes[start : start + _BLOCK], minlength=m)
    return counts


def _no_label(column: pd.Series, error: TypeError) -> InputError:
    """A list or a set cannot be looked up."""
    return InputError(
        f"the column {column.name!r} holds what cannot be a label: {error}",
        code="bad_label",
        field=str(column.name),
        expected="text, numbers, dates or tuples",
        got=listed(column.head(3)),
    )


def _is_int64(dtype: Any) -> bool:
    """Integers that int64 can hold all of; larger ones are labels like any other object."""
    return pd.api.types.is_integer_dtype(dtype) and not str(dtype).lower().startswith("uint64")


def _refuse_null(values: Any, name: str) -> None:
    """Refuse text with a null character before pandas reads only what stands before it.

    pandas' hash table of text ends a label there: "a\\0b" and "a\\0c" would be one domain.
    """
    try:
        whole = "".join(values)
    except TypeError:  # not text only: another hash table, which reads labels whole
        return
    if "\0" in whole:
        refuse_unreadable(np.asarray(values, dtype=object), name)


def text_codes(column: pd.Series, *, sort: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels of a column taken as text, in order of appearance or sorted."""
    need_one_reading(column)
    try:
        text = column.astype(str)
    except UnicodeEncodeError:  # pandas 3 keeps text as UTF-8, which has no half characters
        refuse_unreadable(column.to_numpy(dtype=object), str(column.name))
        raise
    _refuse_null(text.to_numpy(dtype=object), str(column.name))
    codes, found = pd.factorize(text, sort=sort)
    labels = np.asarray(found, dtype=object)
    refuse_unreadable(labels, str(column.name))
    return codes, labels


def refuse_unreadable(labels: np.ndarray, name: str) -> None:
    """Refuse text that no file and no engine can hold: a null character, half a character."""
    bad = [label for label in labels if isinstance(label, str) and not _can_be_written(label)]
    if bad:
        shown = listed(dict.fromkeys(ascii(label) for label in bad))
        raise InputError(
            f"the column {name!r} has labels that cannot be written as text: {shown}",
            code="bad_label",
            field=name,
            expected="text without null characters and without lone surrogates",
            got=shown,
            hint="Read the file with its own encoding.",
        )


def _can_be_written(label: str) -> bool:
    if label.isascii():
        return "\0" not in label
    try:
        return b"\0" not in label.encode("utf-8")
    except UnicodeEncodeError:
        return False


def need_one_reading(column: pd.Series) -> None:
    """Refuse a column of labels in which two that are not equal read the same, as 7 and "7"."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        refuse_twins(np.asarray(column.cat.categories, dtype=object), str(column.name))
    elif column.dtype == object and len({type(label) for label in column.array}) > 1:
        try:
            refuse_twins(np.asarray(pd.unique(column), dtype=object), str(column.name))
        except TypeError as error:
            raise _no_label(column, error) from error


def refuse_twins(labels: np.ndarray | list[Any], name: str) -> None:
    """Labels that read the same but are not equal, as 7 and "7", would make two groups of one."""
    if len({type(label) for label in labels}) < 2:
        return
    text = pd.Series([str(label) for label in labels], dtype=object)
    twice = text[text.duplicated()]
    if len(twice):
        raise InputError(
            f"the column {name!r} has labels both as text and as numbers: {listed(twice)}",
            code="mixed_labels",
            field=name,
            expected="one type for labels that read the same",
            got=listed(twice),
            hint="Chunks that pandas reads one by one get a type each: read labels as text "
            "(dtype=str).",
        )


def _short(n: int) -> int:
    """Up to this range n integers are counted without a hash table."""
    return max(1024, n // 4)


def _counts_from_zero(values: np.ndarray) -> np.ndarray | None:
    """How often 0, 1, … stand in a column, read once and not copied; None for a long range."""
    counts = np.zeros(0, dtype=np.intp)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        if block.min() < 0 or block.max() >= _short(len(values)):
            return None
        found = np.bincount(block, minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    return counts


def _from_counts(offset: np.ndarray, counts: np.ndarray, low: int) -> Labels:
    used = counts > 0
    codes = offset if used.all() else (np.cumsum(used) - 1)[offset]
    return Labels(codes, (np.flatnonzero(used) + low).astype(object), counts[used])


def _sorted_order(labels: np.ndarray) -> np.ndarray:
    try:
        return np.argsort(labels, kind="stable")
    except TypeError:  # labels of several types have no order of their own: as they first appear
        return np.arange(len(labels))


def match(column: pd.Series, labels: np.ndarray) -> np.ndarray:
    """Positions of the column's values in ``labels``, −1 where a value is not among them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        where = _index(labels).get_indexer(_index(np.asarray(column.cat.categories, dtype=object)))
        return where[np.asarray(column.cat.codes)]
    tight = _tight(labels) if _is_int64(column.dtype) else None
    if tight is not None:
        return pd.Index(tight).get_indexer(pd.Index(column.to_numpy(dtype=np.int64)))
    try:
        return _index(labels).get_indexer(_index(column.to_numpy(dtype=object)))
    except TypeError as error:
        raise _no_label(column, error) from error


def _index(labels: np.ndarray) -> pd.Index:
    return pd.Index(labels, dtype=object, tupleize_cols=False)


def _tight(labels: np.ndarray) -> np.ndarray | None:
    """The labels as int64, None where they are something else."""
    if not all(isinstance(label, (int, np.integer)) for label in labels):
        return None
    try:
        return labels.astype(np.int64)
    except OverflowError:
        return None


def match_domains(column: pd.Series, labels: np.ndarray, *, field: str) -> np.ndarray:
    """As `match`, but a value that is not among the population's domains is an InputError."""
    codes = match(column, labels)
    if (codes < 0).any():
        unknown = pd.unique(column[codes < 0])
        hint = None
        if {str(x) for x in unknown} & {str(x) for x in labels}:
            hint = (
                "The same labels stand in one table as text and in the other as numbers: "
                "give both columns one type."
            )
        raise InputError(
            f"the sample has domains that the population does not know: {listed(unknown)}",
            code="unknown_domain",
            field=field,
            expected="domains of the population",
            got=listed(unknown),
            hint=hint,
        )
    return codes


def parents(
    table: pd.DataFrame, domain_codes: np.ndarray, n_domains: int, levels: tuple[str, ...]
) -> Mapping[str, np.ndarray]:
    """The group of every domain at every level; a domain with two groups is an InputError.

    Parameters
    ----------
    table : pandas.DataFrame
        Units or domains, n rows.
    domain_codes : numpy.ndarray
        Shape (n,), the domain of every row.
    n_domains : int
        m.
    levels : tuple of str
        Columns, coarse to fine.

    Returns
    -------
    mapping of str to numpy.ndarray
        For every level the labels of the domains' groups, shape (m,), object.
    """
    found: dict[str, np.ndarray] = {}
    finer_codes, finer_count, finer_name = domain_codes, n_domains, "domain"
    for level in reversed(levels):
        encoded = encode(key_column(table, level, field="taxonomy"))
        parent = np.full(finer_count, -1, dtype=np.intp)
        parent[finer_codes] = encoded.codes
        clash = parent[finer_codes] != encoded.codes
        if clash.any():
            row = int(np.flatnonzero(clash)[0])
            same_child = finer_codes == finer_codes[row]
            several = encoded.labels[np.unique(np.asarray(encoded.codes)[same_child])]
            raise InputError(
                f"the taxonomy is not nested: one {finer_name} lies in several groups of {level!r}",
                code="taxonomy_not_nested",
                field="taxonomy",
                expected=f"one {level!r} for every {finer_name}",
                got=f"row {row}: {listed(several)}",
            )
        per_domain = np.empty(n_domains, dtype=np.intp)
        per_domain[domain_codes] = encoded.codes
        found[level] = encoded.labels[per_domain]
        finer_codes, finer_count, finer_name = encoded.codes, len(encoded.labels), level
    return {level: found[level] for level in levels}


def weights_by_label(
    weights: Any, labels: Sequence[Any], *, field: str, code: str, what: str
) -> np.ndarray:
    """Non-negative weights (m,), not all 0, in the order of the labels.

    Parameters
    ----------
    weights : Series, mapping or array
        By label (as text), or in the labels' order, as a Series without labels of its own.
    labels : sequence of m labels
    field, code, what : str
        Of the error: the argument, its code, what the weights must be.
    """

    def refusal(got: str) -> InputError:
        wanted = "a non-negative number for every domain of the fit, by label or in its order"
        return InputError(what, code=code, field=field, expected=wanted, got=got)

    names = [str(label) for label in labels]
    if isinstance(weights, pd.Series) and not isinstance(weights.index, pd.RangeIndex):
        if not weights.index.is_unique:
            raise refusal(f"twice: {listed(weights.index[weights.index.duplicated()].unique())}")
        weights = weights.to_dict()
    if isinstance(weights, Mapping):
        refuse_twins(list(weights), field)
        by_label = {str(label): value for label, value in weights.items()}
        missing = [name for name in names if name not in by_label]
        extra = [name for name in by_label if name not in set(names)]
        if missing or extra:
            raise refusal(f"missing: {missing[:3]}, not in the fit: {extra[:3]}")
        weights = [by_label[name] for name in names]
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise refusal(type(weights).__name__) from None
    if found.shape != (len(names),):
        raise refusal(f"shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any() or found.sum() <= 0:
        raise refusal("values that are missing or negative, or nothing but zeros")
    return found
