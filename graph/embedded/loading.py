"""Bringing a scope's columns in step with the file: what changed since they were last looked at is read again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.collector import all_alive
from zettel.errors import MemoryClosed, StoreError
from zettel.graph.columnar.columns import GONE, Columns, as_ints
from zettel.graph.columnar.taking import take_links, take_notes
from zettel.graph.embedded import lists, snapshots
from zettel.graph.embedded.outline import Outline, extend
from zettel.graph.embedded.scopes import by_key
from zettel.graph.embedded.vectors import dim_of
from zettel.graph.scopes import ScopeRow

if TYPE_CHECKING:
    from zettel.graph.embedded.connections import Connections
    from zettel.graph.embedded.held import Held, Scopes
    from zettel.query import Ints

FEW_ROWS = 4096
"""Rows gone before it is asked whether reading the scope anew is cheaper."""
PATIENCE_MS = 100
"""How long a snapshot waits for others that write, before it is left unwritten."""
READ_AT_ONCE = 5_000
"""Notes fetched from the file at once: about 8 MB on their way into columns."""

_CHANGED = "SELECT number FROM notes WHERE scope = ? AND changed > ?"
_NOTES = """SELECT n.number, n.seq, n.event, n.event_seq, n.part, n.occurred_at, n.valid_from, n.recorded_at, n.length,
    n.asks, n.archived, n.id, n.kind, n.role, n.session, n.entries, n.terms, v.vector
    FROM json_each(?) CROSS JOIN notes n ON n.number = value
    LEFT JOIN vectors v ON v.note = n.number AND v.space = ?"""
_LINKS = """SELECT l.source, l.target, l.owner, l.recorded_at, l.type, l.weight
    FROM notes n JOIN links l ON l.source = n.number WHERE n.scope = ? AND n.changed > ?"""


def in_step(sql: sqlite3.Connection, cell: list[Held], row: ScopeRow, space: int, dim: int) -> Columns:
    """The columns as the transaction's snapshot has them."""
    columns, wasteful = _columns(cell), False
    if columns is not None:
        wasteful = _wasteful(columns)
        if wasteful or not _fits(sql, columns, row, space, dim):
            columns = None
    if columns is None:
        cell.clear()  # before others are read: they would stand in memory twice
        listed = lists.load(sql, row.number, space, dim)
        if listed is None or wasteful:  # a snapshot would have as much that is gone
            columns = Columns(row.number, dim, listed)
        else:
            columns = snapshots.load(sql, row, space, dim, listed)
        cell.append(columns)
    if columns.changed != row.changed:
        try:
            with all_alive():
                _update(sql, columns, space)
        except BaseException:
            cell.clear()  # half a step would be neither state
            raise
        columns.changed = row.changed
    return columns


def outlined(sql: sqlite3.Connection, cell: list[Held], row: ScopeRow, space: int, dim: int) -> Held:
    """What is enough for who writes; the columns if they are held anyway, or soon read from a snapshot."""
    if _columns(cell) is not None:
        return in_step(sql, cell, row, space, dim)
    if cell and not _fits(sql, cell[0], row, space, dim):
        cell.clear()
    if not cell:
        listed = lists.load(sql, row.number, space, dim)
        if listed is not None and snapshots.exists(sql, row, space):
            return in_step(sql, cell, row, space, dim)
        cell.append(Outline(row.number, dim, listed))
    (outline,) = cell
    assert isinstance(outline, Outline)
    if outline.changed != row.changed:
        try:
            whole = extend(sql, outline, space)
        except BaseException:
            cell.clear()  # half a step would be neither state
            raise
        if not whole:
            return in_step(sql, cell, row, space, dim)
        outline.changed = row.changed
    return outline


def _columns(cell: list[Held]) -> Columns | None:
    return cell[0] if cell and isinstance(cell[0], Columns) else None


def _wasteful(columns: Columns) -> bool:
    """Whether so much is gone that reading the scope anew is cheaper."""
    gone = columns.rows - int(columns.notes["alive"].sum())
    return gone > FEW_ROWS and 2 * gone > columns.rows


