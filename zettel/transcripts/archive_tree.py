"""Files of a folder, a zip or a single file.

::

    for file in files(Path("export.zip")):
        if file.name.endswith(".json"):
            with file.open() as stream: ...

Nothing is unpacked to disk, and links are not followed. A zip is rejected if its entries lead out of it, overlap or
expand beyond the limits below.
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

from . import HEAD_BYTES

MAX_ENTRIES = 1_000_000
"""Entries of a zip at most: a workspace with a thousand channels has as many daily files in three years."""

MAX_RATIO = 200
"""Compression ratio of an entry at most: chats as JSON reach ten to thirty."""

_PACKED = re.compile(r".*\.(?:7z|bz2|gz|rar|tar|tgz|xz|zst|zip/.*\.zip)", re.IGNORECASE | re.DOTALL)
_SMALL_BYTES = 16_000_000  # unpacked size that is allowed at any ratio
_BUFFER_BYTES = 1 << 17
_ENCRYPTED = 1  # bit of an entry's flags


class File(NamedTuple):
    """A file inside an export."""

    name: str
    """The path in the folder or zip, with ``/``; of a single file its name."""
    where: str
    """The path for reports: of the file, or of the zip and the name in it."""
    size: int
    """Uncompressed bytes."""
    path: Path
    """The file, or the zip that contains it."""
    entry: ZipInfo | None = None
    archive: ZipFile | None = None

    def open(self) -> BinaryIO:
        """Open the file for reading. Opening and reading raise ``BadRecord`` on damage."""
        try:
            if self.archive is not None and self.entry is not None:
                return io.BufferedReader(_Unpacked(self.archive.open(self.entry), self.where), _BUFFER_BYTES)
            return self.path.open("rb", buffering=_BUFFER_BYTES)
        except _UNREADABLE as error:
            raise _read_error(self.where, error) from None

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first bytes of the file. Raises ``BadRecord`` on damage."""
        with self.open() as stream:
            return stream.read(size)


def is_tree(path: Path) -> bool:
    """Return whether ``path`` is a folder, or a zip by name and content."""
    return path.is_dir() or (path.suffix.lower() == ".zip" and is_zipfile(path))


def is_unsupported_archive(where: str) -> bool:
    """Return whether a file is an archive that zettel does not read: any but a zip, or a zip in a zip in a zip."""
    return _PACKED.fullmatch(where) is not None


def files(path: Path) -> Iterator[File]:
    """Yield the files of a folder or zip sorted by name, or the single file. Raises ``BadRecord`` for an unsafe zip."""
    if path.is_dir():
        yield from _in_folder(path)
    elif is_tree(path):
        yield from _in_zip(path)
    else:
        try:
            size = path.stat().st_size
        except OSError as error:
            raise _read_error(str(path), error) from None
        yield File(path.name, _display_path(path), size, path)


def unpacked_bytes(path: Path) -> int:
    """Return the uncompressed size of all files. Reading an entry never returns more than its declared size.

    Raises ``BadRecord`` for an unsafe zip.
    """
    return sum(file.size for file in files(path))


def common_folder(tree_files: Sequence[File]) -> str:
    """Return the one folder, with a ``/``, that contains all files; "" if there is none."""
    tops = {file.name.partition("/")[0] for file in tree_files}
    inside = all("/" in file.name for file in tree_files)
    return f"{tops.pop()}/" if inside and len(tops) == 1 else ""


def files_inside(path: Path) -> list[tuple[str, File]]:
    """Return the files of a folder or zip with their paths, without the one folder that contains all of them."""
    tree_files = list(files(path))
    base = common_folder(tree_files)
    return [(file.name.removeprefix(base), file) for file in tree_files]


def unmatched_files(path: Path, own: re.Pattern[str]) -> Iterator[File]:
    """Yield the files of a folder or zip whose paths, as in ``files_inside``, do not match ``own``."""
    return (file for name, file in files_inside(path) if not own.fullmatch(name))


def _in_folder(root: Path) -> Iterator[File]:
    paths: list[tuple[str, Path, int]] = []
    for folder, folders, names in os.walk(root):  # does not follow links
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and not _is_hidden(name):
                paths.append((path.relative_to(root).as_posix(), path, status.st_size))
    for name, path, size in sorted(paths):
        yield File(name, _display_path(path), size, path)


def _in_zip(path: Path) -> Iterator[File]:
    try:
        # It closes with the last File that refers to it: callers may list the files first and read them later.
        archive = ZipFile(path)
    except _UNREADABLE as error:
        raise _read_error(str(path), error) from None
    entries = archive.infolist()
    _check_entries(path, entries)
    for entry in sorted(entries, key=lambda entry: entry.filename):
        if not entry.is_dir() and not _is_link(entry) and not any(map(_is_hidden, entry.filename.split("/"))):
            yield File(entry.filename, _display_path(path / entry.filename), entry.file_size, path, entry, archive)


def _check_entries(path: Path, entries: list[ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise BadRecord(f"{path}: the zip has more than {MAX_ENTRIES:,} entries: unpack it and name the folder")
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise BadRecord(f"{path}: the zip's entries overlap: download or export it again")
    for entry in entries:
        parts = entry.filename.replace("\\", "/").split("/")
        if entry.filename.startswith(("/", "\\")) or ".." in parts or ":" in parts[0][1:2]:
            raise BadRecord(f"{path}: the zip contains {entry.filename!r}, which leads out of it: remove that entry")
        if entry.file_size > max(_SMALL_BYTES, MAX_RATIO * entry.compress_size):
            raise BadRecord(
                f"{path}: {entry.filename} would unpack to {entry.file_size:,} bytes from {entry.compress_size:,}, "
                "which exceeds the limit: unpack the zip and name the folder"
            )
        if entry.flag_bits & _ENCRYPTED:
            raise BadRecord(f"{path}: {entry.filename} is encrypted: unpack the zip and name the folder")


def as_text(name: str) -> str:
    """Return a file name or path as valid text; undecodable bytes are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def _display_path(path: Path) -> str:
    """Return a path as valid text of at most ``MAX_NAME`` characters; a long path keeps its end."""
    text = as_text(str(path))
    return text if len(text) <= MAX_NAME else f"…{text[1 - MAX_NAME :]}"


def _is_link(entry: ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)


def _is_hidden(name: str) -> bool:
    """Return whether a name is a dot file or belongs to macOS."""
    return name.startswith(".") or name == "__MACOSX"


_UNREADABLE = (OSError, BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""Errors of unreadable files and archives; NotImplementedError for an unknown compression method."""


def _read_error(where: str, error: Exception) -> BadRecord:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return BadRecord(f"{where}: cannot be read: {' '.join(reason.split())}")


class _Unpacked(io.RawIOBase):
    """The bytes of an entry; reading raises ``BadRecord`` on damage."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream = stream
        self._where = where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            read = self._stream.read(len(buffer))
        except _UNREADABLE as error:
            raise _read_error(self._where, error) from None
        buffer[: len(read)] = read
        return len(read)

    def close(self) -> None:
        self._stream.close()
        super().close()
