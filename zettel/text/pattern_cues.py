"""Finds the letters that every match of a pattern contains, so that few patterns are tried on a clause."""

from __future__ import annotations

import re

from zettel.text.expressions import alternatives_of

_PIECES = re.compile(r"\\.|\[[^]]*\]|\{[^}]*\}|_(?P<run>[^\W\d_]+(?![?*]))|.")
"""The beginning of a word, or what is none: an escape, a set of characters, a part."""
_GROUP_NAME = re.compile(r"^\?(?:P<\w+>|:)")
_OPTIONAL = re.compile(r"[?*]|\{\d")


def pattern_cues(pattern: str) -> tuple[str, ...]:
    """Return beginnings of words of a pattern, one of which every match contains; () if there are none.

    >>> pattern_cues("{subject}_(live|reside)s?_in_{place}")
    ('live', 'reside')
    """
    cues: list[str] = []
    for alternative in alternatives_of(pattern):
        best = max(_required(alternative), key=lambda literals: min(map(len, literals), default=0), default=())
        if not best:
            return ()
        cues += best
    return tuple(dict.fromkeys(cues))


def _required(pattern: str) -> list[tuple[str, ...]]:
    """Return for each group and run of letters in a pattern without alternatives the beginnings it requires."""
    found: list[tuple[str, ...]] = []
    outside = "_"
    depth = start = 0
    for place, character in enumerate(pattern):
        if character == "(":
            start = start if depth else place + 1
            depth += 1
        elif character == ")":
            depth -= 1
            group = _GROUP_NAME.sub("", pattern[start:place])
            if depth:
                continue
            if outside[-1] == "_" and not _OPTIONAL.match(pattern, place + 1) and not group.startswith("?"):
                found.append(pattern_cues(group))
            ends_word = all(choice in ("", "_") or choice[-1] == "_" for choice in alternatives_of(group))
            outside += "_" if ends_word and outside[-1] == "_" else ")"
        elif not depth:
            outside += "_" if character == " " else character
    return found + [(piece["run"].lower(),) for piece in _PIECES.finditer(outside) if piece["run"]]
