"""Deletes notes and events together with everything derived from them.

Deletion follows ``inputs``: it destroys notes derived from an erased note, revisions based on one, and in turn
decisions based on the wording of such a revision. Notes that lose a revision are folded, embedded and linked again.
Deletion also destroys the cached model answers to prompts with an erased text, the logged searches that found an
erased note, those with a word that no remaining note contains, and decisions about names that no remaining note
contains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zettel.core.authority import require_authority
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import reverted
from zettel.core.entity_decisions import unsupported
from zettel.core.follow_ups import FollowUps, purge_job
from zettel.core.identity import external_id_bytes, identity_of
from zettel.core.mentions import mention_ops
from zettel.core.merges import rests_on
from zettel.core.present import present_micros
from zettel.core.provenance import consequences
from zettel.core.revise import revised
from zettel.core.search_log import SearchLogBuffer
from zettel.core.vectors import Vectors
from zettel.errors import NotFound
from zettel.model import CallKind, Cause, Input, Kind, Note, Scope
from zettel.ports import GraphStore, LookupQuery, ScopeState
from zettel.ports.expiry import expired
from zettel.ports.operations import (
    EraseAnswers,
    EraseEvents,
    EraseNotes,
    EraseRevisions,
    EraseSearches,
    Op,
    PutTombstones,
)
from zettel.text.index import searchable_text
from zettel.text.tokens import tokenize


@dataclass
class Deletion:
    """Events and notes to destroy, and revisions of other notes."""

    events: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    revisions: dict[str, set[int]] = field(default_factory=dict)


class Eraser:
    """Deletes from a store."""

    def __init__(
        self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps, log: SearchLogBuffer
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._log = log

    async def erase(
        self,
        scope: Scope,
        ids: Sequence[str],
        *,
        missing_ok: bool = False,
        only_if: Callable[[Note], bool] = lambda note: True,
        purges: bool = True,
    ) -> int:
        """Destroy notes and events by id, with everything derived from them. Returns the number of notes.

        Of the notes only those that fulfil ``only_if`` when the transaction begins. Without ``purges`` the caller
        queues the purge of the store. Raises ``NotFound`` for an unknown id, unless ``missing_ok``; then nothing was
        destroyed.
        """
        count = 0
        await self._log.flush()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal count
            deletion = await self._roots(scope, ids, missing_ok, only_if)
            for note in (await self._store.notes(scope, sorted(deletion.notes))).values():
                require_authority(note)
            if not deletion.events and not deletion.notes:
                count = 0
                return []
            deletion.notes, deletion.revisions = await consequences(self._store, scope, deletion.notes)
            if decisions := await unsupported(self._store, scope, deletion.notes, deletion.revisions):
                roots = deletion.notes | decisions
                deletion.notes, deletion.revisions = await consequences(self._store, scope, roots)
            deletion.events |= await self._own_events(scope, deletion.notes)
            count = len(deletion.notes)
            # Prompts contained the wording of erased notes, and of notes that lose revisions.
            prompted = deletion.notes | deletion.revisions.keys() | await self._model_inputs(scope, deletion.notes)
            ops: list[Op] = [EraseAnswers(tuple(sorted(prompted)))]
            reworded: set[str] = set()
            refolded = await self._erase_revisions(scope, deletion, clock, ops, reworded)
            shown = [note for note in refolded if not note.archived]
            ops.append(EraseSearches(tuple(await self._searches_with_erased_words(scope, deletion, refolded))))
            ops.append(EraseNotes(tuple(sorted(deletion.notes))))
            if deletion.events:
                ops.append(EraseEvents(tuple(sorted(deletion.events))))
            # Tombstones of notes, so that importing an exported file does not restore them.
            identities = sorted(identity_of(external_id_bytes(id), state.secret) for id in deletion.notes)
            ops.append(PutTombstones(tuple(identities)))
            ops += await mention_ops(
                self._store,
                scope,
                shown,
                again=[note.id for note in refolded],
                recorded_at=clock.recorded_at,
                erased=deletion.notes,
            )
            ops += await self._vectors.embed_now(shown, many=True)  # no vector of deleted words remains
            now = present_micros()
            for note in [note for note in shown if not expired(note, now)]:  # an expired note needs no new links
                jobs = self._follow_ups.of if note.id in reworded else self._follow_ups.of_index
                ops += jobs(scope, note, clock.now, self._vectors.later)
            return [*ops, purge_job(scope, clock)] if purges else ops

        await self._commits.commit(scope, plan)
        return count

    async def _roots(
        self, scope: Scope, ids: Sequence[str], missing_ok: bool, only_if: Callable[[Note], bool]
    ) -> Deletion:
        events = await self._store.events(scope, [id for id in ids if id.startswith("e_")])
        notes = await self._store.notes(scope, [id for id in ids if not id.startswith("e_")])
        unknown = [id for id in ids if id not in events and id not in notes]
        if unknown and not missing_ok:
            raise NotFound(scope, unknown)
        notes = {id: note for id, note in notes.items() if only_if(note)}
        notes |= await self._merged_with(scope, notes)
        deletion = Deletion(events=set(events))
        # The first kind counts: marking part of an event as a fact does not detach it from the event.
        bases = {id: history.base for id, history in (await self._store.histories(scope, sorted(notes))).items()}
        for note in notes.values():
            if bases[note.id].kind is Kind.EPISODIC:
                deletion.events.update(note.event_ids)
            else:
                deletion.notes.add(note.id)
        if deletion.events:
            deletion.events.update(await self._store.events_like(scope, sorted(deletion.events)))
            related = await self._store.notes_of(scope, sorted(deletion.events))
            histories = await self._store.histories(scope, related)
            deletion.notes.update(id for id, history in histories.items() if rests_on(history, deletion.events))
        return deletion

    async def _own_events(self, scope: Scope, notes: Collection[str]) -> set[str]:
        """Return the events of those notes that began as part of an event, such as a fact with sources."""
        histories = await self._store.histories(scope, sorted(notes))
        bases = [history.base for history in histories.values() if history.base.kind is Kind.EPISODIC]
        events = sorted({id for base in bases for id in base.event_ids})
        return set(await self._store.events_like(scope, events)) if events else set()

    async def _merged_with(self, scope: Scope, notes: Mapping[str, Note]) -> dict[str, Note]:
        """Return the notes that these were merged into, which are deleted with all their events."""
        targets: dict[str, Note] = {}
        into = {note.merged_into for note in notes.values() if note.merged_into} - notes.keys()
        while into:
            targets |= await self._store.notes(scope, sorted(into))
            into = {note.merged_into for note in targets.values() if note.merged_into} - targets.keys() - notes.keys()
        return targets

    async def _model_inputs(self, scope: Scope, notes: Collection[str]) -> set[str]:
        """Return the notes in the prompts from which a model wrote these notes."""
        histories = await self._store.histories(scope, sorted(notes))
        wrote = [r for history in histories.values() for r in history.revisions if r.cause.model is not None]
        return {read.note for revision in wrote for read in revision.inputs}

    async def _searches_with_erased_words(
        self, scope: Scope, deletion: Deletion, refolded: Sequence[Note]
    ) -> list[str]:
        """Return the logged searches with a word that only erased wording contains."""
        questions = await self._store.questions_logged(scope)
        asked = {id: {*tokenize(question)} for id, question in questions.items()}
        if not asked:
            return []
        before = await self._store.notes(scope, sorted(deletion.notes | deletion.revisions.keys()))
        words = set().union(*asked.values())
        lost = _document_counts(before.values(), words)
        lost.subtract(_document_counts(refolded, words))
        df = (await self._store.lookup(scope, LookupQuery(tokens=tuple(lost)))).df
        erased = {word for word, notes in lost.items() if notes >= df[word]}
        return [id for id, words in asked.items() if words & erased]

    async def _erase_revisions(
        self, scope: Scope, deletion: Deletion, clock: Clock, ops: list[Op], reworded: set[str]
    ) -> list[Note]:
        """Add to ``ops``, and return the new states. Notes that lose wording are added to ``reworded``.

        Links that a person reverted stay reverted, although the revisions with them are destroyed.
        """
        refolded: list[Note] = []
        histories = await self._store.histories(scope, sorted(deletion.revisions))
        for note_id, history in sorted(histories.items()):
            versions = sorted(deletion.revisions[note_id])
            links = reverted(history).links
            unlinks = tuple(sorted(link for link in links if deletion.notes.isdisjoint(link[:2])))
            # As inputs, so that deleting one of these notes destroys its id here too.
            inputs = tuple(Input(id, 0) for id in sorted({end for link in unlinks for end in link[:2]} - {note_id}))
            cause = Cause(by=CallKind.DELETE)
            put = revised(history, clock, cause, {}, unlinks=unlinks, inputs=inputs, erased=versions)
            ops += [EraseRevisions(note_id, tuple(versions)), put]
            refolded.append(put.note)
            if any(r.cause.by.rewords for r in history.revisions if r.version in versions):
                reworded.add(note_id)
        return refolded


def _document_counts(notes: Iterable[Note], words: set[str]) -> Counter[str]:
    """Return the notes that contain each word; archived notes add a word with count 0, as in ``df``."""
    counts: Counter[str] = Counter()
    for note in notes:
        for word in words.intersection(tokenize(searchable_text(note))):
            counts[word] += not note.archived
    return counts
