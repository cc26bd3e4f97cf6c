"""Reading a protocol from TOML or from values, with the key and the line of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from typing import Any

from pybridge._checks import listed
from pybridge._files import place
from pybridge.errors import InputError
from pybridge.protocol._schema import FORMAT, KEYS, PER_SCORER, REQUIRED, SECTIONS, Key
from pybridge.protocol.plan import Protocol


def load_protocol(path: str | PathLike[str]) -> Protocol:
    """Read and check a protocol file.

    Raises
    ------
    InputError
        ``no_file``, ``bad_toml`` (with the line), ``unknown_key``, ``missing_key``, ``bad_value``
        (with the key, its line and what is allowed), ``later_version``.
    """
    file = place(path, field="protocol")
    if not file.is_file():
        raise InputError(
            "there is no such protocol file",
            code="no_file",
            field="protocol",
            expected="a file",
            got=str(path),
            hint="Write one with: pybridge protocol plan --out claim.toml",
        )
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "the protocol file is not UTF-8", code="bad_toml", field="protocol", got=str(error)
        ) from None
    return _from_values(_parse(text), text=text, source=str(file))


def make_protocol(**fields: Any) -> Protocol:
    """A protocol from values by the names of :class:`Protocol`; what is left out is the default.

    Raises
    ------
    InputError
        As :func:`load_protocol`.
    """
    by_field = {key.field: key for key in KEYS}
    values: dict[str, Any] = {"scorer": _nested(fields.pop("overrides", {}))}
    for name, value in fields.items():
        if name not in by_field:
            raise _unknown(name, list(by_field), None)
        key = by_field[name]
        section = values.setdefault(key.section, {}) if key.section else values
        section[key.name] = _as_lists(value)
    return _from_values(values, text="", source="")


def _nested(overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    several = isinstance(overrides, Mapping) and all(map(_by_name, overrides.values()))
    if not several or not _by_name(overrides):
        raise InputError(
            "overrides must be mappings of values by the names of scorers",
            code="not_a_mapping",
            field="overrides",
            expected="{'scorer': {'margins.mean': 0.1}}",
            got=type(overrides).__name__,
        )
    for scorer, places in overrides.items():
        for where, value in places.items():
            section, _, name = where.partition(".")
            out.setdefault(scorer, {}).setdefault(section, {})[name] = _as_lists(value)
    return out


def _by_name(values: Any) -> bool:
    return isinstance(values, Mapping) and all(isinstance(name, str) for name in values)


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, (tuple, list)) else value


def _parse(text: str) -> dict[str, Any]:
    try:
        import tomllib as toml
    except ModuleNotFoundError:  # Python 3.10
        import tomli as toml  # type: ignore[no-redef]
    try:
        return toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise InputError(
            f"the protocol file is not valid TOML: {error}",
            code="bad_toml",
            field="protocol",
            expected="TOML",
            got=str(error),
        ) from None


def _from_values(values: dict[str, Any], *, text: str, source: str) -> Protocol:
    version = values.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"the protocol was written for a later version of pybridge{_line(text, '', 'format')}",
            code="later_version",
            field="format",
            expected=f"format = {FORMAT}",
            got=version,
            hint="Update pybridge; this one cannot know what the new values mean.",
        )
    values = dict(values)
    own = values.pop("scorer", {})
    _refuse_unknown(values, text)
    fields: dict[str, Any] = {"source": source}
    for key in KEYS:
        place = values.get(key.section, {}) if key.section else values
        if key.name in place:
            fields[key.field] = _checked(key, place[key.name], text)
        elif key.default is REQUIRED:
            raise InputError(
                f"the protocol lacks {key.place}, which has no default",
                code="missing_key",
                field=key.place,
                expected=key.comment,
                got="nothing",
            )
        else:
            fields[key.field] = key.default
    fields["overrides"] = _overrides(own, fields["scorers"], text)
    protocol = Protocol(**fields)
    for scorer in protocol.scorers:
        _consistent(protocol.for_scorer(scorer), text)
    return protocol


def _checked(key: Key, value: Any, text: str, section: str | None = None) -> Any:
    try:
        return key.check(value)
    except ValueError as error:
        line = _line(text, key.section if section is None else section, key.name)
        raise InputError(
            f"{key.place} is not what it must be{line}",
            code="bad_value",
            field=key.place,
            expected=str(error),
            got=f"{value!r}, text" if isinstance(value, str) else value,
        ) from None


def _overrides(own: Any, scorers: tuple[str, ...], text: str) -> dict[str, dict[str, Any]]:
    """Values of single scorers, by "section.key"."""
    allowed = {key.place: key for key in KEYS if key.section in PER_SCORER}
    _need_section("scorer", own, text)
    out: dict[str, dict[str, Any]] = {}
    for scorer, sections in own.items():
        if scorer not in scorers:
            line = _line(text, "", f"scorer.{scorer}")
            raise _unknown(f"scorer.{scorer}", [f"scorer.{name}" for name in scorers], line)
        _need_section(f"scorer.{scorer}", sections, text)
        for section, inner in sections.items():
            _need_section(f"scorer.{scorer}.{section}", inner, text)
            for name, value in inner.items():
                place = f"{section}.{name}"
                if place not in allowed:
                    line = _line(text, f"scorer.{scorer}", place)
                    raise _unknown(f"scorer.{scorer}.{place}", list(allowed), line)
                checked = _checked(allowed[place], value, text, f"scorer.{scorer}.{section}")
                out.setdefault(scorer, {})[place] = checked
    return out


def _need_section(name: str, value: Any, text: str) -> None:
    if not isinstance(value, dict):
        raise InputError(
            f"{name} is a section{_line(text, '', name)}",
            code="bad_value",
            field=name,
            expected=f"[{name}] with its keys below",
            got=value,
        )


def _refuse_unknown(values: dict[str, Any], text: str) -> None:
    known = [key.name for key in KEYS if key.section == ""]
    for name, value in values.items():
        if name in SECTIONS and name:
            _need_section(name, value, text)
            inside = [key.name for key in KEYS if key.section == name]
            for inner in value:
                if inner not in inside:
                    raise _unknown(f"{name}.{inner}", inside, _line(text, name, inner))
        elif name not in known:
            allowed = known + [s for s in SECTIONS if s] + ["scorer"]
            raise _unknown(name, allowed, _line(text, "", name))


def _unknown(place: str, allowed: list[str], line: str | None) -> InputError:
    return InputError(
        f"the protocol has no key {place}{line or ''}",
        code="unknown_key",
        field=place,
        expected=listed(allowed, most=40),
        got=place,
    )


def _line(text: str, section: str, name: str) -> str:
    """ ", line 12" for a key or section of the file, "" where it cannot be found.

    A key may stand below its section's header, or below an outer one with dots in its own name.
    """
    wanted = _bare(f"{section}.{name}" if section else name)
    here = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+([^\]=]+)\]+\s*(#.*)?$", line)
        key = re.match(r"\s*([^=#]+?)\s*=", line)
        if header:
            here = _bare(header[1])
            found = here == wanted
        else:
            found = key is not None and _bare(f"{here}.{key[1]}" if here else key[1]) == wanted
        if found:
            return f", line {number}"
    return ""


def _bare(place: str) -> str:
    """A place in the file without quotes and spaces, so that spellings of it compare."""
    return re.sub(r"[\"'\s]", "", place)


def _consistent(protocol: Protocol, text: str) -> None:
    """Values that are right alone and wrong together."""
    low, high = protocol.quantile - protocol.half_width, protocol.quantile + protocol.half_width
    if not 0.0 < low < high < 1.0:
        raise InputError(
            f"the window of G5 leaves (0, 1){_line(text, 'G5', 'half_width')}",
            code="bad_value",
            field="G5.half_width",
            expected="tail.quantile - half_width > 0 and tail.quantile + half_width < 1",
            got=f"{low:g} to {high:g}",
        )
    if not protocol.power > protocol.alpha:
        line = _line(text, "G3", "power")
        raise InputError(
            f"a test at this level has this power without any difference{line}",
            code="bad_value",
            field="G3.power",
            expected=f"a power above G3.alpha, {protocol.alpha:g}",
            got=protocol.power,
        )
    strangers = {name for pair in protocol.model_pairs for name in pair} - set(protocol.models)
    if strangers:
        raise InputError(
            f"pairs name models that are not in models{_line(text, '', 'pairs')}",
            code="bad_value",
            field="pairs",
            expected=f"names among {listed(protocol.models, most=12)}",
            got=listed(sorted(strangers)),
        )
