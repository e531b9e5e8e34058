"""What a search reads of notes whatever it asks, held in memory: most of it is the same search after search.

Each answer of the database says when every note last ``changed``, in the scope's count of ``changes``; what is held of
another state is read again. So nothing is answered that the database would not answer, whoever writes to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zettel.graph.neo4j.candidates import Bound, Told, binding, flags, moment_at, replaced, told_of
from zettel.graph.neo4j.connection import Connection
from zettel.query import Query

MOST_NOTES = 65_536
"""Notes held, of all scopes together: some 80 MB. Those of the scopes that were not asked for longest go first."""
HELD_SCOPES = 256
"""Scopes of which notes are held."""


@dataclass
class Held:
    """What is known of a scope that was ``born`` then, as it stood at its count ``changes``."""

    born: int
    changes: int = -1
    notes: dict[str, tuple[int, Told]] = field(default_factory=dict)
    """By id: when it last changed, and what it was."""
    holders: dict[str, int] = field(default_factory=dict)
    """How many notes hold a Term at this count."""


class HeldNotes:
    """The notes that searches found."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[tuple[str, int], Held] = {}

    def forget(self) -> None:
        """Let go of all."""
        self._held.clear()

    async def completed(self, query: Query, answer: Mapping[str, Any]) -> tuple[dict[str, Told], Bound]:
        """What an answer of ``candidates.cypher`` leaves out: what its notes are, by id, but for those that went
        meanwhile, and what binds them."""
        held = self._held.pop((query.scope.key, query.space), None)
        if held is None or held.born != answer["born"] or held.changes < answer["floor"]:
            held = Held(answer["born"])  # something went, and nothing tells what
        # Who reads while a batch is being written may see a part of it: that is not to be kept. Once a search has seen
        # it, it is as old as a round trip.
        quiet = held.changes == answer["changes"]
        if held.changes < answer["changes"]:
            held.changes = answer["changes"]
            held.holders = {}
        self._held[query.scope.key, query.space] = held  # last: most recently used
        notes = await self._notes(query, answer["columns"], held, answer["changes"] - (not quiet))
        bound = await self._bound(query, binding(answer, notes, query), replaced(notes), held, quiet)
        self._shrink()
        return notes, bound

    async def _notes(
        self, query: Query, columns: Mapping[str, Sequence[Any]], held: Held, written: int
    ) -> dict[str, Told]:
        asked = dict(zip(columns["id"], columns["changed"], strict=True))
        found = {id: held.notes[id][1] for id in asked if id in held.notes and held.notes[id][0] == asked[id]}
        missing = [id for id in asked if id not in found]
        if missing:
            ((told,),) = await self._connection.read(
                "notes_told", scope=query.scope.key, space=query.space, ids=missing
            )
            for note in told_of(told):
                found[note.id] = note
                if asked[note.id] <= written:
                    held.notes[note.id] = (asked[note.id], note)
        return found

    async def _bound(
        self, query: Query, names: Sequence[str], ids: Sequence[str], held: Held, quiet: bool
    ) -> Bound:
        known = held.holders if query.as_of is None else {}
        missing = [name for name in names if name not in known]
        if not missing and not ids:
            return Bound({name: known[name] for name in names}, {})
        changes = held.changes
        ((holders, ends),) = await self._connection.read(
            "binding",
            *flags(query, indexed=False, searching=False),
            scope=query.scope.key,
            names=missing,
            replaced=ids,
            moment=None if query.as_of is None else moment_at(query.as_of),
        )
        counted: dict[str, int] = dict(holders)
        found = {name: (known if name in known else counted).get(name, 0) for name in names}
        if query.as_of is None and quiet and held.changes == changes:
            held.holders |= found
        return Bound(found, dict(ends))

    def _shrink(self) -> None:
        """Let go of what is too much: of whole scopes, and of the last one of the notes read first."""
        while len(self._held) > 1 and (len(self._held) > HELD_SCOPES or self._size() > MOST_NOTES):
            del self._held[next(iter(self._held))]
        for held in self._held.values():
            while len(held.notes) > MOST_NOTES:
                del held.notes[next(iter(held.notes))]

    def _size(self) -> int:
        return sum(len(held.notes) for held in self._held.values())
