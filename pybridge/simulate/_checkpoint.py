"""Finished repetitions in a folder, one file a block, each written whole or not at all."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from pybridge.errors import InputError

_STUDY = "study.json"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The folder, or none (then nothing is kept)."""

    folder: Path | None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | None, identity: Callable[[], dict[str, Any]]
    ) -> Checkpoint:
        """The folder of this study; a folder of another one is refused.

        Raises
        ------
        InputError
            ``other_study``, naming the first part that differs.
        """
        if path is None:
            return cls(None)
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        mine = json.loads(json.dumps(identity()))
        try:
            kept = json.loads((folder / _STUDY).read_text(encoding="utf-8"))
        except FileNotFoundError:
            _write(folder / _STUDY, json.dumps(mine, indent=1, sort_keys=True).encode())
            return cls(folder)
        except ValueError:
            kept = {}
        parts = [name for name in mine if kept.get(name) != mine[name]]
        if parts:
            raise InputError(
                f"the checkpoint is of another study: its {parts[0]} differs",
                code="other_study",
                field="checkpoint",
                expected=f"{parts[0]}: {str(mine[parts[0]])[:200]}",
                got=str(kept.get(parts[0]))[:200],
                hint="Another folder, or an empty one.",
            )
        return cls(folder)

    def load(self) -> dict[int, dict[str, Any]]:
        """Every finished repetition by number."""
        out: dict[int, dict[str, Any]] = {}
        for path in sorted(self.folder.glob("r*.npz")) if self.folder else ():
            try:
                with np.load(path, allow_pickle=False) as file:
                    for key in file.files:
                        number, _, name = key.partition("/")
                        out.setdefault(int(number), {})[name] = file[key]
            except (BadZipFile, ValueError, OSError, EOFError, KeyError) as error:
                raise InputError(
                    f"{path.name} in the checkpoint cannot be read: {error}",
                    code="bad_checkpoint",
                    field="checkpoint",
                    expected="files as they were written",
                    got=str(path.name),
                    hint="Remove that file; its repetitions are run again.",
                ) from error
        return out

    def save(self, block: Mapping[int, Mapping[str, Any]]) -> None:
        """Keep these repetitions."""
        if self.folder is None or not block:
            return
        arrays = {
            f"{r}/{name}": value for r, found in block.items() for name, value in found.items()
        }
        target = self.folder / f"r{min(block):06d}-{max(block):06d}.npz"
        part = target.with_suffix(f".{os.getpid()}.part")
        with open(part, "wb") as file:
            np.savez(file, **arrays)
        os.replace(part, target)


def _write(target: Path, content: bytes) -> None:
    part = target.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(content)
    os.replace(part, target)


def population_digest(units: pd.DataFrame) -> str:
    """A digest of all units, the same in every process."""
    total = hashlib.sha256(",".join(map(str, units.columns)).encode())
    total.update(pd.util.hash_pandas_object(units, index=False).to_numpy().tobytes())
    return total.hexdigest()[:24]


def described(value: Any) -> Any:
    """What a request asks for, in plain words that are the same in every process."""
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, functools.partial):
        parts = [described(value.func), described(value.args), described(value.keywords)]
        return {"partial": parts}
    if isinstance(value, types.MethodType):
        return {"method": value.__name__, "of": described(value.__self__)}
    if dataclasses.is_dataclass(value):
        fields = {f.name: described(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": described(type(value)), **fields}
    if isinstance(value, np.ndarray):
        return hashlib.sha256(repr((value.dtype.str, value.tolist())).encode()).hexdigest()[:24]
    if isinstance(value, pd.DataFrame):
        return population_digest(value)
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if isinstance(value, (np.generic, float)):
        return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return described(type(value))
