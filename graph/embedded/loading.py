"""Incremental update of a scope's columns from the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.core.gc_frequency import gc_rarely
from zettel.errors import MemoryClosed, StoreError
from zettel.graph.columnar.columns import MISSING, Columns, as_ints
from zettel.graph.columnar.ingest import take_links, take_notes
from zettel.graph.columnar.ivf import CompactIndex
from zettel.graph.embedded import ivf_lists, snapshots
from zettel.graph.embedded.free_memory import trim_heap
from zettel.graph.embedded.scopes import by_key
from zettel.graph.embedded.vectors import dim_of, vectors_of_rows
from zettel.graph.embedded.write_index import WriteIndex, extend
from zettel.graph.scopes import ScopeRow

if TYPE_CHECKING:
    from zettel.graph.embedded.connections import Connections
    from zettel.graph.embedded.scope_cache import CachedScope, ScopeCache
    from zettel.ports.query import Ints

FEW_ROWS = 4096
"""Up to so many deleted rows a scope is never reloaded."""
PATIENCE_MS = 100
"""How long a snapshot waits for other writers before it is skipped."""
READ_AT_ONCE = 2_000
"""Notes fetched at once: about 8 MB, half of it by a thread that reads ahead."""

_CHANGED = "SELECT number FROM notes WHERE scope = ? AND changed > ?"
_NOTES = """SELECT n.number, n.seq, n.event, n.event_seq, n.part, n.occurred_at, n.valid_from, n.valid_to,
    n.recorded_at, n.length, n.asks, n.archived, n.id, n.kind, n.speaker, n.role, n.session, n.entries,
    n.terms, v.vector FROM json_each(?) CROSS JOIN notes n ON n.number = value
    LEFT JOIN vectors v ON v.note = n.number AND v.space = ?"""
_LINKS = """SELECT l.source, l.target, l.owner, l.recorded_at, l.type, l.weight
    FROM notes n JOIN links l ON l.source = n.number WHERE n.scope = ? AND n.changed > ?"""


def current_columns(sql: sqlite3.Connection, cell: list[CachedScope], row: ScopeRow, space: int, dim: int) -> Columns:
    """Return the scope's columns, loaded or updated to the state of the transaction."""
    columns, wasteful = _columns(cell), False
    if columns is not None:
        wasteful = _wasteful(columns)
        if wasteful or not _fits(sql, columns, row, space, dim):
            columns = None
    if columns is None:
        cell.clear()  # frees the memory before the reload
        ivf = ivf_lists.load(sql, row.number, space, dim)
        if ivf is None or wasteful:  # a snapshot would contain the same deleted rows
            columns = Columns(row.number, dim, ivf)
        else:
            columns = snapshots.load(sql, row, space, dim, ivf)
        cell.append(columns)
    if columns.changed != row.changed:
        try:
            with gc_rarely():
                _update(sql, columns, space)
        except BaseException:
            cell.clear()  # a partial update is not a valid state
            raise
        columns.changed, columns.event_seq = row.changed, row.seq
    if isinstance(columns.vectors, CompactIndex):
        columns.vectors.read = partial(vectors_of_rows, sql, columns.notes, space, dim)
    return columns


def current_write_index(
    sql: sqlite3.Connection, cell: list[CachedScope], row: ScopeRow, space: int, dim: int
) -> CachedScope:
    """Return the scope's write index, or its columns if they are cached or a snapshot contains them."""
    if _columns(cell) is not None:
        return current_columns(sql, cell, row, space, dim)
    if cell and not _fits(sql, cell[0], row, space, dim):
        cell.clear()
    if not cell:
        ivf = ivf_lists.load(sql, row.number, space, dim)
        if ivf is not None and snapshots.exists(sql, row, space):
            return current_columns(sql, cell, row, space, dim)
        cell.append(WriteIndex(row.number, dim, ivf))
    (index,) = cell
    assert isinstance(index, WriteIndex)
    if index.changed != row.changed:
        try:
            is_current = extend(sql, index, space)
        except BaseException:
            cell.clear()  # a partial update is not a valid state
            raise
        if not is_current:
            return current_columns(sql, cell, row, space, dim)
        index.changed = row.changed
    return index


def _columns(cell: list[CachedScope]) -> Columns | None:
    return cell[0] if cell and isinstance(cell[0], Columns) else None


