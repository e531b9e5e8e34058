"""Links between Markdown notes: which note each means, and how a text names it so that the engine sees it.

A link may give a note's file name, its path or the end of it, its title, one of its aliases or the number that a
Zettelkasten gives it. The engine links a text to every note whose title stands in it word for word (MENTIONS), so a
link that says something else is written with the title: ``[[202405010900]]`` becomes ``[[Marsh fiddle]]``, and
``[[reed fiddle]]`` ``[[Marsh fiddle|reed fiddle]]``. All other links stay as they are.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from zettel.annotate.index import titles_of
from zettel.link.mentions import phrases

SUFFIXES = (".md", ".markdown")
"""What a file with a note is called."""

_WIKI = re.compile(r"\[\[([^\[\]|#^\n\\]+)([#^][^\[\]|\n\\]*)?(\\?\|[^\[\]\n]*)?\]\]")
_MARKDOWN = re.compile(r"(?<!!)\[([^\[\]\n]*)\]\((?:<([^<>\n]+)>|([^()<>\s]+))\)")


class Named(NamedTuple):
    """A note by all it may be called: its place in the vault, its title, and what else it is known as."""

    place: str
    title: str
    also: tuple[str, ...]


class Names:
    """The notes of a vault by what links call them. The more exact name counts; of equals, the first note's."""

    def __init__(self, notes: Iterable[Named]) -> None:
        self._titles: dict[str, str] = {}
        notes = list(notes)
        for note in notes:
            self._add(without_suffix(note.place), note.title)
        for note in notes:
            parts = without_suffix(note.place).split("/")
            for start in range(1, len(parts)):
                self._add("/".join(parts[start:]), note.title)
        for note in notes:
            self._add(note.title, note.title)
        for note in notes:
            for name in note.also:
                self._add(name, note.title)

    def title(self, called: str) -> str | None:
        """The title of the note that a link means."""
        return self._titles.get(_folded(without_suffix(called.strip().removeprefix("/"))))

    def _add(self, name: str, title: str) -> None:
        if folded := _folded(name):
            self._titles.setdefault(folded, title)


def without_suffix(place: str) -> str:
    """A note's place without the ending of its file."""
    for suffix in SUFFIXES:
        if place.lower().endswith(suffix):
            return place[: -len(suffix)]
    return place


def with_titles(text: str, place: str, names: Names) -> str:
    """The text of the note at ``place``, every link of which names the title of the note that it means."""

    def wiki(link: re.Match[str]) -> str:
        called, heading, shown = (part or "" for part in link.groups())
        title = names.title(called)
        if title is None or _names(link[0], title):
            return link[0]
        said = called.rpartition("/")[2]
        if not shown and _has_letter(said) and _folded(said) != _folded(title):
            shown = f"|{said}"
        return f"[[{_begun(title)}{heading}{shown}]]"

    def markdown(link: re.Match[str]) -> str:
        shown, target = link[1], unquote((link[2] or link[3]).partition("#")[0])
        if not target.lower().endswith(SUFFIXES) or "://" in target:
            return link[0]
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        title = names.title(beside) or names.title(target)
        if title is None or _names(link[0], title):
            return link[0]
        return f"[[{_begun(title)}|{shown}]]" if shown else f"[[{_begun(title)}]]"

    text = _WIKI.sub(wiki, text) if "[[" in text else text
    return _MARKDOWN.sub(markdown, text) if "](" in text else text


def _names(link: str, title: str) -> bool:
    return not phrases(link).isdisjoint(titles_of(title))


def _has_letter(called: str) -> bool:
    return any(map(str.isalpha, called))


def _begun(title: str) -> str:
    """With a capital, without which a single word in a text names no title."""
    return title[0].upper() + title[1:]


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()
