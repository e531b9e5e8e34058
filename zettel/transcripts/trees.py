"""The files of an export, whether it is a folder, a zip or one file.

::

    for file in files(Path("export.zip")):
        if file.name.endswith(".json"):
            with file.open() as stream: ...

Nothing is unpacked onto the disk. Links are not followed. A zip is refused whose entries lead out of it, overlap
or unpack to more than any export would.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from zettel.errors import BadRecord
from zettel.model import MAX_NAME

MAX_ENTRIES = 1_000_000
"""Most entries of a zip: a workplace of thousand channels over three years has as many files of a day."""

MAX_RATIO = 200
"""How many times longer than packed an entry may be: chats as JSON are ten to thirty times as long."""

_PACKED = re.compile(r".*\.(?:7z|bz2|gz|rar|tar|tgz|xz|zst|zip/.*\.zip)", re.IGNORECASE | re.DOTALL)
_SMALL_BYTES = 16_000_000  # what an entry may unpack to at any ratio: a file of blanks is no danger
_BUFFER_BYTES = 1 << 17
_ENCRYPTED = 1  # bit of an entry's flags


class File(NamedTuple):
    """A file inside an export."""

    name: str
    """Its place in the folder or zip, parts divided by ``/``; of a single file its own name."""
    where: str
    """What a person finds it by: its path, or the zip's path and the name."""
    size: int
    """Bytes, unpacked."""
    path: Path
    """The file, or the zip it is in."""
    entry: ZipInfo | None = None
    archive: ZipFile | None = None

    def open(self) -> BinaryIO:
        """Its bytes from the beginning. What cannot be read, now or further on, raises ``BadRecord``."""
        try:
            if self.archive is not None and self.entry is not None:
                return io.BufferedReader(_Unpacked(self.archive.open(self.entry), self.where), _BUFFER_BYTES)
            return self.path.open("rb", buffering=_BUFFER_BYTES)
        except _UNREADABLE as error:
            raise _unreadable(self.where, error) from None


def is_tree(path: Path) -> bool:
    """Whether ``path`` is a folder, or by name and content a zip."""
    return path.is_dir() or (path.suffix.lower() == ".zip" and is_zipfile(path))


def is_packed(where: str) -> bool:
    """Whether a file is packed in a way that is not read: zips are, but for those in others."""
    return _PACKED.fullmatch(where) is not None


def files(path: Path) -> Iterator[File]:
    """All files in a folder or a zip sorted by name, or the one file ``path`` is; ``BadRecord`` if it is unfit."""
    if path.is_dir():
        yield from _in_folder(path)
    elif is_tree(path):
        yield from _in_zip(path)
    else:
        try:
            size = path.stat().st_size
        except OSError as error:
            raise _unreadable(str(path), error) from None
        yield File(path.name, _told(path), size, path)


def unpacked_bytes(path: Path) -> int:
    """Bytes of all that is read of a file, once it is unpacked, as a zip tells them; no entry gives more than it tells.

    Raises ``BadRecord`` for a zip that is unfit.
    """
    return sum(file.size for file in files(path))


def wrapping(found: Sequence[File]) -> str:
    """The folder, with a ``/``, that all files of an export are in, as many zips have one; "" if there is none."""
    tops = {file.name.partition("/")[0] for file in found}
    inside = all("/" in file.name for file in found)
    return f"{tops.pop()}/" if inside and len(tops) == 1 else ""


def others(path: Path, own: re.Pattern[str]) -> Iterator[File]:
    """The files of an export's folder or zip whose places in it are not as ``own`` has them."""
    found = list(files(path))
    base = wrapping(found)
    return (file for file in found if not own.fullmatch(file.name.removeprefix(base)))


def _in_folder(root: Path) -> Iterator[File]:
    found: list[tuple[str, Path, int]] = []
    for folder, folders, names in os.walk(root):  # which goes into no linked folder
        folders[:] = [name for name in folders if not _hidden(name)]
        for name in names:
            path = Path(folder, name)
            told = path.lstat()
            if stat.S_ISREG(told.st_mode) and not _hidden(name):
                found.append((path.relative_to(root).as_posix(), path, told.st_size))
    for name, path, size in sorted(found):
        yield File(name, _told(path), size, path)


def _in_zip(path: Path) -> Iterator[File]:
    try:
        # Closed when the last File that has it is gone: callers may list the files first and read them later.
        archive = ZipFile(path)
    except _UNREADABLE as error:
        raise _unreadable(str(path), error) from None
    entries = archive.infolist()
    _require_harmless(path, entries)
    for entry in sorted(entries, key=lambda entry: entry.filename):
        if not entry.is_dir() and not _is_link(entry) and not any(map(_hidden, entry.filename.split("/"))):
            yield File(entry.filename, _told(path / entry.filename), entry.file_size, path, entry, archive)


def _require_harmless(path: Path, entries: list[ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise BadRecord(f"{path}: the zip holds {len(entries):,} entries, and at most {MAX_ENTRIES:,} are read")
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise BadRecord(f"{path}: the zip's entries overlap, as no export's do: it is not read")
    for entry in entries:
        parts = entry.filename.replace("\\", "/").split("/")
        if entry.filename.startswith(("/", "\\")) or ".." in parts or ":" in parts[0][1:2]:
            raise BadRecord(f"{path}: the zip holds {entry.filename!r}, which leads out of it: it is not read")
        if entry.file_size > max(_SMALL_BYTES, MAX_RATIO * entry.compress_size):
            raise BadRecord(
                f"{path}: {entry.filename} would unpack to {entry.file_size:,} bytes from {entry.compress_size:,}, "
                "as no export does: the zip is not read"
            )
        if entry.flag_bits & _ENCRYPTED:
            raise BadRecord(f"{path}: {entry.filename} is encrypted: unpack the zip and name the folder")


def as_text(name: str) -> str:
    """A name or path of a file as it can be told and stored: some have bytes that are no text."""
    return name.encode("utf-8", "backslashreplace").decode()


def _told(path: Path) -> str:
    """A path as it can be told and stored; a long one is told by its end."""
    told = as_text(str(path))
    return told if len(told) <= MAX_NAME else f"…{told[1 - MAX_NAME :]}"


def _is_link(entry: ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)


def _hidden(name: str) -> bool:
    """What systems and editors leave in folders and zips beside the files themselves."""
    return name.startswith(".") or name == "__MACOSX"


_UNREADABLE = (OSError, BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""All that packed or unreadable files raise: NotImplementedError for a method of packing that Python has not."""


def _unreadable(where: str, error: Exception) -> BadRecord:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return BadRecord(f"{where}: cannot be read: {' '.join(reason.split())}")


class _Unpacked(io.RawIOBase):
    """An entry's bytes; damage raises ``BadRecord`` wherever it is met."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream = stream
        self._where = where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            read = self._stream.read(len(buffer))
        except _UNREADABLE as error:
            raise _unreadable(self._where, error) from None
        buffer[: len(read)] = read
        return len(read)

    def close(self) -> None:
        self._stream.close()
        super().close()
