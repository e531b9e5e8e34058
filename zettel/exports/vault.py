"""``markdown``: an Obsidian vault. A file for each note, pages of its sessions and tags, and an index of these.

A note's file has its fields as properties, its text word for word, and below it what it is linked to: each link with
its type and its reason, as ``[[name of the file]]``. Below ``Sessions`` there is a page for each session, below
``Tags`` one for each tag that several notes share. What is archived stays out.

``zettel import`` reads such a folder again, see :mod:`zettel.transcripts.own_notes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from zettel.model import TIME_MAX, Link, Note, to_micros
from zettel.pages import pages as pages_of
from zettel.transcripts.front_matter import split
from zettel.transcripts.own_notes import INDEX, LINKS, NoteFile, parted
from zettel.transcripts.own_properties import properties, sign
from zettel.transcripts.returning import is_told

from .file_names import stem_of
from .own_files import OwnFiles, require_folder
from .work import PAGE, Work

SESSIONS, TAGS = "Sessions", "Tags"
"""The folders of the pages that list notes."""
INDEX_NAME = "Index"

SHARED = 2
"""Notes that have to have a tag before it gets a page."""


class _Listed(NamedTuple):
    """A note as a page lists it, sorted as things happened."""

    at: int
    seq: int
    id: str
    day: str
    role: str


@dataclass
class _Contents:
    """What the notes are called, and what lists them. Of each note a line is held, and not its text."""

    index: str
    names: dict[str, str] = field(default_factory=dict)
    notes: dict[str, _Listed] = field(default_factory=dict)
    sessions: dict[str, list[str]] = field(default_factory=dict)
    tags: dict[str, list[str]] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    """Notes of no session."""

    def add(self, note: Note, name: str) -> None:
        at = note.occurred_at
        day = at.strftime("%Y-%m-%d %H:%M") if at is not None else ""
        listed = _Listed(to_micros(at) if at is not None else TIME_MAX, note.seq, note.id, day, note.role or "")
        self.names[note.id] = name
        self.notes[note.id] = listed
        (self.loose if note.session is None else self.sessions.setdefault(note.session, [])).append(note.id)
        for tag in note.tags:
            self.tags.setdefault(tag, []).append(note.id)


async def write(work: Work, path: Path) -> None:
    """Write the vault of a scope into a folder, or bring it up to date there. Raises ``InvalidInput``, ``OSError``."""
    require_folder(path)
    await work.expect(notes=2)
    files = await anyio.to_thread.run_sync(OwnFiles, path, (SESSIONS, TAGS))
    try:
        contents = _Contents(index=files.name(INDEX_NAME, INDEX_NAME))
        async for notes in pages_of(work.store, work.scope, PAGE):
            for note in notes:
                contents.add(note, files.name(note.id, stem_of(_heading(note))))
            work.told(len(notes))
        await _write_notes(work, files, contents)
        await anyio.to_thread.run_sync(_write_lists, files, contents, stem_of(str(work.scope)))
        await anyio.to_thread.run_sync(files.end)
    finally:
        files.close()
    report = work.report
    report.changed, report.removed, report.left = files.changed, files.removed, files.left


async def _write_notes(work: Work, files: OwnFiles, contents: _Contents) -> None:
    pages: dict[str | None, str] = {session: _page_name(files, SESSIONS, session) for session in contents.sessions}
    async for notes in pages_of(work.store, work.scope, PAGE):
        here = {note.id: note for note in notes if note.id in contents.names}  # not what came meanwhile
        links: dict[str, list[Link]] = {}
        for link in await work.store.links(work.scope, list(here)):
            if link.source in here and link.target in contents.names:
                links.setdefault(link.source, []).append(link)
        texts = {
            id: _text(note, links.get(id, []), contents.names, pages.get(note.session)) for id, note in here.items()
        }
        left = await anyio.to_thread.run_sync(_write_page, files, contents.names, texts)
        await _write_taken(work, files, {id: (contents.names[id], texts[id]) for id in left})
        work.report.notes += len(texts)
        work.report.links += sum(map(len, links.values()))
        work.told(len(notes))


def _write_page(files: OwnFiles, names: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """Write files of notes by id; those that somebody changed are left."""
    return [id for id, text in texts.items() if not files.write(id, names[id], text)]


async def _write_taken(work: Work, files: OwnFiles, left: Mapping[str, tuple[str, str]]) -> None:
    """Write those of the ``left`` files, by note (name, text), whose edits the memory has been told of."""
    if not left:
        return
    histories = await work.store.histories(work.scope, sorted(left))
    for id, (name, text) in left.items():
        parts = split(await anyio.to_thread.run_sync(files.read, name))
        words, below = parted(parts.body)
        file = NoteFile.of(parts.properties, words)
        if file is not None and file.note == id and id in histories and is_told(file, below, histories[id]):
            await anyio.to_thread.run_sync(partial(files.write, id, name, text, anyway=True))


def _heading(note: Note) -> str:
    """What a note is called by people: its title, or what it says first."""
    told = note.title or note.caption or note.content
    return told if note.part == 0 else f"{told[:60]} part {note.part + 1}"


def _text(note: Note, links: Iterable[Link], names: Mapping[str, str], session: str | None) -> str:
    told = [f"- {link.type.value} {_to(names[link.target])}{_why(link)}" for link in links]
    if session is not None:
        told.append(f"- in {_to(session)}")
    return f"{properties(note)}{note.content}\n\n{LINKS}\n" + "".join(f"{line}\n" for line in told)


def _why(link: Link) -> str:
    weight = "" if link.weight == 1 else f" ({link.weight:.2f})"
    # On one line, and without links of its own.
    reason = " ".join(link.reason.split()).replace("[[", "[ [").replace("]]", "] ]").replace("%%", "% %")
    return f"{weight}: {reason}" if reason else weight


def _to(name: str) -> str:
    folder, _, stem = name.rpartition("/")
    return f"[[{name}|{stem}]]" if folder else f"[[{name}]]"


def _page_name(files: OwnFiles, folder: str, of: str) -> str:
    return files.name(f"{folder}/{of}", stem_of(of), folder)


def _write_lists(files: OwnFiles, contents: _Contents, scope: str) -> None:
    """The pages that list notes, and the index that lists the pages."""
    shared = {tag: ids for tag, ids in sorted(contents.tags.items()) if len(ids) >= SHARED}
    told = [sign(INDEX), f"# Memory of {scope}\n\n{len(contents.names):,} notes.\n"]
    for folder, lists in ((SESSIONS, contents.sessions), (TAGS, shared)):
        write = partial(_write_list, files, contents, folder)
        pages = {of: write(of, ids) for of, ids in lists.items()}
        if pages:
            told.append(f"\n## {folder}\n\n")
        told += [f"- {_to(name)}, {len(lists[of]):,}\n" for of, name in pages.items()]
    if contents.loose:
        told.append("\n## Notes of no session\n\n")
        told += _lines(contents, contents.loose)
    files.write(INDEX_NAME, contents.index, "".join(told))


def _write_list(files: OwnFiles, contents: _Contents, folder: str, of: str, ids: list[str]) -> str:
    name = _page_name(files, folder, of)
    files.write(f"{folder}/{of}", name, "".join([sign(INDEX), *_lines(contents, ids)]))
    return name


def _lines(contents: _Contents, ids: Iterable[str]) -> list[str]:
    """As things happened, what has no time at the end."""
    listed = sorted(contents.notes[id] for id in ids)
    return [
        "- " + " ".join(filter(None, (one.day, _to(contents.names[one.id]), stem_of(one.role) if one.role else "")))
        + "\n"
        for one in listed
    ]  # fmt: skip
