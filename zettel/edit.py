"""Edit: what a person changes about a note, how they link it, and what they take back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import ValidationError

from zettel.annotate.drafts import annotate
from zettel.annotate.instructions import flags_of, trust_of
from zettel.arguments import first_complaint, require_metadata, require_size, require_storable
from zettel.batch import Op, PutRevision
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import InvalidInput, NotFound
from zettel.fold import fold, live_versions
from zettel.jobs.queue import FollowUps
from zettel.merged import followers
from zettel.model import EDITABLE, Cause, Input, Link, LinkType, Note, Revision, Scope
from zettel.ports import Annotator, GraphStore, NoteHistory, Passage, ScopeState
from zettel.reindex import reindexed
from zettel.revise import BY_HAND, revised

Revise = Callable[[NoteHistory, Clock], Awaitable[PutRevision]]

LINKED_BY_HAND = (LinkType.RELATES, LinkType.SUPERSEDES, LinkType.CONTRADICTS)
"""What a person may say of two notes; of the others, MENTIONS follows from the words and DERIVED_FROM from a job."""


class Editing:
    """Changes notes of a store, one revision at a time."""

    def __init__(
        self, store: GraphStore, commits: Commits, annotator: Annotator, vectors: Vectors, follow_ups: FollowUps
    ) -> None:
        self._store = store
        self._commits = commits
        self._annotator = annotator
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def update(self, scope: Scope, note_id: str, fields: Mapping[str, Any]) -> Note:
        """Set fields of a note. New content is annotated anew where nobody wrote the annotation.

        Raises ``NotFound``, and ``InvalidInput`` for a field that cannot be set or a value that it cannot have.
        """
        unknown = sorted(set(fields) - set(EDITABLE))
        if not fields:
            raise InvalidInput(f"name what to set: a note has {', '.join(EDITABLE)}")
        if unknown:
            raise InvalidInput(f"{', '.join(unknown)} cannot be set: a note has {', '.join(EDITABLE)}")

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            before, _ = fold(history.base, history.revisions)
            change = _valid(before, fields)
            extracted: dict[str, Any] = {}
            if change.keys() & {"content", "title"}:
                extracted = await self._extract(scope, before.model_copy(update=change), change)
            return revised(
                history,
                clock,
                BY_HAND,
                {**extracted, **change},
                extracted=tuple(extracted),
                inputs=(Input(note_id, before.version),),
            )

        return await self.revise(scope, note_id, revise)

    async def link(self, scope: Scope, source: str, target: str, kind: LinkType, reason: str) -> Link:
        """Link two notes by hand, as a revision of the ``source``; one that they have by that type is said anew.

        Raises ``NotFound``, and ``InvalidInput`` for a note that is put away, or is to be linked to itself.
        """
        if source == target:
            raise InvalidInput(f"{source} cannot be linked to itself: name two notes")
        made: list[Link] = []

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            notes = await self._store.notes(scope, [source, target])
            if target not in notes:
                raise NotFound(scope, [target])
            for note in notes.values():
                if note.archived:
                    raise InvalidInput(f"{note.id} is in the archive, or was merged: link what is not put away")
            link = Link(source=source, target=target, type=kind, reason=reason, recorded_at=clock.recorded_at)
            made[:] = [link]
            inputs = tuple(Input(id, notes[id].version) for id in sorted(notes))
            return revised(history, clock, BY_HAND, {}, links=(link,), inputs=inputs)

        await self.revise(scope, source, revise)
        return made[0]

    async def revert(self, scope: Scope, note_id: str, version: int) -> Note:
        """Bring a note back to what it was at ``version`` by taking back every later revision.

        Notes that were merged with it since, or no longer are, follow.
        Raises ``NotFound``, and ``InvalidInput`` for a version that the note never had.
        """

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            versions = [history.base.version, *(revision.version for revision in history.revisions)]
            if version not in versions:
                raise InvalidInput(f"{note_id} has no version {version}: it has {versions[0]} to {versions[-1]}")
            later = tuple(number for number in versions if number > version)
            return revised(history, clock, BY_HAND, {}, undoes=later)

        return await self.revise(scope, note_id, revise)

    async def history(self, scope: Scope, note_id: str) -> list[Revision]:
        """Every version of a note, the first with the fields it began with; whether each still counts."""
        histories = await self._store.histories(scope, [note_id])
        if note_id not in histories:
            raise NotFound(scope, [note_id])
        base, revisions = histories[note_id]
        live = live_versions(revisions)
        began = base.model_dump(mode="json", include=set(EDITABLE))
        first = Revision(
            note=note_id,
            version=base.version,
            seq=base.seq,
            recorded_at=base.recorded_at,
            change=began,
            extracted=tuple(name for name in ("context", "caption", "keywords", "tags")),
            cause=Cause(by="add"),
        )
        return [first, *(r.model_copy(update={"live": r.version in live}) for r in revisions)]

    async def revise(self, scope: Scope, note_id: str, revise: Revise) -> Note:
        """Add one revision to a note, and what follows from it. Raises ``NotFound``, and what ``revise`` raises."""
        done: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            histories = await self._store.histories(scope, [note_id])
            if note_id not in histories:
                raise NotFound(scope, [note_id])
            put = await revise(histories[note_id], clock)
            done[:] = [put.note]
            puts = [put, *await followers(self._store, scope, histories[note_id], put, clock)]
            reworded = {note_id} if put.revision.change.keys() & {"content", "title"} else ()
            follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock, reworded)
            return [*puts, *follow]

        await self._commits.commit(scope, plan)
        return done[0]

    async def _extract(self, scope: Scope, note: Note, change: Mapping[str, Any]) -> dict[str, Any]:
        passage = Passage(note.content, note.title, note.role, note.occurred_at)
        (made,) = await annotate(self._store, scope, self._annotator, [passage])
        flags = flags_of(note.role, note.title, note.content)
        told = {**made._asdict(), "flags": flags, "trust": trust_of(note.role, flags)}
        return {name: value for name, value in told.items() if name not in (*note.authored, *change)}


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
    require_metadata(after.metadata)
    if not after.content.strip():
        raise InvalidInput("a note must say something: content is empty")
    return {name: getattr(after, name) for name in fields}
