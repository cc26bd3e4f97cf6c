"""Registration: the canonical form of a protocol with its digest and date, beside the plan."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pybridge._files import place, writing
from pybridge._record import FrozenMapping, Record, plain
from pybridge._version import __version__
from pybridge.errors import InputError
from pybridge.protocol.plan import Protocol, canonical_sha256

SUFFIX = ".registered.json"
_CLOCK_SLACK = datetime.timedelta(minutes=5)


@dataclass(frozen=True, eq=False, repr=False)
class Registration(Record):
    """A registered protocol.

    Attributes
    ----------
    protocol : mapping
        The canonical form.
    sha256 : str
        Digest of it.
    registered_at : str
        Date and time, UTC, ISO 8601.
    pybridge : str
        Version that registered it.
    path : str
    """

    protocol: Mapping[str, Any]
    sha256: str
    registered_at: str
    pybridge: str
    path: str

    def differences(self, protocol: Protocol) -> tuple[tuple[str, Any, Any], ...]:
        """(key, registered value, value now) for every key that differs."""
        before, now = _flat(plain(self.protocol)), _flat(protocol.canonical())
        return tuple(
            (key, before.get(key), now.get(key))
            for key in sorted({*before, *now})
            if before.get(key) != now.get(key)
        )

    def summary(self) -> str:
        return f"registered {self.registered_at}, SHA-256 {self.sha256} ({self.path})"


def registration_path(protocol: Protocol, path: str | PathLike[str] | None = None) -> Path:
    """Where the registration lies: the path given, or beside the plan.

    A path that ends in ``.json`` is taken as it is; for any other, such as the plan's,
    ``.registered.json`` takes the place of its suffix.
    """
    if path is None and not protocol.source:
        raise InputError(
            "the protocol comes from no file, so there is no place beside it",
            code="no_path",
            field="path",
            expected="a path for the registration",
            got=None,
        )
    given = place(protocol.source if path is None else path)
    if not given.name:
        raise InputError(
            "the path of a registration needs the name of a file",
            code="bad_path",
            field="path",
            expected="the name of a file",
            got=str(given),
        )
    return given if given.suffix == ".json" else given.with_suffix(SUFFIX)


def register(
    protocol: Protocol,
    path: str | PathLike[str] | None = None,
    *,
    now: datetime.datetime | None = None,
) -> Registration:
    """Write the registration; a second time with the same values changes nothing.

    Raises
    ------
    InputError
        ``already_registered`` where other values are registered there, naming what differs.
    """
    target = registration_path(protocol, path)
    if target.exists():
        there = load_registration(target)
        differing = there.differences(protocol)
        if differing:
            raise InputError(
                f"another protocol is registered there: {_named(differing)}",
                code="already_registered",
                field="path",
                expected="a new file for a new plan; a registration is never overwritten",
                got=str(target),
            )
        return there
    moment = (now or datetime.datetime.now(datetime.timezone.utc)).astimezone(datetime.timezone.utc)
    content = {
        "protocol": protocol.canonical(),
        "sha256": protocol.sha256(),
        "registered_at": moment.isoformat(timespec="seconds"),
        "pybridge": __version__,
    }
    content["record_sha256"] = canonical_sha256(content)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    with writing(target), open(target, "x", encoding="utf-8", newline="\n") as file:
        file.write(text)
    return load_registration(target, now=moment)


def load_registration(
    path: str | PathLike[str], *, now: datetime.datetime | None = None
) -> Registration:
    """Read a registration and check its digests and its date.

    Raises
    ------
    InputError
        ``not_registered``, ``bad_registration``, ``registration_edited``, ``bad_clock``.
    """
    file = place(path, field="registration")
    if not file.is_file():
        raise InputError(
            "the protocol is not registered",
            code="not_registered",
            field="registration",
            expected=f"the file {file}",
            got="no such file",
            hint="Register it before the scores are looked at: pybridge protocol register "
            "claim.toml. An exploratory run needs no registration and is marked as such.",
        )
    content = _read(file)
    kept = {name: value for name, value in content.items() if name != "record_sha256"}
    edited = canonical_sha256(content["protocol"]) != content["sha256"]
    if edited or canonical_sha256(kept) != content["record_sha256"]:
        raise InputError(
            "the registration was edited after it was written: "
            + ("its values do" if edited else "its date or version does")
            + " not fit its digest",
            code="registration_edited",
            field="registration",
            expected=f"SHA-256 {content['sha256'] if edited else content['record_sha256']}",
            got=canonical_sha256(content["protocol"] if edited else kept),
            hint="Take the file from where it was kept safe, or register anew under another name.",
        )
    _check_clock(str(content["registered_at"]), now)
    return Registration(
        protocol=FrozenMapping(content["protocol"]),
        sha256=content["sha256"],
        registered_at=content["registered_at"],
        pybridge=content["pybridge"],
        path=str(file),
    )


def need_registered(protocol: Protocol, path: str | PathLike[str] | None = None) -> Registration:
    """The registration of exactly this protocol.

    Raises
    ------
    InputError
        ``protocol_differs``, naming every value that is not the registered one; and those of
        :func:`load_registration`.
    """
    found = load_registration(registration_path(protocol, path))
    differing = found.differences(protocol)
    if differing:
        raise InputError(
            f"the protocol is not the registered one: {_named(differing)}",
            code="protocol_differs",
            field=differing[0][0],
            expected=f"SHA-256 {found.sha256}, registered {found.registered_at}",
            got=protocol.sha256(),
            hint="Undo the change, register the new plan under another name, or run it as "
            "exploratory.",
        )
    return found


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        whole = {"protocol", "sha256", "registered_at", "pybridge", "record_sha256"} <= set(content)
    except (ValueError, TypeError):
        content, whole = {}, False
    if not whole or not isinstance(content["protocol"], dict):
        raise InputError(
            "the registration cannot be read",
            code="bad_registration",
            field="registration",
            expected="the JSON file that `pybridge protocol register` wrote",
            got=str(file),
        )
    return content


def _check_clock(registered_at: str, now: datetime.datetime | None) -> None:
    present = now or datetime.datetime.now(datetime.timezone.utc)
    moment = datetime.datetime.fromisoformat(registered_at)
    if moment > present + _CLOCK_SLACK:
        raise InputError(
            "the registration is dated in the future",
            code="bad_clock",
            field="registered_at",
            expected=f"a time before now, {present.isoformat(timespec='seconds')}",
            got=registered_at,
            hint="One of the two clocks, of the machine that registered or of this one, is wrong.",
        )


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out.update(_flat(value, f"{before}{name}."))
        else:
            out[before + name] = value
    return out


def _named(differing: tuple[tuple[str, Any, Any], ...]) -> str:
    return "; ".join(f"{key}: registered {before!r}, now {now!r}" for key, before, now in differing)
