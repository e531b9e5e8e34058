"""Edits of JSON files as text: everything else in the file, comments and layout included, stays as it is.

Comments and trailing commas are accepted, as agents accept them in their settings. ``removed`` undoes ``appended`` byte
for byte, except that a list or an object that becomes empty is removed with its last entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zettel.errors import InvalidInput

INDENT = "  "

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_MAX_DEPTH = 100


class Value(NamedTuple):
    """A value in a text: its place, what it is, and its members if it is an object or a list."""

    start: int
    end: int
    data: Any
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Value | None:
        return next((member.value for member in self.members if member.key == key), None)


class Member(NamedTuple):
    """An entry of an object, or of a list with an empty key. It begins at its key."""

    key: str
    start: int
    value: Value


def parse(text: str) -> Value:
    """Parse a text; an empty one is an empty object. Raises ``InvalidInput`` with the line of the fault."""
    start = _skip(text, 0)
    if start == len(text):
        return Value(start, start, {})
    value = _value(text, start, 0)
    end = _skip(text, value.end)
    if end < len(text):
        raise _fault(text, end)
    return value


def appended(text: str, path: Sequence[str], entry: Any) -> str:
    """Return the text with an entry at the end of the list at ``path``; missing objects and lists are created.

    Raises ``InvalidInput`` if the text is not JSON, or if something else than an object or a list is at the path.
    """
    value = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(value.data, dict):
            raise InvalidInput(f"{'.'.join(path[:depth]) or 'the file'} is not an object")
        inner = value.member(key)
        if inner is None:
            nested: Any = [entry]
            for missing in reversed(path[depth + 1 :]):
                nested = {missing: nested}
            return _inserted(text, value, key, nested, depth)
        value = inner
    if not isinstance(value.data, list):
        raise InvalidInput(f"{'.'.join(path)} is not a list")
    return _inserted(text, value, None, entry, len(path))


def with_key(text: str, key: str, entry: Any) -> str:
    """Return the text with a new key at the end of the outermost object. Raises ``InvalidInput``."""
    value = parse(text)
    if not isinstance(value.data, dict):
        raise InvalidInput("the file is not an object")
    return _inserted(text, value, key, entry, 0)


def removed(text: str, path: Sequence[str], is_removed: Callable[[Any], bool]) -> str:
    """Return the text without the entries of the list at ``path`` that ``is_removed`` accepts.

    What becomes empty by that, up to the key at the beginning of the path, is removed too. Raises ``InvalidInput``.
    """
    while True:
        steps = [parse(text)]
        for key in path:
            inner = steps[-1].member(key)
            if inner is None:
                return text
            steps.append(inner)
        values = steps[-1].members if isinstance(steps[-1].data, list) else ()
        place = next((place for place, member in enumerate(values) if is_removed(member.value.data)), None)
        if place is None:
            return text
        while len(steps) > 1 and len(steps[-1].members) == 1:
            steps.pop()
            place = [member.key for member in steps[-1].members].index(path[len(steps) - 1])
        text = _without(text, steps[-1], place)


def without_key(text: str, key: str) -> str:
    """Return the text without a key of the outermost object. Raises ``InvalidInput``."""
    value = parse(text)
    keys = [member.key for member in value.members]
    return _without(text, value, keys.index(key)) if key in keys else text


def _inserted(text: str, into: Value, key: str | None, entry: Any, depth: int) -> str:
    """Insert a member at the end of an object or a list that is ``depth`` levels deep."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    label = "" if key is None else f"{json.dumps(key)}: "
    if into.start == into.end:  # an empty file
        body = _rendered(label, entry, unit, 1, newline)
        return f"{{{newline}{unit}{body}{newline}}}{newline}"
    inside = text[into.start : into.end]
    is_long = "\n" in inside or not into.members
    body = _rendered(label, entry, unit, depth + 1, newline) if is_long else label + json.dumps(entry)
    if into.members:
        end = into.members[-1].value.end
        return f"{text[:end]},{newline + unit * (depth + 1) if is_long else ' '}{body}{text[end:]}"
    rest = inside[1:-1] if inside[1:-1].strip() else f"{newline}{unit * depth}"  # keeps a comment
    return f"{text[: into.start + 1]}{newline}{unit * (depth + 1)}{body}{rest}{text[into.end - 1 :]}"


def _rendered(label: str, entry: Any, unit: str, depth: int, newline: str) -> str:
    lines = json.dumps(entry, indent=unit, ensure_ascii=False).split("\n")
    return label + (newline + unit * depth).join(lines)


def _without(text: str, container: Value, place: int) -> str:
    members = container.members
    if place == 0 and len(members) == 1:
        after = _skip(text, members[0].value.end)
        rest = text[after + 1 if text[after] == "," else members[0].value.end : container.end - 1]
        return text[: container.start + 1] + (rest if rest.strip() else "") + text[container.end - 1 :]
    if place == len(members) - 1:
        return text[: members[place - 1].value.end] + text[members[place].value.end :]
    return text[: members[place].start] + text[members[place + 1].start :]


def _unit(text: str) -> str:
    """Return the indentation of one level: that of the first indented line."""
    match = re.search(r"[{\[]\s*\n([ \t]+)\S", text)
    return match[1] if match else INDENT


def _value(text: str, start: int, depth: int) -> Value:
    opening = text[start : start + 1]
    if depth > _MAX_DEPTH:
        raise _fault(text, start, "is nested too deeply")
    if opening in ("{", "["):
        return _container(text, start, depth)
    match = _STRING.match(text, start) or _SCALAR.match(text, start)
    if match is None:
        raise _fault(text, start)
    return Value(start, match.end(), _parsed(text, match))


def _parsed(text: str, match: re.Match[str]) -> Any:
    try:
        return json.loads(match[0])
    except ValueError:
        raise _fault(text, match.start()) from None


def _container(text: str, start: int, depth: int) -> Value:
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    members: list[Member] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        key, begun = "", at
        if is_object:
            match = _STRING.match(text, at)
            colon = _skip(text, match.end()) if match else at
            if match is None or text[colon : colon + 1] != ":":
                raise _fault(text, at)
            key, at = _parsed(text, match), _skip(text, colon + 1)
        value = _value(text, at, depth + 1)
        members.append(Member(key, begun, value))
        at = _skip(text, value.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _fault(text, at)
    values = [member.value.data for member in members]
    data: Any = dict(zip((member.key for member in members), values, strict=True)) if is_object else values
    return Value(start, at + 1, data, tuple(members))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _fault(text: str, at: int, what: str = "is not valid JSON") -> InvalidInput:
    return InvalidInput(f"line {text.count(chr(10), 0, at) + 1} {what}")
