"""Site hook: patterns such as ``recipes/*.md`` in the navigation, for all pages that it names nowhere else."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any


def on_files(files: Any, config: Any) -> Any:
    """Replace each pattern by its pages, and remove empty sections and pages that do not exist."""
    pages = sorted(file.src_uri for file in files.documentation_pages())
    named = {entry for entry in _leaves(config.nav) if "*" not in entry}
    config.nav = _expanded(config.nav, [page for page in pages if page not in named], frozenset(pages))
    return files


def _expanded(entries: list[Any], others: list[str], pages: frozenset[str]) -> list[Any]:
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            expanded += [page for page in others if _matches(page, entry)] if "*" in entry else [entry]
            continue
        ((title, value),) = entry.items()
        if isinstance(value, list):
            value = _expanded(value, others, pages)
        if value in pages if isinstance(value, str) else value:
            expanded.append({title: value})
    return expanded


def _matches(page: str, pattern: str) -> bool:
    """Return whether a pattern matches a page of the same depth."""
    return fnmatchcase(page, pattern) and page.count("/") == pattern.count("/")


def _leaves(entries: list[Any]) -> list[str]:
    leaves: list[str] = []
    for entry in entries:
        values = list(entry.values()) if isinstance(entry, dict) else [entry]
        for value in values:
            leaves += _leaves(value) if isinstance(value, list) else [value]
    return leaves
