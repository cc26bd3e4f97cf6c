"""Errors and warnings: one base class, and the same six facts on every error.

Every error that pybridge raises on purpose carries ``code`` (a short stable word), ``field``
(the argument or column at fault), ``expected``, ``got`` and ``hint``, so that a program can read
it and a person sees one line. The exit status is what the command line returns for it.
"""

from __future__ import annotations

from typing import Any

_LONGEST_VALUE = 200


def _shorten(value: Any) -> str:
    """The value as text, cut so that one bad column cannot flood the terminal."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


class PybridgeError(Exception):
    """Base of all errors of pybridge.

    Parameters
    ----------
    message : str
        What is wrong, one sentence without a full stop.
    code : str
        A stable word for programs, for example ``"missing_column"``.
    field : str, optional
        The argument or column at fault.
    expected, got : object, optional
        What would have been right, and what was there.
    hint : str, optional
        What to do about it.
    """

    exit_status = 1

    def __init__(
        self,
        message: str,
        *,
        code: str,
        field: str | None = None,
        expected: Any = None,
        got: Any = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.field = field
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        parts = [self.message]
        if self.field is not None:
            parts.append(f"field: {self.field}")
        if self.expected is not None:
            parts.append(f"expected: {_shorten(self.expected)}")
        if self.got is not None:
            parts.append(f"got: {_shorten(self.got)}")
        text = "; ".join(parts)
        return f"{text}. {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.facts()))

    def facts(self) -> dict[str, Any]:
        """The structured part, as keyword arguments of the constructor."""
        return {
            "code": self.code,
            "field": self.field,
            "expected": self.expected,
            "got": self.got,
            "hint": self.hint,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain text, for ``--json`` and for logs."""
        plain = {k: None if v is None else _shorten(v) for k, v in self.facts().items()}
        return {"error": type(self).__name__, "message": self.message, **plain}


def _rebuild(cls: type[PybridgeError], message: str, facts: dict[str, Any]) -> PybridgeError:
    return cls(message, **facts)


class InputError(PybridgeError, ValueError):
    """What the user passed cannot be used; nothing was computed."""

    exit_status = 2


class EngineUnavailable(PybridgeError, RuntimeError):
    """R, rpy2 or an R package is missing, too old, or the pair does not fit."""

    exit_status = 3


class EngineError(PybridgeError, RuntimeError):
    """An engine stopped with an error of its own; its words are in ``got``."""

    exit_status = 4


class EngineTimeout(EngineError):
    """An engine did not answer within the time limit; it was stopped."""


class WorkerDied(EngineError):
    """The child process that owns R ended in the middle of a call."""


class FitError(PybridgeError, RuntimeError):
    """A fit could not be carried out on input that was well formed."""

    exit_status = 4


class PybridgeWarning(UserWarning):
    """Base of all warnings of pybridge."""


class EngineWarning(PybridgeWarning):
    """R said something while it worked; the words are kept in ``conditions`` of the record."""


class DesignWarning(PybridgeWarning):
    """The design makes a number less trustworthy than it looks."""
