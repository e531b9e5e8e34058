"""A whole scope out of the file, and into it."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import numpy as np

from zettel.batch import Batch, EndRestore, PutEvent, PutJob, PutMention, PutNoteUse, PutTombstones, RestoreLinks
from zettel.graph.bodies import read_body, read_note
from zettel.graph.embedded import feedback, jobs, keeping
from zettel.graph.embedded.connections import Connections
from zettel.graph.embedded.prepared import prepare
from zettel.graph.embedded.scopes import claim_restored, end_restore, find_scope, moved_on, restored_rows
from zettel.graph.embedded.writes import Applying
from zettel.graph.keys import Keys
from zettel.model import TIME_MIN, EventRecord, Job, JobState, Link, LinkType, Revision, Scope, from_micros
from zettel.ports import KeptNote, ScopeState

if TYPE_CHECKING:
    from zettel.ports import Kept
    from zettel.query import Floats

PAGE = 256
"""Records read at once: with their vectors some 500 KB."""


def pages(connections: Connections, scope: Scope) -> Generator[list[Kept], None, None]:
    """All of a scope as it stands when the first page is asked for; a reader is held until the last one."""
    with connections.read() as sql:
        row = find_scope(sql, scope)
        if row is None:
            return
        (latest,) = sql.execute("SELECT MAX(occurred_at) FROM events WHERE scope = ?", (row.number,)).fetchone()
        yield [ScopeState(row.seq, row.secret, row.recorded_at, TIME_MIN if latest is None else latest)]
        yield from _events(sql, row.number)
        ids = sql.execute("SELECT number FROM notes WHERE scope = ? ORDER BY seq, number", (row.number,))
        numbers = array("q", (number for (number,) in ids))  # 8 bytes a note, whatever its texts take
        some = [numbers[start : start + PAGE].tolist() for start in range(0, len(numbers), PAGE)]
        yield from (_notes(sql, page) for page in some)
        yield from (_decided(sql, page) for page in some)
        yield from (_mentions(sql, page) for page in some)
        yield from _tombstones(sql, row.number)
        yield [PutNoteUse(note, use) for note, use in feedback.all_used(sql, row.number)]
        yield [PutJob(_at_rest(job)) for job in jobs.listed(sql, row.number, None)]


def restore(connections: Connections, batch: Batch, keys: Keys) -> None:
    """Write one batch of a restore. Raises ``Conflict`` if what came before it is gone."""
    assert batch.restore is not None
    ready = prepare(batch, keys)
    with connections.write() as sql:
        row = claim_restored(sql, batch.scope, batch.expects, batch.restore)
        applying = Applying(sql, row.number, row.changed + 1, keys)
        applying.apply(ready)
        moved_on(sql, row, batch.seq, applying.recorded_at)
        if any(isinstance(op, EndRestore) for op in batch.ops):
            end_restore(sql, batch.scope, row.number)


def abandon(sql: sqlite3.Connection, scope: Scope) -> None:
    """Destroy what restores of a scope have begun and not ended."""
    for number in restored_rows(sql, scope):
        keeping.drop_scope(sql, number)


def _events(sql: sqlite3.Connection, scope: int) -> Iterator[list[Kept]]:
    rows = sql.execute("SELECT body, identity FROM events WHERE scope = ? ORDER BY seq", (scope,))
    while page := rows.fetchmany(PAGE):
        yield [PutEvent(read_body(EventRecord, body), identity) for body, identity in page]


def _notes(sql: sqlite3.Connection, numbers: list[int]) -> list[Kept]:
    asked = json.dumps(numbers)
    bases = dict(
        sql.execute(
            "SELECT note, COALESCE(base, body) FROM texts WHERE note IN (SELECT value FROM json_each(?))", (asked,)
        ).fetchall()
    )
    revisions: dict[int, list[Revision]] = defaultdict(list)
    for note, body in sql.execute(
        "SELECT note, body FROM revisions WHERE note IN (SELECT value FROM json_each(?)) ORDER BY note, seq", (asked,)
    ):
        revisions[note].append(read_body(Revision, body))
    vectors: dict[int, list[tuple[int, Floats]]] = defaultdict(list)
    for note, space, vector in sql.execute(
        "SELECT note, space, vector FROM vectors WHERE note IN (SELECT value FROM json_each(?)) ORDER BY note, space",
        (asked,),
    ):
        vectors[note].append((space, np.frombuffer(vector, "<f4")))
    return [KeptNote(read_note(bases[number]), tuple(revisions[number]), tuple(vectors[number])) for number in numbers]


_LINKS = """SELECT o.number, o.id, s.id, t.id, l.type, l.weight, l.reason, l.recorded_at FROM links l
    JOIN notes s ON s.number = l.source JOIN notes t ON t.number = l.target JOIN notes o ON o.number = l.{of}
    WHERE l.{of} IN (SELECT value FROM json_each(?)) {which} ORDER BY s.id, l.type, t.id"""
_DECIDED = _LINKS.format(of="owner", which="")
_MENTIONS = _LINKS.format(of="source", which="AND l.owner = 0")


def _decided(sql: sqlite3.Connection, numbers: list[int]) -> list[Kept]:
    found = _links(sql, _DECIDED, numbers)
    return [RestoreLinks(*found[number]) for number in numbers if number in found]


def _mentions(sql: sqlite3.Connection, numbers: list[int]) -> list[Kept]:
    found = _links(sql, _MENTIONS, numbers)
    return [PutMention(link) for number in numbers if number in found for link in found[number][1]]


def _links(sql: sqlite3.Connection, statement: str, numbers: list[int]) -> dict[int, tuple[str, tuple[Link, ...]]]:
    """By the note that they are of: its id and its links."""
    found: dict[int, tuple[str, tuple[Link, ...]]] = {}
    for number, id, source, target, type, weight, reason, recorded_at in sql.execute(statement, (json.dumps(numbers),)):
        link = Link(
            source=source,
            target=target,
            type=LinkType(type),
            weight=weight,
            reason=reason,
            recorded_at=from_micros(recorded_at),
        )
        found[number] = (id, (*found.get(number, (id, ()))[1], link))
    return found


def _tombstones(sql: sqlite3.Connection, scope: int) -> Iterator[list[Kept]]:
    rows = sql.execute("SELECT identity FROM tombstones WHERE scope = ? ORDER BY identity", (scope,))
    while page := rows.fetchmany(PAGE):
        yield [PutTombstones(tuple(identity for (identity,) in page))]


def _at_rest(job: Job) -> Job:
    """A job as nobody is at it."""
    if job.state is not JobState.RUNNING:
        return job
    return job.model_copy(update={"state": JobState.QUEUED, "token": None})
