"""The merge job: merges the duplicates of a scope. The oldest note stays for all, the others are archived.

The scope is read page by page, and only a key per note stays in memory, some 150 bytes. Each commit decides again on
its own state. No model is called and nothing is embedded, because the text of no note changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from zettel.core.commit import Clock, Commits
from zettel.core.fold import live_revisions, worded_at
from zettel.core.follow_ups import UnfinishedJobs, finish
from zettel.core.merges import Decision, is_reverted, live_merges, merge_versions, without_merges
from zettel.core.paging import pages
from zettel.core.revise import BY_HAND, revised
from zettel.core.rows import Rows
from zettel.evolve.duplicates import duplicate_key
from zettel.jobs.counters import Counters
from zettel.jobs.spec import JobHandler, JobLane, JobSpec
from zettel.model import Cause, Input, Job, JobKind, Link, LinkType, Note, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.operations import DropMentions, Op, PutRevision

PAGE = 500
"""Notes per page."""
TOGETHER = 50
"""Groups merged per transaction."""
MOST = 50
"""Notes merged into one at most, itself included: each stores the list of all, so their size grows quadratically."""
_DISPUTE = frozenset({LinkType.SUPERSEDES, LinkType.CONTRADICTS})
"""Links of a change of fact: such a note belongs to its own moment and is not merged."""


class MergeJob(JobHandler):
    """Merges the duplicates of a store."""

    def __init__(self, store: GraphStore, commits: Commits, counters: Counters) -> None:
        self._store = store
        self._commits = commits
        self._counters = counters

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Merge the duplicates in the scope of these jobs."""
        groups = await self._groups(scope)
        for start in range(0, len(groups), TOGETHER):
            await self._commit(scope, groups[start : start + TOGETHER], ())
        await self._commit(scope, (), jobs)
        return []

    async def _groups(self, scope: Scope) -> list[list[str]]:
        """Return the ids of notes with equal keys, in order of arrival."""
        first: dict[bytes, str] = {}
        groups: dict[bytes, list[str]] = {}
        async for page in pages(self._store, scope, PAGE):
            for note in page:
                key = duplicate_key(note)
                if key is not None and first.setdefault(key, note.id) != note.id:
                    groups.setdefault(key, [first[key]]).append(note.id)
        return list(groups.values())

    async def _commit(self, scope: Scope, groups: Sequence[Sequence[str]], jobs: Sequence[Job]) -> None:
        merged = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal merged
            merged = 0
            ids = [id for group in groups for id in group]
            notes = await self._store.notes(scope, ids) if ids else {}
            histories = Rows(await self._store.histories(scope, ids) if ids else {})
            histories |= await self._former(scope, histories.values())
            links = _by_end(await self._store.links(scope, list(histories))) if ids else {}
            ops: list[Op] = []
            for group in groups:
                same = _still_the_same([notes[id] for id in group if id in notes])
                fit = [note for note in same if not _is_unmergeable(histories[note.id], links.get(note.id, ()))]
                kept = fit[:1] + [note for note in fit[1:] if not _set_by_people(histories[note.id])]
                for together in _pieces(kept, histories):
                    puts = _merge(together, histories, links, clock)
                    archived = [put.note.id for put in puts if put.note.archived]
                    merged += len(together) - 1
                    ops += [*puts, DropMentions(tuple(archived))]
            return ops + finish(jobs)

        if await self._commits.commit(scope, plan):
            self._counters.count(scope, merged=merged)

    async def _former(self, scope: Scope, histories: Iterable[NoteHistory]) -> dict[str, NoteHistory]:
        """Return the histories of notes that were merged with these before."""
        ids = {read.note for history in histories for decision in live_merges(history) for read in decision}
        return await self._store.histories(scope, sorted(ids)) if ids else {}


