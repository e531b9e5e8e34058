"""Assignment of imported events to scopes (``scope_by``).

The rules ``user`` and ``channel`` set the user of the scope to the speaker or the channel of an event; what an agent
of mem0 stated belongs to its user. The rule ``project`` sets the agent to the project of a coding agent. Events without
one stay in the scope of the import.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from zettel.model import Event, Scope

from .formats.memory_dumps import MEM0_MEMORY, ORIGIN_KEY
from .projects import PROJECT, project_name
from .sessions import channel_of

ScopeBy: TypeAlias = Literal["user", "channel", "project"]

MAX_BUFFERED = 5_000
"""Events that the buffer contains at most, so that a transaction has many of one scope: 25 MB at 5 KB each."""
MAX_BATCH_CHARACTERS = 500_000
"""Characters of text in one batch: storing a text takes about a hundred times its size in memory."""


class ScopedEvent(NamedTuple):
    """A selected event and the user or agent of its scope: None without a rule, or if the event names none."""

    event: Event
    owner: str | None = None


def owner_of(event: Event, rule: ScopeBy | None, file: str) -> str | None:
    """Return the user or agent whose scope an event belongs to, before gaps split sessions.

    The rule ``channel`` takes the channel of a message, else its session, else its ``file``.
    """
    if rule is None:
        return None
    if rule == "project":
        folder = event.metadata.get(PROJECT)
        return project_name(folder) if isinstance(folder, str) and folder.strip() else None
    if rule == "user":
        written = event.metadata
        is_of_agent = written.get(ORIGIN_KEY) == MEM0_MEMORY and written.get("role") == "assistant"
        user = written.get("user_id") if is_of_agent else None
        return str(user or event.speaker or "").strip() or None
    return channel_of(event) or event.session or file


def part_of(rule: ScopeBy | None) -> Literal["user", "agent"]:
    """Return the part of the scope that a rule sets."""
    return "agent" if rule == "project" else "user"


def scope_of(base: Scope, owner: str | None, rule: ScopeBy | None = "user") -> Scope:
    """Return the scope of an import for one user or agent."""
    if owner is None:
        return base
    # Not model_copy, which would also copy the cached key of the scope.
    parts = {"tenant": base.tenant, "user": base.user, "agent": base.agent}
    return Scope(**{**parts, part_of(rule): owner})


class ScopeBuffer:
    """Buffers the events of one transcript part by user or agent, in order."""

    def __init__(self, batch: int, max_buffered: int) -> None:
        """Release batches of ``batch`` events per scope, or smaller ones above ``max_buffered`` events in all."""
        self._batch = batch
        self._max_buffered = max_buffered
        self._events: dict[str | None, list[Event]] = {}

    def add(self, events: list[ScopedEvent]) -> None:
        for event, owner in events:
            self._events.setdefault(owner, []).append(event)

    def due(self, *, all: bool = False) -> Iterator[tuple[str | None, list[Event]]]:
        """Yield the batches to store now; with ``all``, everything in the buffer."""
        waiting = sum(map(len, self._events.values()))
        for owner, events in sorted(self._events.items(), key=lambda item: len(item[1]), reverse=True):
            if not all and len(events) < self._batch and waiting <= self._max_buffered:
                return
            del self._events[owner]
            waiting -= len(events)
            yield from ((owner, part) for part in in_batches(events, self._batch))


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
