"""Saved queries, style sheet and guide for Neo4j Browser.

Each query is one file. Its comment contains the title, a description and the values::

    // A topic
    // The notes about one thing, and how they are linked.
    // $topic = "harbour"  the name of the thing, or its beginning

A value's example is JSON. ``$scope`` is the scope's key; every query uses it without declaring it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import quote

from zettel.errors import InvalidInput

STYLE = "zettel.grass"
GUIDE = "guide.md"
SCOPE = "scope"

Value = str | int

_VALUE = re.compile(r"^// \$(\w+) = (\"[^\"]*\"|\d+)  (.+)$")
_USED = re.compile(r"\$(\w+)")


class QueryValue(NamedTuple):
    """A value of a query."""

    name: str
    example: Value
    meaning: str


class SavedQuery(NamedTuple):
    """A saved query. ``text`` is the whole file with its comment, ``body`` the Cypher alone."""

    name: str
    title: str
    comment: str
    values: tuple[QueryValue, ...]
    text: str

    @property
    def body(self) -> str:
        lines = [line for line in self.text.splitlines() if not line.startswith("//")]
        return "\n".join(lines).strip()


def saved_queries() -> list[SavedQuery]:
    """Return all saved queries, by name."""
    folder = files(__package__)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".cypher"))
    return [_parsed(name.removesuffix(".cypher"), read_text(name)) for name in names]


def saved_query(name: str) -> SavedQuery:
    """Return the saved query of this name. Raises ``InvalidInput``."""
    for query in saved_queries():
        if query.name == name:
            return query
    raise InvalidInput(f"there is no saved query {name!r}: zettel explore lists them")


def read_text(name: str) -> str:
    """Return the text of a file in this package, such as STYLE or GUIDE."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def values_of(query: SavedQuery, scope: str, given: Mapping[str, str]) -> dict[str, Value]:
    """Return all values of a query: the given ones, else the examples. Raises ``InvalidInput``."""
    values: dict[str, Value] = {SCOPE: scope}
    for declared in query.values:
        value = given.get(declared.name)
        if value is not None and isinstance(declared.example, int) and not value.isdecimal():
            raise InvalidInput(f"{declared.name} must be a whole number, got {value} ({declared.meaning})")
        values[declared.name] = declared.example if value is None else type(declared.example)(value)
    if unknown := given.keys() - values.keys() | given.keys() & {SCOPE}:
        names = ", ".join(declared.name for declared in query.values) or "none"
        raise InvalidInput(f"{query.name} has no value {', '.join(sorted(unknown))}; its values: {names}")
    return values


def with_values(query: SavedQuery, values: Mapping[str, Value]) -> str:
    """Return the query with its values as literals, ready to run."""
    head = f"// {query.title}\n" + "".join(f"// {line}\n" for line in query.comment.splitlines())
    return head + _USED.sub(lambda used: literal(values[used[1]]), query.body) + "\n"


def params(values: Mapping[str, Value]) -> str:
    """Return lines that set the values in Neo4j Browser, for all later queries."""
    return "".join(f":param {name} => {literal(value)};\n" for name, value in values.items())


def literal(value: Value) -> str:
    """Return a value as a Cypher literal."""
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    escaped = escaped.replace("#", "\\u0023")  # a # would end the URL argument of Neo4j Browser
    return f"'{escaped}'"


def link(browser: str, text: str, dbms: str | None = None) -> str:
    """Return a URL that opens Neo4j Browser with a text in its editor, and ``dbms`` in its login."""
    login = f"dbms={dbms}&" if dbms else ""
    return f"{browser.rstrip('/')}/browser/?{login}cmd=edit&arg={quote(text.strip(), safe='')}"


def _parsed(name: str, text: str) -> SavedQuery:
    head = [line for line in text.splitlines() if line.startswith("//")]
    title, *comment = [line.removeprefix("//").strip() for line in head if not _VALUE.match(line)]
    values = [QueryValue(match[1], json.loads(match[2]), match[3]) for line in head if (match := _VALUE.match(line))]
    return SavedQuery(name, title, "\n".join(comment), tuple(values), text)
