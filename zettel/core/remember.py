"""Stores events as notes, terms, vectors, MENTIONS and jobs in one transaction.

Annotating and embedding with a local model happen while the batch is planned, before the store's transaction. A remote
embedder is never called here, nor a slow one for many events: an ``embed`` job follows, and until then only text search
finds the note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import anyio.to_thread

from zettel.core.arguments import require_named_parts
from zettel.core.commit import Clock, Commits
from zettel.core.drafts import EventDraft, draft, passages_of, tokens_of
from zettel.core.fold import live_revisions, state_of
from zettel.core.follow_ups import FollowUps, expiry_jobs
from zettel.core.identity import Ordinals, identity_bytes, identity_of, new_id, same_content, separate_bytes
from zettel.core.mentions import mention_ops, names_in, title_lookups
from zettel.core.merges import apply_planned, followers, merge_versions, rests_on
from zettel.core.origin import Origin, repeats
from zettel.core.pacing import paced
from zettel.core.principals import acting
from zettel.core.privacy import Screened, SecretGuard
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.errors import IdentityConflict, InvalidInput
from zettel.model import (
    CallKind,
    Cause,
    Event,
    EventRecord,
    Note,
    OnConflict,
    Remembered,
    Revision,
    Scope,
    Status,
    event_text,
)
from zettel.ports import Annotator, GraphStore, LookupQuery, LookupResult, NoteHistory, ScopeState, SurveyingStore
from zettel.ports.operations import Op, PutEvent, PutNote
from zettel.text.index import index_note

MAX_SINGLE_LOOKUP = 16
"""Events of a call that use a single lookup, even if some are stored already: for few events a second costs more."""
MAX_SINGLE_CHARS = 50_000
"""Characters of the events of such a call: preparing the lookup for longer ones would block the event loop."""


class EventWriter:
    """Writes events into a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        annotator: Annotator,
        vectors: Vectors,
        follow_ups: FollowUps,
        guard: SecretGuard,
    ) -> None:
        self._store = store
        self._commits = commits
        self._annotator = annotator
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._guard = guard

    async def remember(
        self,
        scope: Scope,
        events: Sequence[Event],
        on_conflict: OnConflict,
        ordinals: Ordinals,
        origin: Origin | None = None,
    ) -> list[Remembered]:
        """Store events in one transaction, and return the outcome of each, in order.

        With ``on_conflict="revise"``, a repeated identity takes a transaction of its own. With an ``origin``, only new
        versions of a stored event revise it; other events with its id are stored separately, and counted there.
        Raises ``IdentityConflict`` under ``"error"``, and ``SecretRefused``; then none of the events was stored.
        """
        if on_conflict not in ("error", "skip", "revise"):
            raise InvalidInput(f"on_conflict={on_conflict!r} is unknown: use error, skip or revise")
        require_named_parts(scope)
        screened = await self._screened(scope, events)
        events = [event for event, _ in screened]
        keys = [identity_bytes(event, ordinals.next(event)) for event in events]
        outcome: dict[int, Remembered] = {}
        for places in _rounds(events, keys, on_conflict):
            keyed_events = {place: (events[place], keys[place]) for place in places}
            await self._round(scope, keyed_events, on_conflict, outcome, origin)
        return [outcome[place]._replace(secrets=kinds) for place, (_, kinds) in enumerate(screened)]

    async def _screened(self, scope: Scope, events: Sequence[Event]) -> list[Screened]:
        """Return what may be stored of the events, before anything is derived from them. Raises ``SecretRefused``."""
        self._guard.require_clean_scope(scope)
        if sum(len(event_text(event)) for event in events) > MAX_SINGLE_CHARS:
            return await anyio.to_thread.run_sync(lambda: [self._guard.event(event) for event in events])
        return [self._guard.event(event) async for event in paced(events)]

    async def foresee(
        self, scope: Scope, events: Sequence[Event], ordinals: Ordinals, origin: Origin | None = None
    ) -> list[tuple[str, Status]]:
        """Return the identity of each event, and its outcome if ``remember`` stored it alone with ``"revise"``.

        Raises ``SecretRefused``.
        """
        events = [event for event, _ in await self._screened(scope, events)]
        state = await self._store.state(scope)
        secret = state.secret
        identities = {
            place: identity_of(identity_bytes(event, ordinals.next(event)), secret)
            for place, event in enumerate(events)
        }
        found = await self._store.lookup(scope, LookupQuery(identities=tuple(identities.values())))
        if origin is not None:
            origin.since = state.seq
            own, found = await self._separated(scope, dict(enumerate(events)), identities, found, secret, origin)
            identities |= own
            origin.foreign += len(own)
        return [
            (identities[place], _status(event, found, identities[place], "revise", origin))
            for place, event in enumerate(events)
        ]

    async def _separated(
        self,
        scope: Scope,
        events: Mapping[int, Event],
        identities: Mapping[int, str],
        found: LookupResult,
        secret: bytes,
        origin: Origin,
    ) -> tuple[dict[int, str], LookupResult]:
        """Return identities of their own for the events with a foreign id, and ``found`` with their lookup."""
        own: dict[int, str] = {}
        for place, event in events.items():
            known = found.events.get(identities[place])
            if known is not None and await self._is_foreign(scope, event, known[0], origin):
                own[place] = identity_of(separate_bytes(event), secret)
        if not own:
            return own, found
        more = await self._store.lookup(scope, LookupQuery(identities=tuple(own.values())))
        tombstones = found.tombstones | more.tombstones
        return own, replace(found, events={**found.events, **more.events}, tombstones=tombstones)

    async def _is_foreign(self, scope: Scope, event: Event, stored: EventRecord, origin: Origin) -> bool:
        """Return whether an event is neither a new version of the stored event with its id nor a known version."""
        if same_content(stored, event) or origin.may_revise(event, stored):
            return False
        version: EventRecord | None = stored
        while version is not None and not repeats(event, version):
            earlier = version.revises
            version = (await self._store.events(scope, [earlier])).get(earlier) if earlier else None
        return version is None

    async def _round(
        self,
        scope: Scope,
        keyed_events: Mapping[int, tuple[Event, bytes]],
        on_conflict: OnConflict,
        outcome: dict[int, Remembered],
        origin: Origin | None,
    ) -> None:
        events = {place: event for place, (event, _) in keyed_events.items()}
        length = sum(len(event_text(event)) for event in events.values())
        single_lookup = len(events) <= MAX_SINGLE_LOOKUP and length <= MAX_SINGLE_CHARS
        result: LookupResult
        foreign = 0

        def query(secret: bytes) -> LookupQuery:
            identities = tuple(identity_of(key, secret) for _, key in keyed_events.values())
            return _full_query(events.values(), identities) if single_lookup else LookupQuery(identities=identities)

        async def look() -> ScopeState:
            nonlocal result
            state, result = await _survey(self._store, scope, query)
            return state

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal foreign
            identities = {place: identity_of(key, state.secret) for place, (_, key) in keyed_events.items()}
            lookup = result if single_lookup else None
            found = result
            if origin is not None:
                origin.since = state.seq if origin.since is None else origin.since
                own, found = await self._separated(scope, events, identities, result, state.secret, origin)
                identities |= own
                foreign = len(own)
            new_events: dict[int, Event] = {}
            for place, event in events.items():
                status = _status(event, found, identities[place], on_conflict, origin)
                if status in ("added", "revised"):
                    new_events[place] = event
                known = found.events.get(identities[place])
                outcome[place] = Remembered(known[1][0] if known else None, status)
            drafts = await draft(self._store, scope, self._annotator, list(new_events.values()), lookup)
            ops: list[Op] = []
            written: list[Note] = []
            again: list[str] = []
            async for place, made in paced(zip(new_events, drafts, strict=True)):
                known = found.events.get(identities[place])
                record = _record(made.event, clock, known[0] if known else None)
                old = await self._parts(scope, *known) if known else {}
                if origin is not None and old:  # an import does not let stored notes expire
                    first, _ = state_of(next(iter(old.values())))
                    record = record.model_copy(update={"expires_at": first.expires_at})
                ops.append(PutEvent(record, identities[place]))
                unmerged: list[Note] = []
                notes = await self._revise_parts(scope, made, record, old, clock, ops, unmerged)
                more = await _new_parts(made, record, len(old), clock, ops)
                quarantine = await self._quarantine_of(scope, old) if more else None
                if quarantine is not None:
                    puts = [revised(NoteHistory(n, ()), clock, quarantine.cause, quarantine.change) for n in more]
                    more = [put.note for put in puts]
                    ops += puts
                notes += more
                flagged = any(note.flags for note in notes)
                outcome[place] = Remembered(notes[0].id, outcome[place].status, flagged)
                written += [note for note in (*notes, *unmerged) if not note.archived]
                again += [*old, *(note.id for note in unmerged)]
            written = list({note.id: note for note in written}.values())  # the last state of each
            ops += await mention_ops(
                self._store, scope, written, again=again, recorded_at=clock.recorded_at,
                known=None if again else lookup,
            )  # fmt: skip
            ops += await self._vectors.embed_now(written)
            embeds = self._vectors.defers(len(written))
            async for note in paced(written):
                ops += self._follow_ups.of(scope, note, clock.now, embeds)
            return [*ops, *expiry_jobs(scope, written)]

        await self._commits.commit(scope, plan, look)
        if origin is not None:
            origin.foreign += foreign

    async def _parts(self, scope: Scope, event: EventRecord, notes: Sequence[str]) -> dict[str, NoteHistory]:
        """Return the notes that are parts of an event, without notes that its parts were merged into."""
        histories = Rows(await self._store.recent(scope, notes))
        unclear = [id for id in notes if not rests_on(histories[id], {event.event_id})]
        histories |= await self._store.histories(scope, unclear) if unclear else {}
        return {id: histories[id] for id in notes if rests_on(histories[id], {event.event_id})}

    async def _quarantine_of(self, scope: Scope, parts: Mapping[str, NoteHistory]) -> Revision | None:
        """Return the revision that put an event into quarantine; None outside."""
        head = next(iter(parts.values()), None)
        if head is None or state_of(head)[0].quarantined is None:
            return None
        history = (await self._store.histories(scope, [head.base.id]))[head.base.id]
        return live_revisions(history.revisions, CallKind.QUARANTINE)[-1]

    async def _revise_parts(
        self,
        scope: Scope,
        made: EventDraft,
        record: EventRecord,
        old: Mapping[str, NoteHistory],
        clock: Clock,
        ops: list[Op],
        unmerged: list[Note],
    ) -> list[Note]:
        """Revise the notes of the event's old wording, and archive those of surplus parts.

        Adds to ``unmerged`` the notes that were merged with one of them.
        """
        notes: list[Note] = []
        for part, history in enumerate(apply_planned(old, ops).values()):
            exists = part < len(made.passages)
            change = made.fields(part, record) if exists else {"archived": True, "event_ids": (record.event_id,)}
            if exists and state_of(history)[0].quarantined is not None:
                del change["archived"]  # new wording does not release it
            cause, undoes = Cause(by=CallKind.IMPORT), merge_versions(history)  # new wording is not a duplicate
            put = revised(history, clock, cause, change, extracted=tuple(change), undoes=undoes)
            others = await followers(self._store, scope, history, put, clock, ops)
            ops += [put, *others]
            notes.append(put.note)
            unmerged += [other.note for other in others if other.index is not None]
        return notes


