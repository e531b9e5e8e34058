"""Erase: destroy what was asked for and everything derived from it.

What is destroyed is found by following ``inputs``: notes made from an erased note go with it; a revision of another
note that an erased one stood before goes too, and whatever was decided on that revision's wording in turn. The notes
that lose a revision fall back to what the rest of their history says, and are embedded and linked again. What language
models answered goes with every note whose text stood in the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zettel.batch import EraseAnswers, EraseEvents, EraseNotes, EraseRevisions, Op
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import NotFound
from zettel.fold import WORDLESS
from zettel.jobs.queue import FollowUps, new_job
from zettel.link.mentions import mention_ops
from zettel.merged import rests_on
from zettel.model import Cause, JobKind, Kind, LinkType, Note, Revision, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.revise import revised


@dataclass
class Doomed:
    """What a delete destroys, and which revisions of notes that stay."""

    events: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    revisions: dict[str, set[int]] = field(default_factory=dict)


class Erasing:
    """Deletes from a store."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def erase(self, scope: Scope, ids: Sequence[str]) -> int:
        """Destroy notes and events by id, with all that came from them; how many notes went.

        Raises ``NotFound`` for an id that the scope does not hold; then nothing was destroyed.
        """
        gone = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal gone
            doomed = await self._follow(scope, await self._roots(scope, ids))
            gone = len(doomed.notes)
            # What was asked of a model held the wording that goes: of erased notes, and of those that fall back.
            ops: list[Op] = [EraseAnswers(tuple(sorted(doomed.notes | doomed.revisions.keys())))]
            reworded: set[str] = set()
            fallen = await self._fall_back(scope, doomed, clock, ops, reworded)
            ops.append(EraseNotes(tuple(sorted(doomed.notes))))
            if doomed.events:
                ops.append(EraseEvents(tuple(sorted(doomed.events))))
            ops += await mention_ops(
                self._store,
                scope,
                fallen,
                again=[note.id for note in fallen],
                recorded_at=clock.recorded_at,
                gone=doomed.notes,
            )
            ops += await self._vectors.embed_now(fallen)
            for note in fallen:
                jobs = self._follow_ups.of if note.id in reworded else self._follow_ups.of_index
                ops += jobs(scope, note, clock.recorded_at)
            ops.append(new_job(scope, JobKind.PURGE, clock.recorded_at, version=clock.next()))
            return ops

        await self._commits.commit(scope, plan)
        return gone

    async def _roots(self, scope: Scope, ids: Sequence[str]) -> Doomed:
        events = await self._store.events(scope, [id for id in ids if id.startswith("e_")])
        notes = await self._store.notes(scope, [id for id in ids if not id.startswith("e_")])
        unknown = [id for id in ids if id not in events and id not in notes]
        if unknown:
            raise NotFound(scope, unknown)
        notes |= await self._merged_with(scope, notes)
        doomed = Doomed(events=set(events))
        # As it was made: who calls a part of an event a fact has not made the event another's.
        bases = {id: history.base for id, history in (await self._store.histories(scope, sorted(notes))).items()}
        for note in notes.values():
            if bases[note.id].kind is Kind.EPISODIC:
                doomed.events.update(note.event_ids)
            else:
                doomed.notes.add(note.id)
        if doomed.events:
            doomed.events.update(await self._store.events_like(scope, sorted(doomed.events)))
            resting = await self._store.notes_of(scope, sorted(doomed.events))
            histories = await self._store.histories(scope, resting)
            doomed.notes.update(id for id, history in histories.items() if rests_on(history, doomed.events))
        return doomed

    async def _merged_with(self, scope: Scope, notes: Mapping[str, Note]) -> dict[str, Note]:
        """The notes that speak for these: a merged note goes with all its events."""
        found: dict[str, Note] = {}
        into = {note.merged_into for note in notes.values() if note.merged_into} - notes.keys()
        while into:
            found |= await self._store.notes(scope, sorted(into))
            into = {note.merged_into for note in found.values() if note.merged_into} - found.keys() - notes.keys()
        return found

    async def _follow(self, scope: Scope, doomed: Doomed) -> Doomed:
        """Follow DERIVED_FROM links and inputs until nothing more is reached."""
        fresh_notes = set(doomed.notes)
        reworded: dict[str, int] = {}
        while fresh_notes or reworded:
            derived = await self._derived(scope, fresh_notes) - doomed.notes
            cited = await self._store.citing(scope, sorted(fresh_notes | reworded.keys()))
            doomed.notes |= derived
            asked, reworded = reworded, {}
            for revision in cited:
                known = doomed.revisions.get(revision.note, set())
                if revision.version in known or not _rests_on(revision, doomed.notes, asked):
                    continue
                doomed.revisions.setdefault(revision.note, set()).add(revision.version)
                if revision.change:  # only wording can be handed on; a bare link carries none
                    reworded[revision.note] = min(revision.version, reworded.get(revision.note, revision.version))
            fresh_notes = derived
        for note in doomed.notes & doomed.revisions.keys():
            del doomed.revisions[note]
        return doomed

    async def _derived(self, scope: Scope, notes: Iterable[str]) -> set[str]:
        ids = sorted(notes)
        links = await self._store.links(scope, ids) if ids else []
        return {link.source for link in links if link.type is LinkType.DERIVED_FROM and link.target in set(ids)}

    async def _fall_back(
        self, scope: Scope, doomed: Doomed, clock: Clock, ops: list[Op], reworded: set[str]
    ) -> list[Note]:
        """The notes that lose revisions, as they then stand; those that lose wording are ``reworded``."""
        fallen: list[Note] = []
        histories = await self._store.histories(scope, sorted(doomed.revisions))
        for note_id, history in sorted(histories.items()):
            versions = sorted(doomed.revisions[note_id])
            put = revised(history, clock, Cause(by="delete"), {}, erased=versions)
            ops += [EraseRevisions(note_id, tuple(versions)), put]
            fallen.append(put.note)
            if any(r.cause.by not in WORDLESS for r in history.revisions if r.version in versions):
                reworded.add(note_id)
        return fallen


def _rests_on(revision: Revision, notes: set[str], reworded: dict[str, int]) -> bool:
    if any(link.target in notes for link in revision.links) or revision.cause.note in notes:
        return True
    return any(
        read.note in notes or read.version >= reworded.get(read.note, read.version + 1) for read in revision.inputs
    )
