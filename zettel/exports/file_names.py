"""What the files of a vault are called: after their notes, and so that every system and every link takes it.

A name is short, has none of the characters that Windows, macOS, Linux or a link between notes give a meaning to, and
differs from every other one of its folder by more than case or accents' spelling.
"""

from __future__ import annotations

import re
import unicodedata

from zettel.transcripts.wikilinks import SUFFIXES

MAX_CHARACTERS = 80
"""Longest name: what a list of files shows."""
MAX_BYTES = 180
"""The same in UTF-8, with room for a number and an ending: the narrowest file systems take 255, some a little less."""

NAMELESS = "Note"
"""What has nothing in it that a file can be called by."""

_MEANT = re.compile(r'[\\/:*?"<>|#^\[\]%]')  # % begins and ends comments in pairs, and is escaped in links
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)


def stem_of(text: str) -> str:
    """A name for a file, without its ending, that begins as ``text`` does."""
    told = unicodedata.normalize("NFC", _MEANT.sub(" ", text[: 20 * MAX_CHARACTERS]))
    seen = "".join(_seen(sign) for sign in told)
    stem = _cut(" ".join(seen.split()).lstrip("."))
    while stem.lower().endswith(SUFFIXES):  # it would be taken for the ending
        stem = stem[: stem.rindex(".")]
    stem = stem.strip(". ") or NAMELESS
    return f"_{stem}" if _RESERVED.fullmatch(stem) else stem


def folded(stem: str) -> str:
    """The same for names that some system takes for the same file."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", stem).casefold())


def numbered(stem: str, number: int) -> str:
    """The ``number``-th file of that name."""
    return stem if number == 1 else f"{stem} {number}"


def _seen(sign: str) -> str:
    """Of what nobody sees nothing, and a space for what has a width or parts lines."""
    kind = unicodedata.category(sign)
    return "" if kind == "Cf" else " " if kind[0] == "C" else sign


def _cut(text: str) -> str:
    """At the end of a word, if there is one in the last third."""
    short = text[:MAX_CHARACTERS].encode()[:MAX_BYTES].decode(errors="ignore")
    if short == text:
        return text
    words = short.rpartition(" ")[0]
    return words if 3 * len(words) > 2 * len(short) else short
