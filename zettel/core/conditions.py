"""Parses ``filter=`` of searches and lists: operators on metadata and on fields of a note, with and, or, not.

Example: ``{"team": "red", "price": {"gte": 3, "lt": 10}, "or": [{"tags": {"contains": "boat"}}, {"draft": True}]}``
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

from zettel.core.arguments import Time, moment_of, names_of, require_keepable, require_storable, require_text
from zettel.errors import InvalidInput
from zettel.model import ROLES, Kind, Role, as_metadata_pairs, to_micros
from zettel.ports.conditions import (
    OPERATORS,
    ORDERED,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Not,
    comparable,
    comparisons,
)
from zettel.ports.query import Filter

FIELDS = {
    "kind": "text", "speaker": "text", "role": "text", "session": "text", "title": "text", "caption": "text",
    "content": "text", "external_id": "text", "tags": "list", "keywords": "list", "importance": "number",
    "confidence": "number", "version": "number", "occurred_at": "time", "recorded_at": "time", "valid_from": "time",
}  # fmt: skip
"""Fields of a note that a filter may name, with their type. All other names are metadata."""
METADATA = "metadata."
"""Prefix of a metadata key that has the name of a field, such as ``metadata.title``."""
LOGICAL = ("and", "or", "not")
MAX_DEPTH, MAX_COMPARISONS = 20, 100
"""A longer list of values belongs into ``in``, which takes as long as one comparison."""


class Parsed(NamedTuple):
    """The conditions of a filter: ``key=value`` strings that all must match, and what they do not decide."""

    pairs: tuple[str, ...]
    where: Condition | None


def filter_of(
    *,
    kinds: Iterable[Kind | str] | None = None,
    tags: Iterable[str] | None = None,
    session: str | None = None,
    speaker: str | None = None,
    role: Role | None = None,
    since: Time | None = None,
    until: Time | None = None,
    filter: Mapping[str, Any] | None = None,
) -> Filter:
    """Return the checked conditions of a search or a list. Raises ``InvalidInput``."""
    tags = names_of("tags", tags)
    for tag in tags:
        require_text("tags", tag)
    require_storable("session", session)
    require_storable("speaker", speaker)
    if role is not None and role not in ROLES:
        raise InvalidInput(f"role={role!r} must be one of {', '.join(ROLES)}: filter names with speaker=…")
    if filter is not None and isinstance(filter, Mapping):
        require_keepable("filter", dict(filter))
    parsed = parse_filter({} if filter is None else filter)
    try:
        chosen = tuple(Kind(kind).value for kind in names_of("kinds", kinds))
    except ValueError as error:
        raise InvalidInput(f"{error}: use {', '.join(kind.value for kind in Kind)}") from None
    start, end = moment_of("since", since), moment_of("until", until)
    if start is not None and end is not None and start >= end:
        raise InvalidInput(f"since={start.isoformat()} must be before until={end.isoformat()}: no note can match")
    return Filter(
        kinds=chosen,
        tags=tuple(tags),
        session=session,
        speaker=speaker,
        role=role,
        since=None if start is None else to_micros(start),
        until=None if end is None else to_micros(end),
        metadata=parsed.pairs,
        where=parsed.where,
    )


def filter_from_json(name: str, text: str) -> dict[str, Any]:
    """Return a filter that is written as JSON. Raises ``InvalidInput``, which begins with ``name``."""
    try:
        filter = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{name} is not JSON: {error}") from None
    if not isinstance(filter, dict):
        raise InvalidInput(f"{name} must be a JSON object, such as {{\"price\": {{\"gte\": 3}}}}")
    return filter


def parse_filter(filter: Mapping[str, Any]) -> Parsed:
    """Return the conditions of a filter. Raises ``InvalidInput``, which names the faulty part."""
    condition = _all("filter", filter, 0)
    if sum(1 for _ in comparisons(condition)) > MAX_COMPARISONS:
        raise InvalidInput(f"filter has more than {MAX_COMPARISONS:,} comparisons: use 'in' with a list")
    paired = [part for part in condition.parts if isinstance(part, Comparison) and _is_paired(part)]
    pairs = sorted({pair for part in paired for pair in as_metadata_pairs({part.name: part.value})})
    rest = tuple(
        part
        for part in condition.parts
        if not (isinstance(part, Comparison) and _is_paired(part) and _is_unlike_json(part.value))
    )
    return Parsed(tuple(pairs), AllOf(rest) if rest else None)


def _is_paired(comparison: Comparison) -> bool:
    """Return whether metadata that meets a comparison has the ``key=value`` string of its value. 1 and 1.0 differ."""
    return comparison.operator == "eq" and not comparison.of_note and not _has(comparison.value, (int, float, NoneType))


def _has(value: Any, types: tuple[type, ...]) -> bool:
    """Return whether JSON has a value of these types, other than true and false."""
    if isinstance(value, (Mapping, list, tuple)):
        return any(_has(each, types) for each in (value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, types) and not isinstance(value, bool)


def _is_unlike_json(value: Any) -> bool:
    """Return whether a value is a text that no other value's ``key=value`` string equals."""
    if not isinstance(value, str):
        return False
    try:
        json.loads(value)
    except ValueError:
        return True
    return False


