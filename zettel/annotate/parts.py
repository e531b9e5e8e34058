"""Long content becomes parts: notes of the same event, each short enough to say one thing."""

from __future__ import annotations

import re

PART_CHARS = 1500
"""Longest part, in characters: about a page's half, what a vector can still stand for."""

_CLOSING = "\"')]"
_BORDERS = (
    re.compile(r"\n\s*\n"),  # a paragraph's end
    re.compile(r"\n"),
    re.compile(rf"(?<=[.!?…])[{re.escape(_CLOSING)}]*\s+|(?<=[。！？])"),  # a sentence's end
    re.compile(r"\s+"),
)


def split_parts(content: str, longest: int = PART_CHARS) -> list[str]:
    """``content`` in pieces of at most ``longest`` characters that together hold every character of it, in order.

    A cut is made after the last paragraph that fits, else after the last sentence, else between words, else anywhere.
    """
    parts: list[str] = []
    start = 0
    while len(content) - start > longest:
        cut = _last_border(content, start, start + longest)
        parts.append(content[start:cut])
        start = cut
    rest = content[start:]
    if parts and not rest.strip():
        parts[-1] += rest
    else:
        parts.append(rest)
    return parts


def _last_border(content: str, start: int, end: int) -> int:
    # A cut in the first half would leave crumbs; then the next finer border is taken.
    half = first = (start + end) // 2
    while first > start and (content[first - 1].isspace() or content[first - 1] in _CLOSING):
        first -= 1  # so that a border is found whole
    for border in _BORDERS:
        cuts = [match.end() for match in border.finditer(content, first, end) if match.end() > half]
        if cuts:
            return cuts[-1]
    return end
