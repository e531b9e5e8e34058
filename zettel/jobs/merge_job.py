"""The merge job: merges the duplicates of a scope into the oldest note, and archives the others.

The job reads the scope page by page, and keeps only a key per note in memory, some 150 bytes. Each commit compares the
notes again. The job needs no model, because it changes no text.

A state may end and return: "I live in Bergen" in January and in June, and a later import contains "I live in Oslo" in
March. Then the job separates the notes that it merged, so that only January's statement ends in March. So the result
does not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from zettel.core.commit import Clock, Commits
from zettel.core.decisions import is_reverted, not_reverted, set_by_people
from zettel.core.fold import worded_at
from zettel.core.follow_ups import FollowUps, UnfinishedJobs, finish, new_job
from zettel.core.merges import Decision, followers, live_merges, merge_versions, without_merges
from zettel.core.paging import pages
from zettel.core.reindex import reindexed
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.evolve.duplicates import duplicate_key
from zettel.jobs.counters import Counters
from zettel.jobs.spec import JobHandler, JobSpec
from zettel.model import REPLACING, Cause, Input, Job, JobKind, Link, LinkType, Note, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.operations import DropMentions, Op, PutRevision

PAGE = 500
"""Notes per page."""
BATCH = 50
"""Groups merged per transaction."""
MAX_MERGED = 50
"""The most notes of a merged group: each note stores the list of all, so their size grows quadratically."""
_COPIED = (LinkType.RELATES, LinkType.CONTRADICTS)
"""Links that the merged note takes over. A note that supersedes or is superseded is not merged."""


class MergeJob(JobHandler):
    """Merges the duplicates of a store."""

    def __init__(
        self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps, counters: Counters
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._counters = counters

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Merge the duplicates in the scope of these jobs, and separate those whose statement ended in between."""
        groups, ended = await self._groups(scope)
        for id in ended:
            await self._separate(scope, id)
        for start in range(0, len(groups), BATCH):
            await self._commit(scope, groups[start : start + BATCH], ())
        await self._commit(scope, (), jobs)
        return []

    async def _groups(self, scope: Scope) -> tuple[list[list[str]], list[str]]:
        """Return the ids of notes with equal keys, in order of arrival, and of merged notes to separate."""
        first: dict[bytes, str] = {}
        groups: dict[bytes, list[str]] = {}
        ended: list[str] = []
        async for page in pages(self._store, scope, PAGE):
            for note in page:
                if _ended_in_between(note):
                    ended.append(note.id)
                key = duplicate_key(note)
                if key is not None and first.setdefault(key, note.id) != note.id:
                    groups.setdefault(key, [first[key]]).append(note.id)
        return list(groups.values()), ended

    async def _separate(self, scope: Scope, id: str) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            note = (await self._store.notes(scope, [id])).get(id)
            if note is None or not _ended_in_between(note):
                return []
            history = (await self._store.histories(scope, [id]))[id]
            put = revised(history, clock, Cause(by=JobKind.MERGE), {}, undoes=merge_versions(history))
            puts = [put, *await followers(self._store, scope, history, put, clock)]
            ops = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock)
            # The notes that end the statement are compared with each of the separated notes.
            ends = [link.source for link in await self._store.links(scope, [id]) if _replaces(link, id)]
            enders = (await self._store.notes(scope, sorted(ends))).values()
            return [*puts, *ops, *(new_job(scope, JobKind.LINK, clock.now, note) for note in enders)]

        await self._commits.commit(scope, plan)

    async def _commit(self, scope: Scope, groups: Sequence[Sequence[str]], jobs: Sequence[Job]) -> None:
        merged = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal merged
            merged = 0
            ids = [id for group in groups for id in group]
            notes = await self._store.notes(scope, ids) if ids else {}
            histories = Rows(await self._store.histories(scope, ids) if ids else {})
            histories |= await self._load_merged(scope, histories.values())
            links = _by_end(await self._store.links(scope, list(histories))) if ids else {}
            ops: list[Op] = []
            for group in groups:
                duplicates = _duplicates([notes[id] for id in group if id in notes])
                free = [note for note in duplicates if not _is_unmergeable(histories[note.id], links.get(note.id, ()))]
                # A note that a person changed can only be the oldest one.
                mergeable = free[:1] + [note for note in free[1:] if not set_by_people(histories[note.id])]
                for piece in _pieces(mergeable, histories):
                    puts = _merge(piece, histories, links, clock)
                    archived = [put.note.id for put in puts if put.note.archived]
                    merged += len(piece) - 1
                    ops += [*puts, DropMentions(tuple(archived))]
            return ops + finish(jobs)

        if await self._commits.commit(scope, plan):
            self._counters.count(scope, merged=merged)

    async def _load_merged(self, scope: Scope, histories: Iterable[NoteHistory]) -> dict[str, NoteHistory]:
        """Return the histories of the notes that earlier jobs merged with these."""
        ids = {merged.note for history in histories for decision in live_merges(history) for merged in decision}
        return await self._store.histories(scope, sorted(ids)) if ids else {}


