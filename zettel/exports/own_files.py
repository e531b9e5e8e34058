"""A folder in which zettel keeps files beside those of people: it changes and removes only what it wrote itself.

What it wrote stands in ``.zettel-export.jsonl`` in the folder: of each file the name, what it is of, and the hash of
its bytes. A file that has other bytes now was changed by somebody, and is left as it is. The line is written before
the file, so that whenever this is cut off, the next run knows its own files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from zettel.errors import InvalidInput
from zettel.transcripts.wikilinks import without_suffix

from .file_names import folded, numbered
from .unfinished import unfinished

SUFFIX = ".md"
BOOK = ".zettel-export.jsonl"
"""What the folder's own files are written down in."""

_DIGEST_BYTES = 16
_NUMBER = re.compile(r"(?: \d+)?")


class _Own(NamedTuple):
    """A file that was written before: what it is of, and what it may hold: two versions after a cut."""

    of: str
    hashes: tuple[str, ...]


class OwnFiles:
    """The files of one export, by names without their ending, such as ``Tags/music``.

    First all are named (``name``), then written (``write``); ``end`` removes those of an earlier export that were not
    written again. ``folders`` are those below the folder that files may be in. Raises ``OSError``.
    """

    def __init__(self, path: Path, folders: tuple[str, ...]) -> None:
        self._path = path
        self._unfinished = unfinished(path / "zettel-export")
        self._own = dict(_written(path, folders))
        self._names: dict[str, list[str]] = {}
        for name, own in self._own.items():  # several, if somebody changed the file under an earlier name
            self._names.setdefault(own.of, []).append(name)
        self._taken = {folded(name) for name in self._own} | set(_others(path, folders))
        self._number: Counter[str] = Counter()
        self._kept: dict[str, _Own] = {}
        self._book: IO[str] | None = None
        self._left: dict[str, None] = {}
        self.changed = self.removed = 0

    @property
    def left(self) -> list[str]:
        """Files that somebody else changed, and that stay as they are."""
        return [*self._left]

    def name(self, of: str, stem: str, folder: str = "") -> str:
        """What the file of something is called: as it was before, if that fits the ``stem``, else a free name."""
        first = _join(folder, stem)
        for before in self._names.get(of, ()):
            if before.startswith(first) and _NUMBER.fullmatch(before, len(first)):
                return before
        while True:
            self._number[folded(first)] += 1
            name = _join(folder, numbered(stem, self._number[folded(first)]))
            if folded(name) not in self._taken:
                self._taken.add(folded(name))
                self._names[of] = [name]
                return name

    def write(self, of: str, name: str, text: str, *, anyway: bool = False) -> bool:
        """Make or replace a file, unless somebody else changed it (but ``anyway``); whether it is written."""
        data = text.encode()
        hash = _hash(data)
        path = self._path / f"{name}{SUFFIX}"
        own = self._own.get(name)
        now = _read(path)
        if now is not None and (now == data or _with_own_ends(now) == data):
            self._kept[name] = _Own(of, (hash,))
        elif now is not None and not anyway and (own is None or not _is_as_written(now, own)):
            self._leave(name)
            return False
        else:
            self._write_down(name, of, hash)
            path.parent.mkdir(exist_ok=True)
            self._replace(path, data)
            self._kept[name] = _Own(of, (hash,))
            self.changed += 1
        self._left.pop(f"{name}{SUFFIX}", None)
        return True

    def read(self, name: str) -> str:
        """What a file says."""
        return (_read(self._path / f"{name}{SUFFIX}") or b"").decode(errors="replace").replace("\r\n", "\n")

    def end(self) -> None:
        """Remove what is not there any more, and write down what is."""
        for name, own in self._own.items():
            if name in self._kept:
                continue
            path = self._path / f"{name}{SUFFIX}"
            now = _read(path)
            if now is None:
                continue
            if _is_as_written(now, own):
                path.unlink()
                self.removed += 1
            else:
                self._leave(name)
        self.close()
        lines = (_line(name, own.of, hash) for name, own in sorted(self._kept.items()) for hash in own.hashes)
        self._replace(self._path / BOOK, "".join(lines).encode())

    def close(self) -> None:
        """Let go of the book; what is not ended can be begun again."""
        if self._book is not None:
            self._book.close()
        self._book = None

    def _leave(self, name: str) -> None:
        self._left[f"{name}{SUFFIX}"] = None
        if name in self._own:  # it may be as it was again some day
            self._kept[name] = self._own[name]

    def _write_down(self, name: str, of: str, hash: str) -> None:
        if self._book is None:
            self._book = (self._path / BOOK).open("a", encoding="utf-8")
            self._book.write("\n")  # the line before may have been cut off
        self._book.write(_line(name, of, hash))
        self._book.flush()

    def _replace(self, path: Path, data: bytes) -> None:
        try:
            self._unfinished.write_bytes(data)
            self._unfinished.replace(path)
        finally:
            self._unfinished.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Make the folder. Raises ``InvalidInput`` for a path where none can be."""
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is a file; this format writes a folder of files: name one")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"{path}: there is no folder {path.parent}; make it first")
    path.mkdir(exist_ok=True)


def _written(path: Path, folders: tuple[str, ...]) -> Iterator[tuple[str, _Own]]:
    """What the book says, as far as it can be read and names files of ours."""
    book = path / BOOK
    if not book.exists():
        return
    found: dict[str, _Own] = {}
    with book.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                told = json.loads(line)
                name, of, hash = told["file"], told["of"], told["hash"]
            except (ValueError, TypeError, KeyError, RecursionError):
                continue  # cut off, or not ours: then the file it named is somebody else's
            if all(isinstance(one, str) for one in (name, of, hash)) and _is_inside(name, folders):
                before = found.get(name)
                found[name] = _Own(of, (*(before.hashes if before else ()), hash))
    yield from found.items()


def _is_inside(name: str, folders: tuple[str, ...]) -> bool:
    """Whether a name leads to where such files may be, and nowhere else."""
    folder, _, stem = name.rpartition("/")
    return folder in ("", *folders) and bool(stem) and "\\" not in stem and stem[0] != "." and ":" not in stem


def _others(path: Path, folders: tuple[str, ...]) -> Iterator[str]:
    """The places of all files that are there."""
    for folder in ("", *folders):
        if (path / folder).is_dir():
            for entry in (path / folder).iterdir():
                yield folded(_join(folder, without_suffix(entry.name)))


def _join(folder: str, stem: str) -> str:
    return f"{folder}/{stem}" if folder else stem


def _read(path: Path) -> bytes | None:
    """The bytes of a file, None if there is none; what is no file of its own has bytes that nobody wrote."""
    if path.is_symlink() or path.is_dir():
        return b"\0"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _is_as_written(now: bytes, own: _Own) -> bool:
    return not {_hash(now), _hash(_with_own_ends(now))}.isdisjoint(own.hashes)


def _with_own_ends(now: bytes) -> bytes:
    """The bytes with lines ended as zettel does: git and others end them their way, which is nobody's change."""
    return now.replace(b"\r\n", b"\n")


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _line(name: str, of: str, hash: str) -> str:
    return json.dumps({"file": name, "of": of, "hash": hash}, ensure_ascii=False) + "\n"
