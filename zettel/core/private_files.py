"""Creation of files that only their owner can read, without following symbolic links."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from zettel.errors import InvalidInput

FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""Modes of new files and folders; existing ones keep theirs."""

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def private(path: str, flags: int) -> int:
    """Open a file without following a link; the ``opener`` of ``open``. Raises ``InvalidInput`` for a link.

    Example: ``open(path, "xb", opener=private)``.
    """
    try:
        return os.open(path, flags | _NO_FOLLOW, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP or (error.errno == errno.EMLINK and os.path.islink(path)):  # FreeBSD's
            raise _link(path) from None
        raise


def require_no_link(path: Path) -> None:
    """Raise ``InvalidInput`` for a symbolic link: another person may choose its target."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISLNK(path.lstat().st_mode):
            raise _link(path)


def create_private(path: str) -> None:
    """Create an empty file unless it exists. Raises ``OSError``."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def _link(path: str | Path) -> InvalidInput:
    return InvalidInput(f"{path} is a symbolic link, which zettel does not follow: name its target, or remove it")
