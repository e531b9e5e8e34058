"""Writes extractive insights: a digest of a topic or a session in a few hundred characters.

A digest contains the common terms of the events, their time span, and up to three central sentences with speaker and
date. It quotes notes only, so it invents nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from zettel.evolve.neighborhood import tokens_of
from zettel.link.near import Binding
from zettel.llm.prompt_lines import clip
from zettel.model import Note, TermUse
from zettel.text.background import rarity_of
from zettel.text.extraction import asks, sentences
from zettel.text.filler import is_filler
from zettel.text.keywords import find_terms
from zettel.text.tokens import phrase_key, tokenize

MAX_CHARS = 400
"""The most characters of a digest."""
MAX_TERMS = 4
"""The most terms in the opening."""
MAX_TERM = 40
"""The most characters of each term."""
MAX_QUOTES = 3
MAX_QUOTED = 120
"""The most characters of a quoted sentence; longer sentences are cut."""
MAX_READ = 24
"""The most notes whose sentences are candidates for quotes, the most central ones; a session may have hundreds."""
MIN_WORDS = 4
"""The fewest words of a quoted sentence."""
MIN_EVENTS_WITH_TERM = 2
"""Events that must share a term."""
SHORT_NAME = 3
"""The fewest letters of a short form of a speaker's name."""
RARE_WORD_WEIGHT = 0.1
"""The score of a sentence for each rare word."""
REPEATED_TERM_WEIGHT = 0.3
"""The share of a term's score after another sentence has used it."""

_ASIDE = ("[", "(", "http")
"""The first characters of picture descriptions and addresses, which are not quoted as statements."""


class Member(NamedTuple):
    """A note of a topic or session, its terms, and its centrality: the cosine of its event with all of them."""

    note: Note
    binding: Binding
    weight: float


class Digest(NamedTuple):
    """The fields of an insight."""

    content: str
    caption: str
    keywords: tuple[str, ...]


def digest(members: Sequence[Member], speakers: Collection[str] = ()) -> Digest:
    """Return the digest of the members, which does not depend on their order.

    ``speakers`` are the names of all speakers in the scope. These names and their short forms ("Kat") are not terms.
    """
    members = sorted(members, key=lambda member: place(member.note))
    notes = [member.note for member in members]
    weights = binding_terms(members, speakers) or binding_terms(members, speakers, min_events=1)
    heading = _heading(weights)
    days = span([note.occurred_at for note in notes])
    events = len({note.event_ids[0] for note in notes})
    caption = ", ".join(heading) or "What belongs together"
    caption = caption[0].upper() + caption[1:]
    opening = f"{caption} ({f'{days}, ' if days else ''}{events} notes)."
    quotes: list[tuple[int, str]] = []
    for at, sentence in _central(members, {term.key: (term, weight) for term, weight in weights}):
        quote = f" {attributed(notes[at], sentence)}"
        if len(opening) + sum(len(other) for _, other in quotes) + len(quote) <= MAX_CHARS:
            quotes.append((at, quote))
    return Digest(opening + "".join(quote for _, quote in sorted(quotes)), clip(caption, MAX_QUOTED), heading)


def place(note: Note) -> tuple[bool, float, str, int, str]:
    """Return a sort key by time and content, not by arrival."""
    moment = note.occurred_at.timestamp() if note.occurred_at else 0.0
    return note.occurred_at is None, moment, note.session or "", note.part, f"{note.speaker}: {note.content}"


def span(moments: Sequence[datetime | None]) -> str:
    """Return the first and last day; "" without dates."""
    days = sorted(moment.date().isoformat() for moment in moments if moment is not None)
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""


def attributed(note: Note, sentence: str) -> str:
    """Return a sentence with its speaker or title, and its date."""
    on = note.occurred_at.date().isoformat() if note.occurred_at else ""
    source = " on ".join(part for part in (clip(note.speaker or note.title or "", MAX_QUOTED), on) if part)
    return f"{source}: \u201c{sentence}\u201d" if source else f"\u201c{sentence}\u201d"


