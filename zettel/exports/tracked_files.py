"""Files of an export in a folder that also contains files of other people.

The export changes and removes only its own unedited files. ``.zettel-export.jsonl`` records name, subject and hash of
each file that it wrote. A file with another hash was edited and stays unchanged. The record is written before the
file, so an interrupted export recognises its files on the next run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from zettel.core.private_files import FOLDER_MODE, private, require_no_link
from zettel.errors import InvalidInput
from zettel.transcripts.parsing.wikilinks import without_suffix

from .file_names import folded, numbered
from .temporary_names import temporary_name

SUFFIX = ".md"
INDEX_FILE = ".zettel-export.jsonl"
"""The index of the files that zettel wrote."""

_DIGEST_BYTES = 16
_NUMBER = re.compile(r"(?: \d+)?")


class _TrackedFile(NamedTuple):
    """A file of an earlier export: its subject and possible hashes, two after an interruption."""

    of: str
    hashes: tuple[str, ...]


class TrackedFiles:
    """The files of one export, by names without suffix such as ``Tags/music``.

    Call ``name`` for all files, then ``write``; ``end`` removes files of an earlier export that were not written again.
    ``folders`` are the allowed subfolders. Raises ``OSError``, and ``InvalidInput`` for a folder or index that is a
    symbolic link.
    """

    def __init__(self, path: Path, folders: tuple[str, ...]) -> None:
        for folder in folders:
            require_no_link(path / folder)
        self._path = path
        self._temporary = temporary_name(path / "zettel-export")
        self._own = dict(_read_index(path, folders))
        self._names: dict[str, list[str]] = {}
        for name, tracked_file in self._own.items():  # several, if a file was edited under an earlier name
            self._names.setdefault(tracked_file.of, []).append(name)
        self._taken = {folded(name) for name in self._own} | set(_existing_files(path, folders))
        self._number: Counter[str] = Counter()
        self._current: dict[str, _TrackedFile] = {}
        self._index: IO[str] | None = None
        self._edited: dict[str, None] = {}
        self.changed = self.removed = 0

    @property
    def edited(self) -> list[str]:
        """Files that were edited since the last export and stay unchanged."""
        return [*self._edited]

    def name(self, of: str, stem: str, folder: str = "") -> str:
        """Return the file name of a subject: its earlier name if that fits the ``stem``, else a free name."""
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

    def write(self, of: str, name: str, text: str, *, overwrite: bool = False) -> bool:
        """Write a file unless it was edited, or always with ``overwrite``; return whether it is written."""
        data = text.encode()
        hash = _hash(data)
        path = self._path / f"{name}{SUFFIX}"
        tracked_file = self._own.get(name)
        now = _read(path)
        if now is not None and (now == data or _with_own_ends(now) == data):
            self._current[name] = _TrackedFile(of, (hash,))
        elif now is not None and not overwrite and (tracked_file is None or not _is_as_written(now, tracked_file)):
            self._keep_edited(name)
            return False
        else:
            self._record(name, of, hash)
            path.parent.mkdir(exist_ok=True, mode=FOLDER_MODE)
            require_no_link(path.parent)
            self._replace(path, data)
            self._current[name] = _TrackedFile(of, (hash,))
            self.changed += 1
        self._edited.pop(f"{name}{SUFFIX}", None)
        return True

    def read(self, name: str) -> str:
        """Return the text of a file."""
        return (_read(self._path / f"{name}{SUFFIX}") or b"").decode(errors="replace").replace("\r\n", "\n")

    def end(self) -> None:
        """Remove obsolete files and write the index."""
        for name, tracked_file in self._own.items():
            if name in self._current:
                continue
            path = self._path / f"{name}{SUFFIX}"
            now = _read(path)
            if now is None:
                continue
            if _is_as_written(now, tracked_file):
                path.unlink()
                self.removed += 1
            else:
                self._keep_edited(name)
        self.close()
        lines = (
            _line(name, tracked_file.of, hash)
            for name, tracked_file in sorted(self._current.items())
            for hash in tracked_file.hashes
        )
        self._replace(self._path / INDEX_FILE, "".join(lines).encode())

    def close(self) -> None:
        """Close the index; an unfinished export can run again."""
        if self._index is not None:
            self._index.close()
        self._index = None

    def _keep_edited(self, name: str) -> None:
        self._edited[f"{name}{SUFFIX}"] = None
        if name in self._own:  # the edit may be undone later
            self._current[name] = self._own[name]

    def _record(self, name: str, of: str, hash: str) -> None:
        if self._index is None:
            self._index = open(self._path / INDEX_FILE, "a", encoding="utf-8", opener=private)  # noqa: SIM115
            self._index.write("\n")  # the line before may be truncated
        self._index.write(_line(name, of, hash))
        self._index.flush()

    def _replace(self, path: Path, data: bytes) -> None:
        try:
            with open(self._temporary, "xb", opener=private) as file:
                file.write(data)
                if path.is_file() and not path.is_symlink():
                    shutil.copymode(path, self._temporary)
            self._temporary.replace(path)
        finally:
            self._temporary.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Create the folder. Raises ``InvalidInput`` if that is impossible, and for a symbolic link."""
    require_no_link(path)
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is a file, and this format writes a folder: name a folder")
    require_parent(path)
    path.mkdir(exist_ok=True, mode=FOLDER_MODE)


