"""Markdown notes as Obsidian and Zettelkasten programs keep them: a vault (a folder or a zip), or one file.

Each file is one event. Its title is the front matter's, else the file's name without the number that a Zettelkasten
puts before it (of a file called by its number alone, the first heading). Links between the notes name titles (see
:mod:`~zettel.transcripts.wikilinks`), so that each becomes a MENTIONS link; those of the front matter and its tags
stand below the text, where both count. The rest of the front matter is metadata, with the note's ``folder``.

When it happened is what the front matter says (``date``, ``created`` and the like), else the day or time that the
file's name begins with; the file system's own times tell of copying, and are not asked. A note's id is its place
under the vault's name, or the front matter's ``id`` there (alone if it is long, and so unique in the world): what was
edited since is a revision of the same note. In a folder or zip that is walked a vault is called by its place there,
for there may be another one of its name. A note from standard input has no place, and is known by what it says.
A vault that zettel wrote comes back with more, see :mod:`~zettel.transcripts.own_notes`.
Attachments, and all that begins with a dot (``.obsidian``, ``.trash``), are left out. There are no conversations, so
an event has no session, and the front matter's ``author`` is its role.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from zettel.errors import BadRecord
from zettel.model import MAX_CONTENT_BYTES, Source

from . import Record, Rejected, own_notes, plain
from .front_matter import MAX_CHARACTERS, Properties, split
from .json_stream import encoding_of
from .lines import head_text
from .records import ContentKeys, record, rejected
from .tables import LONG_ID
from .trees import File, as_text, files, is_tree
from .wikilinks import SUFFIXES, Named, Names, with_titles, without_suffix
from .written_times import moment

name = "markdown"
folders = True
"""It reads a folder or a zip as well."""
local_times = True
"""Its times have no zone."""

MAX_VALUE = 300
"""Longest value of the front matter that becomes metadata, in characters."""

_MAX_BYTES = MAX_CONTENT_BYTES + 4 * MAX_CHARACTERS  # an event's content, and the front matter before it
_OTHERS = (".csv", ".db", ".eml", ".htm", ".html", ".json", ".jsonl", ".log", ".mbox", ".ndjson", ".parquet", ".srt",
           ".sqlite3", ".tsv", ".txt", ".vtt", ".zip")  # fmt: skip
"""Endings of transcripts: a folder that holds some beside its notes is a collection of exports, and no vault."""
_MEDIA = (".avif", ".bmp", ".canvas", ".css", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mov", ".mp3", ".mp4", ".ogg",
          ".pdf", ".png", ".svg", ".wav", ".webm", ".webp")  # fmt: skip

_DATED = ("date", "created", "created_at", "creation date", "creation_date", "date created", "date_created")
_OWN = frozenset({"title", "tags", "tag", "aliases", "alias", "author", "authors", "cssclass", "cssclasses"})
_NUMBER = re.compile(r"(\d{8}(?:\d{4}(?:\d{2})?)?)(?=\D|$)[ _.-]*")
_DAY = re.compile(r"\d{4}([-_])\d\d\1\d\d(?=\D|$)")  # Logseq's journals are called 2024_05_01
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_STDIN = "-"
_UNTOLD = frozenset({_STDIN, "index", "readme"})  # names that say where a note lies, and not what it is about
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"(?<![\w/&#\[(])#(\w*[^\W\d_][\w/-]*)")
_NO_TAG = re.compile(r"\W+")


def sniff(path: Path, head: bytes) -> bool:
    """A file called ``.md`` that is no chat; a folder that Obsidian has opened; a folder or zip of notes and media.

    Beside them may be fewer files of other kinds than notes, and none that may be a transcript.
    """
    if is_tree(path):
        if (path / ".obsidian").is_dir():
            return True
        names = [file.name.lower() for file in files(path)]
        notes = sum(map(_is_note, names))
        others = [name for name in names if not _is_note(name) and not name.endswith(_MEDIA)]
        return notes > len(others) and not any(name.endswith(_OTHERS) for name in others)
    return _is_note(path.name) and "\0" not in head_text(head) and not plain.sniff(path, head)


def read(path: Path, zone: tzinfo = timezone.utc, place: str | None = None) -> Iterator[Record]:
    """The notes sorted by place, those of zettel in the order in which they arrived there.

    One that is empty, damaged or no text is rejected, and the next is tried. ``place`` is where the vault or file lies
    in what is walked.

    The vault is read twice: links may mean a note that comes later. Between the two only names are remembered.
    """
    several = is_tree(path)
    found = [file for file in files(path) if _is_note(file.name) or not several]
    vault = _Vault(path, found, place)
    known = {name: (note.own_id, note.named() if note.is_named else None, note.order) for name, note in vault.notes()}
    ids = Counter(own_id for own_id, _, _ in known.values() if own_id)
    names = Names(named for _, named, _ in known.values() if named is not None)
    order = {name: order for name, (_, _, order) in known.items()}
    keys = ContentKeys()
    for file in sorted(found, key=lambda file: order.get(file.name, 0)):
        told = vault.note(file)
        if isinstance(told, Rejected):
            yield told
            continue
        if own_notes.is_index(told.properties):
            continue
        # A copied template brings the same id to many.
        own_id = told.own_id if told.own_id and ids[told.own_id] == 1 else None
        within = own_id or (told.place if told.place != _STDIN else None)
        id = own_id if own_id and len(own_id) >= LONG_ID else within and f"{vault.name}/{within}"
        yield _event(told, id, names, zone, keys)


class _Note(NamedTuple):
    """A note as its file says it. ``place`` is its path in the vault."""

    place: str
    source: Source
    properties: Properties
    body: str

    @property
    def own_id(self) -> str | None:
        return next((self.properties[key][0] for key in ("id", "uid", "zettel-id") if self.properties.get(key)), None)

    @property
    def stem(self) -> str:
        stem = without_suffix(self.place.rpartition("/")[2])
        return unicodedata.normalize("NFC", stem)

    @property
    def title(self) -> str:
        if given := self.properties.get("title"):
            return " ".join(given[0].split())
        told = _NUMBER.sub("", self.stem, count=1) if _NUMBER.match(self.stem) else self.stem
        if told and told.casefold() not in _UNTOLD:
            return told
        heading = _HEADING.search(self.body)
        return heading[1] if heading else self.stem

    @property
    def aliases(self) -> list[str]:
        return [*self.properties.get("aliases", []), *self.properties.get("alias", [])]

    @property
    def is_named(self) -> bool:
        """Whether links can mean it: what zettel wrote is only called by its file where it has no title."""
        return not own_notes.is_note(self.properties) or bool(self.properties.get("title"))

    @property
    def order(self) -> int:
        """What it is read by before its place: when it arrived, of those that zettel wrote."""
        return own_notes.seq_of(self.properties) if own_notes.is_note(self.properties) else 0

    def named(self) -> Named:
        number = _NUMBER.match(self.stem)
        ids = [self.own_id] if self.own_id else []
        return Named(self.place, self.title, (*ids, *([number[1]] if number else []), *self.aliases))


class _Vault:
    """The notes of a folder, a zip or a single file, under a name that stays when it is exported again."""

    def __init__(self, path: Path, found: list[File], place: str | None) -> None:
        self._files = found
        whole = path.resolve()
        tops = {file.name.partition("/")[0] for file in found if "/" in file.name}
        lone = len(tops) == 1 and all("/" in file.name for file in found)
        self._cut = 0
        self.name = whole.name
        if path.is_file() and lone:  # a zip of one folder, which is the vault
            self.name = tops.pop()
            self._cut = len(self.name) + 1
        elif path.is_file():
            self.name = whole.stem if is_tree(path) else whole.parent.name
        if place is not None:
            above = PurePosixPath(place).parent
            self.name = str(above / self.name if is_tree(path) else above)
        self.name = as_text(self.name)

    def notes(self) -> Iterator[tuple[str, _Note]]:
        """Those that can be read, with their files' names."""
        for file in self._files:
            note = self.note(file)
            if isinstance(note, _Note):
                yield file.name, note

    def note(self, file: File) -> _Note | Rejected:
        source = Source(file=file.where)
        if file.size > _MAX_BYTES:
            return rejected(source, f"the note has {file.size:,} bytes, and an event at most {MAX_CONTENT_BYTES:,}")
        try:
            with file.open() as stream:
                said = stream.read(_MAX_BYTES + 1)
        except BadRecord as error:
            return rejected(source, str(error).removeprefix(f"{file.where}: "))
        except OSError as error:
            return rejected(source, f"cannot be read: {error.strerror}")
        try:
            text = said.decode(encoding_of(said))
        except UnicodeDecodeError as error:
            return rejected(source, f"byte {error.start} is not UTF-8")
        properties, body, line = split(text.replace("\r\n", "\n"))
        place = unicodedata.normalize("NFC", as_text(file.name[self._cut :]))
        body = own_notes.text_of(text, body) if own_notes.is_note(properties) else body.strip()
        return _Note(place, Source(file=file.where, position=str(line)), properties, body)


