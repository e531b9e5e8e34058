"""Notes that zettel itself wrote as Markdown (``zettel export --format markdown``), read without loss of their text.

A property says that a file is one, and a line parts the note's text, which is word for word, from the links below it.
Carried are text, title, time, role, session, metadata, the order of arrival and the tags; those tags that the text does
not give by itself stand below it. Links are found again by the titles that texts name. All else that a note has
(context, keywords, typed links, validity, confidence, other versions) was made from events and is made anew.

The pages that list notes are left out. In the memory that wrote it a file is still its note, see :mod:`.returning`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from zettel.annotate.dates import find_dates
from zettel.annotate.extractive import tags_of
from zettel.model import Event, Kind

from .dumps import WAS
from .front_matter import Properties, split
from .written_times import moment

SIGN = "zettel-export"
"""The property that says what zettel wrote a file as."""
NOTE, INDEX = "note", "index"

LINKS = "%% zettel: below is what this note is linked to %%"
"""The line below a note's text, which Obsidian does not show."""

_COUNT_DIGITS = 19  # of any that a store can count to

OWN = frozenset({
    SIGN, "id", "title", "kind", "date", "role", "session", "part", "tags", "keywords", "context", "importance",
    "confidence", "valid_from", "valid_to", "recorded_at", "seq", "version", "metadata",
})  # fmt: skip
"""The properties of a note; what people add is metadata."""


class NoteFile(NamedTuple):
    """What a file that zettel wrote says of a note.

    ``version`` is the one in which the note was when its file was written; None: the file does not tell. ``words`` are
    the text in the file, ``wording`` the same with the titles that its links mean.
    """

    note: str
    version: int | None
    properties: Properties
    words: str
    wording: str

    @classmethod
    def of(cls, properties: Properties, words: str, wording: str | None = None) -> NoteFile | None:
        """None if it is no file of a note, or names none."""
        note = next(iter(properties.get("id", [])), "")
        if not is_note(properties) or not note.startswith("n_"):
            return None
        return cls(note, _count(properties, "version"), properties, words, words if wording is None else wording)

    def cleaned(self, clean: Callable[[str], str]) -> NoteFile:
        """The same with all that it says as ``clean`` leaves it."""
        told = {name: [clean(value) for value in values] for name, values in self.properties.items()}
        return self._replace(properties=told, words=clean(self.words), wording=clean(self.wording))


class Written(Event):
    """What was read from a file that zettel wrote: an event in every memory but the one that has the note."""

    file: NoteFile


def written(event: Event, file: NoteFile | None) -> Event:
    """The event with what its file says of a note, if it says something."""
    if file is None:
        return event
    return Written.model_construct(**{name: getattr(event, name) for name in Event.model_fields}, file=file)


def is_note(properties: Properties) -> bool:
    return properties.get(SIGN) == [NOTE]


def is_index(properties: Properties) -> bool:
    return properties.get(SIGN) == [INDEX]


def seq_of(properties: Properties) -> int:
    """The note's place in the order of arrival."""
    return _count(properties, "seq") or 0


def _count(properties: Properties, name: str) -> int | None:
    told = next(iter(properties.get(name, [])), "")
    return int(told) if told.isascii() and told.isdigit() and len(told) < _COUNT_DIGITS else None


def text_of(file: str, body: str) -> str:
    """The note's own text in a ``file``; ``body`` is what is below the properties in it with all lines ended alike."""
    parts = split(file)
    words, _ = parted(parts.body if parts.properties else body)
    return words


def parted(body: str) -> tuple[str, str | None]:
    """What is below a file's properties: the note's text, and what stands below the line of links; None: there is no
    such line."""
    words, line, below = body.rpartition(f"\n\n{LINKS}")
    return (words, below) if line else (body, None)


def fields_of(properties: Properties, content: str, zone: tzinfo) -> dict[str, Any]:
    """The fields of the event that a note becomes, but for its id."""
    told = {name: values[0] for name, values in properties.items() if values}
    occurred_at = moment(told.get("date"), zone)
    metadata = metadata_of(properties)
    kind = told.get("kind", Kind.EPISODIC.value)
    if kind != Kind.EPISODIC.value:
        metadata[WAS] = f"zettel {kind} note"
    return {
        "content": _with_tags(content, properties.get("tags", []), occurred_at),
        "title": told.get("title"),
        "role": told.get("role"),
        "session": told.get("session"),
        "occurred_at": occurred_at,
        "metadata": metadata,
    }


def metadata_of(properties: Properties) -> dict[str, Any]:
    """The note's own, and below it what people added."""
    told = properties.get("metadata")
    metadata = _metadata(told[0]) if told else {}
    return metadata | {
        name: values[0] if len(values) == 1 else values
        for name, values in properties.items()
        if values and name not in OWN
    }


def _metadata(told: str) -> dict[str, Any]:
    try:
        value = json.loads(told)
    except (ValueError, RecursionError):  # somebody wrote something else there
        value = told
    return value if isinstance(value, dict) else {"metadata": value}


def _with_tags(content: str, tags: Sequence[str], occurred_at: datetime | None) -> str:
    """The text, and below it the tags that it does not give by itself."""
    if not tags:
        return content
    own = set(tags_of(content, bool(find_dates(content, occurred_at))))
    more = [tag for tag in tags if tag.casefold() not in own]
    return f"{content}\n\n{' '.join(f'#{tag}' for tag in more)}" if more else content
