"""Export format ``markdown``: an Obsidian vault with a file per note, pages for sessions and tags, and an index.

A note's file contains its fields as properties, its text verbatim, and its links with type and reason as
``[[file name]]``. ``Sessions`` has a page for each session, ``Tags`` one for each tag that several notes share.
Archived notes are not exported.

``zettel import`` reads such a folder again, see :mod:`zettel.transcripts.vault_notes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from zettel.core.paging import pages as pages_of
from zettel.model import TIME_MAX, Link, Note, to_micros
from zettel.transcripts.parsing.front_matter import split_front_matter
from zettel.transcripts.vault_edits import is_imported
from zettel.transcripts.vault_notes import INDEX, LINKS_LINE, NoteFile, split_links
from zettel.transcripts.vault_properties import export_marker, note_properties

from .file_names import stem_of
from .task import PAGE, ExportTask
from .tracked_files import TrackedFiles, require_folder

SESSIONS, TAGS = "Sessions", "Tags"
"""Folders of the pages that list notes."""
INDEX_NAME = "Index"

SHARED = 2
"""Notes with a tag before the tag gets a page."""


class _Listed(NamedTuple):
    """A note on a list page, in order of time."""

    at: int
    seq: int
    id: str
    day: str
    speaker: str


@dataclass
class _VaultContents:
    """File names and lists of the notes, without their texts."""

    index: str
    names: dict[str, str] = field(default_factory=dict)
    notes: dict[str, _Listed] = field(default_factory=dict)
    sessions: dict[str, list[str]] = field(default_factory=dict)
    tags: dict[str, list[str]] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    """Notes without a session."""

    def add(self, note: Note, name: str) -> None:
        at = note.occurred_at
        day = at.strftime("%Y-%m-%d %H:%M") if at is not None else ""
        listed = _Listed(to_micros(at) if at is not None else TIME_MAX, note.seq, note.id, day, note.speaker or "")
        self.names[note.id] = name
        self.notes[note.id] = listed
        (self.loose if note.session is None else self.sessions.setdefault(note.session, [])).append(note.id)
        for tag in note.tags:
            self.tags.setdefault(tag, []).append(note.id)


async def write(task: ExportTask, path: Path) -> None:
    """Write or update the vault of a scope in a folder. Raises ``InvalidInput``, ``OSError``."""
    require_folder(path)
    await task.count_total(notes=2)
    files = await anyio.to_thread.run_sync(TrackedFiles, path, (SESSIONS, TAGS))
    try:
        contents = _VaultContents(index=files.name(INDEX_NAME, INDEX_NAME))
        async for notes in pages_of(task.store, task.scope, PAGE):
            for note in notes:
                contents.add(note, files.name(note.id, stem_of(_heading(note))))
            task.advance(len(notes))
        await _write_notes(task, files, contents)
        await anyio.to_thread.run_sync(_write_lists, files, contents, stem_of(str(task.scope)))
        await anyio.to_thread.run_sync(files.end)
    finally:
        files.close()
    report = task.report
    report.changed, report.removed, report.edited = files.changed, files.removed, files.edited


async def _write_notes(task: ExportTask, files: TrackedFiles, contents: _VaultContents) -> None:
    pages: dict[str | None, str] = {session: _page_name(files, SESSIONS, session) for session in contents.sessions}
    async for notes in pages_of(task.store, task.scope, PAGE):
        here = {note.id: note for note in notes if note.id in contents.names}  # without notes added meanwhile
        links: dict[str, list[Link]] = {}
        for link in await task.store.links(task.scope, list(here)):
            if link.source in here and link.target in contents.names:
                links.setdefault(link.source, []).append(link)
        texts = {
            id: _text(note, links.get(id, []), contents.names, pages.get(note.session)) for id, note in here.items()
        }
        edited = await anyio.to_thread.run_sync(_write_page, files, contents.names, texts)
        await _write_imported(task, files, {id: (contents.names[id], texts[id]) for id in edited})
        task.report.notes += len(texts)
        task.report.links += sum(map(len, links.values()))
        task.advance(len(notes))


def _write_page(files: TrackedFiles, names: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """Write note files by id; return the ids of edited files, which stay unchanged."""
    return [id for id, text in texts.items() if not files.write(id, names[id], text)]


async def _write_imported(task: ExportTask, files: TrackedFiles, edited: Mapping[str, tuple[str, str]]) -> None:
    """Overwrite edited files, by note id (name, text), whose edits the memory has imported."""
    if not edited:
        return
    histories = await task.store.histories(task.scope, sorted(edited))
    for id, (name, text) in edited.items():
        parts = split_front_matter(await anyio.to_thread.run_sync(files.read, name))
        note_text, below = split_links(parts.body)
        file = NoteFile.of(parts.properties, note_text)
        if file is not None and file.note == id and id in histories and is_imported(file, below, histories[id]):
            await anyio.to_thread.run_sync(partial(files.write, id, name, text, overwrite=True))


def _heading(note: Note) -> str:
    """Return a note's title, or the start of its text."""
    lines = note.title or note.caption or note.content
    return lines if note.part == 0 else f"{lines[:60]} part {note.part + 1}"


