"""Changes that a person makes to a note: update and revert; and its history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from zettel.core.arguments import first_complaint, require_metadata, require_size, require_storable
from zettel.core.authority import FULL_TRUST, is_on_probation, require_full_trust
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import BY_HAND
from zettel.core.drafts import annotate
from zettel.core.fold import fold, live_versions, state_of
from zettel.core.follow_ups import FollowUps, expiry_jobs
from zettel.core.merges import followers
from zettel.core.present import has_expired, is_active
from zettel.core.privacy import SecretGuard, report
from zettel.core.reindex import reindexed
from zettel.core.revise import restored, revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.errors import InvalidInput, NotFound
from zettel.model import EDITABLE, CallKind, Cause, Input, Kind, Note, Revision, Scope, Trait, fields_with
from zettel.ports import Annotator, GraphStore, NoteHistory, Passage, ScopeState
from zettel.ports.operations import Op, PutRevision
from zettel.text.instructions import FLAGGED_FACTOR, authored_flags, lowered, trust_of

Revise = Callable[[NoteHistory, Clock], Awaitable[PutRevision]]
ReviseInSteps = Callable[[NoteHistory, Clock], Awaitable[Sequence[PutRevision]]]


class NoteEditor:
    """Changes notes of a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        annotator: Annotator,
        vectors: Vectors,
        follow_ups: FollowUps,
        guard: SecretGuard,
    ) -> None:
        self._store = store
        self._commits = commits
        self._annotator = annotator
        self._vectors = vectors
        self._follow_ups = follow_ups
        self._guard = guard

    async def update(self, scope: Scope, note_id: str, fields: Mapping[str, Any], cause: Cause = BY_HAND) -> Note:
        """Set fields of a note. New content is annotated again, except fields that a person or model wrote.

        Raises ``NotFound``, ``SecretRefused``, and ``InvalidInput`` for a field that cannot be set or a value that it
        cannot have.
        """
        unknown = sorted(set(fields) - set(EDITABLE))
        if not fields:
            raise InvalidInput(f"name what to set: a note has {', '.join(EDITABLE)}")
        if unknown:
            raise InvalidInput(f"{', '.join(unknown)} cannot be set: a note has {', '.join(EDITABLE)}")
        fields, kinds = self._guard.fields(fields)
        report(self._guard, kinds)

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            before, _ = fold(history.base, history.revisions)
            change = _valid(before, fields)
            extracted: dict[str, Any] = {}
            if change.keys() & {"content", "title"}:
                extracted = await self._extract(scope, before.model_copy(update=change), change)
            return revised(
                history,
                clock,
                cause,
                {**extracted, **change},
                extracted=tuple(extracted),
                inputs=(Input(note_id, before.version),),
            )

        return await self.revise(scope, note_id, revise, since=None)

    async def revert(self, scope: Scope, note_id: str, version: int) -> Note:
        """Restore a note's state at ``version`` by reverting every later revision.

        Merges that this undoes or redoes are updated in the other notes. Raises ``NotFound``, and ``InvalidInput``
        for an unknown version.
        """

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            versions = [history.base.version, *(revision.version for revision in history.revisions)]
            if version not in versions:
                raise InvalidInput(f"{note_id} has no version {version}: it has {versions[0]} to {versions[-1]}")
            later = tuple(number for number in versions if number > version)
            return restored(history, clock, BY_HAND, later)

        return await self.revise(scope, note_id, revise, since=version)

    async def confirm(self, scope: Scope, note_id: str) -> list[Note]:
        """End the probation of a note and of the other parts of its event: it gets the trust of its role, and no flags.

        Raises ``NotFound``, ``PermissionDenied`` below full trust, and ``InvalidInput`` if it is not on probation.
        """
        require_full_trust("confirms notes")

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            note, _ = state_of(history)
            change = {"ceiling": FULL_TRUST, "flags": (), "trust": trust_of(note.role, ())}
            return revised(history, clock, BY_HAND, change, inputs=(Input(note.id, note.version),))

        notes = await self._store.notes(scope, [note_id])
        if note_id not in notes:
            raise NotFound(scope, [note_id])
        if not is_on_probation(notes[note_id]):
            raise InvalidInput(f"{note_id} is not on probation: `zettel review` lists the notes that wait")
        events = notes[note_id].event_ids
        related = await self._store.notes(scope, await self._store.notes_of(scope, events))
        is_part = notes[note_id].kind is Kind.EPISODIC
        waiting = [note for note in related.values() if is_on_probation(note) and note.event_ids == events]
        parts = [note for note in waiting if note.id == note_id or (is_part and note.kind is Kind.EPISODIC)]
        return [await self.revise(scope, part.id, revise) for part in sorted(parts, key=lambda part: part.part)]

    async def history(self, scope: Scope, note_id: str) -> list[Revision]:
        """Return every version of a note, the first with its initial fields, and whether each is live."""
        histories = await self._store.histories(scope, [note_id])
        if note_id not in histories:
            raise NotFound(scope, [note_id])
        base, revisions = histories[note_id].base, histories[note_id].revisions
        live = live_versions(revisions)
        initial = base.model_dump(mode="json", include=set(EDITABLE))
        first = Revision(
            note=note_id,
            version=base.version,
            seq=base.seq,
            recorded_at=base.recorded_at,
            change=initial,
            extracted=fields_with(Trait.EXTRACTED),
            cause=Cause(by=CallKind.ADD),
        )
        return [first, *(r.model_copy(update={"live": r.version in live}) for r in revisions)]

    async def revise(self, scope: Scope, note_id: str, revise: Revise, since: int | None = 1) -> Note:
        """Add one revision to a note, as :meth:`revise_in_steps` does."""

        async def once(history: NoteHistory, clock: Clock) -> Sequence[PutRevision]:
            return [await revise(history, clock)]

        return await self.revise_in_steps(scope, note_id, once, since)

    async def revise_in_steps(
        self, scope: Scope, note_id: str, revise: ReviseInSteps, since: int | None = 1
    ) -> Note:
        """Add revisions to a note, each to the one before, with their follow-ups, in one transaction.

        ``revise`` gets a history that is complete from version ``since`` on; with None its state is enough. Raises
        ``NotFound``, and what ``revise`` raises.
        """
        done: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            histories = await self._store.recent(scope, [note_id])
            if note_id not in histories:
                raise NotFound(scope, [note_id])
            if since is not None and since < histories[note_id].since:
                histories = Rows(await self._store.histories(scope, [note_id]))
            history, steps = histories[note_id], await revise(histories[note_id], clock)
            done[:] = [steps[-1].note]
            puts: list[PutRevision] = []
            for put in steps:
                puts += [put, *await followers(self._store, scope, history, put, clock)]
                history = history.then(put.revision)
            is_reworded = any(put.revision.change.keys() & {"content", "title"} for put in steps)
            reworded = {note_id} if is_reworded else ()
            follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock, reworded)
            before, _ = state_of(histories[note_id])
            if has_expired(before) and is_active(done[0]) and not is_reworded:  # jobs left it out
                follow += self._follow_ups.of(scope, done[0], clock.now, embeds=False)
            return [*puts, *follow, *expiry_jobs(scope, done)]

        await self._commits.commit(scope, plan)
        return done[0]

    async def _extract(self, scope: Scope, note: Note, change: Mapping[str, Any]) -> dict[str, Any]:
        passage = Passage(note.content, note.title, note.speaker, note.occurred_at)
        (made,) = await annotate(self._store, scope, self._annotator, [passage])
        flags = authored_flags(note)
        # A derived note has no role: new words do not raise it above its sources.
        unflagged = min(note.trust / FLAGGED_FACTOR, FULL_TRUST) if note.flags else note.trust
        extracted = {**made._asdict(), "flags": flags, "trust": lowered(unflagged, flags)}
        return {name: value for name, value in extracted.items() if name not in (*note.authored, *change)}


def _valid(before: Note, fields: Mapping[str, Any]) -> dict[str, Any]:
    try:
        after = Note.model_validate(before.model_dump() | dict(fields))
    except ValidationError as error:
        raise InvalidInput(f"the note cannot be changed: {first_complaint(error)}") from None
    for name in fields:
        value = getattr(after, name)
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                require_storable(name, text)
                require_size(text, name)
    if after.valid_from and after.valid_to and after.valid_to < after.valid_from:
        raise InvalidInput(f"valid_to={after.valid_to} is before valid_from={after.valid_from}")
    require_metadata(after.metadata)
    if not after.content.strip():
        raise InvalidInput("content is empty: a note needs a text")
    return {name: getattr(after, name) for name in fields}