def _wasteful(columns: Columns) -> bool:
    """Return if a reload is cheaper, because of many deleted rows."""
    deleted = columns.rows - int(columns.notes["alive"].sum())
    return deleted > FEW_ROWS and 2 * deleted > columns.rows


def _fits(sql: sqlite3.Connection, columns: CachedScope, row: ScopeRow, space: int, dim: int) -> bool:
    """Return if cached columns can be updated to the scope's state."""
    retrained = columns.ivf is not None and columns.ivf.epoch < ivf_lists.epoch_of(sql, row.number, space)
    same = columns.scope == row.number and columns.dim == dim
    return same and not retrained and row.floor <= columns.changed <= row.changed


def save_snapshots(connections: Connections, scopes: ScopeCache) -> None:
    """Write the snapshots that are due, before the store is closed. This neither waits long nor raises.

    A process that only wrote has no columns cached, and writes no snapshot.
    """
    with suppress(StoreError, MemoryClosed):
        with connections.writer() as writer:
            writer.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        for key, space in scopes.cached():
            with scopes.locked(key, space) as cell:
                _save_snapshot(connections, cell, key, space)


def _save_snapshot(connections: Connections, cell: list[CachedScope], key: str, space: int) -> None:
    cached = _columns(cell)
    if cached is None or cached.ivf is None or _wasteful(cached):
        return
    with connections.read() as sql:
        row, dim = by_key(sql, key), dim_of(sql, space) or 0
        if row is None or not _fits(sql, cached, row, space, dim) or not snapshots.due(sql, row, space, cached):
            return
        columns = current_columns(sql, cell, row, space, dim)
    snapshots.save(connections, columns, space)


def _update(sql: sqlite3.Connection, columns: Columns, space: int) -> None:
    since = (columns.scope, columns.changed)
    changed = np.sort(as_ints([number for (number,) in sql.execute(_CHANGED, since)]))
    removed = sql.execute("SELECT note, event FROM removed WHERE scope = ? AND changed > ?", since).fetchall()
    affected: set[int] = _take_events(sql, columns, [event for _, event in removed if event])
    deleted = columns.rows_of(as_ints([note for note, _ in removed if note]))
    deleted = deleted[deleted != MISSING]
    if len(deleted):
        affected.update(columns.notes["session"][deleted].tolist())
        columns.release(deleted)
        columns.unlink(deleted)
        columns.vectors.drop(deleted)
        columns.notes["alive"][deleted] = False
        columns.notes["shown"][deleted] = False
    if len(changed) > READ_AT_ONCE:  # usually the first load
        columns.notes.reserve(columns.rows + len(changed))
        columns.vectors.reserve(len(changed))
    for fetched in _fetched(sql, changed, space):
        affected.update(take_notes(columns, fetched))
        columns.merge_segments()
        del fetched  # megabytes, which the heap returns below
    take_links(columns, changed, sql.execute(_LINKS, since).fetchall())
    affected.discard(-1)
    if affected:
        columns.arrange(as_ints(sorted(affected)))
    columns.end_update()
    if len(changed) > READ_AT_ONCE:
        trim_heap()


def _fetched(sql: sqlite3.Connection, numbers: Ints, space: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield notes by number in chunks, and read the next chunk ahead."""

    def fetch(start: int) -> list[tuple[Any, ...]]:
        wanted = json.dumps(numbers[start : start + READ_AT_ONCE].tolist())
        return sql.execute(_NOTES, (wanted, space)).fetchall()

    starts = range(0, len(numbers), READ_AT_ONCE)
    if len(starts) < 2:
        yield from map(fetch, starts)
        return
    with ThreadPoolExecutor(1) as ahead:
        pending = ahead.submit(fetch, starts[0])
        for start in starts[1:]:
            fetched, pending = pending.result(), ahead.submit(fetch, start)
            yield fetched
        yield pending.result()


def _take_events(sql: sqlite3.Connection, columns: Columns, removed: Sequence[int]) -> set[int]:
    """Update the events of sessions. Returns the sessions that gained or lost an event."""
    events = columns.events
    affected: set[int] = set()
    if removed:
        remaining = ~np.isin(events["number"], as_ints(removed))
        affected.update(events["session"][~remaining].tolist())
        events.keep(remaining)
    last = max(columns.event_seq, int(events["seq"].max()) if events.used else -1)
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
