"""Records are frozen, compare, pickle, hold read-only arrays, nothing of R and no raw units."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from source_tree import ROOT, python_files, write_tree

import pybridge as pb
from pybridge._record import Record

# Primes that no count of domains, folds, candidates or coefficients reaches.
N_UNITS, N_LABELLED, N_DOMAINS = 997, 331, 13


# --- how they are declared ---------------------------------------------------------------------


def classes_of(root: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    for path in python_files(root / "pybridge"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{path.relative_to(root)}: {node.name}", node


def base_names(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).rpartition(".")[2] for base in node.bases}


def dataclass_words(node: ast.ClassDef) -> dict[str, Any] | None:
    """The keyword arguments of the dataclass decorator, None where there is no such decorator."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = ast.unparse(call.func if call else decorator).rpartition(".")[2]
        if name == "dataclass":
            words = call.keywords if call else []
            return {w.arg or "": ast.literal_eval(w.value) for w in words}
    return None


def badly_declared(root: Path) -> list[str]:
    """Records, requests and other public dataclasses that are not frozen or compare wrongly."""
    classes = list(classes_of(root))
    records = {"Record"}
    for _ in classes:  # a subclass of a subclass may stand in an earlier file
        records |= {node.name for _, node in classes if base_names(node) & records}
    found = []
    for name, node in classes:
        words = dataclass_words(node)
        if node.name == "Record" or base_names(node) & records:
            wanted = {"frozen": True, "eq": False, "repr": False}
            if words is None or any(words.get(key) != value for key, value in wanted.items()):
                found.append(f"{name} wants @dataclass(frozen=True, eq=False, repr=False)")
        elif words is not None and not node.name.startswith("_") and not words.get("frozen"):
            found.append(f"{name} is a dataclass that can be changed")
    return found


def test_records_are_declared_frozen() -> None:
    assert badly_declared(ROOT) == []


@pytest.mark.parametrize(
    "text",
    [
        "@dataclass(frozen=True)\nclass A(Record):\n    x: int",
        "@dataclass(eq=False, repr=False)\nclass A(_record.Record):\n    x: int",
        "class A(Record):\n    x: int",
        "@dataclass\nclass FitSpec:\n    x: int",
        "@dataclasses.dataclass()\nclass FitSpec:\n    x: int",
        "@dataclass(frozen=True, eq=False, repr=False)\nclass A(Record):\n    x: int\n"
        "class B(A):\n    y: int",
    ],
)
def test_a_bad_declaration_is_found(tmp_path: Path, text: str) -> None:
    write_tree(tmp_path, {"pybridge/a.py": text})
    assert len(badly_declared(tmp_path)) == 1


# --- how they are when they come back ----------------------------------------------------------


def units() -> pd.DataFrame:
    """A population of 13 domains in 3 regions; every third unit or so has a label."""
    draw = np.random.default_rng(11)
    county = np.arange(N_UNITS) % N_DOMAINS
    f = county / 4 + draw.normal(size=N_UNITS)
    y = 1 + f + 0.3 * draw.normal(size=N_DOMAINS)[county] + draw.normal(size=N_UNITS)
    labelled = draw.permutation(N_UNITS) < N_LABELLED
    return pd.DataFrame(
        {
            "county": [f"c{c}" for c in county],
            "region": [f"r{c % 3}" for c in county],
            "f": f,
            "y": np.where(labelled, y, np.nan),
        }
    )


def direct_estimates() -> Record:
    table = units()
    words = {"domain": "county", "auxiliary": ["f"]}
    sample = table[table["y"].notna()].assign(w=N_UNITS / N_LABELLED)
    design = pb.survey_design(sample, weights="w")
    population = pb.population(table, taxonomy=["region", "county"], **words)
    return pb.generalized_regression(design, population, outcome="y", **words)


