"""What a picture is drawn from: the notes of a memory, their links and Terms, as plain values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zettel.memory import Memory
    from zettel.model import Link, Note, Term

PAGE = 500
TELLING = range(4, 26)
"""How many notes a Term must hold to be drawn: fewer say little about the whole, more are everywhere."""
DRAWN_TERMS = 34
SAME_NOTES = 0.6
"""Terms that share more of their notes than this say the same; the one with more notes is drawn."""
SPREAD = 2
"""Sessions a Term must reach: what spans the year is what a memory is for."""


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
    speakers = {(note.role or "").casefold() for note in notes}
    fit = [
        key
        for key, ids in held.items()
        if len(ids) in TELLING
        and terms[key].kind != "speaker"
        and terms[key].text.casefold() not in speakers
        and len({session[id] for id in ids}) >= SPREAD
    ]
    names = Counter(term.kind for term in terms.values())
    fit.sort(key=lambda key: (terms[key].kind != "name" and "name" in names, -len(held[key]), key))
    chosen: list[str] = []
    for key in fit:
        if all(_shared(held[key], held[other]) <= SAME_NOTES for other in chosen):
            chosen.append(key)
        if len(chosen) == DRAWN_TERMS:
            break
    return [(terms[key], frozenset(held[key])) for key in chosen]


def _shared(some: set[str], others: set[str]) -> float:
    return len(some & others) / min(len(some), len(others))
