"""Streaming a whole scope out of the file and restoring it."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.bodies import read_body, read_note
from zettel.graph.embedded import feedback, jobs, maintenance
from zettel.graph.embedded.connections import Connections
from zettel.graph.embedded.prepared import prepare
from zettel.graph.embedded.reads import link_of
from zettel.graph.embedded.scopes import advance, claim_restored, end_restore, find_scope, restored_rows, scope_state
from zettel.graph.embedded.writes import BatchWriter
from zettel.graph.keys import Keys
from zettel.model import EventRecord, Job, JobState, Link, Revision, Scope
from zettel.ports import NoteRecord
from zettel.ports.operations import (
    Batch,
    EndRestore,
    PutEvent,
    PutJob,
    PutMention,
    PutNoteUse,
    PutTombstones,
    RestoreLinks,
)

if TYPE_CHECKING:
    from zettel.ports.query import Floats
    from zettel.ports.store import ScopeRecord

PAGE = 256
"""Records fetched at once: about 500 KB with their vectors."""


def pages(connections: Connections, scope: Scope) -> Generator[list[ScopeRecord], None, None]:
    """Yield all of a scope, in the state of the first page. It occupies a reader until the last page."""
    with connections.read() as sql:
        row = find_scope(sql, scope)
        if row is None:
            return
        yield [scope_state(sql, row)]
        yield from _events(sql, row.number)
        ids = sql.execute("SELECT number FROM notes WHERE scope = ? ORDER BY seq, number", (row.number,))
        numbers = array("q", (number for (number,) in ids))  # 8 bytes a note, whatever its texts take
        some = [numbers[start : start + PAGE].tolist() for start in range(0, len(numbers), PAGE)]
        yield from (_notes(sql, page) for page in some)
        yield from (_revision_links(sql, page) for page in some)
        yield from (_mentions(sql, page) for page in some)
        yield from _tombstones(sql, row.number)
        yield [PutNoteUse(note, use) for note, use in feedback.all_used(sql, row.number)]
        yield [PutJob(_unclaimed(job)) for job in jobs.listed(sql, row.number, None)]


def restore(connections: Connections, batch: Batch, keys: Keys) -> None:
    """Write one batch of a restore. Raises ``Conflict`` if the batches before it are missing."""
    assert batch.restore is not None
    operations = prepare(batch, keys)
    with connections.write() as sql:
        row = claim_restored(sql, batch.scope, batch.expects, batch.restore)
        writer = BatchWriter(sql, row.number, row.changed + 1, keys)
        writer.write(operations)
        advance(sql, row, batch.seq, writer.recorded_at)
        if any(isinstance(op, EndRestore) for op in batch.ops):
            end_restore(sql, batch.scope, row.number)


def abandon(sql: sqlite3.Connection, scope: Scope) -> None:
    """Destroy the data of restores of a scope that did not complete."""
    for number in restored_rows(sql, scope):
        maintenance.drop_scope(sql, number)


def _events(sql: sqlite3.Connection, scope: int) -> Iterator[list[ScopeRecord]]:
    rows = sql.execute("SELECT body, identity FROM events WHERE scope = ? ORDER BY seq", (scope,))
    while page := rows.fetchmany(PAGE):
        yield [PutEvent(read_body(EventRecord, body), identity) for body, identity in page]


def _notes(sql: sqlite3.Connection, numbers: list[int]) -> list[ScopeRecord]:
    wanted = json.dumps(numbers)
    bases = dict(
        sql.execute(
            "SELECT note, COALESCE(base, body) FROM texts WHERE note IN (SELECT value FROM json_each(?))", (wanted,)
        ).fetchall()
    )
    revisions: dict[int, list[Revision]] = defaultdict(list)
    for note, body in sql.execute(
        "SELECT note, body FROM revisions WHERE note IN (SELECT value FROM json_each(?)) ORDER BY note, seq", (wanted,)
    ):
        revisions[note].append(read_body(Revision, body))
    vectors: dict[int, list[tuple[int, Floats]]] = defaultdict(list)
    for note, space, vector in sql.execute(
        "SELECT note, space, vector FROM vectors WHERE note IN (SELECT value FROM json_each(?)) ORDER BY note, space",
        (wanted,),
    ):
        vectors[note].append((space, np.frombuffer(vector, "<f4")))
    return [
        NoteRecord(read_note(bases[number]), tuple(revisions[number]), tuple(vectors[number])) for number in numbers
    ]


_LINKS = """SELECT o.number, o.id, s.id, t.id, l.type, l.weight, l.reason, l.recorded_at FROM links l
    JOIN notes s ON s.number = l.source JOIN notes t ON t.number = l.target JOIN notes o ON o.number = l.{of}
    WHERE l.{of} IN (SELECT value FROM json_each(?)) {which} ORDER BY s.id, l.type, t.id"""
_REVISION_LINKS = _LINKS.format(of="owner", which="")
_MENTIONS = _LINKS.format(of="source", which="AND l.owner = 0")


def _revision_links(sql: sqlite3.Connection, numbers: list[int]) -> list[ScopeRecord]:
    links_of = _links(sql, _REVISION_LINKS, numbers)
    return [RestoreLinks(*links_of[number]) for number in numbers if number in links_of]


def _mentions(sql: sqlite3.Connection, numbers: list[int]) -> list[ScopeRecord]:
    links_of = _links(sql, _MENTIONS, numbers)
    return [PutMention(link) for number in numbers if number in links_of for link in links_of[number][1]]


def _links(sql: sqlite3.Connection, statement: str, numbers: list[int]) -> dict[int, tuple[str, tuple[Link, ...]]]:
    """Return the id and the links of each note that has any, by number."""
    links_of: dict[int, tuple[str, tuple[Link, ...]]] = {}
    for number, id, *row in sql.execute(statement, (json.dumps(numbers),)):
        links_of[number] = (id, (*links_of.get(number, (id, ()))[1], link_of(*row)))
    return links_of


def _tombstones(sql: sqlite3.Connection, scope: int) -> Iterator[list[ScopeRecord]]:
    rows = sql.execute("SELECT identity FROM tombstones WHERE scope = ? ORDER BY identity", (scope,))
    while page := rows.fetchmany(PAGE):
        yield [PutTombstones(tuple(identity for (identity,) in page))]


def _unclaimed(job: Job) -> Job:
    """Return the job without its worker's lease."""
    if job.state is not JobState.RUNNING:
        return job
    return job.model_copy(update={"state": JobState.QUEUED, "token": None})
