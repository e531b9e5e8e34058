"""Reads by id or in order: scope states, events, notes, histories, links and terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from zettel.core.checkpoints import is_valid
from zettel.core.fold import live_versions
from zettel.graph.bodies import read_body
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes, rows, unfinished
from zettel.graph.neo4j.connection import Neo4jConnection
from zettel.graph.scopes import ScopeRow, Secrets
from zettel.model import (
    TIME_MAX,
    TIME_MIN,
    Checkpoint,
    EventRecord,
    Link,
    Note,
    Retention,
    Revision,
    Scope,
    Term,
    TermUse,
    from_micros,
    to_micros,
)
from zettel.ports import LookupQuery, LookupResult, NoteHistory, ScopeState, Written
from zettel.ports.conditions import Condition, matches
from zettel.ports.query import DAY, SLOT, Filter, Selection, Tally

if TYPE_CHECKING:
    from neo4j import Record

MATCHING_PAGE = 2000
"""Notes per page while a condition on metadata is evaluated."""
KNOWN_SIZES = 10_000
"""Most scopes whose size is cached."""
DUMP_PAGE = 256
"""Events per page while streaming."""


def scope_state(row: Record) -> ScopeState:
    """Return the state of a scope from a row of ``state.cypher``."""
    latest = TIME_MIN if row["latest"] is None else row["latest"]
    expires = TIME_MAX if row["expires"] is None else row["expires"]
    retention = None if row["retention"] is None else read_body(Retention, row["retention"])
    return ScopeState(row["seq"], row["secret"], row["recorded_at"], latest, expires, retention)


def filter_values(filter: Filter, ids: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the parameters of ``parts/filter.cypher``; ``ids`` are the notes that meet ``where``, None without one."""
    return {
        "kinds": list(filter.kinds),
        "tags": list(filter.tags),
        "session": filter.session,
        "speaker": filter.speaker,
        "role": filter.role,
        "since": None if filter.since is None else from_micros(filter.since),
        "until": None if filter.until is None else from_micros(filter.until),
        "pairs": list(filter.metadata),
        "ids": ids,
        "unexpired_at": None if filter.unexpired_at is None else from_micros(filter.unexpired_at),
        "file": filter.source,
    }


def clamped_datetime(micros: int) -> datetime:
    """Return a time in microseconds as the nearest datetime that Python can represent."""
    return from_micros(min(max(micros, to_micros(datetime.min)), to_micros(datetime.max)))


def revisions_of(bodies: Sequence[str]) -> tuple[Revision, ...]:
    """Return a note's revisions from their JSON, with their ``live`` flags."""
    return _with_liveness([read_body(Revision, body) for body in bodies])


