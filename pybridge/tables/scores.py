"""The score table: model, item, score, and scorer where there are several; checked once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, need_columns, need_frame, numeric_column
from pybridge.errors import InputError
from pybridge.tables.labels import text_codes

SINGLE_SCORER = "score"


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of models on items, by one or several scorers.

    Attributes
    ----------
    models, scorers : tuple of str
        In the order of first appearance.
    items : mapping of (scorer, model) to numpy.ndarray
        (n,) object array of item labels, sorted; each once.
    values : mapping of (scorer, model) to numpy.ndarray
        (n,) float64 scores in the order of the items.
    """

    models: tuple[str, ...]
    scorers: tuple[str, ...]
    items: Mapping[tuple[str, str], np.ndarray]
    values: Mapping[tuple[str, str], np.ndarray]

    def scores(self, model: str, scorer: str | None = None) -> np.ndarray:
        """(n,) scores of one model, in the order of its sorted items.

        Raises
        ------
        InputError
            ``unknown_model`` or ``unknown_scorer``.
        """
        return self.values[self._key(model, scorer)]

    def shares_items(self, models: Sequence[str], scorer: str | None = None) -> bool:
        """Whether all these models have scores on exactly the same items."""
        first, *rest = (self.items[self._key(model, scorer)] for model in models)
        return all(one is first or np.array_equal(one, first) for one in rest)

    def unshared(self, a: str, b: str, scorer: str | None = None) -> tuple[str, ...]:
        """Items that only one of two models has, sorted."""
        first = set(self.items[self._key(a, scorer)])
        return tuple(sorted(first ^ set(self.items[self._key(b, scorer)])))

    def sha256(self) -> str:
        """A digest of the data that does not depend on the order of the rows."""
        digest = hashlib.sha256()
        for scorer in sorted(self.scorers):
            for model in sorted(self.models):
                if (scorer, model) not in self.values:
                    continue
                labels = "\x1f".join(self.items[scorer, model])
                digest.update(f"{scorer}\x1e{model}\x1e{labels}\x1d".encode("utf-8"))
                digest.update(self.values[scorer, model].astype("<f8").tobytes())
        return digest.hexdigest()

    def _key(self, model: str, scorer: str | None) -> tuple[str, str]:
        if scorer is None:
            if len(self.scorers) > 1:
                raise InputError(
                    "there are several scorers",
                    code="unknown_scorer",
                    field="scorer",
                    expected=f"one of {listed(self.scorers)}",
                    got=None,
                )
            scorer = self.scorers[0]
        for field, value, known in (
            ("scorer", scorer, self.scorers),
            ("model", model, self.models),
        ):
            if value not in known:
                raise InputError(
                    f"there are no scores of the {field} {value!r}",
                    code=f"unknown_{field}",
                    field=field,
                    expected=f"one of {listed(known, most=12)}",
                    got=value,
                )
        if (scorer, model) not in self.values:
            raise InputError(
                f"the scorer {scorer!r} has no scores of the model {model!r}",
                code="unknown_model",
                field="model",
                expected="scores of every model by every scorer",
                got="none",
            )
        return scorer, model


def score_table(
    table: pd.DataFrame | ScoreTable,
    *,
    model: str = "model",
    item: str = "item",
    score: str = "score",
    scorer: str | None = None,
) -> ScoreTable:
    """Check a long table of scores.

    Parameters
    ----------
    table : pandas.DataFrame
        One row a score.
    model, item, score : str
        Names of the columns.
    scorer : str, optional
        The column of the scorer. By default the column ``scorer`` if there is one; without it
        there is one scorer, called "score".

    Raises
    ------
    InputError
        Missing columns, missing or infinite scores, missing labels, an item twice for a model.
    """
    if isinstance(table, ScoreTable):
        return table
    frame = need_frame("scores", table)
    need_columns(frame, [model, item, score], field="scores")
    if scorer is None and "scorer" in frame.columns:
        scorer = "scorer"
    values = numeric_column(frame, score, field="scores")
    models = key_column(frame, model, field="scores")
    items = key_column(frame, item, field="scores")
    if scorer is None:
        scorers = pd.Series(SINGLE_SCORER, index=frame.index, dtype=object)
    else:
        scorers = key_column(frame, scorer, field="scores")
    item_codes, item_names = text_codes(items, sort=True)
    model_codes, model_names = text_codes(models)
    scorer_codes, scorer_names = text_codes(scorers)
    held_items, held_values = {}, {}
    for s, scorer_name in enumerate(scorer_names):
        for m, model_name in enumerate(model_names):
            rows = np.flatnonzero((scorer_codes == s) & (model_codes == m))
            if rows.size == 0:
                continue
            rows = rows[np.argsort(item_codes[rows], kind="stable")]
            codes = item_codes[rows]
            _need_once(codes, item_names, str(model_name), str(scorer_name))
            key = (str(scorer_name), str(model_name))
            held_items[key], held_values[key] = item_names[codes], values[rows]
            held_values[key].flags.writeable = False
    return ScoreTable(
        models=tuple(str(name) for name in model_names),
        scorers=tuple(str(name) for name in scorer_names),
        items=held_items,
        values=held_values,
    )


def _need_once(codes: np.ndarray, names: np.ndarray, model: str, scorer: str) -> None:
    twice = np.flatnonzero(codes[1:] == codes[:-1])
    if twice.size:
        raise InputError(
            f"the model {model!r} has items scored twice" + (f" by {scorer!r}" if scorer else ""),
            code="duplicate_item",
            field="item",
            expected="one score for an item",
            got=listed(dict.fromkeys(names[codes[twice]].tolist())),
        )
