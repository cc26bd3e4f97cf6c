"""How candidates are scored, checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass

from pybridge._options import (
    COVARIANCES,
    MOST_REPETITIONS,
    REFERENCES,
    SCORES,
    choose,
    real_number,
    whole_number,
    yes_or_no,
)
from pybridge.errors import InputError

_COLUMN = {"db-cv": "db_cv", "all": "db_cv"}


@dataclass(frozen=True)
class SelectionOptions:
    """How to score, checked."""

    score: str = "db-cv"
    reference: str = "auto"
    covariance: str = "jackknife"
    size_corrected: bool = False
    split: float = 0.5
    repetitions: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        choose("score", self.score, SCORES)
        choose("reference", self.reference, REFERENCES)
        choose("covariance", self.covariance, COVARIANCES)
        yes_or_no("size_corrected", self.size_corrected)
        whole_number("repetitions", self.repetitions, least=1, most=MOST_REPETITIONS)
        whole_number("seed", self.seed, least=0)
        if not 0.0 < real_number("split", self.split) < 1.0:
            raise InputError(
                "split is the part of the sample that candidates are fitted on",
                code="bad_split",
                field="split",
                expected="0 < split < 1",
                got=self.split,
            )

    @property
    def key(self) -> str:
        """The column of the score that chooses."""
        return _COLUMN.get(self.score, self.score)