def _event(note: _Note, id: str | None, names: Names, zone: tzinfo, keys: ContentKeys) -> Record:
    if own_notes.is_note(note.properties):
        content = with_titles(note.body, note.place, names)
        told = record({"id": id, **own_notes.fields_of(note.properties, content, zone)}, note.source)
        file = own_notes.NoteFile.of(note.properties, note.body, content)
        return told if isinstance(told, Rejected) else own_notes.written(told, file)
    tags = _tags(note)
    content = with_titles(_with_properties(note, tags), note.place, names)
    if not content:
        return rejected(note.source, "the note is empty")
    metadata: dict[str, str | list[str]] = {
        key: values[0] if len(values) == 1 else values
        for key, values in note.properties.items()
        if values and key not in _OWN and all(len(value) <= MAX_VALUE for value in values)
    }
    folder = note.place.rpartition("/")[0]
    metadata |= {key: value for key, value in (("folder", folder), ("tags", tags), ("aliases", note.aliases)) if value}
    author = note.properties.get("author") or note.properties.get("authors")
    fields = {
        "content": content,
        "id": id,
        "title": note.title,
        "role": author[0] if author else None,
        "occurred_at": _occurred_at(note, zone),
        "metadata": metadata,
    }
    return record(fields, note.source, keys)


