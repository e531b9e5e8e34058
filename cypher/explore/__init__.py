"""For people in Neo4j Browser: saved queries, a style sheet, a guide.

One query a file. Its comment says what it shows, and what each value means::

    // A topic
    // The notes about one thing, and how they are linked.
    // $topic = "harbour"  what it is called, or how that begins

The first line is the title. A value is written in JSON; ``$scope`` is whose memory it is, and stands in every query
without being told.
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


class Asked(NamedTuple):
    """A value that a query asks for: its name, an example, what it means."""

    name: str
    example: Value
    meaning: str


class Saved(NamedTuple):
    """A saved query. ``text`` is the whole file with its comment, ``body`` what is run."""

    name: str
    title: str
    comment: str
    asked: tuple[Asked, ...]
    text: str

    @property
    def body(self) -> str:
        lines = [line for line in self.text.splitlines() if not line.startswith("//")]
        return "\n".join(lines).strip()


def saved() -> list[Saved]:
    """All saved queries, by name."""
    folder = files(__package__)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".cypher"))
    return [_parsed(name.removesuffix(".cypher"), (folder / name).read_text(encoding="utf-8")) for name in names]


def named(name: str) -> Saved:
    """The saved query of that name. Raises ``InvalidInput``."""
    for one in saved():
        if one.name == name:
            return one
    raise InvalidInput(f"there is no saved query {name!r}: zettel explore lists them")


def beside(name: str) -> str:
    """The text of a file that is no query: the style or the guide."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def values_of(query: Saved, scope: str, given: Mapping[str, str]) -> dict[str, Value]:
    """Every value of a query: those given, else the examples. Raises ``InvalidInput``."""
    values: dict[str, Value] = {SCOPE: scope}
    for one in query.asked:
        value = given.get(one.name)
        if value is not None and isinstance(one.example, int) and not value.isdecimal():
            raise InvalidInput(f"{one.name}={value} is no whole number: {one.meaning}")
        values[one.name] = one.example if value is None else type(one.example)(value)
    if unknown := given.keys() - values.keys() | given.keys() & {SCOPE}:
        wanted = ", ".join(one.name for one in query.asked) or "nothing"
        raise InvalidInput(f"{query.name} does not ask for {', '.join(sorted(unknown))}: it asks for {wanted}")
    return values


def filled(query: Saved, values: Mapping[str, Value], *, commented: bool = True) -> str:
    """The query with every value written into it: it can be run as it is."""
    head = f"// {query.title}\n" + "".join(f"// {line}\n" for line in query.comment.splitlines()) if commented else ""
    return head + _USED.sub(lambda used: literal(values[used[1]]), query.body) + "\n"


def params(values: Mapping[str, Value]) -> str:
    """Lines that set the values in Neo4j Browser, for every query after them."""
    return "".join(f":param {name} => {literal(value)};\n" for name, value in values.items())


def literal(value: Value) -> str:
    """A value as it stands in Cypher."""
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    escaped = escaped.replace("#", "\\u0023")  # where Neo4j Browser would end what an address tells it
    return f"'{escaped}'"


def link(browser: str, text: str, dbms: str | None = None) -> str:
    """An address that opens Neo4j Browser with a text in its editor, and ``dbms`` in its login."""
    login = f"dbms={dbms}&" if dbms else ""
    return f"{browser.rstrip('/')}/browser/?{login}cmd=edit&arg={quote(text.strip(), safe='')}"


def _parsed(name: str, text: str) -> Saved:
    head = [line for line in text.splitlines() if line.startswith("//")]
    told = [line.removeprefix("//").strip() for line in head if not _VALUE.match(line)]
    asked = [Asked(found[1], json.loads(found[2]), found[3]) for line in head if (found := _VALUE.match(line))]
    return Saved(name, told[0], "\n".join(told[1:]), tuple(asked), text)
