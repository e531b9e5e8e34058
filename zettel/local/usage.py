"""Measures the use of a scope's notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from zettel.core.fold import worded_at
from zettel.core.paging import pages
from zettel.jobs.derived_notes import derived_note
from zettel.link.conflicts import conflicts
from zettel.model import Input, Kind, Note, NoteUsage, Proved, Scope, SessionSize, Usage
from zettel.ports import GraphStore
from zettel.text.tokens import phrase_key

PAGE = 500
"""Notes per page."""
TEXT_CHARS = 80
"""Characters of a note in a report."""


async def usage_of(store: GraphStore, scope: Scope, limit: int) -> Usage:
    """Return the use of a scope's notes, with at most ``limit`` entries in each list."""
    searches = reported = 0
    async for search in store.searches(scope):
        searches += 1
        reported += search.used is not None
    rows: list[NoteUsage] = []
    derived: list[Note] = []
    wordings: dict[str, list[str]] = {}
    notes_in, characters = Counter[str | None](), Counter[str | None]()
    async for page in pages(store, scope, PAGE):
        ids = [note.id for note in page]
        proved, uses = await store.proved(scope, ids), await store.note_uses(scope, ids)
        for note in page:
            use = uses.get(note.id)
            rows.append(_row(note, proved.get(note.id, Proved()).found, 0 if use is None else use.times))
            derived += [note] if note.kind is Kind.INSIGHT else []
            if note.kind is Kind.EPISODIC and (key := phrase_key(f"{note.speaker or ''}: {note.content}")):
                wordings.setdefault(key, []).append(note.id)
            notes_in[note.session] += 1
            characters[note.session] += len(note.content)
    used = sorted((row for row in rows if row.used or row.found), key=lambda row: (-row.used, -row.found, row.note))
    return Usage(
        notes=len(rows),
        searches=searches,
        reported=reported,
        never_found=sum(not row.found for row in rows),
        never_used=sum(not row.used for row in rows),
        most_used=tuple(used[:limit]),
        unused=tuple([row for row in rows if not (row.found or row.used)][:limit]),
        duplicates=tuple([tuple(ids) for ids in wordings.values() if len(ids) > 1][:limit]),
        contradictions=len(await conflicts(store, scope)),
        stale=tuple([_row(note) for note in await _stale(store, scope, derived)][:limit]),
        sessions=tuple(
            SessionSize(session=session, notes=notes_in[session], characters=size)
            for session, size in characters.most_common(limit)
        ),
    )


def _row(note: Note, found: int = 0, used: int = 0) -> NoteUsage:
    text = " ".join((note.caption or note.content).split())
    return NoteUsage(note=note.id, text=text[:TEXT_CHARS], found=found, used=used)


async def _stale(store: GraphStore, scope: Scope, notes: Sequence[Note]) -> list[Note]:
    """Return the derived notes with a source that was reworded, archived or deleted since."""
    histories = await store.histories(scope, [note.id for note in notes]) if notes else {}
    made = {id: found for id, history in histories.items() if (found := derived_note(history)) is not None}
    ids = sorted(set().union(*(each.source_ids for each in made.values()))) if made else []
    sources = await store.histories(scope, ids) if ids else {}
    current = await store.notes(scope, ids) if ids else {}
    worded = {id: worded_at(history) for id, history in sources.items() if id in current and not current[id].archived}

    def is_changed(source: Input) -> bool:
        return source.note not in worded or worded[source.note] > source.version

    return [note for note in notes if note.id in made and any(map(is_changed, made[note.id].sources))]
