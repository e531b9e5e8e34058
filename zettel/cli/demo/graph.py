"""The notes, links and terms of a memory, as input for the drawings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zettel import Memory
    from zettel.model import Link, Note, Term

PAGE = 500
MAX_TERMS = 34
MIN_NOTES, MAX_NOTES = 3, 25
"""A drawn term has this many notes: rarer terms are details, more frequent ones are unspecific."""
BURST = 1.7
"""Least notes per session of a drawn keyword: a topic occurs several times in a session, a common word once."""
MAX_SHARED = 0.6
"""If two terms share more of their notes than this, only the first is drawn."""


@dataclass(frozen=True)
class MemoryGraph:
    """A memory's graph; ``terms`` are the terms to draw, each with the ids of its notes."""

    notes: Sequence[Note]
    links: Sequence[Link]
    terms: Sequence[tuple[Term, frozenset[str]]]


def read_graph(memory: Memory) -> MemoryGraph:
    """Return all notes in order, each link once, and the most informative terms."""
    notes: list[Note] = []
    cursor: str | None = None
    while True:
        page = memory.list(limit=PAGE, cursor=cursor)
        notes += page.notes
        cursor = page.cursor
        if cursor is None:
            break
    links = {(link.source, link.type, link.target): link for note in notes for link in memory.links(note.id)}
    notes_by_term: dict[str, set[str]] = defaultdict(set)
    terms: dict[str, Term] = {}
    for note in notes:
        for term in memory.terms(note.id):
            terms[term.key] = term
            notes_by_term[term.key].add(note.id)
    return MemoryGraph(notes, list(links.values()), _informative_terms(notes, terms, notes_by_term))


def _informative_terms(
    notes: Sequence[Note], terms: dict[str, Term], notes_by_term: dict[str, set[str]]
) -> list[tuple[Term, frozenset[str]]]:
    session = {note.id: note.session for note in notes}
    speakers = {(note.speaker or "").casefold() for note in notes}

    def is_informative(key: str) -> bool:
        sessions = len({session[id] for id in notes_by_term[key]})
        count = len(notes_by_term[key])
        if not MIN_NOTES <= count <= MAX_NOTES or sessions < 2 or terms[key].text.casefold() in speakers:
            return False
        return terms[key].kind == "name" or (
            terms[key].kind == "keyword" and count > MIN_NOTES and count / sessions >= BURST
        )

    candidates = [key for key in notes_by_term if is_informative(key)]
    chosen: list[str] = []
    for key in sorted(candidates, key=lambda key: (terms[key].kind != "name", -len(notes_by_term[key]), key)):
        if all(_shared(notes_by_term[key], notes_by_term[other]) <= MAX_SHARED for other in chosen):
            chosen.append(key)
        if len(chosen) == MAX_TERMS:
            break
    return [(terms[key], frozenset(notes_by_term[key])) for key in chosen]


def _shared(ids: set[str], others: set[str]) -> float:
    return len(ids & others) / min(len(ids), len(others))
