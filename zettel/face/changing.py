"""Changes that a person or an agent makes: each can be taken back, but to delete."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import Any

from zettel.arguments import link_type_of, require_id, require_one, require_reason, require_storable, whole_number
from zettel.face.opened import Opened
from zettel.model import Link, LinkType, Note, Scope

ERASE_PAGE = 500
"""Events destroyed in one transaction when a whole session or file is deleted."""
PURGE_PAUSES = (0.0, 0.05, 0.2, 0.75)
"""Seconds between attempts of ``delete_scope`` to get at pages that other readers still hold; then it is left to the
runner."""


class Changing(Opened):
    """What changes notes and what destroys them."""

    async def update(self, id: str, /, *, scope: Scope | None = None, **fields: Any) -> Note:
        """Set fields of a note, as a revision that can be taken back. Raises ``NotFound``, ``InvalidInput``."""
        engine, scope = await self._use(scope, id)
        note = await engine.editing.update(scope, id, fields)
        engine.loop.wake()
        return note

    async def link(
        self,
        source: str,
        target: str,
        type: LinkType | str = LinkType.RELATES,
        *,
        reason: str = "",
        scope: Scope | None = None,
    ) -> Link:
        """Link two notes, as a revision of the ``source`` that can be taken back: ``revert`` it to the version before.

        ``type``: it ``RELATES`` to the other, ``SUPERSEDES`` it (that holds no more from then on), or ``CONTRADICTS``
        it. Jobs do not say otherwise. Raises ``NotFound``, ``InvalidInput``.
        """
        from zettel.edit import LINKED_BY_HAND

        engine, scope = await self._use(scope, source, target)
        require_reason(reason)
        made = await engine.editing.link(scope, source, target, link_type_of(type, LINKED_BY_HAND), reason)
        engine.loop.wake()
        return made

    async def revert(self, id: str, version: int, *, scope: Scope | None = None) -> Note:
        """Bring a note back to a version it had. Raises ``NotFound``, ``InvalidInput``."""
        engine, scope = await self._use(scope, id)
        note = await engine.editing.revert(scope, id, whole_number("version", version, "version"))
        engine.loop.wake()
        return note

    async def take_back(self, id: str, *, scope: Scope | None = None) -> list[Note]:
        """Take back all that one note did to others, in one transaction; the notes that this changed, as they are now.

        Whatever jobs changed about other notes because of it no longer counts, and what was derived from it goes to
        the archive. The note itself and its own links stay, but a merge that it caused is taken apart. Each of these
        notes can be brought back by ``revert``; to run it again changes nothing. Raises ``NotFound``.
        """
        engine, scope = await self._use(scope, id)
        changed = await engine.taking_back.take_back(scope, id)
        engine.loop.wake()
        return changed

    async def archive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Put a note away: no search and no list shows it unless asked to, and nothing else about it changes.

        Raises ``NotFound``, and ``InvalidInput`` if it is away already.
        """
        engine, scope = await self._use(scope, id)
        return await engine.archiving.archive(scope, id)

    async def unarchive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Bring a note back that was put away or had faded; what a person brought back does not fade again.

        Raises ``NotFound``, and ``InvalidInput`` for a note that is not away, that was merged into another, or that a
        quarantine holds.
        """
        engine, scope = await self._use(scope, id)
        note = await engine.archiving.unarchive(scope, id)
        engine.finding.faded.forget(scope)
        engine.loop.wake()
        return note

    async def quarantine(self, id: str, reason: str = "", *, scope: Scope | None = None) -> list[Note]:
        """Take a note out of play, with all parts of its event, and take back all that rests on it, in one transaction.

        From then on only ``search(quarantined=True)`` finds it and no job looks at it. Notes made from it go to the
        archive, others fall back to what they were without it. Returns the notes that this changed, as they are now.
        Raises ``NotFound``, and ``InvalidInput`` if it is in quarantine already.
        """
        engine, scope = await self._use(scope, id)
        require_reason(reason)
        changed = await engine.quarantining.quarantine(scope, id, reason)
        engine.loop.wake()
        return changed

    async def release(self, id: str, *, scope: Scope | None = None) -> list[Note]:
        """Bring a note back from quarantine, with what that took back; the notes that this changed, as they are now.

        Raises ``NotFound``, and ``InvalidInput`` if it is not in quarantine.
        """
        engine, scope = await self._use(scope, id)
        changed = await engine.quarantining.release(scope, id)
        engine.loop.wake()
        return changed

    async def delete(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        session: str | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Destroy a note or an event, or all of a source file or a session, with everything derived from it.

        A ``source`` is a file by the path that it was imported under, where ``./chat.txt`` is ``chat.txt``.
        Returns how many notes went. Raises ``NotFound`` for an unknown id.
        """
        engine, scope = await self._use(scope)
        require_one("what to delete: an id, a source or a session", id, source, session)
        if id is not None:
            require_id(scope, id)
            gone = await engine.erasing.erase(scope, [id])
        else:
            gone = 0
            require_storable("source", source)
            require_storable("session", session)
            for file in (None,) if source is None else dict.fromkeys((source, str(PurePath(source)))):
                # By event, so that one whose newer wording came from elsewhere is found too.
                while events := await engine.store.events_from(scope, file, session, ERASE_PAGE):
                    # Somebody else may be at the same ones.
                    gone += await engine.erasing.erase(scope, events, gone_ok=True)
        engine.loop.wake()
        return gone

    async def delete_scope(self, *, scope: Scope | None = None) -> int:
        """Destroy all of a scope, with the tombstones of what was deleted from it before; how many notes went.

        Its last bytes leave the files at once, or as soon as no other reader holds them: ``flush`` waits for that.
        """
        engine, scope = await self._use(scope)
        gone = await engine.store.drop_scope(scope)
        for pause in PURGE_PAUSES:
            await asyncio.sleep(pause)
            if await engine.store.purge():
                return gone
        engine.loop.wake()
        return gone