def _ended_in_between(note: Note) -> bool:
    """Return whether a merged statement ended, and was made again after its end."""
    return bool(note.occurrences) and note.valid_to is not None and note.valid_to <= note.occurrences[-1]


def _pieces(notes: Sequence[Note], histories: Mapping[str, NoteHistory]) -> Iterator[list[Note]]:
    """Yield the notes in order, in pieces of two or more notes that represent at most MAX_MERGED notes."""
    piece: list[Note] = []
    size = 0
    for note in notes:
        members = len(_members([note], histories))
        if size + members > MAX_MERGED:
            if len(piece) > 1:
                yield piece
            piece, size = [], 0
        piece.append(note)
        size += members
    if len(piece) > 1:
        yield piece


def _members(notes: Iterable[Note], histories: Mapping[str, NoteHistory]) -> set[str]:
    """Return the ids of notes and of the notes that earlier jobs merged with them."""
    return {
        id
        for note in notes
        for id in (note.id, *(merged.note for decision in live_merges(histories[note.id]) for merged in decision))
    }


def _merge(
    notes: Sequence[Note], histories: Mapping[str, NoteHistory], links: Mapping[str, Sequence[Link]], clock: Clock
) -> list[PutRevision]:
    """Merge duplicates, together with the notes that earlier jobs merged with them."""
    states = {id: without_merges(histories[id]) for id in _members(notes, histories) if id in histories}
    first, *others = sorted(states.values(), key=lambda note: note.seq)
    decision = tuple(Input(note.id, worded_at(histories[note.id])) for note in (first, *others))
    put = _revision(histories[first.id], clock, _joined(states, first, histories), decision, others[-1].id)
    puts = [put]
    candidates = _copy_links(first.id, {note.id for note in others}, links, clock)
    _, copied = not_reverted(histories[first.id], {}, candidates)
    if copied:  # in a second revision: deleting a target removes the links, but not the merge
        history = histories[first.id].then(put.revision)
        puts.append(revised(history, clock, put.revision.cause, {}, links=copied, inputs=decision))
    change = {"archived": True, "merged_into": first.id}
    return puts + [_revision(histories[note.id], clock, change, decision, first.id) for note in others]


def _joined(states: Mapping[str, Note], first: Note, histories: Mapping[str, NoteHistory]) -> dict[str, object]:
    """Return the fields of the first note that follow from all notes: events, times and the earliest validity."""
    notes = sorted(states.values(), key=lambda note: note.seq)
    change: dict[str, object] = {
        "event_ids": tuple(dict.fromkeys(event for note in notes for event in note.event_ids)),
        "occurrences": tuple(sorted(note.occurred_at for note in notes if note.occurred_at)),
    }
    starts = [note.valid_from for note in notes]
    earliest = None if None in starts else min(start for start in starts if start)
    if earliest != first.valid_from and "valid_from" not in set_by_people(histories[first.id]):
        change["valid_from"] = earliest
    return change


def _revision(
    history: NoteHistory, clock: Clock, change: Mapping[str, object], decision: Decision, because: str
) -> PutRevision:
    cause = Cause(by=JobKind.MERGE, note=because)
    return revised(history, clock, cause, change, undoes=merge_versions(history), inputs=decision)


def _copy_links(first: str, others: set[str], links: Mapping[str, Sequence[Link]], clock: Clock) -> tuple[Link, ...]:
    """Return links from the first note to the related and the contradicting notes of the others."""
    known = {type: {first, *others} for type in _COPIED}
    for link in links.get(first, ()):
        if link.type in known:
            known[link.type].add(_other_end(link, first))
    copied: dict[tuple[LinkType, str], Link] = {}
    for other in sorted(others):
        for link in links.get(other, ()):
            end = _other_end(link, other)
            if link.type in _COPIED and end not in known[link.type] and (link.type, end) not in copied:
                update = {"source": first, "target": end, "recorded_at": clock.recorded_at}
                copied[link.type, end] = link.model_copy(update=update)
    return tuple(copied.values())


def _duplicates(notes: Sequence[Note]) -> list[Note]:
    """Return the notes that are still duplicates of the first, in order of arrival."""
    keys = {note.id: duplicate_key(note) for note in notes}
    ordered = sorted((note for note in notes if keys[note.id] is not None), key=lambda note: note.seq)
    return [note for note in ordered if keys[note.id] == keys[ordered[0].id]]


def _is_unmergeable(history: NoteHistory, links: Sequence[Link]) -> bool:
    return is_reverted(history, JobKind.MERGE) or any(link.type in REPLACING for link in links)


def _replaces(link: Link, id: str) -> bool:
    return link.type is LinkType.SUPERSEDES and link.target == id


def _other_end(link: Link, id: str) -> str:
    return link.target if link.source == id else link.source


def _by_end(links: Iterable[Link]) -> dict[str, list[Link]]:
    by_end: dict[str, list[Link]] = {}
    for link in links:
        for id in {link.source, link.target}:
            by_end.setdefault(id, []).append(link)
    return by_end


JOB = JobSpec(
    JobKind.MERGE,
    lambda context: MergeJob(context.store, context.commits, context.vectors, context.follow_ups, context.counters),
    round=2,
)
