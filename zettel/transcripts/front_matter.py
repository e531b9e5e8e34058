"""The properties at the head of a Markdown note, between two lines of dashes, as Obsidian and others write them.

::

    ---
    title: Marsh fiddle
    tags: [music, wetlands]
    up: "[[Instruments]]"
    ---

All values are read as the text that stands there, so that a number or a day is told as it was written.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

MAX_CHARACTERS = 65_536
"""Longest front matter that is read: people write a dozen lines."""

MAX_ITEMS = 200
"""Most items of a list that are kept."""

_NESTING = ("[", "{", "- ", "? ")  # what may begin a value inside another
_MAX_NESTS = 200  # what the stack of any thread holds, if each is inside the one before

Properties: TypeAlias = dict[str, list[str]]
"""What each property says, one text or several, by its name in small letters."""

_BLOCK = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


class Parts(NamedTuple):
    """A note's properties, the text below them, and the line where it begins."""

    properties: Properties
    body: str
    line: int


def split(text: str) -> Parts:
    """Part a note. Front matter that is no YAML is text like any other, so nothing of it is lost."""
    block = _BLOCK.match(text, 0, MAX_CHARACTERS) if text.startswith("---") else None
    if block is None:
        return Parts({}, text, 1)
    properties = _properties(block[1])
    if properties is None:
        return Parts({}, text, 1)
    return Parts(properties, text[block.end() :], block[0].count("\n") + 1)


def _properties(block: str) -> Properties | None:
    import yaml

    # The loaders that make nothing of a value but texts, lists and maps. The one in C is ten times as fast, but nests
    # on the stack without a bound.
    nests = sum(map(block.count, _NESTING))
    fast = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        told = yaml.load(block, Loader=fast if nests <= _MAX_NESTS else yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):  # ValueError: an escape that names no character
        return None
    if not told:  # nothing between the dashes but comments
        return {}
    if not isinstance(told, dict):
        return None
    return {key.strip().casefold(): _texts(value) for key, value in told.items() if isinstance(key, str)}


def _texts(value: Any) -> list[str]:
    """One level of a value as texts; what lies deeper is left out but for ``[[Title]]``, which YAML takes for lists."""
    items = value[:MAX_ITEMS] if isinstance(value, list) else [value]
    said = [item.strip() if isinstance(item, str) else _unquoted_link(item) for item in items]
    return [text for text in said if text]


def _unquoted_link(item: Any) -> str:
    """``up: [[Title]]`` is a list in a list, and ``- [[Title]]`` below ``up:`` is one in a list in a list."""
    if isinstance(item, list) and len(item) == 1 and isinstance(item[0], list):
        item = item[0]
    if isinstance(item, list) and item and all(isinstance(part, str) for part in item):
        return f"[[{', '.join(item)}]]"
    return ""