def _full_query(events: Iterable[Event], identities: tuple[str, ...]) -> LookupQuery:
    """Return the lookup for storing events, as if all of them were new."""
    every = list(events)
    passages = [passage for event in every for passage in passages_of(event)]
    return LookupQuery(
        identities=identities,
        names=names_in(passage.content for passage in passages),
        titles=title_lookups(event.title for event in every),
        tokens=tokens_of(passages),
    )


async def _survey(
    store: GraphStore, scope: Scope, query: Callable[[bytes], LookupQuery]
) -> tuple[ScopeState, LookupResult]:
    """Return a scope's state, and the result of the query built from its secret."""
    if isinstance(store, SurveyingStore):
        return await store.survey(scope, query)
    state = await store.state(scope)
    return state, await store.lookup(scope, query(state.secret))


def _rounds(events: Sequence[Event], keys: Sequence[bytes], on_conflict: OnConflict) -> list[list[int]]:
    """Return the places of the events in rounds without repeated identities.

    With ``"revise"`` the rounds keep the order of the events.
    """
    rounds: list[list[int]] = []
    first: dict[bytes, Event] = {}
    last: dict[bytes, int] = {}
    turn = 0
    for place, (event, key) in enumerate(zip(events, keys, strict=True)):
        earlier = first.setdefault(key, event)
        if on_conflict == "error" and earlier is not event and not same_content(earlier, event):
            raise _conflict(event)
        turn = last[key] = max(last.get(key, -1) + 1, turn if on_conflict == "revise" else 0)
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(place)
    return rounds


