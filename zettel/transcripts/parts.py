"""What there is to read under a path: a file, a folder or zip that a format takes as a whole, or many files.

A folder or zip that no format takes is walked, in sorted order and following no links. Each file in it is read by its
own format; those that no format knows are listed and left alone.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple

from zettel.errors import BadRecord, InvalidInput

from . import HEAD_BYTES, Format, Record, Rejected, beginning, choose, named, ranked, reads_folders, recognising
from .trees import File, files, is_tree

_TABLES = {".csv": "csv", ".tsv": "csv"}
"""Endings of tables, which are not recognised by columns of unusual names."""


class Part(NamedTuple):
    """What one format reads at once: a file, or a folder or zip as a whole."""

    where: str
    """What it is called in reports and by its events' sources: the path as it was given, and the place inside."""
    format: Format
    path: Path
    """The file or folder itself; for an ``entry``, the zip that holds it."""
    entry: File | None = None


class Transcript(NamedTuple):
    """What an import reads, in order."""

    parts: tuple[Part, ...]
    unknown: tuple[str, ...]
    """Files in a folder or zip that no format knows."""
    walked: bool
    """Whether it is a folder or zip whose files are read one by one."""

    @property
    def format(self) -> str:
        """The name of its format, or of several."""
        return ", ".join(dict.fromkeys(part.format.name for part in self.parts))


def look(path: Path, format: str = "auto", *, tables: bool = False, called: str | None = None) -> Transcript:
    """What is to be read under ``path``, which reports call ``called``.

    ``tables`` tells that names of columns were given, so that a table needs none of the usual ones. With a ``format``
    only files that it recognises are taken from a folder. Raises ``UnknownFormat`` for a file, and ``InvalidInput`` for
    a folder or zip, with nothing in it that can be read, or a path where nothing is.
    """
    where = called or str(path)
    if path.exists() and is_tree(path):
        return _look_into(path, format, where)
    if tables and format == "auto":
        format = _TABLES.get(path.suffix.lower(), format)
    return Transcript((Part(where, choose(path, format, called), path),), (), walked=False)


def read(part: Part, zone: tzinfo | None = None, columns: Mapping[str, str] | None = None) -> Iterator[Record]:
    """A part's records, which tell their place under the name that the part is called by.

    ``zone`` is for formats whose times tell none, ``columns`` for tables. Raises ``BadRecord`` where no more can be
    read.
    """
    options: dict[str, Any] = {}
    if zone is not None and getattr(part.format, "local_times", False):
        options["zone"] = zone
    if columns and takes_columns(part.format):
        options["columns"] = columns
    reading: Callable[..., Iterator[Record]] = part.format.read
    with _on_disk(part) as path:
        try:
            for record in reading(path, **options):
                yield _called(record, str(path), part.where)
        except InvalidInput as error:  # BadRecord, or columns that the table has not
            raise BadRecord(str(error).replace(str(path), part.where)) from None


def takes_columns(format: Format) -> bool:
    """Whether a format reads tables, and so can be told which column says what."""
    return "columns" in inspect.signature(format.read).parameters


def _look_into(path: Path, format: str, where: str) -> Transcript:
    known = ranked() if format == "auto" else [named(format)]
    if whole := _taken_whole(path, known):
        return Transcript((Part(where, whole, path),), (), walked=False)
    parts: list[Part] = []
    unknown: list[str] = []
    claimed: dict[str, bool] = {}
    for file in files(path):
        if _is_claimed(path, file, where, known, claimed, parts):
            continue
        called = str(PurePath(where, file.name))
        found = _readable(path, file, called, known)
        parts += found
        if not found:
            unknown.append(called)
    if not parts:
        of = "zettel knows" if format == "auto" else f"is of the format {format}"
        raise InvalidInput(f"{where} holds no transcript that {of}; files in it: {len(unknown):,}")
    return Transcript(tuple(parts), tuple(unknown), walked=True)


