"""Markdown notes of Obsidian and Zettelkasten programs: a vault (a folder or a zip), or one file.

Each file is one event. Its title comes from the front matter, else from the file's name without a leading number, else
from the first heading. Links between the notes name titles (see ``parsing.wikilinks``), so each becomes a MENTIONS
link. Links and tags of the front matter follow the text, so that they count too. The rest of the front matter is
metadata, with the note's ``folder``. ``author`` is the speaker, and an event has no session.

The time comes from the front matter (``date``, ``created`` and the like), else from the beginning of the file's name.
File system times are ignored, because copying changes them. The id consists of the vault's name and the note's path,
or the front matter's ``id`` (a long, globally unique id stands alone). So an edited file is a revision of its note. In
a walked folder or zip the path of the vault replaces its name. A note from standard input is identified by its content.

Attachments and dot files (``.obsidian``, ``.trash``) are skipped. :mod:`~zettel.transcripts.vault_notes` describes the
vaults that zettel wrote.
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
from zettel.transcripts import Record, Rejected, vault_notes
from zettel.transcripts.archive_tree import File, as_text, common_folder, files, is_tree
from zettel.transcripts.parsing.front_matter import MAX_CHARACTERS, Properties, split_front_matter
from zettel.transcripts.parsing.json_stream import encoding_of
from zettel.transcripts.parsing.json_values import present
from zettel.transcripts.parsing.lines import head_text
from zettel.transcripts.parsing.wikilinks import SUFFIXES, NoteNames, TitleIndex, link_titles, without_suffix
from zettel.transcripts.parsing.written_times import moment
from zettel.transcripts.records import ContentKeys, record, rejected

from . import plain
from .tables import LONG_ID

name = "markdown"
folders = True
"""Reads a folder or a zip too."""
local_times = True
"""Times have no zone."""

MAX_VALUE = 300
"""Longest value of the front matter that becomes metadata, in characters."""

_MAX_BYTES = MAX_CONTENT_BYTES + 4 * MAX_CHARACTERS  # of content and front matter
_TRANSCRIPTS = (".csv", ".db", ".eml", ".htm", ".html", ".json", ".jsonl", ".log", ".mbox", ".ndjson", ".parquet",
                ".sqlite3", ".srt", ".tsv", ".txt", ".vtt", ".zip")  # fmt: skip
"""Suffixes of transcripts: a folder that contains them is a collection of exports, not a vault."""
_MEDIA = (".avif", ".bmp", ".canvas", ".css", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mov", ".mp3", ".mp4", ".ogg",
          ".pdf", ".png", ".svg", ".wav", ".webm", ".webp")  # fmt: skip

_DATED = ("date", "created", "created_at", "creation date", "creation_date", "date created", "date_created")
_OWN = frozenset({"title", "tags", "tag", "aliases", "alias", "author", "authors", "cssclass", "cssclasses"})
_NUMBER = re.compile(r"(\d{8}(?:\d{4}(?:\d{2})?)?)(?=\D|$)[ _.-]*")
_DAY = re.compile(r"\d{4}([-_])\d\d\1\d\d(?=\D|$)")  # Logseq names journals 2024_05_01
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_STDIN = "-"
_NO_TITLES = frozenset({_STDIN, "index", "readme"})  # file names that do not state a topic
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"(?<![\w/&#\[(])#(\w*[^\W\d_][\w/-]*)")
_NO_TAG = re.compile(r"\W+")


def sniff(path: Path, head: bytes) -> bool:
    """Recognise an ``.md`` file that is not a chat, a vault of Obsidian, and a folder or zip of notes and media.

    Such a folder may contain other files, but fewer than notes, and no transcripts.
    """
    if is_tree(path):
        if (path / ".obsidian").is_dir():
            return True
        names = [file.name.lower() for file in files(path)]
        notes = sum(map(_is_note, names))
        others = [name for name in names if not _is_note(name) and not name.endswith(_MEDIA)]
        return notes > len(others) and not any(name.endswith(_TRANSCRIPTS) for name in others)
    return _is_note(path.name) and "\0" not in head_text(head) and not plain.sniff(path, head)


def read(path: Path, zone: tzinfo = timezone.utc, place: str | None = None) -> Iterator[Record]:
    """Yield the notes by path, and notes of zettel by ``seq``; invalid notes are rejected.

    ``place`` is the path of the vault or file in a walked folder. The vault is read twice, because links may name later
    notes; only names stay in memory.
    """
    several = is_tree(path)
    note_files = [file for file in files(path) if _is_note(file.name) or not several]
    vault = _Vault(path, note_files, place)
    known = {file: (note.own_id, note.names if note.has_names else None, note.order) for file, note in vault.notes()}
    ids = Counter(own_id for own_id, _, _ in known.values() if own_id)
    names = TitleIndex(names for _, names, _ in known.values() if names is not None)
    order = {file: order for file, (_, _, order) in known.items()}
    keys = ContentKeys()
    for file in sorted(note_files, key=lambda file: order.get(file.name, 0)):
        parsed = vault.note(file)
        if isinstance(parsed, Rejected):
            yield parsed
            continue
        if vault_notes.is_index(parsed.properties):
            continue
        # Copies of a template have the same id.
        own_id = parsed.own_id if parsed.own_id and ids[parsed.own_id] == 1 else None
        relative_id = own_id or (parsed.place if parsed.place != _STDIN else None)
        id = own_id if own_id and len(own_id) >= LONG_ID else relative_id and f"{vault.name}/{relative_id}"
        yield _event(parsed, id, names, zone, keys)


class _Note(NamedTuple):
    """A note file with its path in the vault, ``place``."""

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
        if titles := self.properties.get("title"):
            return " ".join(titles[0].split())
        topic = _NUMBER.sub("", self.stem, count=1) if _NUMBER.match(self.stem) else self.stem
        if topic and topic.casefold() not in _NO_TITLES:
            return topic
        heading = _HEADING.search(self.body)
        return heading[1] if heading else self.stem

    @property
    def aliases(self) -> list[str]:
        return [*self.properties.get("aliases", []), *self.properties.get("alias", [])]

    @property
    def has_names(self) -> bool:
        """Whether links can name the note; for an untitled note of zettel the file name is not a name."""
        return not vault_notes.is_note(self.properties) or bool(self.properties.get("title"))

    @property
    def order(self) -> int:
        """The ``seq`` of a note of zettel, else 0."""
        return vault_notes.seq_of(self.properties) if vault_notes.is_note(self.properties) else 0

    @property
    def names(self) -> NoteNames:
        number = _NUMBER.match(self.stem)
        ids = [self.own_id] if self.own_id else []
        return NoteNames(self.place, self.title, (*ids, *([number[1]] if number else []), *self.aliases))


class _Vault:
    """The notes of a folder, a zip or a single file, under a name that is the same in later exports."""

    def __init__(self, path: Path, note_files: list[File], place: str | None) -> None:
        self._files = note_files
        resolved = path.resolve()
        self._base = common_folder(note_files) if path.is_file() else ""  # of a zip of one folder, the vault
        self.name = resolved.name
        if self._base:
            self.name = self._base.rstrip("/")
        elif path.is_file():
            self.name = resolved.stem if is_tree(path) else resolved.parent.name
        if place is not None:
            above = PurePosixPath(place).parent
            self.name = str(above / self.name if is_tree(path) else above)
        self.name = as_text(self.name)

    def notes(self) -> Iterator[tuple[str, _Note]]:
        """Yield the valid notes with the names of their files."""
        for file in self._files:
            note = self.note(file)
            if isinstance(note, _Note):
                yield file.name, note

    def note(self, file: File) -> _Note | Rejected:
        source = Source(file=file.where)
        if file.size > _MAX_BYTES:
            return rejected(source, f"the note has {file.size:,} bytes; an event has at most {MAX_CONTENT_BYTES:,}")
        try:
            with file.open() as stream:
                data = stream.read(_MAX_BYTES + 1)
        except BadRecord as error:
            return rejected(source, str(error).removeprefix(f"{file.where}: "))
        except OSError as error:
            return rejected(source, f"cannot be read: {error.strerror}")
        try:
            text = data.decode(encoding_of(data))
        except UnicodeDecodeError as error:
            return rejected(source, f"byte {error.start} is not UTF-8")
        properties, body, line = split_front_matter(text.replace("\r\n", "\n"))
        place = unicodedata.normalize("NFC", as_text(file.name.removeprefix(self._base)))
        body = vault_notes.note_text(text, body) if vault_notes.is_note(properties) else body.strip()
        return _Note(place, Source(file=file.where, position=str(line)), properties, body)


def _event(note: _Note, id: str | None, names: TitleIndex, zone: tzinfo, keys: ContentKeys) -> Record:
    if vault_notes.is_note(note.properties):
        content = link_titles(note.body, note.place, names)
        event = record({"id": id, **vault_notes.fields_of(note.properties, content, zone)}, note.source)
        file = vault_notes.NoteFile.of(note.properties, note.body, content)
        return event if isinstance(event, Rejected) else vault_notes.with_note_file(event, file)
    tags = _tags(note)
    content = link_titles(_with_properties(note, tags), note.place, names)
    if not content:
        return rejected(note.source, "the note is empty")
    metadata: dict[str, str | list[str]] = {
        key: values[0] if len(values) == 1 else values
        for key, values in note.properties.items()
        if values and key not in _OWN and all(len(value) <= MAX_VALUE for value in values)
    }
    metadata |= present({"folder": note.place.rpartition("/")[0], "tags": tags, "aliases": note.aliases})
    author = note.properties.get("author") or note.properties.get("authors")
    fields = {
        "content": content,
        "id": id,
        "title": note.title,
        "speaker": author[0] if author else None,
        "occurred_at": _occurred_at(note, zone),
        "metadata": metadata,
    }
    return record(fields, note.source, keys)


def _with_properties(note: _Note, tags: list[str]) -> str:
    """Return the text, followed by the links and tags that only the front matter contains."""
    links = [
        f"{key}: {', '.join(values)}"
        for key, values in note.properties.items()
        if any("[[" in value for value in values)
    ]
    inline = {tag.casefold() for tag in _inline_tags(note.body)}
    hashed = " ".join(f"#{_NO_TAG.sub('_', tag)}" for tag in tags if tag.casefold() not in inline)
    return "\n\n".join(part for part in (note.body, "\n".join(links), hashed) if part)


def _tags(note: _Note) -> list[str]:
    """Return all tags, the front matter's first; a text in the front matter may contain several."""
    tag_values = [*note.properties.get("tags", []), *note.properties.get("tag", [])]
    if len(tag_values) == 1:
        tag_values = re.split(r"[,\s]+", tag_values[0])
    tags = [tag.removeprefix("#").strip("/ ") for tag in tag_values] + _inline_tags(note.body)
    first = {tag.casefold(): tag for tag in reversed(tags) if tag}
    return [tag for tag in dict.fromkeys(tags) if tag and first[tag.casefold()] == tag]


def _inline_tags(body: str) -> list[str]:
    return [tag.strip("/") for tag in _TAG.findall(_CODE.sub("", body))] if "#" in body else []


def _occurred_at(note: _Note, zone: tzinfo) -> datetime | None:
    for key in _DATED:
        for value in note.properties.get(key, [])[:1]:
            if time := moment(value.strip("[]"), zone):
                return time
    prefix = _NUMBER.match(note.stem) or _DAY.match(note.stem)
    return moment(prefix[0].rstrip(" _.-").replace("_", "-"), zone) if prefix else None


def _is_note(file: str) -> bool:
    return file.lower().endswith(SUFFIXES)
