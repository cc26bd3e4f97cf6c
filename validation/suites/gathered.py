"""The answers of all producers of a suite, while they are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers


@dataclass
class Gathered:
    """Answers of every producer, units and keys, while they are collected."""

    values: dict[str, dict[tuple[str, str], Any]] = field(default_factory=dict)
    absent: dict[str, dict[str, str]] = field(default_factory=dict)
    units: dict[tuple[str, str], Any] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def say(self, producer: str, case: str, found: Mapping[str, Any]) -> None:
        for name, value in found.items():
            self.values.setdefault(producer, {})[case, name] = value

    def silent(self, producer: str, case: str, why: str) -> None:
        self.absent.setdefault(producer, {})[case] = why

    def compared(self, pairs: Sequence[Pairing]) -> AgreementTable:
        names = dict.fromkeys(name for pair in pairs for name in (pair.producer, pair.against))
        answers = [Answers(n, self.values.get(n, {}), self.absent.get(n, {})) for n in names]
        return compare_producers(answers, pairs, units=self.units, keys=self.keys)
