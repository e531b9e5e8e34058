"""Front matter of note files."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import lru_cache
from typing import Any

from zettel.model import Note

from .parsing.front_matter import MAX_CHARACTERS
from .vault_notes import EXPORT_KEY, NOTE

_FENCE = "---\n"
_WIDE = 2**31 - 1  # a value stays on its line
_NO_TAG = re.compile(r"[^\w/-]+")  # characters that Obsidian's tags cannot contain


def export_marker(kind: str) -> str:
    """Return the front matter of a page that lists notes."""
    return f"{_FENCE}{EXPORT_KEY}: {kind}\n{_FENCE}"


def note_properties(note: Note) -> str:
    """Return the front matter of a note. The longest properties are dropped until it fits ``MAX_CHARACTERS``."""
    values = _values(note)
    text = _front_matter(values)
    while len(text) > MAX_CHARACTERS:
        longest = max(values, key=lambda name: len(str(values[name])))
        del values[longest]
        text = _front_matter(values)
    return text


def as_tag(tag: str) -> str:
    """Return a tag with the characters that Obsidian allows."""
    return _NO_TAG.sub("_", tag)


def _values(note: Note) -> dict[str, Any]:
    part = f"{note.part + 1} of {note.parts}" if note.parts > 1 else None
    # Only the first of several parts has the title, so that mentions link to it alone.
    values = [
        (EXPORT_KEY, NOTE), ("id", note.id), ("title", note.title if note.part == 0 else None),
        ("kind", note.kind.value),
        ("date", note.occurred_at), ("speaker", note.speaker), ("role", note.role), ("session", note.session),
        ("part", part), ("tags", [as_tag(tag) for tag in note.tags]), ("keywords", list(note.keywords)),
        ("context", note.context), ("importance", note.importance), ("confidence", note.confidence),
        ("valid_from", note.valid_from), ("valid_to", note.valid_to), ("recorded_at", note.recorded_at),
        ("seq", note.seq), ("version", note.version),
        ("metadata", json.dumps(note.metadata) if note.metadata else None),
    ]  # fmt: skip
    return {name: value for name, value in values if value not in (None, "", [])}


def _front_matter(values: dict[str, Any]) -> str:
    import yaml

    lines: str = yaml.dump(values, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=_WIDE)
    return f"{_FENCE}{lines}{_FENCE}"


@lru_cache(maxsize=1)
def _dumper() -> Any:
    """Return a YAML dumper that writes times as note programs do."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the one in C, if there is one
        def ignore_aliases(self, data: Any) -> bool:
            return True  # equal times are written out, not aliased

    def time(dumper: Any, moment: datetime) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:timestamp", moment.isoformat().replace("+00:00", "Z"))

    Dumper.add_representer(datetime, time)
    return Dumper
