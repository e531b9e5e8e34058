"""Archives and restores single notes.

Archiving adds a revision, and restoring reverts it. Searches do not show archived notes unless requested.
"""

from __future__ import annotations

from zettel.core.commit import Clock
from zettel.core.decisions import BY_HAND
from zettel.core.edit import NoteEditor
from zettel.core.fold import live_revisions, state_of
from zettel.core.revise import restored, revised
from zettel.errors import InvalidInput
from zettel.model import CallKind, Cause, Note, Scope
from zettel.ports import NoteHistory
from zettel.ports.operations import PutRevision

RECALL = Cause(by=CallKind.SEARCH)
"""A question named something that only a decayed note contains."""


class Archiver:
    """Archives and restores notes of a store."""

    def __init__(self, editing: NoteEditor) -> None:
        self._editing = editing

    async def archive(self, scope: Scope, note_id: str) -> Note:
        """Archive a note. Raises ``NotFound``, and ``InvalidInput`` if it is archived already."""

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            if state_of(history)[0].archived:
                raise InvalidInput(f"{note_id} is in the archive already")
            return revised(history, clock, BY_HAND, {"archived": True})

        return await self._editing.revise(scope, note_id, revise)

    async def unarchive(self, scope: Scope, note_id: str, cause: Cause = BY_HAND) -> Note:
        """Restore a note from the archive.

        Raises ``NotFound``, and ``InvalidInput`` if it is not archived, was merged, or depends on a quarantine.
        """

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            note, _ = state_of(history)
            if not note.archived:
                raise InvalidInput(f"{note_id} is not in the archive")
            if note.merged_into is not None:
                raise InvalidInput(f"{note_id} was merged into {note.merged_into}: revert it to separate them")
            archivings = [r for r in live_revisions(history.revisions) if r.change.get("archived")]
            if quarantine := next((r for r in archivings if r.cause.by == CallKind.QUARANTINE), None):
                source = quarantine.cause.principal or quarantine.cause.note
                raise InvalidInput(f"{note_id} is archived because {source} is in quarantine: release {source}")
            return restored(history, clock, cause, tuple(r.version for r in archivings))

        return await self._editing.revise(scope, note_id, revise)

    async def recall(self, scope: Scope, note_id: str) -> Note:
        """Restore a note because a question named it. Raises as ``unarchive``."""
        return await self.unarchive(scope, note_id, RECALL)