def _with_properties(note: _Note, tags: list[str]) -> str:
    """The text; below it what only the front matter says of links and tags, in the form in which a text says it."""
    links = [
        f"{key}: {', '.join(values)}"
        for key, values in note.properties.items()
        if any("[[" in value for value in values)
    ]
    said = {tag.casefold() for tag in _inline_tags(note.body)}
    hashed = " ".join(f"#{_NO_TAG.sub('_', tag)}" for tag in tags if tag.casefold() not in said)
    return "\n\n".join(part for part in (note.body, "\n".join(links), hashed) if part)


def _tags(note: _Note) -> list[str]:
    """All tags, the front matter's first; there several may stand in one text."""
    given = [*note.properties.get("tags", []), *note.properties.get("tag", [])]
    if len(given) == 1:
        given = re.split(r"[,\s]+", given[0])
    tags = [tag.removeprefix("#").strip("/ ") for tag in given] + _inline_tags(note.body)
    first = {tag.casefold(): tag for tag in reversed(tags) if tag}
    return [tag for tag in dict.fromkeys(tags) if tag and first[tag.casefold()] == tag]


def _inline_tags(body: str) -> list[str]:
    return [tag.strip("/") for tag in _TAG.findall(_CODE.sub("", body))] if "#" in body else []


def _occurred_at(note: _Note, zone: tzinfo) -> datetime | None:
    for key in _DATED:
        for value in note.properties.get(key, [])[:1]:
            if told := moment(value.strip("[]"), zone):
                return told
    begun = _NUMBER.match(note.stem) or _DAY.match(note.stem)
    return moment(begun[0].rstrip(" _.-").replace("_", "-"), zone) if begun else None


def _is_note(file: str) -> bool:
    return file.lower().endswith(SUFFIXES)
