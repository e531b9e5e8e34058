"""What there is to read under a path: a file, a folder or zip that a format takes as a whole, or many files.

A folder or zip that no format takes is walked, in sorted order and following no links. Each file in it is read by its
own format; those that no format knows are listed and left alone. What lies beside an export that a format takes as a
whole is read too, where the format knows which files are the export's own.
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

from zettel.errors import BadRecord, InvalidInput
from zettel.held_files import is_held
from zettel.model import MAX_NAME

from . import HEAD_BYTES, Format, Record, Rejected, beginning, choose, named, ranked, reads_folders, recognising
from .trees import File, as_text, files, is_packed, is_tree, wrapping

_TABLES = {".csv": "csv", ".tsv": "csv"}
"""Endings of tables, which are not recognised by columns of unusual names."""

_TOP = PurePosixPath(".")


class Part(NamedTuple):
    """What one format reads at once: a file, or a folder or zip as a whole."""

    where: str
    """What it is called in reports and by its events' sources: the path as it was given, and the place inside."""
    format: Format
    path: Path
    """The file or folder itself; for an ``entry``, the zip that holds it."""
    entry: File | None = None
    place: str = ""
    """Where it lies in what is walked, which stays whatever else comes to lie there; "" if nothing is."""
    folder: str = ""
    """The folders that it lies in below what is walked."""

    @property
    def called(self) -> str:
        """A file's name as ids have it that count its records: in a folder below there may be others of the name."""
        return f"{self.folder}/{PurePosixPath(self.where).stem}"[-MAX_NAME:]


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
    where = as_text(called or str(path))
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
    if part.place and _takes("place", part.format):
        options["place"] = part.place
    if part.folder and _takes("called", part.format):
        options["called"] = part.called
    reading: Callable[..., Iterator[Record]] = part.format.read
    with _on_disk(part) as path:
        try:
            for record in reading(path, **options):
                yield _called(record, str(path), part.where)
        except InvalidInput as error:  # BadRecord, or columns that the table has not
            raise BadRecord(str(error).replace(str(path), part.where)) from None


def takes_columns(format: Format) -> bool:
    """Whether a format reads tables, and so can be told which column says what."""
    return _takes("columns", format)


def _takes(option: str, format: Format) -> bool:
    return option in inspect.signature(format.read).parameters


def _look_into(path: Path, format: str, where: str) -> Transcript:
    found = _Walk(path, where, ranked() if format == "auto" else [named(format)])
    if not found.parts:
        of = "zettel knows" if format == "auto" else f"is of the format {format}"
        packed = "; some are packed: unpack them first" if any(map(is_packed, found.unknown)) else ""
        raise InvalidInput(f"{where} holds no transcript that {of}; files in it: {len(found.unknown):,}{packed}")
    if found.is_one_export:
        return Transcript((found.parts[0]._replace(place=""),), (), walked=False)
    parts = tuple(part._replace(place=_told(part.place)) for part in found.parts)
    return Transcript(parts, tuple(found.unknown), walked=True)


def _told(place: str) -> str:
    """A place as ids tell it: without the name of what is walked, as folders are called alone; its top has that."""
    name, _, inside = as_text(place).partition("/")
    top, deeper, _ = inside.partition("/")
    return (inside if deeper and top != name else f"{name}/{inside}").rstrip("/")


_Beside: TypeAlias = frozenset[PurePosixPath]
"""Files that lie in an export's folder or zip and are none of the export's, by their places in what is walked."""


