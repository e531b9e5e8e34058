"""Splits long content into parts, each a note of the same event."""

from __future__ import annotations

import re

PART_CHARS = 1500
"""Longest part, in characters: about half a page, which a vector can still represent."""

_CLOSING = "\"')]"
_BORDERS = (
    re.compile(r"\n\s*\n"),  # a paragraph's end
    re.compile(r"\n"),
    re.compile(rf"(?<=[.!?…])[{re.escape(_CLOSING)}]*\s+|(?<=[。！？])"),  # a sentence's end
    re.compile(r"\s+"),
)


def split_parts(content: str, longest: int = PART_CHARS) -> list[str]:
    """Split ``content`` into parts of at most ``longest`` characters, without losing any.

    A cut is after the last paragraph that fits, else after the last sentence, else between words, else anywhere.
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
    # A cut in the first half would leave a short part; then the next finer border is used.
    half = first = (start + end) // 2
    while first > start and (content[first - 1].isspace() or content[first - 1] in _CLOSING):
        first -= 1  # so that a border matches as a whole
    for border in _BORDERS:
        cuts = [match.end() for match in border.finditer(content, first, end) if match.end() > half]
        if cuts:
            return cuts[-1]
    return end
