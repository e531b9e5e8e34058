"""Erase: destroy what was asked for and everything derived from it.

What is destroyed is found by following ``inputs``: notes made from an erased note go with it; a revision of another
note that an erased one stood before goes too, and whatever was decided on that revision's wording in turn. The notes
that lose a revision fall back to what the rest of their history says, and are embedded and linked again. What language
models answered goes with every note whose text stood in the question. Of the log of searches go those that found an
erased note, and those that asked with a word that no note holds any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zettel.annotate.index import searchable_text
from zettel.annotate.tokens import tokenize
from zettel.batch import EraseAnswers, EraseEvents, EraseNotes, EraseRevisions, EraseSearches, Op, PutTombstones
from zettel.commit import Clock, Commits
from zettel.consequences import consequences
from zettel.embed.vectors import Vectors
from zettel.errors import NotFound
from zettel.fold import WORDLESS
from zettel.identity import identity_of, telling_of_id
from zettel.jobs.queue import FollowUps, new_job
from zettel.link.mentions import mention_ops
from zettel.merged import rests_on
from zettel.model import Cause, JobKind, Kind, Note, Scope
from zettel.ports import GraphStore, Lookup, ScopeState
from zettel.revise import revised
from zettel.search.log import SearchLog
from zettel.search.slots import erased


@dataclass
class Doomed:
    """What a delete destroys, and which revisions of notes that stay."""

    events: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    revisions: dict[str, set[int]] = field(default_factory=dict)


class Erasing:
    """Deletes from a store."""

    def __init__(
        self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps, log: SearchLog
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._log = log

    async def erase(self, scope: Scope, ids: Sequence[str], *, gone_ok: bool = False) -> int:
        """Destroy notes and events by id, with all that came from them; how many notes went.

        Raises ``NotFound`` for an id that the scope does not hold, unless ``gone_ok``; then nothing was destroyed.
        """
        gone = 0
        await self._log.flush()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal gone
            doomed = await self._roots(scope, ids, gone_ok)
            if not doomed.events and not doomed.notes:
                gone = 0
                return []
            doomed.notes, doomed.revisions = await consequences(self._store, scope, doomed.notes)
            gone = len(doomed.notes)
            # What was asked of a model held the wording that goes: of erased notes, and of those that fall back.
            held = doomed.notes | doomed.revisions.keys() | await self._told_of(scope, doomed.notes)
            ops: list[Op] = [EraseAnswers(tuple(sorted(held)))]
            reworded: set[str] = set()
            fallen = await self._fall_back(scope, doomed, clock, ops, reworded)
            shown = [note for note in fallen if not note.archived]
            ops.append(EraseSearches(tuple(await self._asking(scope, doomed, fallen))))
            ops.append(EraseNotes(tuple(sorted(doomed.notes))))
            ops += await erased(self._store, scope)
            if doomed.events:
                ops.append(EraseEvents(tuple(sorted(doomed.events))))
            # A file that was exported of one of them revives it no more than its event does.
            named = sorted(identity_of(telling_of_id(id), state.secret) for id in doomed.notes)
            ops.append(PutTombstones(tuple(named)))
            ops += await mention_ops(
                self._store,
                scope,
                shown,
                again=[note.id for note in fallen],
                recorded_at=clock.recorded_at,
                gone=doomed.notes,
            )
            ops += await self._vectors.embed_now(shown)
            for note in shown:
                jobs = self._follow_ups.of if note.id in reworded else self._follow_ups.of_index
                ops += jobs(scope, note, clock.now)
            ops.append(new_job(scope, JobKind.PURGE, clock.now, version=clock.next()))
            return ops

        await self._commits.commit(scope, plan)
        return gone

    async def _roots(self, scope: Scope, ids: Sequence[str], gone_ok: bool) -> Doomed:
        events = await self._store.events(scope, [id for id in ids if id.startswith("e_")])
        notes = await self._store.notes(scope, [id for id in ids if not id.startswith("e_")])
        unknown = [id for id in ids if id not in events and id not in notes]
        if unknown and not gone_ok:
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

    async def _told_of(self, scope: Scope, notes: Collection[str]) -> set[str]:
        """What a model had been told of when it wrote these notes: they stand in its answers to that."""
        histories = await self._store.histories(scope, sorted(notes))
        wrote = [r for history in histories.values() for r in history.revisions if r.cause.model is not None]
        return {read.note for revision in wrote for read in revision.inputs}

    async def _asking(self, scope: Scope, doomed: Doomed, fallen: Sequence[Note]) -> list[str]:
        """The logged searches that ask with a word that only erased wording holds."""
        questions = await self._store.questions_logged(scope)
        asked = {id: {*tokenize(question)} for id, question in questions.items()}
        if not asked:
            return []
        before = await self._store.notes(scope, sorted(doomed.notes | doomed.revisions.keys()))
        words = set().union(*asked.values())
        lost = _holders(before.values(), words)
        lost.subtract(_holders(fallen, words))
        df = (await self._store.lookup(scope, Lookup(tokens=tuple(lost)))).df
        gone = {word for word, notes in lost.items() if notes >= df[word]}
        return [id for id, words in asked.items() if words & gone]

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


def _holders(notes: Iterable[Note], words: set[str]) -> Counter[str]:
    """How many of the notes hold each of the words; an archived one holds it, but is not counted, as in ``df``."""
    held: Counter[str] = Counter()
    for note in notes:
        for word in words.intersection(tokenize(searchable_text(note))):
            held[word] += not note.archived
    return held
