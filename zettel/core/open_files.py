"""Registry of the store files that this process has open.

On POSIX a process loses all its locks on a file when it closes any descriptor of it (sqlite.org/howtocorrupt.html,
2.2). Another process could then remove the log of the open store, and later writes would be lost. So nothing but
SQLite may open these files.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database."""
_open_counts: Counter[str] = Counter()
_lock = threading.Lock()


def register(path: str, check: Callable[[], None]) -> str:
    """Register a file before it is opened as a store; call ``check`` first unless it is open already.

    Returns the key for ``unregister``. Raises what ``check`` raises; the file is then not registered.
    """
    file = os.path.realpath(path)
    with _lock:
        if not _open_counts[file]:
            check()
        _open_counts[file] += 1
    return file


def unregister(file: str) -> None:
    """Unregister a file after its store was closed."""
    with _lock:
        _open_counts[file] -= 1


def is_open(path: Path) -> bool:
    """Return whether the file is an open store, or a file that SQLite keeps beside one."""
    file = os.path.realpath(path)
    return any(_open_counts[name] for name in (file, *(file.removesuffix(ending) for ending in _BESIDE)))
