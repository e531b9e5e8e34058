"""Discovery of the transcripts under a path: a file, a folder or zip that one format reads, or many files.

A folder or zip that no format reads as a whole is walked in sorted order, without following links. Each file is read
by its own format; unknown files are listed. Files beside an export are read too, if its format knows its own files.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from zettel.core.open_files import is_open
from zettel.errors import BadRecord, InvalidInput
from zettel.model import MAX_NAME

from . import (
    ExtraFilesFormat,
    FolderSniffFormat,
    Format,
    LocalTimeFormat,
    ReadRecord,
    Record,
    Rejected,
    choose,
    format_named,
    formats_by_priority,
    matching_formats,
    read_head,
    reads_folders,
)
from .archive_tree import File, as_text, common_folder, files, is_tree, is_unsupported_archive

_TABLES = {".csv": "csv", ".tsv": "csv"}
"""Suffixes of tables, whose custom column names no format recognises."""

_TOP = PurePosixPath(".")


class TranscriptPart(NamedTuple):
    """A file, folder or zip that one format reads."""

    where: str
    """The name in reports and event sources: the given path and the path inside it."""
    format: Format
    path: Path
    """The file or folder; for an ``entry``, the zip that contains it."""
    entry: File | None = None
    place: str = ""
    """The path inside the walked folder or zip; "" if nothing is walked."""
    folder: str = ""
    """The folders between the walked folder and the file."""

    @property
    def called(self) -> str:
        """The file's name with its folders, for ids that count records: other folders may have files of that name."""
        return f"{self.folder}/{PurePosixPath(self.where).stem}"[-MAX_NAME:]


class Transcript(NamedTuple):
    """The parts that an import reads, in order."""

    parts: tuple[TranscriptPart, ...]
    unknown: tuple[str, ...]
    """Files in a folder or zip that no format recognises."""
    walked: bool
    """Whether the files of a folder or zip are read one by one."""

    @property
    def format(self) -> str:
        """The comma-separated names of the formats."""
        return ", ".join(dict.fromkeys(part.format.name for part in self.parts))


def find_parts(path: Path, format: str = "auto", *, tables: bool = False, called: str | None = None) -> Transcript:
    """Return the transcript under ``path``, which reports call ``called``.

    With ``tables`` the user named columns, so a table needs no common column names. With a ``format`` a folder
    contributes only the files that this format recognises. Raises ``UnknownFormat`` for an unknown file, and
    ``InvalidInput`` for a missing path or a folder or zip without transcripts.
    """
    where = as_text(called or str(path))
    if path.exists() and is_tree(path):
        return _find_in_tree(path, format, where)
    if tables and format == "auto":
        format = _TABLES.get(path.suffix.lower(), format)
    return Transcript((TranscriptPart(where, choose(path, format, called), path),), (), walked=False)


def read(
    part: TranscriptPart, zone: tzinfo | None = None, columns: Mapping[str, str] | None = None
) -> Iterator[ReadRecord]:
    """Yield the records of a part, with sources under the name of the part.

    ``zone`` applies to formats with local times, ``columns`` to tables. Raises ``BadRecord`` if the rest cannot be
    read.
    """
    options: dict[str, Any] = {}
    if zone is not None and isinstance(part.format, LocalTimeFormat) and part.format.local_times:
        options["zone"] = zone
    if columns and takes_columns(part.format):
        options["columns"] = columns
    if part.place and _takes("place", part.format):
        options["place"] = part.place
    if part.folder and _takes("called", part.format):
        options["called"] = part.called
    reading: Callable[..., Iterator[ReadRecord]] = part.format.read
    with _on_disk(part) as path:
        try:
            for record in reading(path, **options):
                yield None if record is None else _relabel(record, str(path), part.where)
        except InvalidInput as error:  # also BadRecord
            raise BadRecord(str(error).replace(str(path), part.where)) from None


def takes_columns(format: Format) -> bool:
    """Return whether a format reads tables and takes ``columns``."""
    return _takes("columns", format)


