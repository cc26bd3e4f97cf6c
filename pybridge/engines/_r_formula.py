"""A model formula in R's own language: which columns it uses, and what R is given to parse.

The text is never run: here it is cut into tokens, and R parses it and looks through what it parsed
(shims/_shared.R) before anything is evaluated. It may hold names of columns, constants, operators
and the functions named in FUNCTIONS, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pybridge._checks import need_columns
from pybridge._record import Record
from pybridge._r_text import text as r_string
from pybridge.errors import InputError

_OPERATORS = "~ + - * / ^ : %in% %% %/% ( == != < <= > >= & | !".split()
_CALLED = (
    "I log log10 log2 log1p exp expm1 sqrt abs sin cos tan round floor ceiling pmin pmax ifelse "
    "factor as.factor as.numeric as.integer as.character as.logical relevel cut interaction "
    "is.na poly scale c offset"
).split()
FUNCTIONS = (*_OPERATORS, *_CALLED)

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>0[xX][0-9a-fA-F]+L?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<quoted>`[^`]+`)
    |(?P<name>[^\W\d_][\w.]*|\.[^\W\d][\w.]*)
    |(?P<operator>%[^%\s]*%|<=|>=|==|!=|[-+*/^:~(),<>&|!=.])""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"(?:[A-Za-z]|\.(?![0-9]))[A-Za-z0-9._]*")
_CONSTANTS = ("TRUE", "FALSE", "NULL", "NA", "Inf", "NaN")
_RESERVED = (*_CONSTANTS, *"if else repeat while function for next break in".split())


@dataclass(frozen=True, eq=False, repr=False)
class RFormula(Record):
    """A formula of R, read against a table.

    Attributes
    ----------
    text : str
        As the user wrote it.
    code : str
        As R is given it: ASCII, every column under a name that any locale can read.
    outcome : str or None
        The column on the left, None where something else stands there.
    columns : tuple of str
        The columns that it uses, each once.
    names : mapping of str to str
        The name in R of each of these columns, and of others that go with them.
    offset : bool
        Whether it holds an offset, which sae ignores.
    """

    text: str
    code: str
    outcome: str | None
    columns: tuple[str, ...]
    names: Mapping[str, str]
    offset: bool

    @property
    def made_up(self) -> dict[str, str]:
        """The columns behind the names that were made up for R."""
        return made_up(self.names)

    def label(self, term: str) -> str:
        """A term as R names it, with the user's names of columns in it."""
        for column, name in self.names.items():
            if name != column:
                term = term.replace(name, column)
        return term


def readable(name: str) -> bool:
    """Whether a name stands in a formula as it is, in every locale."""
    return _PLAIN.fullmatch(name) is not None and name not in _RESERVED


def r_names(columns: Iterable[str], *, table: pd.DataFrame) -> dict[str, str]:
    """A name in R for each column: its own where every R can read it, else a made-up one."""
    found: dict[str, str] = {}
    number = 0
    for column in columns:
        if readable(column):
            found[column] = column
            continue
        number += 1
        while f".column{number}." in table.columns:
            number += 1
        found[column] = f".column{number}."
    return found


def made_up(names: Mapping[str, str]) -> dict[str, str]:
    """Of the names in R of columns those that are not the columns' own, and what they stand for."""
    return {name: column for column, name in names.items() if name != column}


def _bad(message: str, got: Any, *, code: str = "bad_formula", hint: str | None = None) -> Any:
    return InputError(
        message,
        code=code,
        field="formula",
        expected="'y ~ x + as.factor(g)', in R's words",
        got=got,
        hint=hint,
    )