def _fits(sql: sqlite3.Connection, columns: Held, row: ScopeRow, space: int, dim: int) -> bool:
    """Whether columns can be brought in step."""
    relisted = columns.listed is not None and columns.listed.epoch < lists.epoch_of(sql, row.number, space)
    same = columns.scope == row.number and columns.dim == dim
    return same and not relisted and row.floor <= columns.changed <= row.changed


def leave(connections: Connections, scopes: Scopes) -> None:
    """Before the store is closed: write snapshots that are due. Nobody is waited for long, nothing is raised.

    Who only wrote holds no columns, and does not read a scope for others to find it read.
    """
    with suppress(StoreError, MemoryClosed):
        with connections.writer() as writer:
            writer.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        for key, space in scopes.held():
            with scopes.locked(key, space) as cell:
                _leave(connections, cell, key, space)


def _leave(connections: Connections, cell: list[Held], key: str, space: int) -> None:
    held = _columns(cell)
    if held is None or held.listed is None or _wasteful(held):
        return
    with connections.read() as sql:
        row, dim = by_key(sql, key), dim_of(sql, space) or 0
        if row is None or not _fits(sql, held, row, space, dim) or not snapshots.due(sql, row, space, held):
            return
        columns = in_step(sql, cell, row, space, dim)
    snapshots.save(connections, columns, space)


def _update(sql: sqlite3.Connection, columns: Columns, space: int) -> None:
    since = (columns.scope, columns.changed)
    changed = np.sort(as_ints([number for (number,) in sql.execute(_CHANGED, since)]))
    removed = sql.execute("SELECT note, event FROM removed WHERE scope = ? AND changed > ?", since).fetchall()
    affected: set[int] = _take_events(sql, columns, [event for _, event in removed if event])
    gone = columns.rows_of(as_ints([note for note, _ in removed if note]))
    gone = gone[gone != GONE]
    if len(gone):
        affected.update(columns.notes["session"][gone].tolist())
        columns.release(gone)
        columns.unlink(gone)
        columns.vectors.drop(gone)
        columns.notes["alive"][gone] = False
        columns.notes["shown"][gone] = False
    if len(changed) > READ_AT_ONCE:  # a scope that is read from the beginning
        columns.notes.reserve(columns.rows + len(changed))
        columns.vectors.reserve(len(changed))
    for fetched in _fetched(sql, changed, space):
        affected.update(take_notes(columns, fetched))
        columns.settle()
    take_links(columns, changed, sql.execute(_LINKS, since).fetchall())
    affected.discard(-1)
    if affected:
        columns.arrange(as_ints(sorted(affected)))
    columns.touched()


def _fetched(sql: sqlite3.Connection, numbers: Ints, space: int) -> Iterator[list[tuple[Any, ...]]]:
    """Notes by their numbers, some at a time: while these are taken in, the next are read."""

    def fetch(start: int) -> list[tuple[Any, ...]]:
        some = json.dumps(numbers[start : start + READ_AT_ONCE].tolist())
        return sql.execute(_NOTES, (some, space)).fetchall()

    starts = range(0, len(numbers), READ_AT_ONCE)
    if len(starts) < 2:
        yield from map(fetch, starts)
        return
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(fetch, starts[0])
        for start in starts[1:]:
            fetched, coming = coming.result(), ahead.submit(fetch, start)
            yield fetched
        yield coming.result()


def _take_events(sql: sqlite3.Connection, columns: Columns, removed: Sequence[int]) -> set[int]:
    """Events of sessions, which the order of NEXT is made of; the sessions that gained or lost one."""
    events = columns.events
    affected: set[int] = set()
    if removed:
        kept = ~np.isin(events["number"], as_ints(removed))
        affected.update(events["session"][~kept].tolist())
        events.keep(kept)
    last = int(events["seq"].max()) if events.used else -1
    rows = sql.execute(
        """SELECT number, session, seq, occurred_at FROM events
        WHERE scope = ? AND seq > ? AND session IS NOT NULL ORDER BY number""",
        (columns.scope, last),
    ).fetchall()
    if rows:
        numbers, sessions, seqs, occurred = zip(*rows, strict=True)
        codes = columns.sessions.numbers(sessions)
        events.append(
            number=as_ints(numbers), session=codes, seq=as_ints(seqs), occurred_at=as_ints(occurred),
            order_time=np.zeros(len(rows), np.int64),
        )  # fmt: skip
        affected.update(codes.tolist())
    return affected
