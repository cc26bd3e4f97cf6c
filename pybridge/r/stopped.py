"""R's errors as exceptions, with what to do about those whose own words do not say it."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from pybridge.errors import EngineError, EngineUnavailable

if TYPE_CHECKING:
    from pybridge.r.door import Reply

_HINTS = (
    (
        r"observed information matrix is singular",
        "There are no standard errors here: a bounded tail (shape below -1/2), ties, or too few "
        "exceedances. Ask without them (std_err=False where there is that), or engine='native'.",
    ),
    (
        r"singular|not positive definite|infinite or missing values in 'x'",
        "A matrix cannot be inverted: look for covariates that nearly determine each other, "
        "variances of 0, and columns of very different size.",
    ),
    (
        r"supplied by optim|finite-difference value|vmmin|cannot be evaluated at initial|L-BFGS-B",
        "The likelihood cannot be computed where the search starts or went: look for missing or "
        "infinite values and for a start outside the support.",
    ),
    (
        r"contrasts can be applied only",
        "A factor has a single level in the rows that are used, with emdi also in those without a "
        "direct estimate: leave it out, or make its column categorical with all its levels.",
    ),
    (
        r"non-conformable",
        "Matrices of different sizes met: where a factor has other levels among the domains "
        "without a direct estimate than among those with one, make its column categorical with "
        "all levels; else look for rows that R drops for missing values.",
    ),
    (
        r"xmin|xmax",
        "The search for the model variance has no interval: the direct estimates are all the "
        "same, missing or infinite, or outside what the transformation takes.",
    ),
    (
        r"diff >= PRECISION|comparison \(>=\)",
        "sae's spatial fits stop in this way at their iteration limit: raise MAXITER.",
    ),
    (
        r"only one PSU",
        "A stratum has one primary unit: join strata, or choose lonely_psu='adjust', 'average', "
        "'certainty' or 'remove'.",
    ),
    (
        r"non-finite function value|integral is probably divergent",
        "An integrand overflows: rescale.",
    ),
    (
        r"cannot allocate|memory exhausted|vector memory",
        "R has no memory left: fewer domains, or engine='native', whose cost is linear.",
    ),
    (
        r"cannot open the connection|cannot write all of",
        "The file cannot be written: look at the rights of its folder and the room on its disk.",
    ),
    (
        r"needed|missing values|missing value|length zero|not a number",
        "A value is missing where R needs one: look for missing, infinite and constant columns.",
    ),
)
_ELSE = (
    "These are R's own words about the call, the help page of the function says what it needs; "
    "mode='raw', where there is one, hands the call to R unchanged, and the r_script() of a call "
    "that works shows what R is given."
)


def r_stopped(what: str, reply: Reply, *, field: str | None = None) -> EngineError:
    """The error of a reply: R's message in ``got``, a hint on what to look for.

    Parameters
    ----------
    what : str
        The function that was called.
    reply : Reply
    field : str, optional
        Default: ``what`` without its package.
    """
    error = reply.error or {}
    message = " ".join(str(error.get("message") or "no word from R").split())
    hint = _hint(message)
    said = " | ".join(reply.warnings[-3:])
    return EngineError(
        f"R stopped in {what}" + (f", calling {error['call']}" if error.get("call") else ""),
        code="r_error",
        field=field or what.rpartition(":")[2],
        expected="an answer from R",
        got=message,
        hint=f"{hint} R warned before: {said}" if said else hint,
    )


def door_fault(shim: str, message: str) -> EngineError:
    """The error where R stopped outside the function that was to be called."""
    message = " ".join(message.split())
    lost = "was not found" in message
    return EngineError(
        f"the door could not call {shim}",
        code="door_fault",
        field=shim,
        expected=f"a function {shim} in pybridge/r/shims" if lost else "an answer from R",
        got=message,
        hint=None if lost else _hint(message),
    )


def _hint(message: str) -> str:
    return next((hint for words, hint in _HINTS if re.search(words, message)), _ELSE)


_LIMITS = {
    errno.EMFILE: "Close some of the open files of this process, or raise their limit: ulimit -n.",
    errno.ENFILE: "The system has too many open files: close some.",
    errno.EAGAIN: "Too many processes or threads of this user: end some, or raise ulimit -u.",
    errno.ENOMEM: "Free memory, or raise ulimit -v.",
    errno.EFBIG: "Raise the limit of the size of files: ulimit -f.",
    errno.ENOSPC: "Free memory or disk space, or point TMPDIR to a folder with room.",
    errno.EDQUOT: "Free disk space, or point TMPDIR to a folder with room.",
}


def system_refused(error: OSError) -> EngineUnavailable | None:
    """The error where the system has no more of something for R; None where it is another."""
    number = error.errno
    hint = None if number is None else _LIMITS.get(number)
    if number is None or hint is None:
        return None
    return EngineUnavailable(
        "the system refuses what the process that runs R needs",
        code="system_limit",
        field="R",
        expected="open files, processes, memory and space for a child process",
        got=os.strerror(number),
        hint=hint,
    )
