"""Edits of exported note files, for import into the memory that exported them.

A note file states its note and the version at the export. If the memory has that note, differences from that version
become a revision of the note, but only if the import applies edits: otherwise any file could rewrite a note. So an
unedited file changes nothing, however old it is. Each edit is applied once, even if it was reverted.

Missing properties, and changes to derived or immutable ones (dates, validity, role, links), are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from zettel.core.fold import fold
from zettel.model import Event, LinkType, Note, Scope

from .parsing.front_matter import Properties, split_front_matter
from .vault_notes import NOTE_PROPERTIES, NoteFile, VaultEvent, metadata_of
from .vault_properties import as_tag, note_properties

if TYPE_CHECKING:
    from zettel.ports import GraphStore, NoteHistory

_EDITABLE = ("title", "context", "keywords", "tags", "importance", "confidence", "kind")
_READ_ONLY = NOTE_PROPERTIES - {*_EDITABLE, "metadata", "version", "valid_to"}
"""Properties whose changes are ignored. ``valid_to`` follows from links."""
_OWN_LINE = re.compile(rf"- (?:{'|'.join(kind.value for kind in LinkType)}|in) \[\[")
"""The start of each line that zettel writes below a note."""


async def edits(store: GraphStore, scope: Scope, events: Sequence[Event]) -> dict[int, dict[str, Any] | None]:
    """Return the edits by index for events that are notes of this scope.

    {} means an unedited file, None for a file without the version of its note, whose edits are unknown.
    """
    files = {place: event.file for place, event in enumerate(events) if isinstance(event, VaultEvent)}
    if not files:
        return {}
    histories = await store.histories(scope, sorted({file.note for file in files.values()}))
    return {place: edits_of(file, histories[file.note]) for place, file in files.items() if file.note in histories}


def edits_of(file: NoteFile, history: NoteHistory) -> dict[str, Any] | None:
    """Return the edited fields of a note file that the memory has not imported yet; None without a version."""
    if file.version is None:
        return None
    return _new_edits(file, history, *_exported_version(file.version, history))


def is_imported(file: NoteFile, below: str | None, history: NoteHistory) -> bool:
    """Return whether the memory has imported all edits of a note file, so that an export may overwrite it.

    ``below`` is the part below the links line, or None without that line.
    """
    if file.version is None or below is None:
        return False
    then, was = _exported_version(file.version, history)
    unchanged = all(file.properties.get(name) == was.get(name) for name in _READ_ONLY)
    own = all(_OWN_LINE.match(line) for line in below.splitlines() if line.strip())
    return unchanged and own and not _new_edits(file, history, then, was)


def _exported_version(version: int, history: NoteHistory) -> tuple[Note, Properties]:
    """Return the exported version of a note and its properties."""
    then, _ = fold(history.base, [revision for revision in history.revisions if revision.version <= version])
    return then, split_front_matter(note_properties(then)).properties


def _new_edits(file: NoteFile, history: NoteHistory, then: Note, was: Properties) -> dict[str, Any]:
    changes = _edited_fields(file, then, was)
    later = [revision.change for revision in history.revisions if revision.version > then.version]
    return {
        name: value
        for name, value in changes.items()
        if not any(name in revision and revision[name] == value for revision in later)
    }


def _field_value(name: str, texts: list[str], note: Note) -> Any:
    """Parse an edited property of an exported note; invalid values stay texts for the validation of the edit."""
    if name == "keywords":
        return texts
    if name == "tags":  # with the original spelling of tags that Obsidian restricts
        original = {as_tag(tag): tag for tag in note.tags}
        return [original.get(tag, tag) for tag in texts]
    if not texts:
        return None if name == "title" else ""
    if name in ("importance", "confidence"):
        with suppress(ValueError):
            return float(texts[0])
    return texts[0]


def _edited_fields(file: NoteFile, then: Note, was: Properties) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: _field_value(name, file.properties[name], then)
        for name in _EDITABLE
        if name in file.properties and file.properties[name] != was.get(name, [])
    }
    if then.part:
        changes.pop("title", None)  # only the first part has the title
    texts, before = (then.metadata if "metadata" not in revision else {} for revision in (file.properties, was))
    texts, before = texts | metadata_of(file.properties), before | metadata_of(was)
    if texts != before:
        changes["metadata"] = texts
    if _plain(file.text) != _plain(then.content):
        changes["content"] = file.linked_text
    return changes


def _plain(text: str) -> str:
    """Return a text with normalised line ends and no outer white space."""
    return text.replace("\r\n", "\n").strip()
