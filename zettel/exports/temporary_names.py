"""Temporary names for files that are being written."""

from __future__ import annotations

import glob
import secrets
import time
from contextlib import suppress
from pathlib import Path

_SUFFIX = "unfinished"
_LEFT_SECONDS = 3600.0
"""Age from which a temporary file counts as left by a killed export."""


def temporary_name(path: Path) -> Path:
    """Return a unique hidden name beside ``path``, and remove old temporary files of killed exports."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{_SUFFIX}"):
        with suppress(FileNotFoundError):  # another process removed it
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                left.unlink()
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{_SUFFIX}")
