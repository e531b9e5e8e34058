"""YAML front matter of Markdown notes.

::

    ---
    title: Marsh fiddle
    tags: [music, wetlands]
    up: "[[Instruments]]"
    ---

All values are read as text, so numbers and dates keep their spelling.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

MAX_CHARACTERS = 65_536
"""Characters of front matter at most; longer front matter is text."""

MAX_ITEMS = 200
"""Items of a list at most."""

_MAX_DEPTH = 100
"""Depth of nested lists and maps that fits every thread's stack."""
_MAX_BRACKETS = 1000
"""Lists and maps in brackets at most."""
_MARKERS = re.compile(r"^ *(?:[-?] +)*", re.MULTILINE)
"""Indentation and beginnings of nested values; each level of a block takes a character."""

_MAX_GROWTH = 3
"""Longest texts, as a multiple of the front matter: only aliases multiply texts."""

Properties: TypeAlias = dict[str, list[str]]
"""Values of each property by its lower-case name."""

_BLOCK = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


class SplitNote(NamedTuple):
    """A note's properties, the body, and the line where the body begins."""

    properties: Properties
    body: str
    line: int


def split_front_matter(text: str) -> SplitNote:
    """Split a note. Invalid front matter stays part of the body, so no text is lost."""
    block = _BLOCK.match(text, 0, MAX_CHARACTERS) if text.startswith("---") else None
    if block is None:
        return SplitNote({}, text, 1)
    properties = _properties(block[1])
    if properties is None:
        return SplitNote({}, text, 1)
    return SplitNote(properties, text[block.end() :], block[0].count("\n") + 1)


def _properties(block: str) -> Properties | None:
    import yaml

    # Base loaders return only texts, lists and maps. The C loader is ten times as fast, but its recursion is unbounded.
    brackets = block.count("[") + block.count("{")
    if brackets > _MAX_BRACKETS:
        return None
    is_deep = brackets > _MAX_DEPTH or any(len(found) > _MAX_DEPTH for found in _MARKERS.findall(block))
    try:
        loaded = yaml.load(block, Loader=yaml.BaseLoader if is_deep else getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError, ValueError):  # ValueError: an invalid escape
        return None
    if not loaded:  # empty, or only comments
        return {}
    if not isinstance(loaded, dict):
        return None
    properties: Properties = {}
    remaining = _MAX_GROWTH * len(block)
    for key, value in loaded.items():
        if isinstance(key, str):
            properties[key.strip().casefold()] = texts = _texts(value)
            remaining -= sum(map(len, texts))
            if remaining < 0:  # aliases (*list) repeat the same text
                return None
    return properties


def _texts(value: Any) -> list[str]:
    """Return one level of a value as texts; of nested values only ``[[Title]]``, which YAML reads as lists."""
    items = value[:MAX_ITEMS] if isinstance(value, list) else [value]
    texts = [item.strip() if isinstance(item, str) else _unquoted_link(item) for item in items]
    return [text for text in texts if text]


def _unquoted_link(item: Any) -> str:
    """Return the wikilink that YAML read as nested lists: ``up: [[Title]]``, or ``- [[Title]]`` below ``up:``."""
    if isinstance(item, list) and len(item) == 1 and isinstance(item[0], list):
        item = item[0]
    if isinstance(item, list) and item and all(isinstance(part, str) for part in item):
        return f"[[{', '.join(item)}]]"
    return ""
