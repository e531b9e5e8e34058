"""The archive: where notes are kept that no search shows, and how they come back from there.

What is archived is a matter of the note's state, and so of its revisions: to put a note away adds one, to bring it back
takes that one back.
"""

from __future__ import annotations

from zettel.batch import PutRevision
from zettel.commit import Clock
from zettel.edit import Editing
from zettel.errors import InvalidInput
from zettel.fold import fold, live_revisions
from zettel.model import Cause, Note, Scope
from zettel.ports import NoteHistory
from zettel.quarantine import QUARANTINE
from zettel.revise import BY_HAND, revised

RECALL = Cause(by="search")
"""A question named what only a faded note says."""


class Archiving:
    """Puts single notes of a store away and brings them back."""

    def __init__(self, editing: Editing) -> None:
        self._editing = editing

    async def archive(self, scope: Scope, note_id: str) -> Note:
        """Put a note away. Raises ``NotFound``, and ``InvalidInput`` if it is away already."""

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            if fold(*history)[0].archived:
                raise InvalidInput(f"{note_id} is in the archive already")
            return revised(history, clock, BY_HAND, {"archived": True})

        return await self._editing.revise(scope, note_id, revise)

    async def unarchive(self, scope: Scope, note_id: str, cause: Cause = BY_HAND) -> Note:
        """Bring a note back. Raises ``NotFound``, and ``InvalidInput`` for one that is not away, or cannot come back
        alone."""

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            note, _ = fold(*history)
            if not note.archived:
                raise InvalidInput(f"{note_id} is not in the archive")
            if note.merged_into is not None:
                raise InvalidInput(f"{note_id} was merged into {note.merged_into}: revert it to part them")
            away = [r for r in live_revisions(history.revisions) if r.change.get("archived")]
            if held := next((r for r in away if r.cause.by == QUARANTINE), None):
                raise InvalidInput(f"{note_id} is away because {held.cause.note} is in quarantine: release that")
            return revised(history, clock, cause, {}, undoes=tuple(r.version for r in away))

        return await self._editing.revise(scope, note_id, revise)

    async def recall(self, scope: Scope, note_id: str) -> Note:
        """Bring back a note because a question named it. Raises as ``unarchive``."""
        return await self.unarchive(scope, note_id, RECALL)
