"""The audit log: who read, wrote and deleted what, as JSON lines that only grow, without content and questions.

Each line ends with a SHA-256 of itself and of the hash before, so that a line that was changed, removed, added or moved
is detected. A log that was cut at its end, or rewritten as a whole, is detected by a hash that was noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from zettel.core.private_files import private
from zettel.errors import AuditError, InvalidInput

MAX_BYTES = 64 * 2**20
"""Size at which a file is renamed to PATH.1, PATH.2, … and the log continues in a new one."""
START = "0" * 64
"""The hash before the first line of a log."""
LOG = "log"
"""The operation of lines about the log itself: the first of each file."""
_HASH = re.compile(rb'^(\{.*),"hash":"([0-9a-f]{64})"\}$', re.DOTALL)
_TAIL = 2**20
"""Bytes at the end of a file that contain its last line."""


class AuditLog:
    """An audit log that one process writes. Raises ``AuditError`` if another one does, or if it cannot be opened.

    ``append`` hands each line to the operating system, so that it survives the end of the process. ``sync`` waits until
    the disk has it.
    """

    def __init__(self, path: str | Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = Path(path)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._file = self._opened()
            self._number, self._hash, cut = _end_of(self._file, self.path)
            if self._number == 0 and (older := rotated(self.path)):
                self._number, self._hash = _end_of_file(older[-1])
                self._begin()
            elif cut or self._number == 0:
                self._begin(cut)
        except OSError as error:
            raise self._failed(error) from None

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record, with its number and time. Raises ``AuditError``; then nothing was appended."""
        with self._lock:
            try:
                if os.fstat(self._file).st_size >= self._max_bytes:
                    self._rotate()
                self._write(record)
            except OSError as error:
                raise self._failed(error) from None

    def sync(self) -> None:
        """Wait until the disk has all lines. Raises ``AuditError``."""
        try:
            with self._lock:
                file = os.dup(self._file)  # a rotation may close the other
            try:
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Close the file; does nothing the second time."""
        with self._lock:
            if not self._closed:
                self._closed = True
                try:
                    os.fsync(self._file)
                finally:
                    os.close(self._file)

    def _opened(self) -> int:
        file = private(str(self.path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            _lock_for_this_process(file)
        except OSError:
            os.close(file)
            raise AuditError(f"another process writes the audit log {self.path}: name another file") from None
        return file

    def _begin(self, cut: int = 0) -> None:
        """Write the first line of a file, or the line after an incomplete one."""
        self._write({"op": LOG, "continues": self._hash} | ({"cut": cut} if cut else {}))

    def _write(self, record: Mapping[str, Any]) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        fields = {"n": self._number + 1, "time": now, **record}
        body = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")[:-1]
        digest = _digest(self._hash, body)
        line, size = body + f',"hash":"{digest}"}}\n'.encode(), os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
        except OSError:
            os.ftruncate(self._file, size)
            raise
        if written < len(line):
            os.ftruncate(self._file, size)
            raise OSError("the disk is full")
        self._number, self._hash = self._number + 1, digest

    def _rotate(self) -> None:
        os.fsync(self._file)
        older = rotated(self.path)
        number = int(older[-1].name.rpartition(".")[2]) + 1 if older else 1
        os.rename(self.path, self.path.with_name(f"{self.path.name}.{number}"))
        former, self._file = self._file, self._opened()
        os.close(former)
        self._begin()

    def _failed(self, error: OSError) -> AuditError:
        reason = error.strerror or str(error)
        return AuditError(f"the audit log {self.path} cannot be written ({reason}), and nothing is done without it")


def _lock_for_this_process(file: int) -> None:
    """Lock an open file until it is closed. Raises ``OSError`` if somebody else has locked it."""
    try:
        import fcntl
    except ImportError:  # Windows does not let two processes rename and append to a file
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _digest(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _end_of(file: int, path: Path) -> tuple[int, str, int]:
    """Return the number and the hash of the last line, and how many bytes of an incomplete one were cut."""
    size = os.fstat(file).st_size
    start = max(0, size - _TAIL)
    os.lseek(file, start, os.SEEK_SET)
    tail = os.read(file, size - start)
    complete = tail[: tail.rfind(b"\n") + 1]
    cut = len(tail) - len(complete)
    if cut:
        os.ftruncate(file, size - cut)
    if not complete:
        if size > _TAIL:
            raise AuditError(f"{path} is not an audit log: name another file")
        return 0, START, cut
    form = _HASH.match(complete[:-1].rpartition(b"\n")[2])
    if form is None:
        raise AuditError(f"{path} is not an audit log: name another file")
    return json.loads(form[1] + b"}")["n"], form[2].decode(), cut


def _end_of_file(path: Path) -> tuple[int, str]:
    file = os.open(path, os.O_RDWR)
    try:
        number, digest, _ = _end_of(file, path)
    finally:
        os.close(file)
    return number, digest


# ----------------------------------------------------------------------------------------------------------------- read


class Verified(NamedTuple):
    """The result of a check: the number of intact lines, the last hash, and the first problem or None.

    ``is_complete`` is False if older files of the log were removed.
    """

    lines: int
    last_hash: str
    problem: str | None
    is_complete: bool


def rotated(path: Path) -> list[Path]:
    """Return the older files of a log, oldest first."""
    found = [file for file in path.parent.glob(f"{path.name}.*") if file.name.rpartition(".")[2].isdecimal()]
    return sorted(found, key=lambda file: int(file.name.rpartition(".")[2]))


def verify(path: Path, contains: str | None = None) -> Verified:
    """Check all files of a log. ``contains`` is a hash that must be among its lines.

    Raises ``InvalidInput`` if the log does not exist.
    """
    files = _files(path)
    lines, digest, is_complete, is_contained = 0, START, True, contains is None
    number = 0
    for file in files:
        for place, line in enumerate(_lines(file), 1):
            where, form = f"{file}:{place}", _HASH.match(line)
            if form is None:
                return Verified(lines, digest, f"{where}: not a line of an audit log", is_complete)
            if not lines:  # older files may be archived elsewhere
                number, digest, is_complete = _first(form[1], number, digest)
            if _digest(digest, form[1]) != form[2].decode():
                return Verified(lines, digest, f"{where}: changed, or the line before is missing", is_complete)
            number, digest, lines = number + 1, form[2].decode(), lines + 1
            is_contained = is_contained or digest == contains
    if not is_contained:
        return Verified(lines, digest, f"no line has the hash {contains}: the log was cut or replaced", is_complete)
    return Verified(lines, digest, None, is_complete)


def _first(body: bytes, number: int, digest: str) -> tuple[int, str, bool]:
    try:
        record = json.loads(body + b"}")
    except ValueError:
        return number, digest, True
    continues = record.get("continues", START)
    return record.get("n", 1) - 1, continues, continues == START


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of all files of a log, oldest first, without checking hashes. Raises ``InvalidInput``."""
    for file in _files(path):
        for place, line in enumerate(_lines(file), 1):
            try:
                yield json.loads(line)
            except ValueError:
                raise InvalidInput(f"{file}:{place} is not a line of an audit log: run `zettel audit verify`") from None


def _files(path: Path) -> list[Path]:
    files = [*rotated(path), *([path] if path.is_file() else [])]
    if not files:
        raise InvalidInput(f"the audit log {path} does not exist: `zettel serve --audit FILE` writes one")
    return files


def _lines(file: Path) -> Iterable[bytes]:
    with file.open("rb") as lines:
        for line in lines:
            yield line.removesuffix(b"\n")
