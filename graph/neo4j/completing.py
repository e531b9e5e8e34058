"""What ``candidates.cypher`` leaves out: what its notes are, and what binds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zettel.graph.neo4j.candidates import Bound, Told, binding, flags, moment_at, replaced, told_of
from zettel.graph.neo4j.connection import Connection
from zettel.query import Query


async def completed(
    connection: Connection, query: Query, answer: Mapping[str, Any]
) -> tuple[dict[str, Told], Bound]:
    """The notes of an answer, by id, but for those that went meanwhile, and what binds them."""
    found = answer["columns"]["id"]
    ((told,),) = await connection.read("notes_told", scope=query.scope.key, space=query.space, ids=found)
    notes = {note.id: note for note in told_of(told)}
    names, ids = binding(answer, notes, query), replaced(notes)
    if not names and not ids:
        return notes, Bound({}, {})
    ((holders, ends),) = await connection.read(
        "binding",
        *flags(query, indexed=False, searching=False),
        scope=query.scope.key,
        names=names,
        replaced=ids,
        moment=None if query.as_of is None else moment_at(query.as_of),
    )
    counted: dict[str, int] = dict(holders)
    return notes, Bound({name: counted.get(name, 0) for name in names}, dict(ends))
