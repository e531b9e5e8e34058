"""The decay job: archives notes that have decayed by a policy.

The job changes only the note itself. It skips the sources of live insights, profiles and lessons, because the reflect
job would write these again without the note. It also skips notes that supersede or contradict another note.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from zettel.core.archive import RECALL
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import is_reverted
from zettel.core.follow_ups import FollowUps, UnfinishedJobs, finish
from zettel.core.merges import live_merges
from zettel.core.paging import pages
from zettel.core.present import present
from zettel.core.reindex import reindexed
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.evolve.decay import may_decay
from zettel.evolve.neighborhood import importance
from zettel.jobs.counters import Counters
from zettel.jobs.derived_notes import derived_note
from zettel.jobs.spec import JobContext, JobHandler, JobSpec
from zettel.model import Cause, Job, JobKind, LinkType, NoteUse, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.operations import Op, PutRevision
from zettel.ports.settings import DecayPolicy
from zettel.scoring.strength import with_weak_use

PAGE = 200
"""Notes checked and archived per transaction."""


class DecayJob(JobHandler):
    """Archives the decayed notes of a store; calls ``on_decay`` with each scope where notes decayed."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        follow_ups: FollowUps,
        counters: Counters,
        policy: DecayPolicy,
        on_decay: Callable[[Scope], None],
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._counters = counters
        self._policy = policy
        self._on_decay = on_decay

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Archive the decayed notes in the scope of these jobs."""
        now = present()
        async for page in pages(self._store, scope, PAGE):
            if ids := [note.id for note in page if may_decay(note, now)]:
                await self._commit(scope, ids, ())
        await self._commit(scope, (), jobs)
        return []

    async def _commit(self, scope: Scope, ids: Sequence[str], jobs: Sequence[Job]) -> None:
        puts: list[PutRevision] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            puts[:] = await self._archive(scope, ids, clock) if ids else []
            follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock)
            return [*puts, *follow, *finish(jobs)]

        if await self._commits.commit(scope, plan) and puts:
            self._counters.count(scope, archived=len(puts))
            self._on_decay(scope)

    async def _archive(self, scope: Scope, ids: Sequence[str], clock: Clock) -> list[PutRevision]:
        notes = await self._store.notes(scope, ids)
        uses = Rows(await self._uses(scope, list(notes)))
        ends, needed = await self._neighbors(scope, notes)
        now = clock.recorded_at
        candidates = [
            note
            for id, note in notes.items()
            if id not in needed and self._policy.fades(note, uses[id], importance(len(ends[id])), now)
        ]
        histories = Rows(await self._store.histories(scope, [note.id for note in candidates]) if candidates else {})
        merged = {id: _merged_with(history) for id, history in histories.items()}
        if merged_ids := sorted(set().union(*merged.values()) - uses.keys()):
            uses |= await self._uses(scope, merged_ids)
        puts: list[PutRevision] = []
        for note in candidates:
            history = histories[note.id]
            use = _combined([uses[id] for id in {note.id, *merged[note.id]} if id in uses], _last_recall(history))
            if self._policy.fades(note, use, 0.0, now) and not is_reverted(history, JobKind.DECAY):
                puts.append(revised(history, clock, Cause(by=JobKind.DECAY), {"archived": True, "faded": True}))
        return puts

    async def _uses(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteUse]:
        """Return the use of notes, also by the searches that found them."""
        proved = await self._store.proved(scope, ids)
        return {id: with_weak_use(use, proved.get(id)) for id, use in (await self._store.note_uses(scope, ids)).items()}

    async def _neighbors(self, scope: Scope, notes: Collection[str]) -> tuple[dict[str, set[str]], set[str]]:
        """Return the linked notes of each note, archived ones included, and the notes that others need."""
        ends: dict[str, set[str]] = {id: set() for id in notes}
        needed: set[str] = set()
        derived: dict[str, set[str]] = {}
        for link in await self._store.links(scope, sorted(notes)):
            if link.type is LinkType.CONTRADICTS:
                needed |= {link.source, link.target}
            elif link.type is LinkType.SUPERSEDES:
                needed.add(link.source)  # the replaced note may decay
            elif link.type is LinkType.DERIVED_FROM:
                derived.setdefault(link.source, set()).add(link.target)
            else:
                for id, other in ((link.source, link.target), (link.target, link.source)):
                    if id in ends:
                        ends[id].add(other)
        for id, history in (await self._store.histories(scope, sorted(derived))).items() if derived else ():
            existing = derived_note(history)
            if existing is not None and not existing.note.archived:
                needed |= derived[id]
        return ends, needed


def _merged_with(history: NoteHistory) -> set[str]:
    """Return the ids of the notes merged into a note, whose usefulness counts for it."""
    return {merged.note for decision in live_merges(history) for merged in decision}


def _combined(uses: Collection[NoteUse], last_recall: datetime) -> NoteUse:
    """Return the combined use of merged notes; ``last_recall``: when a search last restored the note."""
    return NoteUse(
        since=max(last_recall, *(use.since for use in uses)),
        times=sum(use.times for use in uses),
        successes=sum(use.successes for use in uses),
        failures=sum(use.failures for use in uses),
    )


def _last_recall(history: NoteHistory) -> datetime:
    """Return when a search last restored the note."""
    return max((r.recorded_at for r in history.revisions if r.cause.by == RECALL.by), default=history.base.recorded_at)


def _make(context: JobContext) -> DecayJob | None:
    if context.decay is None:
        return None
    return DecayJob(
        context.store, context.commits, context.vectors, context.follow_ups, context.counters, context.decay,
        context.searcher.decayed.forget,
    )  # fmt: skip


JOB = JobSpec(JobKind.DECAY, _make, round=1)
