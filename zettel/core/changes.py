"""The changes of a batch, for those who follow a memory: the notes that it adds, changes and deletes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, Protocol

from zettel.model import Note, Scope
from zettel.ports.operations import EraseEvents, EraseNotes, Op, PutNote, PutRevision

Event = Literal["added", "changed", "deleted"]
Subject = Literal["note", "scope"]


class Change(NamedTuple):
    """One kind of change in a batch.

    ``notes`` are the new states of added and changed notes, ``ids`` the ids of all these notes, and ``event_ids`` the
    deleted events. A change of a whole ``scope`` names no notes.
    """

    event: Event
    ids: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    event_ids: tuple[str, ...] = ()
    subject: Subject = "note"


class ChangeListener(Protocol):
    """Learns of each batch before the store writes it."""

    def expecting(self, scope: Scope, changes: Sequence[Change]) -> AbstractAsyncContextManager[None]:
        """Return the context in which the store writes the changes.

        An error on entry prevents the write. ``Conflict`` in the block means that nothing was written.
        """
        ...


RESTORED = (Change("added", subject="scope"),)
"""The changes of a scope that was restored from a memory file."""
DELETED = (Change("deleted", subject="scope"),)
"""The changes of a scope that was deleted as a whole."""


def changes_of(ops: Iterable[Op]) -> list[Change]:
    """Return the changes of a batch, at most one of each kind of event."""
    added: dict[str, Note] = {}
    changed: dict[str, Note] = {}
    erased: list[str] = []
    events: list[str] = []
    for op in ops:
        if isinstance(op, PutNote):
            added[op.note.id] = op.note
        elif isinstance(op, PutRevision):
            (added if op.note.id in added else changed)[op.note.id] = op.note
        elif isinstance(op, EraseNotes):
            erased += op.notes
        elif isinstance(op, EraseEvents):
            events += op.events
    changes: list[Change] = []
    if added:
        changes.append(Change("added", tuple(added), tuple(added.values())))
    if changed:
        changes.append(Change("changed", tuple(changed), tuple(changed.values())))
    if erased or events:
        changes.append(Change("deleted", tuple(erased), event_ids=tuple(events)))
    return changes


# ---------------------------------------------------------------------------------------------- ids of one operation

_TOUCHED: ContextVar[dict[str, None] | None] = ContextVar("zettel.touched", default=None)


@contextmanager
def touched_ids() -> Iterator[dict[str, None]]:
    """Collect the ids that the block reads and writes, in order."""
    ids: dict[str, None] = {}
    token = _TOUCHED.set(ids)
    try:
        yield ids
    finally:
        _TOUCHED.reset(token)


def touch(ids: Iterable[str]) -> None:
    """Add ids to those of the running operation, if somebody collects them."""
    collected = _TOUCHED.get()
    if collected is not None:
        collected.update(dict.fromkeys(ids))


def is_collecting() -> bool:
    """Return whether somebody collects the ids of the running operation."""
    return _TOUCHED.get() is not None
