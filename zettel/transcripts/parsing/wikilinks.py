"""Resolution of links between Markdown notes to note titles.

A link names a note by file name, path, end of the path, title, alias or Zettelkasten number. The engine creates a
MENTIONS link for every title in a text. So links by another name are rewritten: ``[[202405010900]]`` becomes
``[[Marsh fiddle]]``, and ``[[reed fiddle]]`` becomes ``[[Marsh fiddle|reed fiddle]]``.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from zettel.core.mentions import phrases
from zettel.text.index import titles_of

SUFFIXES = (".md", ".markdown")
"""Suffixes of note files."""

_WIKI = re.compile(r"\[\[([^\[\]|#^\n\\]+)([#^][^\[\]|\n\\]*)?(\\?\|[^\[\]\n]*)?\]\]")
_MARKDOWN = re.compile(r"(?<!!)\[([^\[\]\n]*)\]\((?:<([^<>\n]+)>|([^()<>\s]+))\)")


class NoteNames(NamedTuple):
    """The names of a note: its path in the vault, its title, and others such as aliases."""

    place: str
    title: str
    other_names: tuple[str, ...]


class TitleIndex:
    """Maps link targets to note titles. More exact names win; among equal names, the first note wins."""

    def __init__(self, notes: Iterable[NoteNames]) -> None:
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
            for name in note.other_names:
                self._add(name, note.title)

    def title(self, link: str) -> str | None:
        """Return the title of the note that a link names."""
        return self._titles.get(_folded(without_suffix(link.strip().removeprefix("/"))))

    def _add(self, name: str, title: str) -> None:
        if folded := _folded(name):
            self._titles.setdefault(folded, title)


def without_suffix(place: str) -> str:
    """Return a note's path without its suffix."""
    for suffix in SUFFIXES:
        if place.lower().endswith(suffix):
            return place[: -len(suffix)]
    return place


def link_titles(text: str, place: str, names: TitleIndex) -> str:
    """Return the text of the note at ``place`` with links rewritten to titles."""

    def wiki(link: re.Match[str]) -> str:
        target, heading, shown = (part or "" for part in link.groups())
        title = names.title(target)
        if title is None or _mentions(link[0], title):
            return link[0]
        link_text = target.rpartition("/")[2]
        if not shown and _has_letter(link_text) and _folded(link_text) != _folded(title):
            shown = f"|{link_text}"
        return f"[[{_capitalised(title)}{heading}{shown}]]"

    def markdown(link: re.Match[str]) -> str:
        shown, target = link[1], unquote((link[2] or link[3]).partition("#")[0])
        if not target.lower().endswith(SUFFIXES) or "://" in target:
            return link[0]
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        title = names.title(beside) or names.title(target)
        if title is None or _mentions(link[0], title):
            return link[0]
        return f"[[{_capitalised(title)}|{shown}]]" if shown else f"[[{_capitalised(title)}]]"

    text = _WIKI.sub(wiki, text) if "[[" in text else text
    return _MARKDOWN.sub(markdown, text) if "](" in text else text


def _mentions(link: str, title: str) -> bool:
    return not phrases(link).isdisjoint(titles_of(title))


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _capitalised(title: str) -> str:
    """Return the title with a capital: mentions of one-word titles require it."""
    return title[0].upper() + title[1:]


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()
