"""The job that puts away what has faded, by a policy.

It touches the note alone: what was made from it, or decided because of it, rests on what it says, and that stays. So a
note stays where others would be made anew without it, which a living insight, profile or lesson rests on; and so does
what replaced another, or contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from zettel.archive import RECALL
from zettel.batch import Op, PutRevision
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.evolve.decay import Decay, may_fade
from zettel.evolve.spread import importance
from zettel.jobs.deriving import former
from zettel.jobs.queue import FollowUps, Left, finish
from zettel.jobs.tally import Tally
from zettel.merged import live_merges, taken_back
from zettel.model import Cause, Job, JobKind, LinkType, NoteUse, Scope
from zettel.pages import pages
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.reindex import reindexed
from zettel.revise import revised

DECAYER = JobKind.DECAY.value
PAGE = 200
"""Notes looked at, and put away, in one transaction."""


class Decaying:
    """Puts away what has faded in a store; ``faded`` is told of each scope where something has."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        follow_ups: FollowUps,
        tally: Tally,
        policy: Decay,
        faded: Callable[[Scope], None],
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._tally = tally
        self._policy = policy
        self._faded = faded

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        """Put away what has faded in the scope of these jobs."""
        async for page in pages(self._store, scope, PAGE):
            if ids := [note.id for note in page if may_fade(note)]:
                await self._commit(scope, ids, ())
        await self._commit(scope, (), jobs)
        return []

    async def _commit(self, scope: Scope, ids: Sequence[str], jobs: Sequence[Job]) -> None:
        puts: list[PutRevision] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            puts[:] = await self._put_away(scope, ids, clock) if ids else []
            follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock)
            return [*puts, *follow, *finish(jobs)]

        if await self._commits.commit(scope, plan) and puts:
            self._tally.count(scope, archived=len(puts))
            self._faded(scope)

    async def _put_away(self, scope: Scope, ids: Sequence[str], clock: Clock) -> list[PutRevision]:
        notes = await self._store.notes(scope, ids)
        uses = await self._store.note_uses(scope, list(notes))
        ends, needed = await self._around(scope, notes)
        now = clock.recorded_at
        fading = [
            note
            for id, note in notes.items()
            if id not in needed and self._policy.fades(note, uses[id], importance(len(ends[id])), now)
        ]
        histories = await self._store.histories(scope, [note.id for note in fading]) if fading else {}
        merged = {id: _merged_with(history) for id, history in histories.items()}
        if spoken_for := sorted(set().union(*merged.values()) - uses.keys()):
            uses |= await self._store.note_uses(scope, spoken_for)
        made: list[PutRevision] = []
        for note in fading:
            history = histories[note.id]
            use = _together([uses[id] for id in {note.id, *merged[note.id]} if id in uses], _asked_for(history))
            if self._policy.fades(note, use, 0.0, now) and not taken_back(history, DECAYER):
                made.append(revised(history, clock, Cause(by=DECAYER), {"archived": True, "faded": True}))
        return made

    async def _around(self, scope: Scope, notes: Collection[str]) -> tuple[dict[str, set[str]], set[str]]:
        """Of each note what it is tied to, in the archive or not; and which of them others would miss."""
        ends: dict[str, set[str]] = {id: set() for id in notes}
        needed: set[str] = set()
        derived: dict[str, set[str]] = {}
        for link in await self._store.links(scope, sorted(notes)):
            if link.type is LinkType.CONTRADICTS:
                needed |= {link.source, link.target}
            elif link.type is LinkType.SUPERSEDES:
                needed.add(link.source)  # what it replaced may go
            elif link.type is LinkType.DERIVED_FROM:
                derived.setdefault(link.source, set()).add(link.target)
            else:
                for here, there in ((link.source, link.target), (link.target, link.source)):
                    if here in ends:
                        ends[here].add(there)
        for id, history in (await self._store.histories(scope, sorted(derived))).items() if derived else ():
            made = former(history)
            if made is not None and not made.note.archived:
                needed |= derived[id]
        return ends, needed


def _merged_with(history: NoteHistory) -> set[str]:
    """The notes that one speaks for: what these were of use for, it is."""
    return {read.note for decision in live_merges(history) for read in decision}


def _together(uses: Collection[NoteUse], asked_for: datetime) -> NoteUse:
    """What is said of several notes as of one; ``asked_for``: when a search last brought it back."""
    return NoteUse(
        since=max(asked_for, *(use.since for use in uses)),
        times=sum(use.times for use in uses),
        successes=sum(use.successes for use in uses),
        failures=sum(use.failures for use in uses),
    )


def _asked_for(history: NoteHistory) -> datetime:
    """When a search last brought the note back."""
    return max((r.recorded_at for r in history.revisions if r.cause.by == RECALL.by), default=history.base.recorded_at)
