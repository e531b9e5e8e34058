"""Looking at what a memory holds, by id or in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from zettel.arguments import MOST, Time, cursor_of, filter_of, require_storable, require_text, whole_number
from zettel.errors import InvalidInput, NotFound
from zettel.face.opened import Opened
from zettel.model import TIME_MAX, Conflict, EventRecord, Graph, Kind, Link, Neighbor, Note, Page, Revision, Scope, Term

List: TypeAlias = list
"""The builtin, inside a class that has a method of that name."""


class Looking(Opened):
    """What tells of notes and of what is around them; changes nothing."""

    async def get(self, id: str, *, scope: Scope | None = None) -> Note | EventRecord:
        """A note (``n_…``) or an event (``e_…``) by its id. Raises ``NotFound``."""
        engine, scope = await self._use(scope, id)
        found: Mapping[str, Note | EventRecord]
        if id.startswith("e_"):
            found = await engine.store.events(scope, [id])
        else:
            found = await engine.store.notes(scope, [id])
        if id not in found:
            raise NotFound(scope, [id])
        return found[id]

    async def _note(self, id: str, scope: Scope) -> Note:
        found = await self.get(id, scope=scope)
        if not isinstance(found, Note):
            raise NotFound(f"the notes of {scope}", [id], "it is an event, and a note's id is wanted, n_…")
        return found

    async def list(
        self,
        *,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        role: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        archived: bool = False,
        limit: int = 100,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Page:
        """Notes in the order of arrival, a page at a time: hand the page's ``cursor`` in again for the next one.

        ``archived``: instead all that is put away, merged and quarantined notes too, the newest first.
        """
        engine, scope = await self._use(scope)
        limit, place = whole_number("limit", limit), cursor_of(cursor)
        asked = filter_of(kinds, tags, session, role, since, until, filter)
        if archived:
            from zettel.search.away import put_away

            notes = await put_away(engine.store, scope, asked, place or TIME_MAX, limit + 1)
        else:
            notes = await engine.store.page(scope, asked, place, limit + 1)
        more = len(notes) > limit
        return Page(notes=tuple(notes[:limit]), cursor=str(notes[limit - 1].seq) if more else None)

    async def events(
        self, session: str, *, source: str | None = None, limit: int | None = None, scope: Scope | None = None
    ) -> List[EventRecord]:
        """What happened in a session, verbatim, in the order of arrival; of much the last ``limit``.

        Whatever became of the notes: merged, put away or in quarantine. ``source`` asks for what was read there alone.
        """
        engine, scope = await self._use(scope)
        require_text("session", session)
        require_storable("source", source)
        ids = await engine.store.events_from(scope, source, session, MOST)
        wanted = ids if limit is None else ids[-whole_number("limit", limit) :]
        found = await engine.store.events(scope, wanted)
        return [found[id] for id in wanted if id in found]

    async def links(self, id: str, *, scope: Scope | None = None) -> List[Link]:
        """The links that start or end at a note. Raises ``NotFound``."""
        engine, scope = await self._use(scope)
        await self._note(id, scope)
        return await engine.store.links(scope, [id])

    async def neighbors(self, id: str, hops: int = 2, *, scope: Scope | None = None) -> List[Neighbor]:
        """Notes within ``hops`` links of a note, the nearest first. Raises ``NotFound``."""

        from zettel.link.neighbors import neighbors

        engine, scope = await self._use(scope)
        await self._note(id, scope)
        return await neighbors(engine.store, scope, id, hops)

    async def graph(
        self, around: str | None = None, hops: int = 2, *, limit: int = 2000, cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Graph:  # fmt: skip
        """Notes with the links between them, to draw or to walk: those within ``hops`` links ``around`` a note, the
        nearest first, or else all, a page of ``limit`` at a time in the order of arrival.

        Raises ``NotFound``.
        """
        from zettel.link.neighbors import require_hops

        engine, scope = await self._use(scope)
        require_hops(hops)
        if around is None:
            page = await self.list(limit=limit, cursor=cursor, scope=scope)
            notes, cursor = page.notes, page.cursor
        elif cursor is not None:
            raise InvalidInput("cursor= turns the pages of all notes: leave it out where around= names one")
        else:
            center = await self._note(around, scope)
            near = await self.neighbors(around, hops, scope=scope)
            notes, cursor = (center, *(one.note for one in near))[: whole_number("limit", limit)], None
        there = {note.id for note in notes}
        links = await engine.store.links(scope, sorted(there))
        between = tuple(link for link in links if link.source in there and link.target in there)
        return Graph(notes=notes, links=between, cursor=cursor)

    async def conflicts(self, *, scope: Scope | None = None) -> List[Conflict]:
        """Pairs of notes that say otherwise of the same, and nothing tells which of them still holds.

        To settle one, add a note that says how it is, or delete the wrong one.
        """
        from zettel.link.conflicts import conflicts

        engine, scope = await self._use(scope)
        return await conflicts(engine.store, scope)

    async def terms(self, id: str, *, scope: Scope | None = None) -> List[Term]:
        """The Terms of a note, with how many notes hold each. Raises ``NotFound``."""
        engine, scope = await self._use(scope)
        await self._note(id, scope)
        return await engine.store.terms(scope, id)

    async def history(self, id: str, *, scope: Scope | None = None) -> List[Revision]:
        """Every version of a note: what changed, why, and whether it still counts. Raises ``NotFound``."""
        engine, scope = await self._use(scope, id)
        return await engine.editing.history(scope, id)