def _status(
    event: Event, found: LookupResult, identity: str, on_conflict: OnConflict, origin: Origin | None = None
) -> Status:
    if identity in found.tombstones:
        return "deleted"
    if identity not in found.events:
        return "added"
    stored = found.events[identity][0]
    if same_content(stored, event) or (origin is not None and not origin.may_revise(event, stored)):
        return "existing"
    if on_conflict == "error":
        raise _conflict(event)
    return "skipped" if on_conflict == "skip" else "revised"


def _conflict(event: Event) -> IdentityConflict:
    return IdentityConflict(
        f"an event with id {event.external_id!r} is stored already, with other content: "
        "use another id, or on_conflict='revise' or 'skip' (--on-conflict)"
    )


def _record(event: Event, clock: Clock, old: EventRecord | None) -> EventRecord:
    fields = {name: getattr(event, name) for name in Event.model_fields}
    principal = acting()
    return EventRecord(
        principal=principal.name,
        ceiling=principal.trust,
        event_id=new_id("e"),
        seq=clock.next(),
        recorded_at=clock.recorded_at,
        revises=old.event_id if old else None,
        **fields,
    )


async def _new_parts(made: EventDraft, record: EventRecord, start: int, clock: Clock, ops: list[Op]) -> list[Note]:
    notes = []
    async for part in paced(range(start, len(made.passages))):
        note = made.note(part, record, new_id("n"), clock.next(), clock.recorded_at)
        ops.append(PutNote(note, index_note(note)))
        notes.append(note)
    return notes