def _all(where: str, filter: Any, depth: int) -> AllOf:
    if not isinstance(filter, Mapping):
        raise InvalidInput(f"{where}={filter!r} must be a dict, such as {{'team': 'red', 'price': {{'gte': 3}}}}")
    if depth > MAX_DEPTH:
        raise InvalidInput(f"filter is nested more than {MAX_DEPTH} levels deep")
    parts: list[Condition] = []
    for name, value in filter.items():
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"{where} has the name {name!r}: use a text")
        place = f"{where}[{name!r}]"
        logical = name.lstrip("$").lower()
        if logical in LOGICAL:
            parts.append(_logical(place, logical, value, depth + 1))
        else:
            parts += _comparisons(place, name, value)
    return AllOf(tuple(parts))


def _logical(place: str, name: str, value: Any, depth: int) -> Condition:
    if name == "not" and isinstance(value, Mapping):
        return Not(_all(place, value, depth))
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence) or not value:
        raise InvalidInput(f"{place} must be a list of one or more filters, such as [{{'team': 'red'}}]")
    parts = tuple(_all(f"{place}[{number}]", each, depth) for number, each in enumerate(value))
    return AllOf(parts) if name == "and" else AnyOf(parts) if name == "or" else Not(AnyOf(parts))


def _comparisons(place: str, name: str, value: Any) -> list[Condition]:
    of_note = name in FIELDS
    name = name.removeprefix(METADATA)
    if not isinstance(value, Mapping):
        default = "contains" if of_note and FIELDS[name] == "list" and isinstance(value, str) else "eq"
        return [_comparison(place, name, default, value, of_note)]
    if not value:
        raise InvalidInput(f"{place} has no operator: use one of {', '.join(OPERATORS)}")
    return [
        _comparison(place, name, str(operator).removeprefix("$").lower(), operand, of_note)
        for operator, operand in value.items()
    ]


def _comparison(place: str, name: str, operator: str, value: Any, of_note: bool) -> Comparison:
    if operator not in OPERATORS:
        raise InvalidInput(
            f"{place}: unknown operator {operator!r}: use one of {', '.join(OPERATORS)}; "
            "compare with a whole object by {'eq': {...}}"
        )
    if operator in ("in", "nin") and (isinstance(value, (str, Mapping)) or not isinstance(value, Sequence)):
        raise InvalidInput(f"{place}: {operator!r} takes a list, not {value!r}")
    if operator == "exists" and not isinstance(value, bool):
        raise InvalidInput(f"{place}: 'exists' takes True or False, not {value!r}")
    if operator in ORDERED and (isinstance(value, bool) or (not isinstance(value, (int, float, str)) and not of_note)):
        raise InvalidInput(f"{place}: {operator!r} takes a number or a text, not {value!r}")
    require_text(place, name)
    if of_note and operator != "exists":
        value = _operand(place, name, operator, value)
    value = _as_json(place, value)
    if operator in ("in", "nin"):
        value = frozenset(map(comparable, value))
    return Comparison(name, operator, value, of_note)


def _as_json(place: str, value: Any) -> Any:
    """Return a value as stores keep it: an enum as its text, a tuple as a list. Raises ``InvalidInput``."""
    try:
        value = json.loads(json.dumps(value))
    except TypeError:
        raise InvalidInput(f"{place}: {value!r} is not a JSON value: use texts, numbers, lists and dicts") from None
    if isinstance(value, str):
        require_text(place, value)
    return value


def _operand(place: str, name: str, operator: str, value: Any) -> Any:
    """Return the operand of a field, with times in microseconds. Raises ``InvalidInput`` for one of another type."""
    if operator in ("in", "nin"):
        return [_operand(place, name, "eq", each) for each in value]
    kind, is_equality = FIELDS[name], operator in ("eq", "ne")
    if value is None and is_equality:
        return None
    if kind == "text":
        fits = isinstance(value, str)
    elif kind == "list" and is_equality:
        fits = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    elif kind == "list":
        fits = isinstance(value, str) and operator not in ORDERED
    else:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = "contains" not in operator and (is_number if kind == "number" else value is not None)
    if not fits:
        way_out = ": use 'contains'" if kind == "list" else ""
        raise InvalidInput(
            f"{place}: {value!r} cannot be compared by {operator!r}, because {name} is a {kind}{way_out}"
        )
    moment = moment_of(place, value) if kind == "time" else None
    if moment is not None:
        return to_micros(moment)
    known: Sequence[str] = [kind.value for kind in Kind] if name == "kind" else ROLES if name == "role" else ()
    if known and operator in ("eq", "ne") and value not in known:
        raise InvalidInput(f"{place}={value!r} must be one of {', '.join(known)}")
    return value