def _taken_whole(path: Path, known: Sequence[Format]) -> Format | None:
    """The format that reads a folder or zip as a whole; None for a collection, in which others would be overlooked."""
    takers = recognising(path, b"", [format for format in known if reads_folders(format)])
    first, second = next(takers, None), next(takers, None)
    if first is None or second is not None:
        return None
    return None if path.is_dir() and _is_collection(path, first, known) else first


def _is_collection(folder: Path, taker: Format, known: Sequence[Format]) -> bool:
    """Whether what the format takes is a folder in this one, and beside that there is something of another format."""
    inner = [one for one in folder.iterdir() if one.is_dir() and not one.is_symlink() and taker.sniff(one, b"")]
    if not inner:
        return False
    beside = (file for file in files(folder) if not any(one in file.path.parents for one in inner))
    return any(part.format is not taker for file in beside for part in _readable(folder, file, "", known))


def _is_claimed(
    root: Path, file: File, where: str, known: Sequence[Format], claimed: dict[str, bool], parts: list[Part]
) -> bool:
    """Whether a folder above the file is taken as a whole; the first file under one brings it into ``parts``."""
    if file.entry is not None:
        return False
    for folder in reversed(PurePosixPath(file.name).parents[:-1]):
        name = str(folder)
        if name not in claimed:
            whole = _taken_whole(root / name, known)
            claimed[name] = whole is not None
            if whole is not None:
                parts.append(Part(str(PurePath(where, name)), whole, root / name))
        if claimed[name]:
            return True
    return False


def _readable(root: Path, file: File, called: str, known: Sequence[Format]) -> list[Part]:
    try:
        return _parts(root, file, called, known)
    except (BadRecord, OSError):  # a zip that is damaged, or a file that may not be read
        return []


def _parts(root: Path, file: File, called: str, known: Sequence[Format]) -> list[Part]:
    """A file as one part, or the files of a zip; none if no format knows it."""
    if file.entry is None:
        format = _found(file.path, beginning(file.path), known)
        if format is None and is_tree(file.path):
            return [part for one in files(file.path) for part in _parts(file.path, one, f"{called}/{one.name}", known)]
        return [] if format is None else [Part(called, format, file.path)]
    with file.open() as stream:
        head = stream.read(HEAD_BYTES)
    format = _found(root / file.name, head, known)
    return [] if format is None else [Part(called, format, root, file)]


def _found(path: Path, head: bytes, known: Sequence[Format]) -> Format | None:
    """The format of a file that nobody named: some recognise fewer of these."""
    return next((format for format in known if getattr(format, "sniff_found", format.sniff)(path, head)), None)


@contextmanager
def _on_disk(part: Part) -> Iterator[Path]:
    """The file itself; what is packed in a zip, unpacked for as long as it is read, under its own name."""
    if part.entry is None:
        yield part.path
        return
    inside = PurePosixPath(part.entry.name)
    with tempfile.TemporaryDirectory(prefix="zettel-") as folder:
        path = Path(folder, inside.parent.name or part.path.stem, inside.name)
        try:
            path.parent.mkdir()
            with part.entry.open() as packed, path.open("wb") as file:
                shutil.copyfileobj(packed, file)
        except OSError as error:
            raise BadRecord(f"{part.where}: cannot be unpacked: {error.strerror}") from None
        yield path


def _called(record: Record, path: str, where: str) -> Record:
    """The record with its place under another name."""
    if path == where:
        return record
    if isinstance(record, Rejected):
        return record.model_copy(update={"file": _moved(record.file, path, where)})
    if record.source is None:
        return record
    source = record.source.model_copy(update={"file": _moved(record.source.file, path, where)})
    return record.model_copy(update={"source": source})


def _moved(file: str, path: str, where: str) -> str:
    return where + file[len(path) :] if file == path or file.startswith(f"{path}/") else file