def _with_liveness(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
    live = live_versions(revisions)
    return tuple(
        r if r.live == (r.version in live) else r.model_copy(update={"live": r.version in live}) for r in revisions
    )


class Neo4jNotes:
    """The reads of ``zettel.ports.store.NoteStore``."""

    connection: Neo4jConnection
    _secrets: Secrets
    _sizes: dict[str, int]
    """Notes of scopes by key, at the last read."""

    async def state(self, scope: Scope) -> ScopeState:
        states = await self.connection.read("state", scope=scope.key)
        if not states and await unfinished.settle(self.connection, scope.key):
            states = await self.connection.read("state", scope=scope.key)
        if not states:
            return ScopeState(0, self._secrets.of(scope, None).secret, TIME_MIN, TIME_MIN, TIME_MAX)
        (row,) = states
        self._secrets.of(scope, _scope_row(row))
        if len(self._sizes) >= KNOWN_SIZES:
            self._sizes.clear()
        self._sizes[scope.key] = row["notes"]
        return scope_state(row)

    async def _scope_row(self, scope: Scope) -> ScopeRow | None:
        states = await self.connection.read("state", scope=scope.key)
        return _scope_row(states[0]) if states else None

    async def _keys(self, scope: Scope) -> Keys:
        return self._secrets.planned(scope) or self._secrets.of(scope, await self._scope_row(scope))

    async def lookup(self, scope: Scope, ask: LookupQuery) -> LookupResult:
        """Answer a LookupQuery. ``df`` and ``notes`` count unarchived notes only."""
        keys = await self._keys(scope)
        read = await self._lookup_rows(scope, keys, ask)
        return await self._lookup_result(scope, keys, ask, read[0] if read else None)

    async def survey(self, scope: Scope, ask: Callable[[bytes], LookupQuery]) -> tuple[ScopeState, LookupResult]:
        """Return ``state`` and ``lookup``, in one round trip if the cached secret is still valid."""
        keys = self._secrets.planned(scope)
        if keys is not None:
            query = ask(keys.secret)
            read = await self._lookup_rows(scope, keys, query, "state")
            if read and read[0]["secret"] == keys.secret:
                result = await self._lookup_result(scope, keys, query, read[0])
                self._secrets.of(scope, _scope_row(read[0]))
                return scope_state(read[0]), result
        state = await self.state(scope)
        return state, await self.lookup(scope, ask(state.secret))

    async def _lookup_rows(self, scope: Scope, keys: Keys, ask: LookupQuery, *flags: str) -> list[Record]:
        titles = [
            {"name": title, "words": " AND ".join(hashes.word_hash(keys, token) for token in tokens)}
            for title, tokens in ask.titles
            if tokens
        ]
        values: dict[str, Any] = {"identities": list(ask.identities), "names": list(ask.names), "titles": titles}
        values["words"] = [hashes.word_hash(keys, token) for token in ask.tokens]
        requested = [name for name, value in values.items() if value]
        return await self.connection.read("lookup", *requested, *flags, scope=scope.key, **values)

    async def _lookup_result(self, scope: Scope, keys: Keys, ask: LookupQuery, row: Record | None) -> LookupResult:
        df = dict.fromkeys(ask.tokens, 0)
        if row is None:
            return LookupResult(
                events={}, tombstones=frozenset(), named={}, naming={}, has_titles=False, notes=0, df=df
            )
        tokens = {hashes.word_hash(keys, token): token for token in ask.tokens}
        df.update((tokens[name], count) for name, count in row["df"])
        naming = _grouped(row["naming"])
        notes = await self.notes(scope, sorted({id for ids in naming.values() for id in ids}))
        return LookupResult(
            events={item["identity"]: (rows.read_event(item["event"]), tuple(item["notes"])) for item in row["events"]},
            tombstones=frozenset(row["tombstones"]),
            named={name: tuple(ids) for name, ids in _grouped(row["named"]).items()},
            naming={title: tuple(notes[id] for id in ids if id in notes) for title, ids in naming.items()},
            has_titles=row["titled"],
            notes=row["notes"] if ask.tokens else 0,
            df=df if ask.tokens else {},
        )

    async def _by_ids(self, name: str, scope: Scope, ids: Sequence[str]) -> list[Record]:
        """Return the rows of a statement that takes distinct ids; no ids take no round trip."""
        return await self.connection.read(name, scope=scope.key, ids=list(dict.fromkeys(ids))) if ids else []

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        read = [rows.read_note(row["note"]) for row in await self._by_ids("notes", scope, ids)]
        return {note.id: note for note in read}

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        read = [rows.read_event(row["event"]) for row in await self._by_ids("events", scope, ids)]
        return {event.event_id: event for event in read}

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(row["id"] for row in await self.connection.read("events_like", scope=scope.key, ids=list(ids)))

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        flags = [name for name, value in (("file", source), ("session", session)) if value is not None]
        read = await self.connection.read(
            "events_from", *flags, scope=scope.key, file=source, session=session, limit=limit
        )
        return tuple(row["id"] for row in read)

    async def written_by(self, scope: Scope, principal: str) -> Written:
        events = await self.connection.read("events_by", scope=scope.key, principal=principal)
        changes = await self.connection.read("revisions_by", scope=scope.key, principal=principal)
        return Written(tuple(row["id"] for row in events), tuple((row["id"], row["version"]) for row in changes))

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        return tuple(row["id"] for row in await self.connection.read("notes_of", scope=scope.key, ids=list(events)))

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        where = filter.where
        if where is None:
            read = await self.connection.read(
                "page", scope=scope.key, after=after, limit=limit, **filter_values(filter)
            )
            return [rows.read_note(row["note"]) for row in read]
        found: list[Note] = []
        async for note in self._meeting(scope, where, filter, after):
            found.append(note)
            if len(found) == limit:
                break
        return found

    async def matching(self, scope: Scope, filter: Filter) -> list[str] | None:
        """Return the ids of the unarchived notes that pass the filter, if it has ``where``, else None."""
        where = filter.where
        return None if where is None else [note.id async for note in self._meeting(scope, where, filter, -1)]

    async def _meeting(self, scope: Scope, where: Condition, filter: Filter, after: int) -> AsyncIterator[Note]:
        """Yield the unarchived notes of higher ``seq`` that pass the filter with ``where``. Cypher cannot read JSON."""
        rest = replace(filter, where=None)
        while page := await self.page(scope, rest, after, MATCHING_PAGE):
            for note in page:
                if matches(where, note.metadata, note):
                    yield note
            after = page[-1].seq

    async def expired(
        self, scope: Scope, until: int, after: tuple[int, int], limit: int, archived: bool = False
    ) -> list[Note]:
        at, seq = after
        read = await self.connection.read(
            "expired", scope=scope.key, until=clamped_datetime(until), at=clamped_datetime(at), seq=seq, limit=limit,
            archived=archived,
        )  # fmt: skip
        return [rows.read_note(row["note"]) for row in read]

    async def tally(self, scope: Scope, selection: Selection, by: Sequence[str]) -> list[Tally]:
        flags, values = await self._selection(scope, selection)
        labels = [field for field in by if field in ("tag", "term")]
        read = await self.connection.read("tally", *flags, *labels, by=list(by), day=DAY, slot=SLOT, **values)
        tallies = [Tally(tuple(row["key"]), row["count"], row["first"], row["last"]) for row in read]
        return tallies or ([] if by else [Tally((), 0, None, None)])

    async def select(self, scope: Scope, selection: Selection, order: str, limit: int) -> list[str]:
        flags, values = await self._selection(scope, selection)
        backwards = ["backwards"] if order.startswith("-") else []
        order_flags = [*backwards, *(["time"] if order.endswith("time") else [])]
        read = await self.connection.read("select", *flags, *order_flags, limit=limit, **values)
        return [row["id"] for row in read]

    async def _selection(self, scope: Scope, selection: Selection) -> tuple[list[str], dict[str, Any]]:
        """Return the flags and values of ``parts/selected.cypher``."""
        filter = selection.filter
        values: dict[str, Any] = {"scope": scope.key}
        if selection.of_events:
            from_, to = (None if time is None else from_micros(time) for time in (filter.since, filter.until))
            values |= {"of_session": filter.session, "from": from_, "to": to}
            filter = replace(filter, session=None, since=None, until=None)
        keys = await self._keys(scope) if selection.tokens else None
        choices = [] if keys is None else [
            " AND ".join(hashes.word_hash(keys, token) for token in tokens) for tokens in selection.tokens
        ]  # fmt: skip
        values |= {
            "words": " OR ".join(f"({choice})" for choice in choices), "terms": list(selection.terms),
            "moment": None if selection.as_of is None else from_micros(selection.as_of),
            **filter_values(filter, await self.matching(scope, filter)),
        }  # fmt: skip
        given = {
            "words": selection.tokens, "terms": selection.terms, "as_of": selection.as_of is not None,
            "events": selection.of_events,
        }  # fmt: skip
        return [name for name, value in given.items() if value], values

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        read = await self.connection.read("archived", scope=scope.key, before=before, limit=limit)
        return [rows.read_note(row["note"]) for row in read]

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        read = await self._by_ids("histories", scope, ids)
        return {
            row["base"]["id"]: NoteHistory(rows.read_note(row["base"]), revisions_of(row["revisions"])) for row in read
        }

    async def recent(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        histories: dict[str, NoteHistory] = {}
        invalid: list[str] = []
        for row in await self._by_ids("recent", scope, ids):
            base, later = rows.read_note(row["base"]), [read_body(Revision, body) for body in row["revisions"]]
            checkpoint = None if row["checkpoint"] is None else read_body(Checkpoint, row["checkpoint"])
            if checkpoint is not None and not is_valid(checkpoint.version, later):
                invalid.append(base.id)
                continue
            revisions = later if checkpoint is None else [*checkpoint.revisions, *later]
            histories[base.id] = NoteHistory(base, _with_liveness(revisions), checkpoint)
        return histories | await self.histories(scope, invalid)

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        read = await self.connection.read("citing", scope=scope.key, ids=list(notes))
        revisions = [r for row in read for r in revisions_of(row["revisions"]) if r.version in row["versions"]]
        return tuple(sorted(revisions, key=lambda revision: revision.seq))

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        read = await self.connection.read("links", scope=scope.key, ids=list(notes))
        return [rows.read_link(row) for row in read]

    async def terms(self, scope: Scope, note: str) -> list[Term]:
        """Return a note's terms by key, each with the number of notes that have it; none for an archived note."""
        return [Term(**row) for row in await self.connection.read("note_terms", scope=scope.key, id=note)]

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """Return the term uses of the existing, unarchived notes."""
        read = await self._by_ids("term_uses", scope, notes)
        return {row["id"]: tuple(TermUse(*term) for term in row["terms"]) for row in read}

    async def scopes(self) -> list[Scope]:
        return [Scope.model_validate_json(row["name"]) for row in await self.connection.read("scopes")]

    async def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Stream every event of a scope with the notes that cite it, in ``seq`` order; each page is one state."""
        after = -1
        while read := await self.connection.read("dump", scope=scope.key, after=after, limit=DUMP_PAGE):
            for row in read:
                event = rows.read_event(row["event"])
                yield event, tuple(map(rows.read_note, row["notes"]))
            after = event.seq


def _scope_row(row: Record) -> ScopeRow:
    return ScopeRow(0, row["secret"], row["seq"], row["recorded_at"], row["changes"], row["floor"])


def _grouped(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups
