"""What is answered without a key: the page, the description, and whether the server lives. All else wants one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PAGE = Path(__file__).with_name("page")
"""The files of the page to look at the memory, which are served at ``/``."""
INDEX = "index.html"
_OPEN = frozenset({"/", "/health", "/ready", "/openapi.json"})


@cache
def page_files() -> frozenset[str]:
    """The names of the page's files."""
    return frozenset(file.name for file in PAGE.iterdir() if file.is_file()) if PAGE.is_dir() else frozenset()


def is_guarded(path: str) -> bool:
    """Whether it needs a key."""
    return path not in _OPEN and path[1:] not in page_files()
