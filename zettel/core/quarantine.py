"""Archives a note, or all notes of a principal, and reverts all effects until it is released.

Only searches of the archive find a quarantined note, and jobs skip it. The same transaction reverts everything that
``delete`` would destroy: derived notes are archived, and other notes lose the revisions based on it. Each quarantine
adds revisions of its own, so overlapping ones can be released one by one. Changes by people remain, except those of a
principal in quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from zettel.core.authority import require_authority, require_full_trust
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import BY_PEOPLE
from zettel.core.drafts import annotate
from zettel.core.feedback import PREFERENCES
from zettel.core.fold import fold, live_revisions, state_of
from zettel.core.follow_ups import FollowUps, new_job
from zettel.core.merges import apply_planned, followers, histories_after, merge_versions, rests_on
from zettel.core.provenance import consequences
from zettel.core.reindex import reindexed
from zettel.core.revise import revised
from zettel.core.vectors import Vectors
from zettel.errors import InvalidInput, NotFound
from zettel.model import CallKind, Cause, JobKind, Kind, Note, Revision, Scope
from zettel.ports import Annotator, GraphStore, NoteHistory, Passage, ScopeState, Written
from zettel.ports.operations import Op, PutAnswer, PutRevision
from zettel.ports.query import Filter

PAGE = 500
"""Notes per read."""


class Quarantiner:
    """Quarantines and releases notes of a store."""

    def __init__(
        self, store: GraphStore, commits: Commits, annotator: Annotator, vectors: Vectors, follow_ups: FollowUps
    ) -> None:
        self._store = store
        self._commits = commits
        self._annotator = annotator
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def quarantine(self, scope: Scope, note_id: str, reason: str) -> list[Note]:
        """Quarantine a note with all parts of its event, and return the changed notes.

        Raises ``NotFound``, and ``InvalidInput`` if it is in quarantine already; then nothing was changed.
        """
        changed: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            own = await self._own(scope, note_id)
            for history in own.values():
                require_authority(state_of(history)[0])
            if state_of(own[note_id])[0].quarantined is not None:
                raise InvalidInput(f"{note_id} is in quarantine already")
            cause = Cause(by=CallKind.QUARANTINE, note=next(iter(own)))
            puts: list[PutRevision] = []
            for history in own.values():
                change = {"archived": True, "quarantined": reason}
                put = revised(history, clock, cause, change, undoes=_decisions_of(history))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
            reworded = await self._revert_effects(scope, own, cause, clock, puts)
            return await self._done(scope, puts, clock, changed, reworded)

        await self._commits.commit(scope, plan)
        return changed

    async def quarantine_principal(self, scope: Scope, principal: str, reason: str) -> list[Note]:
        """Quarantine all events of a principal, revert its changes, and return the changed notes.

        A note that another principal has revised keeps that content. Raises ``PermissionDenied`` below full trust, and
        ``InvalidInput`` if the principal wrote nothing that is not in quarantine already.
        """
        changed: list[Note] = []
        require_full_trust("quarantines a principal")

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            written = await self._store.written_by(scope, principal)
            cause = Cause(by=CallKind.QUARANTINE, principal=principal)
            own: dict[str, NoteHistory] = {}
            puts: list[PutRevision] = []
            reworded: dict[str, int] = {}
            for id, stored in (await self._concerned(scope, written)).items():
                history = apply_planned({id: stored}, puts)[id]  # a merge may have changed it
                if any(r.cause.principal == principal for r in live_revisions(stored.revisions, CallKind.QUARANTINE)):
                    continue
                made = [r for r in history.revisions if r.principal == principal and r.cause.by is not CallKind.DELETE]
                change, extracted = dict[str, Any](), tuple[str, ...]()
                undoes = {r.version for r in made}
                if _first_event(history, principal) in written.events:
                    own[id] = history
                    change = {"archived": True, "quarantined": reason}
                    undoes.update(_decisions_of(history))
                elif made:
                    change, extracted = await self._extracted_again(scope, history, made)
                else:
                    continue
                wordings = [r.version for r in made if r.change]
                reworded |= {id: min(wordings)} if wordings and id not in own else {}
                put = revised(history, clock, cause, change, extracted=extracted, undoes=tuple(sorted(undoes)))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
            if not puts:
                raise InvalidInput(f"{principal} wrote nothing in {scope} that is not in quarantine already")
            restored = [put.note for put in puts if put.index is not None and not put.note.archived]
            again = await self._revert_effects(scope, own, cause, clock, puts, reworded)
            ops = await self._done(scope, puts, clock, changed, again | reworded.keys())
            return [*ops, *await self._links_of_later(scope, restored, clock)]

        await self._commits.commit(scope, plan)
        return changed

    async def release_principal(self, scope: Scope, principal: str) -> list[Note]:
        """Release all events of a principal, restore its changes, and return the changed notes.

        Raises ``PermissionDenied`` below full trust, and ``InvalidInput`` if the principal is not in quarantine.
        """
        changed: list[Note] = []
        require_full_trust("releases a principal from quarantine")

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            histories = await self._concerned(scope, await self._store.written_by(scope, principal))
            derived, versions = await consequences(self._store, scope, histories.keys())
            histories = await self._store.histories(scope, sorted(derived | versions.keys() | histories.keys()))
            puts = self._lifted(histories, Cause(by=CallKind.RELEASE, principal=principal), clock)
            if not puts:
                raise InvalidInput(f"{principal} is not in quarantine in {scope}")
            unread = {put.note.id for put in puts if "context" not in put.note.authored and not put.note.archived}
            return await self._done(scope, puts, clock, changed, unread)

        await self._commits.commit(scope, plan)
        return changed

    async def _extracted_again(
        self, scope: Scope, history: NoteHistory, undone: Sequence[Revision]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a change without the effects of some revisions on fields that later ones extracted, and these fields.

        Fields that somebody wrote before keep that value. Empty if nothing was extracted later.
        """
        versions = {revision.version for revision in undone}
        others = [revision for revision in history.revisions if revision.version not in versions]
        later = [revision for revision in live_revisions(others) if revision.version > min(versions)]
        if not any(revision.extracted for revision in later):
            return {}, ()
        note, _ = fold(history.base, others)
        before, _ = fold(history.base, [revision for revision in others if revision.version < min(versions)])
        written = {name for revision in later for name in revision.change.keys() - set(revision.extracted)}
        restored = {name: getattr(before, name) for name in before.authored if name not in written}
        passage = Passage(note.content, note.title, note.speaker, note.occurred_at)
        (made,) = await annotate(self._store, scope, self._annotator, [passage])
        fields = {name: value for name, value in made._asdict().items() if name not in {*written, *restored}}
        return fields | restored, tuple(fields)

    async def _links_of_later(self, scope: Scope, restored: Sequence[Note], clock: Clock) -> list[Op]:
        """Return the jobs that link notes again to older notes that had another text when they arrived."""
        jobs: list[Op] = []
        after = min((note.seq for note in restored), default=None)
        while after is not None:
            page = await self._store.page(scope, Filter(), after, PAGE)
            linked = [note for note in page if note.kind is not Kind.INSIGHT]
            jobs += [new_job(scope, JobKind.LINK, clock.now, note) for note in linked]
            after = page[-1].seq if len(page) == PAGE else None
        return jobs

    def _lifted(self, histories: Mapping[str, NoteHistory], cause: Cause, clock: Clock) -> list[PutRevision]:
        """Return the revisions that revert the live revisions of a quarantine, and restore its merges."""
        puts: list[PutRevision] = []
        for history in histories.values():
            quarantined = live_revisions(history.revisions, CallKind.QUARANTINE)
            lifted = [r for r in quarantined if (r.cause.note, r.cause.principal) == (cause.note, cause.principal)]
            if lifted:
                undoes = tuple(sorted({r.version for r in lifted} | _merges_among(history, lifted)))
                puts.append(revised(history, clock, cause, {}, undoes=undoes))
        return puts

    async def _concerned(self, scope: Scope, written: Written) -> dict[str, NoteHistory]:
        """Return the histories of all notes that a principal wrote or changed, in order of arrival."""
        notes = {*await self._store.notes_of(scope, written.events), *(note for note, _ in written.changes)}
        histories = await self._store.histories(scope, sorted(notes))
        return dict(sorted(histories.items(), key=lambda item: item[1].base.seq))

    async def release(self, scope: Scope, note_id: str) -> list[Note]:
        """Release a note, restore the effects that its quarantine reverted, and return the changed notes.

        The next round merges equal notes again. Raises ``NotFound``, and ``InvalidInput`` if it is not in quarantine.
        """
        changed: list[Note] = []
        require_full_trust("releases a note from quarantine")

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            own = await self._own(scope, note_id)
            if state_of(own[note_id])[0].quarantined is None:
                raise InvalidInput(f"{note_id} is not in quarantine")
            head = next(iter(own))
            cited = await self._store.citing(scope, [head])
            quarantined = {r.note for r in cited if (r.cause.by, r.cause.note) == (CallKind.QUARANTINE, head)}
            touched = sorted(quarantined | own.keys())
            histories = await self._store.histories(scope, touched)
            puts = self._lifted(histories, Cause(by=CallKind.RELEASE, note=head), clock)
            unread = {put.note.id for put in puts if put.note.id in own and "context" not in put.note.authored}
            return await self._done(scope, puts, clock, changed, unread)

        await self._commits.commit(scope, plan)
        return changed

    async def _own(self, scope: Scope, note_id: str) -> dict[str, NoteHistory]:
        """Return the histories of a note and of the other parts of its event, the head first."""
        histories = await self._store.histories(scope, [note_id])
        if note_id not in histories:
            raise NotFound(scope, [note_id])
        base = histories[note_id].base
        if base.kind is not Kind.EPISODIC:
            return histories
        events = set(await self._store.events_like(scope, base.event_ids))
        histories = await self._store.histories(scope, await self._store.notes_of(scope, sorted(events)))
        parts = [part for part in histories.values() if part.base.kind is Kind.EPISODIC and rests_on(part, events)]
        return {part.base.id: part for part in sorted(parts, key=lambda part: (part.base.part, part.base.seq))}

    async def _revert_effects(
        self,
        scope: Scope,
        own: Mapping[str, NoteHistory],
        cause: Cause,
        clock: Clock,
        puts: list[PutRevision],
        changed: Mapping[str, int] = MappingProxyType({}),
    ) -> set[str]:
        """Add to ``puts`` the reverts of all effects, and return the ids of the notes that lose wording.

        ``changed`` are versions from which on the wording of other notes had effects, too.
        """
        derived, versions = await consequences(self._store, scope, own.keys(), changed)
        others = sorted((derived | versions.keys()) - own.keys())
        reworded: set[str] = set()
        for id in others:
            history = (await histories_after(self._store, scope, [id], puts)).get(id)
            if history is None:
                continue
            if id in derived:
                puts.append(revised(history, clock, cause, {"archived": True}))
                continue
            decided = [r for r in history.revisions if r.version in versions[id] and _is_decision(r)]
            if decided:
                put = revised(history, clock, cause, {}, undoes=tuple(r.version for r in decided))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
                reworded |= {id} if any(r.cause.by.rewords for r in decided) else set()
        return reworded

    async def _done(
        self, scope: Scope, puts: list[PutRevision], clock: Clock, changed: list[Note], reworded: set[str]
    ) -> list[Op]:
        """Return all operations, with the jobs of the notes to link again; sets ``changed``."""
        last = {put.note.id: put.note for put in puts}
        changed[:] = sorted(last.values(), key=lambda note: note.seq)
        follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock, reworded)
        indexed = {put.note.id for put in puts if put.index is not None}
        for note in changed:
            if not note.archived and note.id not in indexed:
                follow += self._follow_ups.of_index(scope, note, clock.now, self._vectors.later)
        if await self._store.answer(scope, PREFERENCES):  # learned with the notes that are now in quarantine
            follow.append(PutAnswer(PREFERENCES, "", ()))
        return [*puts, *follow]


def _first_event(history: NoteHistory, principal: str) -> str | None:
    """Return the event of a note without merges and without changes by a principal; None for a derived note."""
    if history.base.kind is not Kind.EPISODIC:
        return None
    others = [r for r in history.revisions if r.principal != principal and r.cause.by != JobKind.MERGE]
    return fold(history.base, others)[0].event_ids[0]


def _decisions_of(history: NoteHistory) -> tuple[int, ...]:
    """Return the versions of a note's merges and links: in quarantine it supersedes and contradicts nothing.

    All versions with links, because a live one may have replaced another, which must not become live again.
    """
    linked = {revision.version for revision in history.revisions if revision.links}
    return tuple(sorted(linked.union(merge_versions(history))))


def _is_decision(revision: Revision) -> bool:
    return bool(revision.change or revision.links) and revision.cause.by not in {*BY_PEOPLE, CallKind.QUARANTINE}


def _merges_among(history: NoteHistory, lifted: Sequence[Revision]) -> set[int]:
    """Return the versions of merges that these revisions reverted; their other notes may have changed since."""
    undone = {version for revision in lifted for version in revision.undoes}
    return {r.version for r in history.revisions if r.version in undone and r.cause.by == JobKind.MERGE}
