"""Operations that read notes, events, links and history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timezone
from typing import Any, get_args

from zettel.core.arguments import (
    MOST,
    Time,
    cursor_of,
    moment_of,
    require_storable,
    require_text,
    whole_number,
    zone_of,
)
from zettel.core.authority import is_on_probation
from zettel.core.changes import touch
from zettel.core.conditions import filter_of
from zettel.core.paging import pages
from zettel.core.present import present_micros
from zettel.core.retention import unexpired
from zettel.errors import InvalidInput, NotFound
from zettel.local.local_memory import LocalMemory
from zettel.model import (
    ENTITY_KINDS,
    TIME_MAX,
    Conflict,
    EntityDetails,
    EntityPage,
    EventRecord,
    Graph,
    Kind,
    Link,
    Neighbor,
    Note,
    Page,
    Queried,
    QueryResult,
    Revision,
    Scope,
    Term,
    to_micros,
)
from zettel.ports.expiry import expired
from zettel.ports.query import Selection
from zettel.text.tokens import phrase_key

REVIEW_PAGE = 500
"""Notes per read in search of those on probation."""


async def get(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> Note | EventRecord:
    engine, scope, id = await memory.locate(scope, id)
    records: Mapping[str, Note | EventRecord]
    if id.startswith("e_"):
        records = await engine.store.events(scope, [id])
    else:
        from zettel.search.disputed import with_confidence

        notes = await with_confidence(engine.store, scope, list((await engine.store.notes(scope, [id])).values()))
        records = {note.id: note for note in notes}
    if id not in records:
        raise NotFound(scope, [id])
    return records[id]


async def _note(memory: LocalMemory, id: str, scope: Scope) -> Note:
    note = await get(memory, id, scope=scope)
    if not isinstance(note, Note):
        raise NotFound(f"the notes of {scope}", [id], "the id of a note begins with n_")
    return note


async def list_(
    memory: LocalMemory,
    *,
    archived: bool = False,
    limit: int = 100,
    cursor: str | None = None,
    scope: Scope | None = None,
    **conditions: Any,
) -> Page:
    """``conditions`` are the arguments of ``filter_of``."""
    engine, scope = memory.use(scope)
    limit, place = whole_number("limit", limit), cursor_of(cursor)
    filter = unexpired(filter_of(**conditions), await engine.store.state(scope))
    if archived:
        from zettel.search.archived import archived_notes

        notes = await archived_notes(engine.store, scope, filter, place or TIME_MAX, limit + 1)
    else:
        notes = await engine.store.page(scope, filter, place, limit + 1)
    more = len(notes) > limit
    return Page(notes=tuple(notes[:limit]), cursor=str(notes[limit - 1].seq) if more else None)


async def review(
    memory: LocalMemory, *, limit: int = 100, cursor: str | None = None, scope: Scope | None = None
) -> Page:
    engine, scope = memory.use(scope)
    limit, place = whole_number("limit", limit), cursor_of(cursor)
    waiting: list[Note] = []
    now = present_micros()
    async for page in pages(engine.store, scope, REVIEW_PAGE, place):
        waiting += [note for note in page if is_on_probation(note) and not expired(note, now)]
        if len(waiting) > limit:
            return Page(notes=tuple(waiting[:limit]), cursor=str(waiting[limit - 1].seq))
    return Page(notes=tuple(waiting), cursor=None)


async def events(
    memory: LocalMemory,
    session: str,
    *,
    source: str | None = None,
    limit: int | None = None,
    scope: Scope | None = None,
) -> list[EventRecord]:
    engine, scope = memory.use(scope)
    require_text("session", session)
    require_storable("source", source)
    ids = await engine.store.events_from(scope, source, session, MOST)
    last = ids if limit is None else ids[-whole_number("limit", limit) :]
    touch(last)
    records = await engine.store.events(scope, last)
    now = present_micros()
    if (await engine.store.state(scope)).expires <= now:
        notes = (await engine.store.notes(scope, await engine.store.notes_of(scope, last))).values()
        parts = [note for note in notes if note.kind is not Kind.INSIGHT]
        shown = {id for note in parts if note.archived or not expired(note, now) for id in note.event_ids}
        last = tuple(id for id in last if id in shown)
    return [records[id] for id in last if id in records]


async def query(
    memory: LocalMemory,
    of: Queried = "notes",
    *,
    words: Iterable[str] | None = None,
    terms: Iterable[str] | None = None,
    as_of: Time | None = None,
    archived: bool = False,
    group_by: Iterable[str] | None = None,
    tz: str | None = None,
    order: str | None = None,
    limit: int = 100,
    scope: Scope | None = None,
    **conditions: Any,
) -> QueryResult:
    """``conditions`` are the arguments of ``filter_of``."""
    from zettel.search.exact import grouping_of, query, terms_of, tokens_of

    engine, scope = memory.use(scope)
    if of not in get_args(Queried):
        raise InvalidInput(f"of={of!r} must be one of {', '.join(get_args(Queried))}")
    filter, of_events = unexpired(filter_of(**conditions), await engine.store.state(scope)), of == "events"
    if of_events and filter.kinds:
        raise InvalidInput("kinds= selects notes, and every event has an episodic note: leave it out with of='events'")
    moment = moment_of("as_of", as_of)
    selection = Selection(
        filter, tokens_of(words), terms_of(terms), None if moment is None else to_micros(moment), of_events
    )
    grouping = grouping_of(group_by, zone_of(tz) or timezone.utc, order, limit)
    return await query(engine.store, scope, selection, grouping, bool(archived))


async def links(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> list[Link]:
    engine, scope = memory.use(scope)
    id = (await _note(memory, id, scope)).id
    return await engine.store.links(scope, [id])


async def neighbors(memory: LocalMemory, id: str, hops: int = 2, *, scope: Scope | None = None) -> list[Neighbor]:
    from zettel.link.neighbors import neighbors

    engine, scope = memory.use(scope)
    id = (await _note(memory, id, scope)).id
    return await neighbors(engine.store, scope, id, hops)


async def graph(
    memory: LocalMemory, around: str | None = None, hops: int = 2, *, limit: int = 2000, cursor: str | None = None,
    scope: Scope | None = None,
) -> Graph:  # fmt: skip
    from zettel.link.neighbors import require_hops

    engine, scope = memory.use(scope)
    require_hops(hops)
    if around is None:
        page = await list_(memory, limit=limit, cursor=cursor, scope=scope)
        notes, cursor = page.notes, page.cursor
    elif cursor is not None:
        raise InvalidInput("cursor= pages through all notes: leave it out with around=")
    else:
        center = await _note(memory, around, scope)
        nearby = await neighbors(memory, center.id, hops, scope=scope)
        notes, cursor = (center, *(neighbor.note for neighbor in nearby))[: whole_number("limit", limit)], None
    ids = {note.id for note in notes}
    links = await engine.store.links(scope, sorted(ids))
    between = tuple(link for link in links if link.source in ids and link.target in ids)
    return Graph(notes=notes, links=between, cursor=cursor)


async def conflicts(memory: LocalMemory, *, scope: Scope | None = None) -> list[Conflict]:
    from zettel.link.conflicts import conflicts
    from zettel.search.disputed import with_confidence

    engine, scope = memory.use(scope)
    pairs = await conflicts(engine.store, scope)
    notes = {note.id: note for pair in pairs for note in (pair.note, pair.other)}
    notes = {note.id: note for note in await with_confidence(engine.store, scope, list(notes.values()))}
    return [pair.model_copy(update={"note": notes[pair.note.id], "other": notes[pair.other.id]}) for pair in pairs]


async def terms(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> list[Term]:
    engine, scope = memory.use(scope)
    id = (await _note(memory, id, scope)).id
    return await engine.store.terms(scope, id)


async def entities(
    memory: LocalMemory,
    *,
    kind: str | None = None,
    limit: int = 100,
    cursor: str | None = None,
    scope: Scope | None = None,
) -> EntityPage:
    engine, scope = memory.use(scope)
    limit, place = whole_number("limit", limit), cursor_of(cursor)
    if kind is not None and kind not in ENTITY_KINDS:
        raise InvalidInput(f"kind={kind!r} must be one of {', '.join(ENTITY_KINDS)}")
    found = (await engine.entities.index(scope)).entities()
    chosen = [entity for entity in found if kind is None or entity.kind == kind]
    end = place + limit
    return EntityPage(entities=tuple(chosen[place:end]), cursor=str(end) if end < len(chosen) else None)


async def entity(memory: LocalMemory, name: str, *, limit: int = 50, scope: Scope | None = None) -> EntityDetails:
    engine, scope = memory.use(scope)
    require_text("name", name)
    if not phrase_key(name):
        raise InvalidInput("name is empty: write the name of an entity")
    return await engine.entities.details(scope, name, whole_number("limit", limit))


async def history(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> list[Revision]:
    engine, scope, id = await memory.locate(scope, id)
    return await engine.editing.history(scope, id)
