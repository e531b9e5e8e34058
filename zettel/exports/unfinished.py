"""Under which name a file is written until it is whole."""

from __future__ import annotations

import glob
import secrets
import time
from contextlib import suppress
from pathlib import Path

_SUFFIX = "unfinished"
_LEFT_SECONDS = 3600.0
"""What nobody has written to for so long was left by a run that was killed."""


def unfinished(path: Path) -> Path:
    """A hidden name beside ``path`` that no other export writes to; what killed ones have left there is removed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{_SUFFIX}"):
        with suppress(FileNotFoundError):  # somebody else removes it too
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                left.unlink()
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{_SUFFIX}")
