"""Insights: what a community of events is about, told in a few hundred characters of its own words.

An extractive digest: the Terms that bind the events, their span of time, and up to three sentences that say most of it,
each with who said it and when. It says nothing that a note does not say, so nothing in it can be made up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from zettel.annotate.background import rarity_of
from zettel.annotate.extractive import is_question, sentences
from zettel.annotate.filler import is_filler
from zettel.annotate.keywords import read
from zettel.annotate.tokens import phrase_key, tokenize
from zettel.evolve.spread import tokens_of
from zettel.link.near import Binding
from zettel.llm.lines import clip
from zettel.model import Note
from zettel.ports import TermUse

MAX_CHARS = 400
"""Characters of a digest at most."""
MAX_WORDS = 4
"""Terms that open it."""
MAX_WORD = 40
"""Characters of each."""
MAX_QUOTES = 3
MAX_QUOTED = 120
"""Characters of a sentence; of a longer one the beginning is quoted."""
MIN_WORDS = 4
"""Words of a sentence that is worth quoting."""
HOLDERS = 2
"""Events that must have a Term in common for it to bind them."""
SHORT_NAME = 3
"""Letters from which on the beginning of a speaker's name is taken for it."""
TELLING = 0.1
"""What a sentence gains by each rare word it has."""
SAID_AGAIN = 0.3
"""What a Term adds to a sentence once another one has named it."""


_ASIDE = ("[", "(", "http")
"""How a sentence begins that nobody says: what a picture shows, an address."""


class Member(NamedTuple):
    """A note of a community: its Terms that may bind it, and the weight of its event's ties inside."""

    note: Note
    binding: Binding
    weight: float


class Digest(NamedTuple):
    """The fields of an insight."""

    content: str
    caption: str
    keywords: tuple[str, ...]


def digest(members: Sequence[Member], speakers: Collection[str] = ()) -> Digest:
    """What the members have in common, in their own words; the same for the same members in any order.

    ``speakers`` are the names of all who speak in the scope: these bind nothing, nor does their beginning ("Kat").
    """
    members = sorted(members, key=lambda member: place(member.note))
    notes = [member.note for member in members]
    weights = binding_terms(members, speakers) or binding_terms(members, speakers, holders=1)
    heading = _apart(weights)
    told = span([note.occurred_at for note in notes])
    events = len({note.event_ids[0] for note in notes})
    caption = ", ".join(heading) or "What belongs together"
    caption = caption[0].upper() + caption[1:]
    opening = f"{caption} ({f'{told}, ' if told else ''}{events} notes)."
    quotes: list[tuple[int, str]] = []
    for at, sentence in _central(members, {term.key: (term, weight) for term, weight in weights}):
        quote = f" {attributed(notes[at], sentence)}"
        if len(opening) + sum(len(other) for _, other in quotes) + len(quote) <= MAX_CHARS:
            quotes.append((at, quote))
    return Digest(opening + "".join(quote for _, quote in sorted(quotes)), clip(caption, MAX_QUOTED), heading)


def place(note: Note) -> tuple[bool, float, str, int, str]:
    """Where a note stands among others by what it says, and not by when it arrived: by time first."""
    moment = note.occurred_at.timestamp() if note.occurred_at else 0.0
    return note.occurred_at is None, moment, note.session or "", note.part, f"{note.role}: {note.content}"


def span(moments: Sequence[datetime | None]) -> str:
    """From which day to which, as far as there are dates; "" if there are none."""
    days = sorted(moment.date().isoformat() for moment in moments if moment is not None)
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""


def attributed(note: Note, sentence: str) -> str:
    """A sentence with who said it, or where it stands, and when."""
    on = note.occurred_at.date().isoformat() if note.occurred_at else ""
    who = " on ".join(part for part in (clip(note.role or note.title or "", MAX_QUOTED), on) if part)
    return f"{who}: \u201c{sentence}\u201d" if who else f"\u201c{sentence}\u201d"


def binding_terms(
    members: Sequence[Member], speakers: Collection[str], holders: int = HOLDERS
) -> list[tuple[TermUse, float]]:
    """The Terms that events have in common, weightiest first: each weighs by how many have it and how rare it is."""
    names = {phrase_key(speaker) for speaker in speakers} - {""}
    held: dict[str, dict[str, TermUse]] = {}
    for member in members:
        for key, term in member.binding.items():
            if not any(name.startswith(key) and len(key) >= SHORT_NAME for name in names):
                held.setdefault(key, {}).setdefault(member.note.event_ids[0], term)
    common = [(next(iter(terms.values())), len(terms)) for terms in held.values() if len(terms) >= holders]
    weighted = [(term, count * max(map(rarity_of, tokens_of(term)), default=0.0)) for term, count in common]
    return sorted(weighted, key=lambda one: (-one[1], one[0].key))


def _apart(weighted: Sequence[tuple[TermUse, float]]) -> tuple[str, ...]:
    """The first of them that share no token."""
    used: set[str] = set()
    taken: list[str] = []
    for term, _ in weighted:
        parts = set(tokens_of(term))
        if parts and used.isdisjoint(parts) and len(taken) < MAX_WORDS:
            used |= parts
            taken.append(clip(term.text, MAX_WORD))
    return tuple(taken)


def _central(
    members: Sequence[Member], weights: Mapping[str, tuple[TermUse, float]]
) -> list[tuple[int, str]]:
    """Sentences, each of another event, with the place of its member, the most telling first.

    A sentence tells as much as the weights of the Terms it names, those that a chosen one has named counting little,
    and more if its event is tied to many others and if it has rare words.
    """
    heaviest = max((weight for _, weight in weights.values()), default=1.0) or 1.0
    tied = max((member.weight for member in members), default=1.0) or 1.0
    tokens = {key: (frozenset(tokens_of(term)), weight / heaviest) for key, (term, weight) in weights.items()}
    offered = _quotable(members, ask=False) or _quotable(members, ask=True)
    named = {(at, text): _named(text, tokens) for at, text in offered}
    rich = {text: TELLING * sum(word.rarity for word in read(text).words) for _, text in offered}
    chosen: list[tuple[int, str]] = []
    told: set[str] = set()

    def says(one: tuple[int, str]) -> tuple[float, int]:
        news = sum(tokens[key][1] * (SAID_AGAIN if key in told else 1.0) for key in named[one])
        return news + rich[one[1]] + members[one[0]].weight / tied, -one[0]

    while offered and len(chosen) < MAX_QUOTES:
        best = max(offered, key=says)
        chosen.append(best)
        told |= named[best]
        event = members[best[0]].note.event_ids[0]
        offered = [one for one in offered if members[one[0]].note.event_ids[0] != event and one[1] != best[1]]
    return chosen


def _quotable(members: Sequence[Member], ask: bool) -> list[tuple[int, str]]:
    """Sentences that state something (or also ``ask``, or tell of a picture), as they would be quoted, with their
    members' places."""
    return [
        (at, clip(sentence, MAX_QUOTED))
        for at, member in enumerate(members)
        for sentence in sentences(member.note.content)
        if len(sentence.split()) >= MIN_WORDS
        and not is_filler(sentence, member.note.role)
        and (ask or not (is_question(sentence) or sentence.startswith(_ASIDE)))
    ] or [(at, clip(member.note.content, MAX_QUOTED)) for at, member in enumerate(members) if ask]


def _named(text: str, tokens: Mapping[str, tuple[Collection[str], float]]) -> set[str]:
    """The keys of the Terms that a text names."""
    said = set(tokenize(text))
    return {key for key, (parts, _) in tokens.items() if parts and said.issuperset(parts)}