def read_formula(
    formula: str,
    table: pd.DataFrame,
    *,
    also: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> RFormula:
    """Read a formula against the table whose columns it names.

    Parameters
    ----------
    formula : str
    table : pandas.DataFrame
    also : sequence of str
        Columns that R gets beside those of the formula.
    names : mapping of str to str, optional
        The names in R of all columns, where several formulas share a table.

    Raises
    ------
    InputError
        ``bad_formula``, ``missing_column``, ``unknown_function``.
    """
    if not isinstance(formula, str) or not formula.strip():
        raise _bad("the formula must be text", formula)
    tokens = _tokens(formula)
    columns = _columns(tokens, formula, table)
    tildes = sum(text == "~" for _, text in tokens)
    if tildes != 1:
        raise _bad(f"the formula has {'no' if not tildes else 'more than one'} '~'", formula)
    known = dict(names or r_names(dict.fromkeys([*columns, *also]), table=table))
    return RFormula(
        text=formula,
        code=_code(tokens, known),
        outcome=_outcome(tokens, formula),
        columns=tuple(columns),
        names=known,
        offset=any(text == "offset" for kind, text in tokens if kind == "call"),
    )


def sides(formula: str) -> tuple[str, str]:
    """What stands left and right of a formula's '~', which may be in a column's name too."""
    tilde = next((t for t in _TOKEN.finditer(formula) if t.group() == "~"), None)
    if tilde is None:
        raise _bad("the formula has no '~'", formula)
    return formula[: tilde.start()].strip(), formula[tilde.end() :].strip()


def _tokens(formula: str) -> list[tuple[str, str]]:
    """Kind and text of each token: number, string, column, call, argument, constant, operator."""
    raw: list[tuple[str, str]] = []
    place = 0
    while place < len(formula):
        found = _TOKEN.match(formula, place)
        if found is None:
            raise _bad(f"a formula cannot hold {formula[place]!r}", formula)
        place = found.end()
        if found.lastgroup != "space":
            raw.append((str(found.lastgroup), found.group()))
    return [_kind(raw, i) for i in range(len(raw))]


def _kind(raw: Sequence[tuple[str, str]], i: int) -> tuple[str, str]:
    kind, text = raw[i]
    after = raw[i + 1][1] if i + 1 < len(raw) else ""
    if kind == "quoted":
        return "column", text[1:-1]
    if kind != "name":
        return kind, text
    if after == "(":
        return "call", text
    if after == "=":
        return "argument", text
    return ("constant" if text in _CONSTANTS else "column"), text


def _columns(tokens: Sequence[tuple[str, str]], formula: str, table: pd.DataFrame) -> list[str]:
    for kind, text in tokens:
        if kind == "operator" and text == ".":
            raise _bad("'.' is not understood", formula, hint="Name the covariates one by one.")
        if kind == "call" and text not in _CALLED:
            raise _bad(
                f"a formula cannot call {text}()",
                text,
                code="unknown_function",
                hint=f"It may call {', '.join(_CALLED)}; compute anything else as a column.",
            )
    columns = list(dict.fromkeys(text for kind, text in tokens if kind == "column"))
    need_columns(table, columns, field="formula")
    return columns


def _outcome(tokens: Sequence[tuple[str, str]], formula: str) -> str | None:
    where = [i for i, (_, text) in enumerate(tokens) if text == "~"][0]
    if where == 0:
        raise _bad("the formula has no left-hand side", formula)
    return tokens[0][1] if where == 1 and tokens[0][0] == "column" else None


def _code(tokens: Sequence[tuple[str, str]], names: Mapping[str, str]) -> str:
    """The formula for R; strings escaped, so that it is ASCII whatever they hold."""
    parts = []
    for kind, text in tokens:
        if kind == "column":
            text = names[text]
        elif kind == "string" and not text.isascii():
            text = "".join(c if c.isascii() else r_string(c)[1:-1] for c in text)
        parts.append(text)
    return " ".join(parts)


def read_one_sided(
    formula: str,
    table: pd.DataFrame,
    *,
    field: str = "formula",
    names: Mapping[str, str] | None = None,
) -> RFormula:
    """Read a formula without a left-hand side, ``"~ x + g"``.

    Parameters
    ----------
    formula, table
        As in `read_formula`.
    field : str
        The argument, for messages.
    names : mapping of str to str, optional
        The names in R of all columns, where several formulas share a table.
    """
    if not isinstance(formula, str) or not formula.strip().startswith("~"):
        raise InputError(
            f"{field} must be a formula without a left-hand side",
            code="bad_formula",
            field=field,
            expected="'~ x + as.factor(g)', in R's words",
            got=formula,
        )
    tokens = _tokens(formula)
    columns = _columns(tokens, formula, table)
    known = r_names(dict.fromkeys(columns), table=table) if names is None else dict(names)
    return RFormula(
        text=formula,
        code=_code(tokens, known),
        outcome=None,
        columns=tuple(columns),
        names=known,
        offset=any(text == "offset" for kind, text in tokens if kind == "call"),
    )


def condition_of(subset: Any, *, field: str = "subset") -> str | None:
    """A condition in R's words as a one-sided formula, the form in which R looks it through.

    None for anything but text.

    Raises
    ------
    InputError
        ``bad_formula`` for text that is no condition.
    """
    if not isinstance(subset, str):
        return None
    if subset.strip() and "~" not in subset:
        return f"~ ({subset})"
    raise InputError(
        f"{field} must be an expression in R's words",
        code="bad_formula",
        field=field,
        expected="text such as 'x > 10'",
        got=subset,
    )