class _Walk:
    """What is to be read in a folder or zip. Places of parts begin with its name, and those of folders end with a /."""

    def __init__(self, root: Path, where: str, known: Sequence[Format]) -> None:
        self.parts: list[Part] = []
        self.unknown: list[str] = []
        self._root = root
        self._where = where
        self._known = known
        self._taken: dict[PurePosixPath, _Beside | None] = {}  # folders; None: no format takes it as a whole
        found = list(files(root))
        self._base = "" if root.is_dir() else wrapping(found)
        self._name = self._base.rstrip("/") or (root.resolve().name if root.is_dir() else root.stem)
        for file in found:
            self._see(file)

    @property
    def is_one_export(self) -> bool:
        """Whether one format reads all there is."""
        return len(self.parts) == 1 and self._taken[_TOP] is not None

    def _see(self, file: File) -> None:
        place = PurePosixPath(file.name)
        outer: _Beside | None = None
        for folder in reversed(place.parents) if file.entry is None else [_TOP]:
            if folder not in self._taken:
                self._taken[folder] = self._take(folder, outer)
            beside = self._taken[folder]
            if beside is not None and place not in beside:
                return
            outer = outer if beside is None else beside
        called = as_text(str(PurePath(self._where, file.name)))
        found = _readable(self._root, file, called, self._known)
        for part in found:
            # What is packed in a zip lies where its folder would.
            above = file.name[: file.name.rfind("/") + 1]
            self._add(part, f"{above}{part.place}" if part.place else file.name)
        # What no format knows may well go with an export that it lies in.
        if not found and outer is None:
            self.unknown.append(called)

    def _take(self, folder: PurePosixPath, outer: _Beside | None) -> _Beside | None:
        """Have a folder (or the zip) read as a whole, if a format does so and ``outer`` leaves its files."""
        path = self._root / folder
        format = _taken_whole(path, self._known)
        if format is None:
            return None
        try:
            beside = frozenset(folder / file.name for file in _beside(path, format))
        except BadRecord:  # which is told when the export is read
            beside = frozenset()
        if outer is not None and outer.isdisjoint({folder / file.name for file in files(path)} - beside):
            return None
        called = as_text(str(PurePath(self._where, folder)))
        self._add(Part(called, format, path), "" if folder == _TOP else f"{folder}/")
        return beside

    def _add(self, part: Part, inside: str) -> None:
        place = inside.removeprefix(self._base)
        folder = as_text(place.rpartition("/")[0])
        self.parts.append(part._replace(place=f"{self._name}/{place}", folder=folder))


def _taken_whole(path: Path, known: Sequence[Format]) -> Format | None:
    """The format that reads a folder or zip as a whole; None for a collection, in which others would be overlooked."""
    takers = recognising(path, b"", [format for format in known if reads_folders(format)])
    first, second = next(takers, None), next(takers, None)
    if first is None or second is not None:
        return None
    # A format that knows which files are an export's own leaves the others to be read beside it.
    is_hidden = path.is_dir() and not hasattr(first, "beside") and _is_collection(path, first, known)
    return None if is_hidden else first


def _is_collection(folder: Path, taker: Format, known: Sequence[Format]) -> bool:
    """Whether what the format takes is a folder in this one, and beside that there is something of another format."""
    inner = [one for one in folder.iterdir() if one.is_dir() and not one.is_symlink() and taker.sniff(one, b"")]
    if not inner:
        return False
    beside = (file for file in files(folder) if not any(one in file.path.parents for one in inner))
    return any(part.format is not taker for file in beside for part in _readable(folder, file, "", known))


def _beside(path: Path, taker: Format) -> Iterator[File]:
    """Files in an export's folder or zip that are none of its own, as far as its format knows which are."""
    others: Callable[[Path], Iterator[File]] | None = getattr(taker, "beside", None)
    return iter(()) if others is None else others(path)


def _readable(root: Path, file: File, called: str, known: Sequence[Format]) -> list[Part]:
    try:
        return _parts(root, file, called, known)
    except (BadRecord, OSError):  # a zip that is damaged, or a file that may not be read
        return []


def _parts(root: Path, file: File, called: str, known: Sequence[Format]) -> list[Part]:
    """A file as one part, or the files of a zip; none if no format knows it, or if it is of a store that is open."""
    if is_held(file.path):
        return []
    if is_tree(file.path) and file.entry is None:
        return _Walk(file.path, called, known).parts
    if file.entry is None:
        format = _found(file.path, beginning(file.path), known)
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
    """The file itself; what is packed in a zip, unpacked for as long as it is read, under its own name.

    Formats tell sessions and sources by the path: one with bytes that are no text is read by way of a link.
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