def _takes(option: str, format: Format) -> bool:
    return option in inspect.signature(format.read).parameters


def _find_in_tree(path: Path, format: str, where: str) -> Transcript:
    walk = _TreeWalk(path, where, formats_by_priority() if format == "auto" else [format_named(format)])
    if not walk.parts:
        of = "that zettel recognises" if format == "auto" else f"of the format {format}"
        packed = "; unpack the archives among them first" if any(map(is_unsupported_archive, walk.unknown)) else ""
        raise InvalidInput(f"{where} contains no transcript {of}; files in it: {len(walk.unknown):,}{packed}")
    if walk.is_one_export:
        return Transcript((walk.parts[0]._replace(place=""),), (), walked=False)
    parts = tuple(part._replace(place=_id_place(part.place)) for part in walk.parts)
    return Transcript(parts, tuple(walk.unknown), walked=True)


def _id_place(place: str) -> str:
    """Return a path for ids: without the name of the walked folder, unless the file is at its top."""
    name, _, inside = as_text(place).partition("/")
    top, deeper, _ = inside.partition("/")
    return (inside if deeper and top != name else f"{name}/{inside}").rstrip("/")


_ExtraFiles: TypeAlias = frozenset[PurePosixPath]
"""Paths of files in the folder or zip of an export that do not belong to the export."""


class _TreeWalk:
    """Collects the parts of a folder or zip. Their paths begin with its name; paths of folders end with a /."""

    def __init__(self, root: Path, where: str, known: Sequence[Format]) -> None:
        self.parts: list[TranscriptPart] = []
        self.unknown: list[str] = []
        self._root = root
        self._where = where
        self._known = known
        self._taken: dict[PurePosixPath, _ExtraFiles | None] = {}  # folders; None: no format takes it as a whole
        tree_files = list(files(root))
        self._base = "" if root.is_dir() else common_folder(tree_files)
        self._name = self._base.rstrip("/") or (root.resolve().name if root.is_dir() else root.stem)
        for file in tree_files:
            self._see(file)

    @property
    def is_one_export(self) -> bool:
        """Whether one format reads the whole folder or zip."""
        return len(self.parts) == 1 and self._taken[_TOP] is not None

    def _see(self, file: File) -> None:
        place = PurePosixPath(file.name)
        outer: _ExtraFiles | None = None
        for folder in reversed(place.parents) if file.entry is None else [_TOP]:
            if folder not in self._taken:
                self._taken[folder] = self._take(folder, outer)
            beside = self._taken[folder]
            if beside is not None and place not in beside:
                return
            outer = outer if beside is None else beside
        called = as_text(str(PurePath(self._where, file.name)))
        parts = _readable(self._root, file, called, self._known)
        for part in parts:
            # Files in a nested zip have the path that its folder would have.
            above = file.name[: file.name.rfind("/") + 1]
            self._add(part, f"{above}{part.place}" if part.place else file.name)
        # An unknown file inside an export may belong to it.
        if not parts and outer is None:
            self.unknown.append(called)

    def _take(self, folder: PurePosixPath, outer: _ExtraFiles | None) -> _ExtraFiles | None:
        """Add a folder (or the zip) as one part, if a format reads it and ``outer`` does not own its files."""
        path = self._root / folder
        format = _whole_tree_format(path, self._known)
        if format is None:
            return None
        try:
            beside = frozenset(folder / file.name for file in _extra_files(path, format))
        except BadRecord:  # reported when the export is read
            beside = frozenset()
        if outer is not None and outer.isdisjoint({folder / file.name for file in files(path)} - beside):
            return None
        called = as_text(str(PurePath(self._where, folder)))
        self._add(TranscriptPart(called, format, path), "" if folder == _TOP else f"{folder}/")
        return beside

    def _add(self, part: TranscriptPart, inside: str) -> None:
        place = inside.removeprefix(self._base)
        folder = as_text(place.rpartition("/")[0])
        self.parts.append(part._replace(place=f"{self._name}/{place}", folder=folder))


