"""Paths that need no key: the page, the OpenAPI description and the health checks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PAGE = Path(__file__).with_name("page")
"""The folder of the web page, which is served at ``/``."""
INDEX = "index.html"
_OPEN = frozenset({"/", "/health", "/ready", "/openapi.json"})


@cache
def page_files() -> frozenset[str]:
    """Return the names of the page's files."""
    return frozenset(file.name for file in PAGE.iterdir() if file.is_file()) if PAGE.is_dir() else frozenset()


def is_guarded(path: str) -> bool:
    """Return whether a path needs a key."""
    return path not in _OPEN and path[1:] not in page_files()
