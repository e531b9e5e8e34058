"""Assignment of imported events to scopes (``scope_by``).

The rule sets the user of the scope to the speaker or the channel of an event. Events without one stay in the scope
of the import.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from zettel.model import Event, Scope

from .sessions import channel_of

ScopeBy: TypeAlias = Literal["user", "channel"]

MAX_BUFFERED = 5_000
"""Events that the buffer contains at most, so that a transaction has many of one scope: 25 MB at 5 KB each."""
MAX_BATCH_CHARACTERS = 500_000
"""Characters of text in one batch: storing a text takes about a hundred times its size in memory."""


class ScopedEvent(NamedTuple):
    """A selected event and the user of its scope: None without a rule, or if the event names no user."""

    event: Event
    user_of: str | None = None


def user_of(event: Event, rule: ScopeBy | None, file: str) -> str | None:
    """Return the user whose scope an event belongs to, before gaps split sessions.

    The rule ``channel`` takes the channel of a message, else its session, else its ``file``.
    """
    if rule is None:
        return None
    if rule == "user":
        return (event.speaker or "").strip() or None
    return channel_of(event) or event.session or file


def scope_of(base: Scope, user: str | None) -> Scope:
    """Return the scope of an import for one user."""
    return base if user is None else Scope(tenant=base.tenant, user=user, agent=base.agent)


class ScopeBuffer:
    """Buffers the events of one transcript part by user, in order."""

    def __init__(self, batch: int, max_buffered: int) -> None:
        """Release batches of ``batch`` events per scope, or smaller ones above ``max_buffered`` events in all."""
        self._batch = batch
        self._max_buffered = max_buffered
        self._events: dict[str | None, list[Event]] = {}

    def add(self, events: list[ScopedEvent]) -> None:
        for event, user in events:
            self._events.setdefault(user, []).append(event)

    def due(self, *, all: bool = False) -> Iterator[tuple[str | None, list[Event]]]:
        """Yield the batches to store now; with ``all``, everything in the buffer."""
        waiting = sum(map(len, self._events.values()))
        for user, events in sorted(self._events.items(), key=lambda item: len(item[1]), reverse=True):
            if not all and len(events) < self._batch and waiting <= self._max_buffered:
                return
            del self._events[user]
            waiting -= len(events)
            yield from ((user, part) for part in in_batches(events, self._batch))


def in_batches(events: Sequence[Event], most: int) -> Iterator[list[Event]]:
    """Yield batches in order of at most ``most`` events and about ``MAX_BATCH_CHARACTERS`` characters."""
    batch: list[Event] = []
    characters = 0
    for event in events:
        batch.append(event)
        characters += len(event.content)
        if len(batch) == most or characters >= MAX_BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
