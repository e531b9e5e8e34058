"""Removes notes whose time is over: those that expired, and those older than the retention of their scope allows.

Each page of notes is deleted or archived in a transaction of its own, so writers never wait long, and an interrupted
sweep continues where it stopped. Deleting is that of :mod:`zettel.core.erase`. Archiving adds one revision to each note
and to those derived from it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from zettel.core.commit import Clock, Commits
from zettel.core.decisions import is_reverted
from zettel.core.erase import Eraser
from zettel.core.fold import state_of
from zettel.core.follow_ups import SWEEP_EVERY, FollowUps, slot_after, sweep_job
from zettel.core.paging import archived_pages, pages
from zettel.core.present import present, present_micros
from zettel.core.provenance import consequences
from zettel.core.reindex import reindexed
from zettel.core.revise import revised
from zettel.core.vectors import Vectors
from zettel.model import TIME_MIN, Cause, JobKind, Kind, Note, Retention, Scope, Swept, Then, to_micros
from zettel.model.tags import PINNED
from zettel.ports import GraphStore, ScopeState
from zettel.ports.expiry import expired
from zettel.ports.operations import Op, PutRetention, PutRevision
from zettel.ports.query import Filter

PAGE = 100
"""Notes deleted or archived per transaction."""
DAY = timedelta(days=1)
"""The pause between two sweeps of a scope with a longest age."""


def first_expiry(notes: Iterable[Note]) -> datetime | None:
    """Return the first time at which one of the notes expires."""
    return min((note.expires_at for note in notes if note.expires_at is not None), default=None)


def unexpired(filter: Filter, state: ScopeState, known_at: datetime | None = None) -> Filter:
    """Return the filter without notes that expired by now, or by ``known_at`` for a read of that time.

    The filter stays as it is while no note of the scope has expired, so usual searches cost no more.
    """
    moment = present_micros()
    if known_at is None and state.expires > moment:
        return filter
    return replace(filter, unexpired_at=moment if known_at is None else min(moment, to_micros(known_at)))


class Sweeper:
    """Removes the notes of a store whose time is over, and sets how long scopes keep notes."""

    def __init__(
        self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps, erasing: Eraser
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._erasing = erasing

    async def set_retention(self, scope: Scope, retention: Retention | None) -> None:
        """Set the retention of a scope, or remove it, and sweep the scope soon."""

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            clock.next()
            return [PutRetention(retention), sweep_job(scope, clock.now)]

        await self._commits.commit(scope, plan)

    async def sweep(self, scope: Scope, *, dry_run: bool = False, purges: bool = True) -> AsyncIterator[Swept]:
        """Yield the numbers of removed events after each page; with ``dry_run`` nothing is removed.

        Without ``purges`` the caller queues a purge of the store after deletions.
        """
        retention = (await self._store.state(scope)).retention or Retention()
        ends = _Ends(retention.max_age, present())
        counted: set[str] = set()
        async for page in self._due(scope, retention.then, ends):
            if dry_run:
                removed = {note.id for note in page} - await self._restored(scope, page, retention.then)
            elif retention.then == "archive":
                removed = await self._archive(scope, page, ends)
            else:
                removed = {note.id for note in page}
                await self._erasing.erase(scope, sorted(removed), missing_ok=True, only_if=ends.is_over, purges=purges)
            events = {note.event_ids[0] for note in page if note.id in removed and note.kind is not Kind.INSIGHT}
            count = len(events - counted)
            counted |= events
            yield Swept(archived=count) if retention.then == "archive" else Swept(deleted=count)

    async def next_sweep(self, scope: Scope) -> list[Op]:
        """Return the job of the next day, if notes of the scope have a longest age."""
        retention = (await self._store.state(scope)).retention
        if retention is None or retention.max_age is None:
            return []
        return [sweep_job(scope, slot_after(present() + SWEEP_EVERY, DAY))]

    async def _due(self, scope: Scope, then: Then, ends: _Ends) -> AsyncIterator[list[Note]]:
        """Yield pages of the notes to remove, without those derived from them."""
        states = (False,) if then == "archive" else (False, True)
        for archived in states:
            place = TIME_MIN, 0
            while page := await self._store.expired(scope, ends.now, place, PAGE, archived):
                last = page[-1]
                place = ends.now if last.expires_at is None else to_micros(last.expires_at), last.seq
                yield page
        if ends.latest is None:
            return
        async for page in pages(self._store, scope, PAGE):
            old = [note for note in page if note.recorded_at <= ends.latest]
            if notes := await self._aged(scope, old, ends):
                yield notes
            if len(old) < len(page):
                break  # notes are in the order of storing
        if then == "delete":
            async for page in archived_pages(self._store, scope, PAGE):
                if notes := await self._aged(scope, page, ends):
                    yield notes

    async def _aged(self, scope: Scope, notes: Sequence[Note], ends: _Ends) -> list[Note]:
        """Return those of the notes whose events are all too old, and have no pinned note.

        Insights are left out: they go with their sources.
        """
        stated = [note for note in notes if note.kind is not Kind.INSIGHT and ends.is_over(note)]
        ids = sorted({event for note in stated for event in note.event_ids})
        if not ids:
            return []
        events = await self._store.events(scope, ids)
        related = await self._store.notes(scope, await self._store.notes_of(scope, ids))
        needed = {id for id, event in events.items() if ends.latest is None or event.recorded_at > ends.latest}
        needed.update(event for note in related.values() if PINNED in note.tags for event in note.event_ids)
        return [note for note in stated if needed.isdisjoint(note.event_ids)]

    async def _restored(self, scope: Scope, notes: Sequence[Note], then: Then) -> set[str]:
        """Return those of the notes that a person restored, so that no sweep archives them again."""
        if then != "archive":
            return set()
        histories = await self._store.histories(scope, sorted(note.id for note in notes))
        return {id for id, history in histories.items() if is_reverted(history, JobKind.EXPIRE)}

    async def _archive(self, scope: Scope, notes: Sequence[Note], ends: _Ends) -> set[str]:
        """Archive notes and those derived from them, and return the ids of these."""
        puts: list[PutRevision] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            current = await self._store.notes(scope, [note.id for note in notes])
            roots = {id for id, note in current.items() if ends.is_over(note)}
            derived, _ = await consequences(self._store, scope, roots)
            histories = await self._store.histories(scope, sorted(derived))
            shown = [history for history in histories.values() if not state_of(history)[0].archived]
            cause = Cause(by=JobKind.EXPIRE)
            puts[:] = [
                revised(history, clock, cause, {"archived": True})
                for history in shown
                if not is_reverted(history, JobKind.EXPIRE)
            ]
            return [*puts, *await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock)]

        await self._commits.commit(scope, plan)
        return {put.note.id for put in puts}


class _Ends:
    """The times of one sweep: ``now`` in microseconds, and the ``latest`` time of storing that is too old."""

    def __init__(self, max_age: timedelta | None, now: datetime) -> None:
        self.now = to_micros(now)
        self.latest = None if max_age is None else now - min(max_age, now - datetime.min.replace(tzinfo=timezone.utc))

    def is_over(self, note: Note) -> bool:
        """Return whether the time of a note is over, by itself."""
        aged = self.latest is not None and note.recorded_at <= self.latest and PINNED not in note.tags
        return aged or expired(note, self.now)
