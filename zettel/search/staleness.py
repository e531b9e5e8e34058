"""Counts the notes that arrived after a topic or a summary of a session was written, and belong to it."""

from __future__ import annotations

from collections.abc import Sequence

from zettel.model import Kind, LinkType, Note, Scope
from zettel.model.tags import SESSION, THEME
from zettel.ports import GraphStore
from zettel.ports.query import Filter

COUNTED = 200
"""The most notes of a session that are counted."""
_SUMMARIES = frozenset({THEME, SESSION})
_MESSAGES = frozenset({Kind.EPISODIC, Kind.SEMANTIC})


async def behind(store: GraphStore, scope: Scope, notes: Sequence[Note]) -> dict[str, int]:
    """Return by id how many newer notes each topic or summary of a session lacks; other notes are left out.

    A newer note belongs to a summary of its session, or to a topic with a linked note, unless a summary has it already.

    Example: ``{"n_1": 3}`` if three turns followed in the session of ``n_1`` since the last reflection.
    """
    result: dict[str, int] = {}
    for note in notes:
        if not _SUMMARIES.isdisjoint(note.tags) and note.kind is Kind.INSIGHT:
            newer = await _newer(store, scope, note)
            result[note.id] = len({event for other in newer for event in other.event_ids[:1]})
    return result


async def _newer(store: GraphStore, scope: Scope, summary: Note) -> list[Note]:
    links = await store.links(scope, [summary.id])
    ids = [link.target for link in links if link.source == summary.id and link.type is LinkType.DERIVED_FROM]
    sources = list((await store.notes(scope, ids)).values())
    if not sources:
        return []
    last = max(source.seq for source in sources)
    if SESSION in summary.tags:
        session = Filter(session=next((source.session for source in sources), None), kinds=(Kind.EPISODIC.value,))
        newer = await store.page(scope, session, last, COUNTED)
    else:
        ends = {end for link in await store.links(scope, ids) for end in (link.source, link.target)} - set(ids)
        linked = await store.notes(scope, sorted(ends)) if ends else {}
        newer = [note for note in linked.values() if note.seq > last and note.kind in _MESSAGES and not note.archived]
    return await _without_summary(store, scope, newer)


async def _without_summary(store: GraphStore, scope: Scope, notes: Sequence[Note]) -> list[Note]:
    """Return the notes that no topic or summary of a session was written from."""
    if not notes:
        return []
    links = await store.links(scope, [note.id for note in notes])
    derived = [link for link in links if link.type is LinkType.DERIVED_FROM]
    writers = await store.notes(scope, sorted({link.source for link in derived})) if derived else {}
    summaries = {id for id, note in writers.items() if not _SUMMARIES.isdisjoint(note.tags)}
    covered = {link.target for link in derived if link.source in summaries}
    return [note for note in notes if note.id not in covered]