def require_parent(path: Path) -> None:
    """Raise ``InvalidInput`` unless the folder that contains the path exists."""
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"{path}: the folder {path.parent} does not exist: create it first")


def _read_index(path: Path, folders: tuple[str, ...]) -> Iterator[tuple[str, _TrackedFile]]:
    """Yield the valid entries of the index."""
    index = path / INDEX_FILE
    if not os.path.lexists(index):
        return
    tracked: dict[str, _TrackedFile] = {}
    with open(index, encoding="utf-8", errors="replace", opener=private) as lines:
        for line in lines:
            try:
                raw = json.loads(line)
                name, of, hash = raw["file"], raw["of"], raw["hash"]
            except (ValueError, TypeError, KeyError, RecursionError):
                continue  # truncated or foreign: the file counts as edited
            if all(isinstance(value, str) for value in (name, of, hash)) and _is_inside(name, folders):
                before = tracked.get(name)
                tracked[name] = _TrackedFile(of, (*(before.hashes if before else ()), hash))
    yield from tracked.items()


def _is_inside(name: str, folders: tuple[str, ...]) -> bool:
    """Return whether a name is inside the allowed folders."""
    folder, _, stem = name.rpartition("/")
    return folder in ("", *folders) and bool(stem) and "\\" not in stem and stem[0] != "." and ":" not in stem


def _existing_files(path: Path, folders: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of all existing files."""
    for folder in ("", *folders):
        if (path / folder).is_dir():
            for entry in (path / folder).iterdir():
                yield folded(_join(folder, without_suffix(entry.name)))


def _join(folder: str, stem: str) -> str:
    return f"{folder}/{stem}" if folder else stem


def _read(path: Path) -> bytes | None:
    """Return the bytes of a file, None if it is missing; links and folders return bytes that match no hash."""
    if path.is_symlink() or path.is_dir():
        return b"\0"
    try:
        with open(path, "rb", opener=private) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _is_as_written(now: bytes, tracked_file: _TrackedFile) -> bool:
    return not {_hash(now), _hash(_with_own_ends(now))}.isdisjoint(tracked_file.hashes)


def _with_own_ends(now: bytes) -> bytes:
    """Return the bytes with normalised line ends: git and others change these without an edit."""
    return now.replace(b"\r\n", b"\n")


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _line(name: str, of: str, hash: str) -> str:
    return json.dumps({"file": name, "of": of, "hash": hash}, ensure_ascii=False) + "\n"
