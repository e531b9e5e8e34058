"""Remember: events become notes, Terms, vectors, MENTIONS and jobs in one transaction.

What costs time (annotating, embedding with a local model) is done while the batch is planned, before the store's
transaction. A remote embedder is never asked here: an ``embed`` job follows, and until it has run, text finds the note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from zettel.annotate.drafts import Draft, draft, passages_of, tokens_of
from zettel.annotate.index import index_note
from zettel.batch import Op, PutEvent, PutNote
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import IdentityConflict, InvalidInput
from zettel.fold import fold
from zettel.identity import Ordinals, identity_of, new_id, same_content, telling
from zettel.jobs.queue import FollowUps
from zettel.link.mentions import mention_ops, names_in, titles_asked
from zettel.merged import followers, planned_on, rests_on, undoing
from zettel.model import Cause, Event, EventRecord, Note, OnConflict, Remembered, Scope, Status
from zettel.ports import Annotator, Found, GraphStore, Lookup, NoteHistory, ScopeState, SurveyingStore
from zettel.revise import revised

ASKED_AT_ONCE = 16
"""Events of a call about which everything is asked in one question, also about those that turn out to be there already:
for so few a further question costs more."""


class Remembering:
    """Writes events into a store."""

    def __init__(
        self, store: GraphStore, commits: Commits, annotator: Annotator, vectors: Vectors, follow_ups: FollowUps
    ) -> None:
        self._store = store
        self._commits = commits
        self._annotator = annotator
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def remember(
        self, scope: Scope, events: Sequence[Event], on_conflict: OnConflict, ordinals: Ordinals
    ) -> list[Remembered]:
        """Store events in one transaction; what became of each, in order.

        Only when ``on_conflict="revise"`` meets one identity several times in a call does each further one take a
        transaction of its own. Raises ``IdentityConflict`` under ``"error"``; then none of the events was stored.
        """
        if on_conflict not in ("error", "skip", "revise"):
            raise InvalidInput(f"on_conflict={on_conflict!r} is unknown: use error, skip or revise")
        told = [telling(event, ordinals.next(event)) for event in events]
        outcome: dict[int, Remembered] = {}
        for places in _rounds(events, told, on_conflict):
            await self._round(scope, {place: events[place] for place in places}, told, on_conflict, outcome)
        return [outcome[place] for place in range(len(events))]

    async def foresee(self, scope: Scope, events: Sequence[Event], ordinals: Ordinals) -> list[tuple[str, Status]]:
        """The identity of each of these events, and what ``remember`` would do with it under ``"revise"``.

        It knows nothing of the others: an identity that comes twice is new twice.
        """
        secret = (await self._store.state(scope)).secret
        identities = [identity_of(telling(event, ordinals.next(event)), secret) for event in events]
        found = await self._store.lookup(scope, Lookup(identities=tuple(identities)))
        return [
            (identity, _status(event, found, identity, "revise"))
            for event, identity in zip(events, identities, strict=True)
        ]

    async def _round(
        self,
        scope: Scope,
        events: dict[int, Event],
        told: Sequence[bytes],
        on_conflict: OnConflict,
        outcome: dict[int, Remembered],
    ) -> None:
        at_once = len(events) <= ASKED_AT_ONCE
        found: Found

        def ask(secret: bytes) -> Lookup:
            identities = tuple(identity_of(told[place], secret) for place in events)
            return _everything_about(events.values(), identities) if at_once else Lookup(identities=identities)

        async def look() -> ScopeState:
            nonlocal found
            state, found = await _survey(self._store, scope, ask)
            return state

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            identities = {place: identity_of(told[place], state.secret) for place in events}
            answered = found if at_once else None
            news: dict[int, Event] = {}
            for place, event in events.items():
                status = _status(event, found, identities[place], on_conflict)
                if status in ("added", "revised"):
                    news[place] = event
                known = found.events.get(identities[place])
                outcome[place] = Remembered(known[1][0] if known else None, status)
            drafts = await draft(self._store, scope, self._annotator, list(news.values()), answered)
            ops: list[Op] = []
            written: list[Note] = []
            again: list[str] = []
            for place, made in zip(news, drafts, strict=True):
                known = found.events.get(identities[place])
                record = _record(made.event, clock, known[0] if known else None)
                ops.append(PutEvent(record, identities[place]))
                old = await self._parts(scope, *known) if known else {}
                apart: list[Note] = []
                notes = await self._revise_parts(scope, made, record, old, clock, ops, apart)
                notes += _new_parts(made, record, len(old), clock, ops)
                flagged = any(note.flags for note in notes)
                outcome[place] = Remembered(notes[0].id, outcome[place].status, flagged)
                written += [note for note in (*notes, *apart) if not note.archived]
                again += [*old, *(note.id for note in apart)]
            written = list({note.id: note for note in written}.values())  # as each stands in the end
            ops += await mention_ops(
                self._store, scope, written, again=again, recorded_at=clock.recorded_at,
                known=None if again else answered,
            )  # fmt: skip
            ops += await self._vectors.embed_now(written)
            ops += [job for note in written for job in self._follow_ups.of(scope, note, clock.now)]
            return ops

        await self._commits.commit(scope, plan, look)

    async def _parts(self, scope: Scope, event: EventRecord, notes: Sequence[str]) -> dict[str, NoteHistory]:
        """Those of the notes that are parts of an event, and do not only speak for it since a merge."""
        histories = await self._store.histories(scope, notes)
        return {id: histories[id] for id in notes if rests_on(histories[id], {event.event_id})}

    async def _revise_parts(
        self,
        scope: Scope,
        made: Draft,
        record: EventRecord,
        old: Mapping[str, NoteHistory],
        clock: Clock,
        ops: list[Op],
        apart: list[Note],
    ) -> list[Note]:
        """Revisions of the notes that the event's former wording has; those of parts it no longer has are archived.

        Notes that were merged with one of them stand ``apart`` again.
        """
        notes: list[Note] = []
        for part, history in enumerate(planned_on(old, ops).values()):
            kept = part < len(made.passages)
            change = made.fields(part, record) if kept else {"archived": True, "event_ids": (record.event_id,)}
            if kept and fold(*history)[0].quarantined is not None:
                del change["archived"]  # other words do not let it out
            put = revised(
                history, clock, Cause(by="import"), change, extracted=tuple(change), undoes=undoing(history)
            )  # who says something else speaks for nobody else
            others = await followers(self._store, scope, history, put, clock, ops)
            ops += [put, *others]
            notes.append(put.note)
            apart += [one.note for one in others if one.index is not None]
        return notes


def _everything_about(events: Iterable[Event], identities: tuple[str, ...]) -> Lookup:
    """All that has to be known before events are written, as if none of them were there."""
    every = list(events)
    passages = [passage for event in every for passage in passages_of(event)]
    return Lookup(
        identities=identities,
        names=names_in(passage.content for passage in passages),
        titles=titles_asked(event.title for event in every),
        tokens=tokens_of(passages),
    )


async def _survey(store: GraphStore, scope: Scope, ask: Callable[[bytes], Lookup]) -> tuple[ScopeState, Found]:
    """Where a scope stands, and the answer to what is asked about it."""
    if isinstance(store, SurveyingStore):
        return await store.survey(scope, ask)
    state = await store.state(scope)
    return state, await store.lookup(scope, ask(state.secret))


def _rounds(events: Sequence[Event], told: Sequence[bytes], on_conflict: OnConflict) -> list[list[int]]:
    """Places of the events, in rounds in which no identity comes twice.

    Where the rounds may each bring something new, they keep the order in which the events came.
    """
    rounds: list[list[int]] = []
    first: dict[bytes, Event] = {}
    last: dict[bytes, int] = {}
    turn = 0
    for place, (event, telling_) in enumerate(zip(events, told, strict=True)):
        earlier = first.setdefault(telling_, event)
        if on_conflict == "error" and earlier is not event and not same_content(earlier, event):
            raise _conflict(event)
        turn = last[telling_] = max(last.get(telling_, -1) + 1, turn if on_conflict == "revise" else 0)
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(place)
    return rounds


def _status(event: Event, found: Found, identity: str, on_conflict: OnConflict) -> Status:
    if identity in found.tombstones:
        return "deleted"
    if identity not in found.events:
        return "added"
    if same_content(found.events[identity][0], event):
        return "existing"
    if on_conflict == "error":
        raise _conflict(event)
    return "skipped" if on_conflict == "skip" else "revised"


def _conflict(event: Event) -> IdentityConflict:
    return IdentityConflict(
        f"an event with id {event.id!r} is there already, with other content: "
        "use another id, or on_conflict='revise' or 'skip'"
    )


def _record(event: Event, clock: Clock, old: EventRecord | None) -> EventRecord:
    fields = {name: getattr(event, name) for name in Event.model_fields}
    return EventRecord(
        event_id=new_id("e"),
        seq=clock.next(),
        recorded_at=clock.recorded_at,
        revises=old.event_id if old else None,
        **fields,
    )


def _new_parts(made: Draft, record: EventRecord, start: int, clock: Clock, ops: list[Op]) -> list[Note]:
    notes = []
    for part in range(start, len(made.passages)):
        note = made.note(part, record, new_id("n"), clock.next(), clock.recorded_at)
        ops.append(PutNote(note, index_note(note)))
        notes.append(note)
    return notes
