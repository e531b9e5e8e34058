"""Files that this process has open as a store, which nothing else in it may open beside SQLite.

On POSIX a process loses all its locks on a file when it closes any descriptor of it (sqlite.org/howtocorrupt.html,
2.2). Another process then takes the log away from under the open store, and what is written after that is lost.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite puts beside its file."""
_held: Counter[str] = Counter()
_guard = threading.Lock()


def hold(path: str, look: Callable[[], None]) -> str:
    """Before a file is opened as a store: ``look`` at it, unless it is open as one, and keep others away from it.

    Returns what to ``release`` it by. Raises what ``look`` raises; then it is not held.
    """
    file = os.path.realpath(path)
    with _guard:
        if not _held[file]:
            look()
        _held[file] += 1
    return file


def release(file: str) -> None:
    """When one that had the file open as a store has closed it."""
    with _guard:
        _held[file] -= 1


def is_held(path: Path) -> bool:
    """Whether the file is open as a store, or one that SQLite keeps beside such a store."""
    file = os.path.realpath(path)
    return any(_held[name] for name in (file, *(file.removesuffix(ending) for ending in _BESIDE)))
