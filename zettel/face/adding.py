"""Remembering events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zettel.arguments import Time, checked, head_of, several
from zettel.face.upkeep import Upkeep
from zettel.identity import Ordinals
from zettel.model import Event, OnConflict, Remembered, Scope


class Adding(Upkeep):
    """What brings events in."""

    async def add(
        self,
        content: str = "",
        *,
        id: str | None = None,
        title: str | None = None,
        role: str | None = None,
        occurred_at: Time | None = None,
        session: str | None = None,
        source: Any = None,
        payload: Any = None,
        metadata: Mapping[str, Any] | None = None,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> str:
        """Remember one event and return the id of its (head) note; from then on it is durable and searchable.

        ``wait`` also does the jobs that follow, with all that the store has pending (of one scope, if given). Raises
        ``InvalidEvent``, ``IdentityConflict``, ``WasDeleted``; with ``wait`` also ``JobFailed``: the event is stored
        all the same, so do not add it again but call ``retry_jobs``.
        """
        fields: dict[str, Any] = {
            "content": content, "id": id, "title": title, "role": role, "occurred_at": occurred_at,
            "session": session, "source": source, "payload": payload, "metadata": {} if metadata is None else metadata,
        }  # fmt: skip
        (added,) = await self.add_many([fields], on_conflict=on_conflict, wait=wait, scope=scope)
        return added

    async def add_many(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> list[str]:
        """Remember events in one transaction; the ids of their head notes, in order.

        An event that was deleted from this scope before is not revived: ``WasDeleted`` names it, after the others
        were stored; ``remember`` reports it instead of raising. Raises what ``add`` raises: before anything is stored
        ``InvalidEvent`` and ``IdentityConflict``, after it ``WasDeleted`` and, with ``wait``, ``JobFailed``.
        """
        accepted = [checked(event) for event in several("events", events, "events")]
        done = await self.remember(accepted, on_conflict=on_conflict, scope=scope)
        if wait:
            await self.flush(scope=scope or self.scope)
        return [head_of(event, outcome) for event, outcome in zip(accepted, done, strict=True)]

    async def remember(
        self,
        events: Sequence[Event],
        *,
        on_conflict: OnConflict = "error",
        ordinals: Ordinals | None = None,
        scope: Scope | None = None,
    ) -> list[Remembered]:
        """Like ``add_many``, but tells of each event what became of it: what an importer needs.

        ``ordinals`` counts identical events over several calls of one file. Raises ``InvalidEvent``,
        ``IdentityConflict``.
        """
        engine, scope = await self._use(scope)
        events = [checked(event) for event in several("events", events, "events")]
        done = await engine.remembering.remember(scope, events, on_conflict, ordinals or Ordinals())
        engine.loop.wake()
        return done
