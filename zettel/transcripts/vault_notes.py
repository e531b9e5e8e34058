"""Note files of a vault that ``zettel export --format markdown`` wrote.

The property ``zettel-export`` marks such a file, and a line separates the note's text, which is verbatim, from its
links. An import restores text, title, time, speaker, role, session, metadata, order of arrival and tags. Tags that
the text does not contain are added below it. Everything else (context, keywords, typed links, validity, confidence,
versions) is derived again. Pages that list notes are skipped. In the memory that wrote a file, the file is an edit of
its note: see :mod:`.vault_edits`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from zettel.model import Event, Kind
from zettel.text.dates import find_dates
from zettel.text.extraction import tags_of

from .formats.memory_dumps import ORIGIN_KEY
from .parsing.front_matter import Properties, split_front_matter
from .parsing.written_times import moment

EXPORT_KEY = "zettel-export"
"""The property that marks a file written by zettel."""
NOTE, INDEX = "note", "index"

LINKS_LINE = "%% zettel: below is what this note is linked to %%"
"""The line below a note's text; Obsidian does not show it."""

_COUNT_DIGITS = 19  # of any that a store can count to

NOTE_PROPERTIES = frozenset({
    EXPORT_KEY, "id", "title", "kind", "date", "speaker", "role", "session", "part", "tags", "keywords", "context",
    "importance", "confidence", "valid_from", "valid_to", "recorded_at", "seq", "version", "metadata",
})  # fmt: skip
"""Properties of a note; other properties are metadata."""


class NoteFile(NamedTuple):
    """The contents of a note file.

    ``version`` is the note's version at the export, or None if the file does not state it. ``text`` is the text in
    the file, ``linked_text`` the same with links as titles.
    """

    note: str
    version: int | None
    properties: Properties
    text: str
    linked_text: str

    @classmethod
    def of(cls, properties: Properties, text: str, linked_text: str | None = None) -> NoteFile | None:
        """Return the note file, or None for any other file."""
        note = next(iter(properties.get("id", [])), "")
        if not is_note(properties) or not note.startswith("n_"):
            return None
        return cls(note, _count(properties, "version"), properties, text, text if linked_text is None else linked_text)

    def cleaned(self, clean: Callable[[str], str]) -> NoteFile:
        """Return a copy with all texts passed through ``clean``."""
        raw = {name: [clean(value) for value in values] for name, values in self.properties.items()}
        return self._replace(properties=raw, text=clean(self.text), linked_text=clean(self.linked_text))


class VaultEvent(Event):
    """An event read from a note file; in the memory that has the note, it is an edit."""

    file: NoteFile


def with_note_file(event: Event, file: NoteFile | None) -> Event:
    """Return the event with its note file, if there is one."""
    if file is None:
        return event
    return VaultEvent.model_construct(**{name: getattr(event, name) for name in Event.model_fields}, file=file)


def is_note(properties: Properties) -> bool:
    return properties.get(EXPORT_KEY) == [NOTE]


def is_index(properties: Properties) -> bool:
    return properties.get(EXPORT_KEY) == [INDEX]


def seq_of(properties: Properties) -> int:
    """Return the note's ``seq``, or 0."""
    return _count(properties, "seq") or 0


def _count(properties: Properties, name: str) -> int | None:
    raw = next(iter(properties.get(name, [])), "")
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < _COUNT_DIGITS else None


def note_text(file: str, body: str) -> str:
    """Return the note's text in a ``file``; ``body`` is the part below the properties with normalised line ends."""
    parts = split_front_matter(file)
    text, _ = split_links(parts.body if parts.properties else body)
    return text


def split_links(body: str) -> tuple[str, str | None]:
    """Split a body into the note's text and the part below the links line, None without that line."""
    text, line, below = body.rpartition(f"\n\n{LINKS_LINE}")
    return (text, below) if line else (body, None)


def fields_of(properties: Properties, content: str, zone: tzinfo) -> dict[str, Any]:
    """Return the fields of the event for a note file, without its id."""
    raw = {name: values[0] for name, values in properties.items() if values}
    occurred_at = moment(raw.get("date"), zone)
    metadata = metadata_of(properties)
    kind = raw.get("kind", Kind.EPISODIC.value)
    if kind != Kind.EPISODIC.value:
        metadata[ORIGIN_KEY] = f"zettel {kind} note"
    return {
        "content": _with_tags(content, properties.get("tags", []), occurred_at),
        "title": raw.get("title"),
        "speaker": raw.get("speaker"),
        "role": raw.get("role"),
        "session": raw.get("session"),
        "occurred_at": occurred_at,
        "metadata": metadata,
    }


def metadata_of(properties: Properties) -> dict[str, Any]:
    """Return the note's metadata, and the properties that people added."""
    raw = properties.get("metadata")
    metadata = _metadata(raw[0]) if raw else {}
    return metadata | {
        name: values[0] if len(values) == 1 else values
        for name, values in properties.items()
        if values and name not in NOTE_PROPERTIES
    }


def _metadata(raw: str) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):  # edited by hand
        value = raw
    return value if isinstance(value, dict) else {"metadata": value}


def _with_tags(content: str, tags: Sequence[str], occurred_at: datetime | None) -> str:
    """Return the text, followed by the tags that it does not contain."""
    if not tags:
        return content
    own = set(tags_of(content, bool(find_dates(content, occurred_at))))
    more = [tag for tag in tags if tag.casefold() not in own]
    return f"{content}\n\n{' '.join(f'#{tag}' for tag in more)}" if more else content