def _whole_tree_format(path: Path, known: Sequence[Format]) -> Format | None:
    """Return the format that reads a folder or zip as a whole, or None for a collection of several exports."""
    takers = matching_formats(path, b"", [format for format in known if reads_folders(format)])
    first, second = next(takers, None), next(takers, None)
    if first is None or second is not None:
        return None
    # A format with ``extra_files`` leaves the other files to be read beside the export.
    is_hidden = path.is_dir() and not isinstance(first, ExtraFilesFormat) and _is_collection(path, first, known)
    return None if is_hidden else first


def _is_collection(folder: Path, taker: Format, known: Sequence[Format]) -> bool:
    """Return whether the export is a subfolder, with files of another format beside it."""
    folders = [inner for inner in folder.iterdir() if inner.is_dir() and not inner.is_symlink()]
    exports = [inner for inner in folders if taker.sniff(inner, b"")]
    if not exports:
        return False
    beside = (file for file in files(folder) if not any(inner in file.path.parents for inner in exports))
    return any(part.format is not taker for file in beside for part in _readable(folder, file, "", known))


def _extra_files(path: Path, taker: Format) -> Iterator[File]:
    """Yield the files in an export's folder or zip that its format does not own."""
    return taker.extra_files(path) if isinstance(taker, ExtraFilesFormat) else iter(())


def _readable(root: Path, file: File, called: str, known: Sequence[Format]) -> list[TranscriptPart]:
    try:
        return _parts(root, file, called, known)
    except (BadRecord, OSError):  # a zip that is damaged, or a file that may not be read
        return []


def _parts(root: Path, file: File, called: str, known: Sequence[Format]) -> list[TranscriptPart]:
    """Return a file as one part, or the parts of a zip; none for unknown files and files of an open store."""
    if is_open(file.path):
        return []
    if is_tree(file.path) and file.entry is None:
        return _TreeWalk(file.path, called, known).parts
    if file.entry is None:
        format = _recognised(file.path, read_head(file.path), known)
        return [] if format is None else [TranscriptPart(called, format, file.path)]
    format = _recognised(root / file.name, file.head(), known)
    return [] if format is None else [TranscriptPart(called, format, root, file)]


def _recognised(path: Path, head: bytes, known: Sequence[Format]) -> Format | None:
    """Return the format of a file in a walked folder; ``sniff_in_folder`` is stricter than ``sniff``."""
    def recognises(format: Format) -> bool:
        sniff = format.sniff_in_folder if isinstance(format, FolderSniffFormat) else format.sniff
        return sniff(path, head)

    return next(filter(recognises, known), None)


@contextmanager
def _on_disk(part: TranscriptPart) -> Iterator[Path]:
    """Yield a path to the file; an entry of a zip is unpacked for the time of reading, under its own name.

    Formats use the path in sessions and sources, so a path that is not valid text is read through a link.
    """
    if part.entry is None and as_text(str(part.path)) == str(part.path):
        yield part.path
        return
    inside = part.path.absolute() if part.entry is None else PurePosixPath(part.entry.name)
    with tempfile.TemporaryDirectory(prefix="zettel-") as folder:
        path = Path(folder, as_text(inside.parent.name or part.path.stem), as_text(inside.name))
        try:
            path.parent.mkdir()
            if part.entry is None:
                path.symlink_to(inside)
            else:
                with part.entry.open() as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)
        except OSError as error:
            raise BadRecord(f"{part.where}: cannot be unpacked: {error.strerror}") from None
        yield path


def _relabel(record: Record, path: str, where: str) -> Record:
    """Return the record with ``path`` in its source replaced by ``where``."""
    if path == where:
        return record
    if isinstance(record, Rejected):
        return record.model_copy(update={"file": _relabel_path(record.file, path, where)})
    if record.source is None:
        return record
    source = record.source.model_copy(update={"file": _relabel_path(record.source.file, path, where)})
    return record.model_copy(update={"source": source})


def _relabel_path(file: str, path: str, where: str) -> str:
    return where + file[len(path) :] if file == path or file.startswith(f"{path}/") else file
