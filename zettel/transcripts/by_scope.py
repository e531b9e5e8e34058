"""Scopes by rule: whose memory each event of an import goes into.

The rule sets the scope's user: to who said it, or to the place where it was said. What tells neither goes into the
scope of the import itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from zettel.model import Event, Scope

from .gaps import place_of

ScopeBy: TypeAlias = Literal["user", "channel"]

HELD = 5_000
"""Events that wait for more of their scope, so that a transaction has many: a few seconds' work, and at 5 KB each
25 MB."""
MOST_CHARACTERS = 500_000
"""Text of events that are stored together: on its way to the store it takes some hundred times its size in memory."""


class Taken(NamedTuple):
    """An event that is wanted, and whose it is by the rule: None without a rule, and where it tells nothing."""

    event: Event
    whose: str | None = None


def whose(event: Event, rule: ScopeBy | None, file: str) -> str | None:
    """The user whose memory an event is part of, as it was read: before silences make sessions.

    The place of a message is its channel, else its session, else the ``file`` it is in.
    """
    if rule is None:
        return None
    if rule == "user":
        return (event.role or "").strip() or None
    return place_of(event) or event.session or file


def scope_of(base: Scope, user: str | None) -> Scope:
    """The scope of an import, for one user."""
    return base if user is None else Scope(tenant=base.tenant, user=user, agent=base.agent)


class Waiting:
    """The events of one part that were read and not stored yet, by whose they are; in each scope in order."""

    def __init__(self, batch: int, held: int) -> None:
        """Those of one scope go in batches of ``batch``, or less when ``held`` wait in all."""
        self._batch = batch
        self._held = held
        self._events: dict[str | None, list[Event]] = {}

    def add(self, taken: list[Taken]) -> None:
        """Those that were read next."""
        for event, user in taken:
            self._events.setdefault(user, []).append(event)

    def due(self, *, all: bool = False) -> Iterator[tuple[str | None, list[Event]]]:
        """What is to be stored now; with ``all`` whatever waits."""
        waiting = sum(map(len, self._events.values()))
        for user, events in sorted(self._events.items(), key=lambda one: len(one[1]), reverse=True):
            if not all and len(events) < self._batch and waiting <= self._held:
                return
            del self._events[user]
            waiting -= len(events)
            yield from ((user, some) for some in in_batches(events, self._batch))


def in_batches(events: Sequence[Event], most: int) -> Iterator[list[Event]]:
    """Them in order, at most ``most`` together; a batch ends where its text comes to ``MOST_CHARACTERS``."""
    batch: list[Event] = []
    characters = 0
    for event in events:
        batch.append(event)
        characters += len(event.content)
        if len(batch) == most or characters >= MOST_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
