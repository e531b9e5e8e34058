"""What a picture is drawn from: the notes of a memory, their links and Terms, as plain values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zettel import Memory
    from zettel.model import Link, Note, Term

PAGE = 500
DRAWN_TERMS = 34
FEWEST, MOST = 3, 25
"""How many notes a Term must hold to be drawn: fewer say little about the whole, more are everywhere."""
GATHERED = 1.7
"""Notes that a keyword, which is no name, must have on average in the sessions it reaches: a topic of talk comes up
several times at once, while common words are strewn evenly."""
SAME_NOTES = 0.6
"""Of two Terms that share more of their notes than this only the first is drawn."""


@dataclass(frozen=True)
class Gathered:
    """A memory's graph. ``terms`` are the Terms worth drawing with the notes that have them."""

    notes: Sequence[Note]
    links: Sequence[Link]
    terms: Sequence[tuple[Term, frozenset[str]]]


def gather(memory: Memory) -> Gathered:
    """All notes in order, each link once, and the most telling Terms."""
    notes: list[Note] = []
    cursor: str | None = None
    while True:
        page = memory.list(limit=PAGE, cursor=cursor)
        notes += page.notes
        cursor = page.cursor
        if cursor is None:
            break
    links = {(link.source, link.type, link.target): link for note in notes for link in memory.links(note.id)}
    held: dict[str, set[str]] = defaultdict(set)
    terms: dict[str, Term] = {}
    for note in notes:
        for term in memory.terms(note.id):
            terms[term.key] = term
            held[term.key].add(note.id)
    return Gathered(notes, list(links.values()), _telling(notes, terms, held))


def _telling(
    notes: Sequence[Note], terms: dict[str, Term], held: dict[str, set[str]]
) -> list[tuple[Term, frozenset[str]]]:
    session = {note.id: note.session for note in notes}
    speakers = {(note.speaker or "").casefold() for note in notes}

    def fits(key: str) -> bool:
        sessions = len({session[id] for id in held[key]})
        if not FEWEST <= len(held[key]) <= MOST or sessions < 2 or terms[key].text.casefold() in speakers:
            return False
        return terms[key].kind == "name" or (
            terms[key].kind == "keyword" and len(held[key]) > FEWEST and len(held[key]) / sessions >= GATHERED
        )

    fit = sorted(filter(fits, held), key=lambda key: (terms[key].kind != "name", -len(held[key]), key))
    chosen: list[str] = []
    for key in fit:
        if all(_shared(held[key], held[other]) <= SAME_NOTES for other in chosen):
            chosen.append(key)
        if len(chosen) == DRAWN_TERMS:
            break
    return [(terms[key], frozenset(held[key])) for key in chosen]


def _shared(some: set[str], others: set[str]) -> float:
    return len(some & others) / min(len(some), len(others))