def area_fit(engine: str) -> Record:
    area = direct_estimates().to_frame()
    area["f"] = np.arange(float(len(area)))
    return pb.fay_herriot("estimate ~ f", area, variance="variance", domain="domain", engine=engine)


def evaluation() -> Record:
    return pb.evaluate(
        units(),
        outcome="y",
        domain="county",
        auxiliary=["f"],
        taxonomy=["region", "county"],
        engine="native",
    )


MAKERS = {
    "direct estimates": direct_estimates,
    "native fit": lambda: area_fit("native"),
    "evaluation": evaluation,
}


@pytest.fixture(scope="module", params=[*MAKERS, pytest.param("sae", marks=pytest.mark.r("sae"))])
def record(request: pytest.FixtureRequest) -> Record:
    return area_fit("sae") if request.param == "sae" else MAKERS[request.param]()


def parts_of(value: Any, name: str = "record") -> Iterator[tuple[str, Any]]:
    """The value and everything inside it, each with its path."""
    yield name, value
    if isinstance(value, Record):
        for field in dataclasses.fields(value):
            yield from parts_of(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from parts_of(item, f"{name}[{key!r}]")
    elif isinstance(value, (tuple, list, set, frozenset)):
        for place, item in enumerate(value):
            yield from parts_of(item, f"{name}[{place}]")
    elif isinstance(value, np.ndarray) and value.dtype == object:
        for item in value.ravel():
            yield from parts_of(item, f"{name}[]")


def faults(record: Record) -> list[str]:
    found = []
    for name, value in parts_of(record):
        kind = type(value)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            found.append(f"{name} can be written to")
        if isinstance(value, np.ndarray) and {N_UNITS, N_LABELLED} & set(value.shape):
            found.append(f"{name} holds a number a unit")
        if isinstance(value, (tuple, list)) and len(value) in (N_UNITS, N_LABELLED):
            found.append(f"{name} holds an item a unit")
        if isinstance(value, (pd.DataFrame, pd.Series, pd.Index, list, dict, set)):
            found.append(f"{name} is a {kind.__name__}, which can be changed")
        if kind.__module__.partition(".")[0] == "rpy2":
            found.append(f"{name} is an object of R")
        if callable(value):
            found.append(f"{name} is a {kind.__name__}, which may not pickle")
    return found


def test_a_record_holds_what_it_may(record: Record) -> None:
    assert faults(record) == []


def test_a_record_pickles_and_compares(record: Record) -> None:
    copy = pickle.loads(pickle.dumps(record))
    assert copy == record and copy is not record
    assert faults(copy) == []


def test_a_record_cannot_be_changed(record: Record) -> None:
    name = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, None)


def test_a_record_is_read_without_printing(
    record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.summary() and "<" in record._repr_html_()
    assert isinstance(record.to_frame(), pd.DataFrame) and isinstance(record.to_dict(), dict)
    before = pickle.dumps(record)
    frame = record.to_frame()  # a table handed out is the caller's own
    for name in frame.select_dtypes("float").columns:
        frame.loc[frame.index[0], name] = 0.5
    assert pickle.loads(before) == record
    assert capsys.readouterr() == ("", "")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sample(Record):
    """A record of anything, for showing that the faults are found."""

    held: Any


def writable() -> Record:
    record = Sample(np.zeros(3))
    object.__setattr__(record, "held", np.zeros(3))
    return record


@pytest.mark.parametrize(
    "bad",
    [
        writable,
        lambda: Sample(np.zeros(N_UNITS)),
        lambda: Sample({"a": (np.zeros((2, N_LABELLED)),)}),
        lambda: Sample(tuple(range(N_LABELLED))),
        lambda: Sample(pd.DataFrame({"a": [1]})),
        lambda: Sample({"a": Sample(pd.Series([1]))}),
        lambda: Sample(lambda: 1),
    ],
)
def test_a_record_that_holds_what_it_may_not_is_found(bad: Any) -> None:
    assert faults(bad())