def _text(note: Note, links: Iterable[Link], names: Mapping[str, str], session: str | None) -> str:
    lines = [f"- {link.type.value} {_link_to(names[link.target])}{_reason(link)}" for link in links]
    if session is not None:
        lines.append(f"- in {_link_to(session)}")
    return f"{note_properties(note)}{note.content}\n\n{LINKS_LINE}\n" + "".join(f"{line}\n" for line in lines)


def _reason(link: Link) -> str:
    weight = "" if link.weight == 1 else f" ({link.weight:.2f})"
    # On one line, and without links of its own.
    reason = " ".join(link.reason.split()).replace("[[", "[ [").replace("]]", "] ]").replace("%%", "% %")
    return f"{weight}: {reason}" if reason else weight


def _link_to(name: str) -> str:
    folder, _, stem = name.rpartition("/")
    return f"[[{name}|{stem}]]" if folder else f"[[{name}]]"


def _page_name(files: TrackedFiles, folder: str, of: str) -> str:
    return files.name(f"{folder}/{of}", stem_of(of), folder)


def _write_lists(files: TrackedFiles, contents: _VaultContents, scope: str) -> None:
    """Write the pages that list notes, and the index of these pages."""
    shared = {tag: ids for tag, ids in sorted(contents.tags.items()) if len(ids) >= SHARED}
    lines = [export_marker(INDEX), f"# Memory of {scope}\n\n{len(contents.names):,} notes.\n"]
    for folder, lists in ((SESSIONS, contents.sessions), (TAGS, shared)):
        write = partial(_write_list, files, contents, folder)
        pages = {of: write(of, ids) for of, ids in lists.items()}
        if pages:
            lines.append(f"\n## {folder}\n\n")
        lines += [f"- {_link_to(name)}, {len(lists[of]):,}\n" for of, name in pages.items()]
    if contents.loose:
        lines.append("\n## Notes of no session\n\n")
        lines += _lines(contents, contents.loose)
    files.write(INDEX_NAME, contents.index, "".join(lines))


def _write_list(files: TrackedFiles, contents: _VaultContents, folder: str, of: str, ids: list[str]) -> str:
    name = _page_name(files, folder, of)
    files.write(f"{folder}/{of}", name, "".join([export_marker(INDEX), *_lines(contents, ids)]))
    return name


def _lines(contents: _VaultContents, ids: Iterable[str]) -> list[str]:
    """Return list lines in order of time, undated notes last."""
    lines = []
    for entry in sorted(contents.notes[id] for id in ids):
        parts = (entry.day, _link_to(contents.names[entry.id]), stem_of(entry.speaker) if entry.speaker else "")
        lines.append(f"- {' '.join(filter(None, parts))}\n")
    return lines
