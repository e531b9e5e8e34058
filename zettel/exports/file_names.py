"""Portable file names for the notes of a vault.

A name is short and has no characters that Windows, macOS, Linux or wikilinks reserve. Names in a folder differ by more
than case or Unicode normalisation.
"""

from __future__ import annotations

import re
import unicodedata

from zettel.transcripts.parsing.wikilinks import SUFFIXES

MAX_CHARACTERS = 80
"""Characters of a name at most."""
MAX_BYTES = 180
"""Bytes of a name in UTF-8 at most, without number and suffix: file systems allow about 255."""

NAMELESS = "Note"
"""The name of a note whose title has no usable characters."""

_RESERVED_CHARACTERS = re.compile(
    r'[\\/:*?"<>|#^\[\]%]'
)  # % begins and ends comments in pairs, and is escaped in links
_RESERVED_NAMES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)


def stem_of(text: str) -> str:
    """Return a file name without suffix from the start of a text."""
    normalized = unicodedata.normalize("NFC", _RESERVED_CHARACTERS.sub(" ", text[: 20 * MAX_CHARACTERS]))
    visible = "".join(map(_visible, normalized))
    stem = _cut(" ".join(visible.split()).lstrip("."))
    while stem.lower().endswith(SUFFIXES):  # it would look like the suffix
        stem = stem[: stem.rindex(".")]
    stem = stem.strip(". ") or NAMELESS
    return f"_{stem}" if _RESERVED_NAMES.fullmatch(stem) else stem


def folded(stem: str) -> str:
    """Return a key that is equal for names that some file system treats as equal."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", stem).casefold())


def numbered(stem: str, number: int) -> str:
    """Return the name of the ``number``-th file with this name."""
    return stem if number == 1 else f"{stem} {number}"


def _visible(char: str) -> str:
    """Drop an invisible character, and replace a control character with a space."""
    kind = unicodedata.category(char)
    return "" if kind == "Cf" else " " if kind[0] == "C" else char


def _cut(text: str) -> str:
    """Cut a text to the limits, at the end of a word if there is one in the last third."""
    short = text[:MAX_CHARACTERS].encode()[:MAX_BYTES].decode(errors="ignore")
    if short == text:
        return text
    words = short.rpartition(" ")[0]
    return words if 3 * len(words) > 2 * len(short) else short
