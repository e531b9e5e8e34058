"""A note's fields as the properties at the head of its file."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import lru_cache
from typing import Any

from zettel.model import Note

from .front_matter import MAX_CHARACTERS
from .own_notes import NOTE, SIGN

_FENCE = "---\n"
_WIDE = 2**31 - 1  # a value stays on its line
_NO_TAG = re.compile(r"[^\w/-]+")  # what Obsidian's tags have not


def sign(kind: str) -> str:
    """The properties of a page that holds no note of its own."""
    return f"{_FENCE}{SIGN}: {kind}\n{_FENCE}"


def properties(note: Note) -> str:
    """All of a note, the most telling first. What does not fit into properties as readers take them is left out."""
    values = _values(note)
    told = _told(values)
    while len(told) > MAX_CHARACTERS:
        longest = max(values, key=lambda name: len(str(values[name])))
        del values[longest]
        told = _told(values)
    return told


def as_tag(tag: str) -> str:
    """A tag as Obsidian takes it."""
    return _NO_TAG.sub("_", tag)


def _values(note: Note) -> dict[str, Any]:
    part = f"{note.part + 1} of {note.parts}" if note.parts > 1 else None
    # Of several parts the first has the title: what names it is linked to that one alone.
    values = [
        (SIGN, NOTE), ("id", note.id), ("title", note.title if note.part == 0 else None), ("kind", note.kind.value),
        ("date", note.occurred_at), ("role", note.role), ("session", note.session), ("part", part),
        ("tags", [as_tag(tag) for tag in note.tags]), ("keywords", list(note.keywords)),
        ("context", note.context), ("importance", note.importance), ("confidence", note.confidence),
        ("valid_from", note.valid_from), ("valid_to", note.valid_to), ("recorded_at", note.recorded_at),
        ("seq", note.seq), ("version", note.version),
        ("metadata", json.dumps(note.metadata) if note.metadata else None),
    ]  # fmt: skip
    return {name: value for name, value in values if value not in (None, "", [])}


def _told(values: dict[str, Any]) -> str:
    import yaml

    lines: str = yaml.dump(values, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=_WIDE)
    return f"{_FENCE}{lines}{_FENCE}"


@lru_cache(maxsize=1)
def _dumper() -> Any:
    """YAML's own, which writes times as programs for notes do."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the one in C, if there is one
        def ignore_aliases(self, data: Any) -> bool:
            return True  # a time that stands there twice is written twice

    def time(dumper: Any, moment: datetime) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:timestamp", moment.isoformat().replace("+00:00", "Z"))

    Dumper.add_representer(datetime, time)
    return Dumper