def binding_terms(
    members: Sequence[Member], speakers: Collection[str], min_events: int = MIN_EVENTS_WITH_TERM
) -> list[tuple[TermUse, float]]:
    """Return the common terms of events with their weights (frequency times rarity), highest first."""
    names = {phrase_key(speaker) for speaker in speakers} - {""}
    by_event: dict[str, dict[str, TermUse]] = {}
    for member in members:
        for key, term in member.binding.items():
            if not any(name.startswith(key) and len(key) >= SHORT_NAME for name in names):
                by_event.setdefault(key, {}).setdefault(member.note.event_ids[0], term)
    common = [(next(iter(terms.values())), len(terms)) for terms in by_event.values() if len(terms) >= min_events]
    weighted = [(term, count * max(map(rarity_of, tokens_of(term)), default=0.0)) for term, count in common]
    return sorted(weighted, key=lambda pair: (-pair[1], pair[0].key))


def _heading(weighted: Sequence[tuple[TermUse, float]]) -> tuple[str, ...]:
    """Return the first terms that share no token, as text."""
    used: set[str] = set()
    heading: list[str] = []
    for term, _ in weighted:
        parts = set(tokens_of(term))
        if parts and used.isdisjoint(parts) and len(heading) < MAX_TERMS:
            used |= parts
            heading.append(clip(term.text, MAX_TERM))
    return tuple(heading)


def _central(members: Sequence[Member], weights: Mapping[str, tuple[TermUse, float]]) -> list[tuple[int, str]]:
    """Return sentences of different events with the positions of their members, most central first.

    The score of a sentence adds up the weights of its terms (less if a chosen sentence contains them), its rare words,
    and the centrality of its event.
    """
    heaviest = max((weight for _, weight in weights.values()), default=1.0) or 1.0
    strongest = max((member.weight for member in members), default=1.0) or 1.0
    tokens = {key: (frozenset(tokens_of(term)), weight / heaviest) for key, (term, weight) in weights.items()}
    candidates = _quotable(members, ask=False) or _quotable(members, ask=True)
    terms = {(at, text): _terms_in(text, tokens) for at, text in candidates}
    rarity = {text: RARE_WORD_WEIGHT * sum(word.rarity for word in find_terms(text).words) for _, text in candidates}
    chosen: list[tuple[int, str]] = []
    covered: set[str] = set()

    def score(candidate: tuple[int, str]) -> tuple[float, int]:
        at, text = candidate
        by_terms = sum(tokens[key][1] * (REPEATED_TERM_WEIGHT if key in covered else 1.0) for key in terms[candidate])
        return by_terms + rarity[text] + members[at].weight / strongest, -at

    while candidates and len(chosen) < MAX_QUOTES:
        best = max(candidates, key=score)
        chosen.append(best)
        covered |= terms[best]
        event = members[best[0]].note.event_ids[0]
        candidates = [
            (at, text) for at, text in candidates if members[at].note.event_ids[0] != event and text != best[1]
        ]
    return chosen


def _quotable(members: Sequence[Member], ask: bool) -> list[tuple[int, str]]:
    """Return statements (with ``ask`` also questions and picture descriptions) with the positions of their members."""
    central = sorted(sorted(range(len(members)), key=lambda at: -members[at].weight)[:MAX_READ])
    return [
        (at, clip(sentence, MAX_QUOTED))
        for at in central
        for sentence in sentences(members[at].note.content)
        if len(sentence.split()) >= MIN_WORDS
        and not is_filler(sentence, members[at].note.role)
        and (ask or not (asks(sentence) or sentence.startswith(_ASIDE)))
    ] or [(at, clip(members[at].note.content, MAX_QUOTED)) for at in central if ask]


def _terms_in(text: str, tokens: Mapping[str, tuple[Collection[str], float]]) -> set[str]:
    """Return the keys of the terms in a text."""
    text_tokens = set(tokenize(text))
    return {key for key, (parts, _) in tokens.items() if parts and text_tokens.issuperset(parts)}
