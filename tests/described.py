"""The description of data files in a benchmark's result, computed without the benchmark."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any


def described(*paths: Path, below: Path | None = None) -> list[dict[str, Any]]:
    """Return the entries of files: each with its name, or with its path below a folder."""
    return [
        {
            "name": path.name if below is None else path.relative_to(below).as_posix(),
            "size": path.stat().st_size,
            "sha256": sha256(path.read_bytes()).hexdigest(),
        }
        for path in paths
    ]
