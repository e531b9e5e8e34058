"""MENTIONS: a note's text names another note's title.

A title is named where its normal form stands, word for word, among the phrases of the text, and its tokens among the
tokens of the text. So whether one note mentions another depends on these two notes alone, and the links are the same
whatever came first. They are looked for from both sides when a note is written: titles that its text names, and texts
that name its title.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from zettel.annotate.index import titles_of
from zettel.annotate.tokens import UNSPACED, clean, phrase_key, token_of, tokenize
from zettel.batch import DropMentions, Op, PutMention
from zettel.model import Link, LinkType, Note, Scope
from zettel.ports import Found, GraphStore, Lookup

MAX_TITLE_WORDS = 8
"""Longer titles are sentences; texts do not name them in full."""
MAX_UNSPACED_TITLE = 12
"""The same for scripts without spaces, in characters."""
_CACHED_WORDS = 32_768
"""Words whose reading is remembered: more than a busy scope uses."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")


def phrases(text: str) -> set[str]:
    """Normal forms of all phrases in ``text`` that may name a title.

    A phrase begins and ends with a word that says something (not with "the" or "of"; a capital lets any word begin
    one). A single word must be written with a capital or a digit, or be of a script that has none.
    """
    cleaned = clean(text)
    found = _unspaced_phrases(cleaned)
    said = [_read(word) for word in _WORD.findall(cleaned)]
    for start, first in enumerate(said):
        if not (first.capital or first.strong):
            continue
        if first.capital and first.strong:
            found.add(first.key)
        key = first.key
        for word in said[start + 1 : start + MAX_TITLE_WORDS]:
            key = f"{key} {word.key}"
            if word.strong or word.capital:
                found.add(key)
    return found


class _Word(NamedTuple):
    key: str
    capital: bool
    strong: bool


@lru_cache(maxsize=_CACHED_WORDS)
def _read(word: str) -> _Word:
    return _Word(phrase_key(word), not word[0].islower(), bool(token_of(word)))


def _unspaced_phrases(text: str) -> set[str]:
    found: set[str] = set()
    for run in _UNSPACED_RUN.findall(text):
        for start in range(len(run)):
            for end in range(start + 2, min(start + MAX_UNSPACED_TITLE, len(run)) + 1):
                found.add(phrase_key(run[start:end]))
    return found


class _Text:
    """A note's text, read once for all titles it may name."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.phrases = phrases(note.content)
        self._tokens: frozenset[str] | None = None

    def names(self, titled: Note) -> str | None:
        """The normal form under which this text names that note's title, if it does."""
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
    """What has to be asked to find the titles that texts name: the ``names`` of a Lookup."""
    return tuple(sorted(set().union(*map(phrases, texts))))


def titles_asked(titles: Iterable[str | None]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What has to be asked to find the texts that name these titles: the ``titles`` of a Lookup."""
    asked = {key: tuple(sorted(tokens)) for title in titles for key, tokens in titles_of(title).items()}
    return tuple(sorted(asked.items()))


async def mention_ops(
    store: GraphStore,
    scope: Scope,
    written: Sequence[Note],
    *,
    again: Iterable[str] = (),
    gone: Collection[str] = (),
    recorded_at: datetime,
    known: Found | None = None,
) -> list[Op]:
    """Operations that bring MENTIONS in step with newly written notes.

    ``again`` are the ids of those that stood there before, whose MENTIONS are forgotten first; ``gone`` those that the
    same batch destroys. ``known`` answers a Lookup of all ``names_in`` the notes' texts and ``titles_asked`` of their
    titles; without it, that is looked up here.
    """
    ops: list[Op] = []
    forgotten = tuple(again)
    if forgotten:
        ops.append(DropMentions(forgotten))
    if not written:
        return ops
    titled = [note for note in written if note.title and note.part == 0]
    if not titled and not (known or await store.lookup(scope, Lookup())).has_titles:
        return ops
    texts = [_Text(note) for note in written]
    found = known or await store.lookup(scope, _lookup(texts, titled))
    out = {note.id for note in written} | set(gone)
    named = {note_id for ids in found.named.values() for note_id in ids} - out
    others = await store.notes(scope, sorted(named))
    pairs = _pairs(texts, [*titled, *others.values()])
    naming = {note.id: note for notes in found.naming.values() for note in notes if note.id not in out}
    pairs |= _pairs([_Text(naming[note_id]) for note_id in sorted(naming)], titled)
    ops.extend(PutMention(_link(source, target, key, recorded_at)) for (source, target), key in pairs.items())
    return ops


def _pairs(texts: Sequence[_Text], titled: Sequence[Note]) -> dict[tuple[str, str], str]:
    """Which text names which title, and under which form."""
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


def _lookup(texts: Sequence[_Text], titled: Sequence[Note]) -> Lookup:
    names = set().union(*(text.phrases for text in texts))
    return Lookup(names=tuple(sorted(names)), titles=titles_asked(note.title for note in titled))


def _link(source: str, target: str, key: str, recorded_at: datetime) -> Link:
    return Link(source=source, target=target, type=LinkType.MENTIONS, reason=f"names “{key}”", recorded_at=recorded_at)
