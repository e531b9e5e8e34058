"""Notes that come back to the memory that wrote them as files, with what people changed there meanwhile.

A file tells which note it is, and in which version the note was when it was written. Where the memory has that note,
the file is no new event: what differs from that version is an edit, and becomes a revision of the note, whatever the
memory learned about it since. So a file that nobody touched changes nothing, however old it is, and an edit counts
once, also if it was taken back.

A property that is not in the file, and all that is derived or never changes (dates, validity, who said it, links), is
no edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zettel.fold import fold
from zettel.model import Event, LinkType, Note, Scope

from .front_matter import Properties, split
from .own_notes import OWN, NoteFile, Written, metadata_of
from .own_properties import as_tag, properties

if TYPE_CHECKING:
    from zettel.ports import GraphStore, NoteHistory

_Read = Callable[[list[str], Note], Any]
"""What a property's texts say, of a note as it was when they were written."""


def _one(told: list[str], note: Note) -> str:
    return told[0] if told else ""


def _title(told: list[str], note: Note) -> str | None:
    return told[0] if told else None


def _several(told: list[str], note: Note) -> list[str]:
    return told


def _tags(told: list[str], note: Note) -> list[str]:
    """Those that stay as they were, although Obsidian's tags have less characters."""
    was = {as_tag(tag): tag for tag in note.tags}
    return [was.get(tag, tag) for tag in told]


def _number(told: list[str], note: Note) -> float | str:
    try:
        return float(told[0]) if told else ""
    except ValueError:
        return told[0]  # is told to be none where it is set


_READ: Mapping[str, _Read] = {
    "title": _title, "context": _one, "keywords": _several, "tags": _tags, "importance": _number,
    "confidence": _number, "kind": _one,
}  # fmt: skip


_KEPT = OWN - _READ.keys() - {"metadata", "version", "valid_to"}
"""Properties that are no edit when somebody changes them. When something stops to hold the links tell."""
_OWN_LINE = re.compile(rf"- (?:{'|'.join(kind.value for kind in LinkType)}|in) \[\[")
"""How each line begins that zettel writes below a note."""


async def edits(store: GraphStore, scope: Scope, events: Sequence[Event]) -> dict[int, dict[str, Any]]:
    """Of the events that are notes of this scope already, by their place: what was edited, {} if nothing was."""
    files = {place: event.file for place, event in enumerate(events) if isinstance(event, Written)}
    if not files:
        return {}
    histories = await store.histories(scope, sorted({file.note for file in files.values()}))
    return {place: edits_of(file, histories[file.note]) for place, file in files.items() if file.note in histories}


def edits_of(file: NoteFile, history: NoteHistory) -> dict[str, Any]:
    """The fields that somebody changed in a note's file and that the memory was not told of yet."""
    if file.version is None:
        return {}
    return _untold(file, history, *_written(file.version, history))


def is_told(file: NoteFile, below: str | None, history: NoteHistory) -> bool:
    """Whether the memory knows all that somebody changed in a note's file, and nothing of it is lost if the file is
    written again. ``below`` is what stands there below the line of links; None: there is no such line."""
    if file.version is None or below is None:
        return False
    then, was = _written(file.version, history)
    kept = all(file.properties.get(name) == was.get(name) for name in _KEPT)
    own = all(_OWN_LINE.match(line) for line in below.splitlines() if line.strip())
    return kept and own and not _untold(file, history, then, was)


def _written(version: int, history: NoteHistory) -> tuple[Note, Properties]:
    """The note in the version in which its file was written, and its properties as they were read from there."""
    then, _ = fold(history.base, [one for one in history.revisions if one.version <= version])
    return then, split(properties(then)).properties


def _untold(file: NoteFile, history: NoteHistory, then: Note, was: Properties) -> dict[str, Any]:
    found = _edited(file, then, was)
    later = [one.change for one in history.revisions if one.version > then.version]
    return {
        name: value for name, value in found.items() if not any(name in one and one[name] == value for one in later)
    }


def _edited(file: NoteFile, then: Note, was: Properties) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: read(file.properties[name], then)
        for name, read in _READ.items()
        if name in file.properties and file.properties[name] != was.get(name, [])
    }
    if then.part:
        found.pop("title", None)  # of several parts the first has it
    told, before = (then.metadata if "metadata" not in one else {} for one in (file.properties, was))
    told, before = told | metadata_of(file.properties), before | metadata_of(was)
    if told != before:
        found["metadata"] = told
    if _plain(file.words) != _plain(then.content):
        found["content"] = file.wording
    return found


def _plain(text: str) -> str:
    """Without what editors do to lines' ends by themselves."""
    return text.replace("\r\n", "\n").strip()
