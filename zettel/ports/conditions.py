"""Conditions on metadata and fields of a note, and the one function by which every store evaluates them.

``zettel.core.conditions`` parses them from ``filter=``. A missing value counts as null. Values are compared with their
types: 1 is not "1", and true is not 1; 1 and 1.0 are equal. Numbers, texts and times have an order, each among
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from zettel.model import Kind, Note, to_micros

OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains", "exists")
"""``in`` and ``nin`` take a list, ``exists`` takes true or false. ``contains`` finds an element of a list, or a part of
a text; ``icontains`` ignores case."""
ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
"""The operators of an order."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a note's metadata, or of its field if ``of_note``.

    A time is a number of microseconds. The value of ``in`` and ``nin`` is a frozenset of :func:`comparable` values.
    """

    name: str
    operator: str
    value: Any
    of_note: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    """True if all of its parts are."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True if one of its parts is."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if its part is not."""

    part: Condition


Condition: TypeAlias = "Comparison | AllOf | AnyOf | Not"


def matches(condition: Condition, metadata: Mapping[str, Any], note: Note | None = None) -> bool:
    """Return whether a note meets a condition; ``note`` may be None if :func:`reads_fields` is False."""
    if isinstance(condition, AllOf):
        return all(matches(part, metadata, note) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return any(matches(part, metadata, note) for part in condition.parts)
    if isinstance(condition, Not):
        return not matches(condition.part, metadata, note)
    found = _field(note, condition.name) if condition.of_note else metadata.get(condition.name)
    return _compare(condition.operator, found, condition.value)


def reads_fields(condition: Condition) -> bool:
    """Return whether a condition reads more than metadata."""
    return any(comparison.of_note for comparison in comparisons(condition))


def comparisons(condition: Condition) -> Iterator[Comparison]:
    """Yield the comparisons of a condition."""
    if isinstance(condition, Comparison):
        yield condition
        return
    for part in (condition.part,) if isinstance(condition, Not) else condition.parts:
        yield from comparisons(part)


def _field(note: Note | None, name: str) -> Any:
    value = getattr(note, name)
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, Kind):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _compare(operator: str, found: Any, value: Any) -> bool:
    if operator == "eq":
        return _same(found, value)
    if operator == "ne":
        return not _same(found, value)
    if operator == "in":
        return comparable(found) in value
    if operator == "nin":
        return comparable(found) not in value
    if operator == "exists":
        return bool((found is not None) == value)
    if operator == "contains":
        return _contains(found, value)
    if operator == "icontains":
        return _contains(_folded(found), _folded(value))
    if not (_is_number(found) and _is_number(value)) and not (isinstance(found, str) and isinstance(value, str)):
        return False
    return bool(ORDERED[operator](found, value))


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, (list, tuple)) and any(_same(each, value) for each in found)


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return value.casefold()
    return [_folded(each) for each in value] if isinstance(value, (list, tuple)) else value


def comparable(value: Any) -> Any:
    """Return a hashable value that is equal for JSON values that are equal with their types.

    Example: ``comparable([1, True])`` equals ``comparable([1.0, True])``, but not ``comparable([1, 1])``.
    """
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, (list, tuple)):
        return (list, *map(comparable, value))
    if isinstance(value, Mapping):
        return dict, frozenset((key, comparable(each)) for key, each in value.items())
    return value


def _same(one: Any, other: Any) -> bool:
    return bool(comparable(one) == comparable(other))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