def _pieces(kept: Sequence[Note], histories: Mapping[str, NoteHistory]) -> Iterator[list[Note]]:
    """Yield the notes in order, in pieces of two notes or more that stand for at most MOST notes."""
    piece: list[Note] = []
    size = 0
    for note in kept:
        members = len(_members([note], histories))
        if size + members > MOST:
            if len(piece) > 1:
                yield piece
            piece, size = [], 0
        piece.append(note)
        size += members
    if len(piece) > 1:
        yield piece


def _members(kept: Iterable[Note], histories: Mapping[str, NoteHistory]) -> set[str]:
    """Return the ids of notes and of the notes merged with them before."""
    return {
        id
        for note in kept
        for id in (note.id, *(read.note for decision in live_merges(histories[note.id]) for read in decision))
    }


def _merge(
    kept: Sequence[Note], histories: Mapping[str, NoteHistory], links: Mapping[str, Sequence[Link]], clock: Clock
) -> list[PutRevision]:
    """Merge all duplicates, including those that were merged before."""
    states = {id: without_merges(histories[id]) for id in _members(kept, histories) if id in histories}
    first, *others = sorted(states.values(), key=lambda note: note.seq)
    decision = tuple(Input(note.id, worded_at(*histories[note.id])) for note in (first, *others))
    events = dict.fromkeys(event for note in (first, *others) for event in note.event_ids)
    put = _decided(histories[first.id], clock, {"event_ids": tuple(events)}, decision, others[-1].id)
    puts = [put]
    taken = _taken_over(first.id, {note.id for note in others}, links, clock)
    if taken:  # by a revision of their own: they go with the notes they lead to, and leave the merge as it is
        history = NoteHistory(histories[first.id].base, (*histories[first.id].revisions, put.revision))
        puts.append(revised(history, clock, put.revision.cause, {}, links=taken, inputs=decision))
    change = {"archived": True, "merged_into": first.id}
    return puts + [_decided(histories[note.id], clock, change, decision, first.id) for note in others]


def _decided(
    history: NoteHistory, clock: Clock, change: Mapping[str, object], decision: Decision, because: str
) -> PutRevision:
    cause = Cause(by=JobKind.MERGE, note=because)
    return revised(history, clock, cause, change, undoes=merge_versions(history), inputs=decision)


def _taken_over(first: str, others: set[str], links: Mapping[str, Sequence[Link]], clock: Clock) -> tuple[Link, ...]:
    """Return links from the first note to the related notes of the others."""
    known = {first, *others}.union(_other_end(link, first) for link in links.get(first, ()))
    found: dict[str, Link] = {}
    for other in sorted(others):
        for link in links.get(other, ()):
            end = _other_end(link, other)
            if link.type is LinkType.RELATES and end not in known and end not in found:
                update = {"source": first, "target": end, "recorded_at": clock.recorded_at}
                found[end] = link.model_copy(update=update)
    return tuple(found.values())


def _still_the_same(notes: Sequence[Note]) -> list[Note]:
    """Return the notes that are still duplicates of the first, in order of arrival."""
    keys = {note.id: duplicate_key(note) for note in notes}
    ordered = sorted((note for note in notes if keys[note.id] is not None), key=lambda note: note.seq)
    return [note for note in ordered if keys[note.id] == keys[ordered[0].id]]


def _is_unmergeable(history: NoteHistory, links: Sequence[Link]) -> bool:
    return is_reverted(history, JobKind.MERGE) or any(link.type in _DISPUTE for link in links)


def _set_by_people(history: NoteHistory) -> bool:
    return any(r.change for r in live_revisions(history.revisions, BY_HAND.by))


def _other_end(link: Link, id: str) -> str:
    return link.target if link.source == id else link.source


def _by_end(links: Iterable[Link]) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in links:
        for id in {link.source, link.target}:
            found.setdefault(id, []).append(link)
    return found


JOB = JobSpec(
    JobKind.MERGE,
    lambda context: MergeJob(context.store, context.commits, context.counters),
    lane=JobLane.ROUND,
    round=2,
)
