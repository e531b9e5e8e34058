"""MENTIONS: a note's text names another note's title.

A text names a title if its phrases contain the title's normal form and its tokens the title's tokens. So a link
depends on its two notes alone, not on their order of arrival. Writing a note looks for both: titles in its text, and
texts with its title.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from zettel.core.pacing import paced
from zettel.model import Link, LinkType, Note, Scope
from zettel.ports import GraphStore, LookupQuery, LookupResult
from zettel.ports.operations import DropMentions, Op, PutMention
from zettel.text.index import titles_of
from zettel.text.tokens import UNSPACED, clean, phrase_key, token_of, tokenize

MAX_TITLE_WORDS = 8
"""Longer titles are sentences, which texts do not repeat."""
MAX_UNSPACED_TITLE = 12
"""Characters of a title in scripts without spaces."""
_CACHED_WORDS = 32_768
"""Cached words: more than a busy scope uses."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")


def phrases(text: str) -> set[str]:
    """Return the normal forms of all phrases in ``text`` that may name a title.

    A phrase begins and ends with a content word (not "the" or "of") or a capitalised word. A single word needs a
    capital, a digit, or a script without capitals.
    """
    cleaned = clean(text)
    keys = _unspaced_phrases(cleaned)
    words = [_parsed(word) for word in _WORD.findall(cleaned)]
    for start, first in enumerate(words):
        if not (first.capital or first.strong):
            continue
        if first.capital and first.strong:
            keys.add(first.key)
        key = first.key
        for word in words[start + 1 : start + MAX_TITLE_WORDS]:
            key = f"{key} {word.key}"
            if word.strong or word.capital:
                keys.add(key)
    return keys


class _Word(NamedTuple):
    key: str
    capital: bool
    strong: bool


@lru_cache(maxsize=_CACHED_WORDS)
def _parsed(word: str) -> _Word:
    return _Word(phrase_key(word), not word[0].islower(), bool(token_of(word)))


def _unspaced_phrases(text: str) -> set[str]:
    keys: set[str] = set()
    for run in _UNSPACED_RUN.findall(text):
        for start in range(len(run)):
            for end in range(start + 2, min(start + MAX_UNSPACED_TITLE, len(run)) + 1):
                keys.add(phrase_key(run[start:end]))
    return keys


class _Text:
    """The phrases and tokens of a note's text."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.phrases = phrases(note.content)
        self._tokens: frozenset[str] | None = None

    def names(self, titled: Note) -> str | None:
        """Return the normal form under which the text names the note's title, or None."""
        if titled.part or not set(titled.event_ids).isdisjoint(self.note.event_ids):
            return None
        for key, tokens in titles_of(titled.title).items():
            if key in self.phrases:
                if self._tokens is None:
                    self._tokens = frozenset(tokenize(self.note.content))
                if tokens <= self._tokens:
                    return key
        return None


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the ``names`` of a LookupQuery that finds the titles in these texts."""
    return tuple(set().union(*map(phrases, texts)))


def title_lookups(titles: Iterable[str | None]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the ``titles`` of a LookupQuery that finds the texts with these titles."""
    keys = {key: tuple(sorted(tokens)) for title in titles for key, tokens in titles_of(title).items()}
    return tuple(sorted(keys.items()))


async def mention_ops(
    store: GraphStore,
    scope: Scope,
    written: Sequence[Note],
    *,
    again: Iterable[str] = (),
    erased: Collection[str] = (),
    recorded_at: datetime,
    known: LookupResult | None = None,
) -> list[Op]:
    """Return the operations that update MENTIONS for newly written notes.

    ``again`` are the ids of changed notes, whose old MENTIONS are dropped; ``erased`` those that the same batch
    destroys. ``known`` is the result of a lookup with ``names_in`` and ``title_lookups``; None does the lookup here.
    """
    changed = tuple(again)
    ops: list[Op] = [DropMentions(changed)] if changed else []
    if not written:
        return ops
    titled = [note for note in written if note.title and note.part == 0]
    if not titled and not (known or await store.lookup(scope, LookupQuery())).has_titles:
        return ops
    texts = [_Text(note) async for note in paced(written)]
    result = known or await store.lookup(scope, _lookup(texts, titled))
    excluded = {note.id for note in written} | set(erased)
    named = {note_id for ids in result.named.values() for note_id in ids} - excluded
    others = await store.notes(scope, sorted(named))
    pairs = _pairs(texts, [*titled, *others.values()])
    naming = {note.id: note for notes in result.naming.values() for note in notes if note.id not in excluded}
    pairs |= _pairs([_Text(naming[note_id]) for note_id in sorted(naming)], titled)
    ops.extend(PutMention(_link(source, target, key, recorded_at)) for (source, target), key in pairs.items())
    return ops


def _pairs(texts: Sequence[_Text], titled: Sequence[Note]) -> dict[tuple[str, str], str]:
    """Map (source, target) to the form under which the source's text names the target's title."""
    by_key: dict[str, list[Note]] = {}
    for note in titled:
        for key in titles_of(note.title):
            by_key.setdefault(key, []).append(note)
    pairs: dict[tuple[str, str], str] = {}
    for text in texts:
        for key in text.phrases & by_key.keys():
            for note in by_key[key]:
                form = text.names(note)
                if form is not None:
                    pairs[text.note.id, note.id] = form
    return pairs


def _lookup(texts: Sequence[_Text], titled: Sequence[Note]) -> LookupQuery:
    names = set().union(*(text.phrases for text in texts))
    return LookupQuery(names=tuple(names), titles=title_lookups(note.title for note in titled))


def _link(source: str, target: str, key: str, recorded_at: datetime) -> Link:
    return Link(source=source, target=target, type=LinkType.MENTIONS, reason=f"names “{key}”", recorded_at=recorded_at)
