"""Bringing a scope's columns in step with the file: what changed since they were last looked at is read again."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from zettel.graph.embedded.columns import GONE, KINDS, LINK_TYPES, Columns, as_ints
from zettel.graph.embedded.keys import columns_of
from zettel.graph.embedded.scopes import ScopeRow

MEMORY_BYTES = 1_000_000_000
"""Memory for scopes held as columns; a scope of 20,000 notes takes 40 MB. The last used one is always held."""
FEW_ROWS = 4096
"""Rows gone before it is asked whether reading the scope anew is cheaper."""

_NOTES = """SELECT n.number, n.seq, n.event, n.event_seq, n.part, n.occurred_at, n.valid_from, n.recorded_at, n.length,
    n.asks, n.archived, n.id, n.kind, n.role, n.session, n.entries, n.terms, v.vector
    FROM notes n LEFT JOIN vectors v ON v.note = n.number AND v.space = ? WHERE n.scope = ? AND n.changed > ?"""
_LINKS = """SELECT l.source, l.target, l.owner, l.recorded_at, l.type, l.weight
    FROM notes n JOIN links l ON l.source = n.number WHERE n.scope = ? AND n.changed > ?"""
_TYPE_NUMBERS = {type.value: number for number, type in enumerate(LINK_TYPES)}


class Scopes:
    """The scopes in use, held as columns; those not used for longest go first."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[threading.Lock, list[Columns]]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._guard = threading.Lock()

    @contextmanager
    def locked(self, scope: str, space: int) -> Iterator[list[Columns]]:
        """One scope's columns, nobody else's meanwhile: a list of one, or of none yet.

        Take this before the transaction that reads, so that no snapshot is older than the columns.
        """
        with self._guard:
            fresh: tuple[threading.Lock, list[Columns]] = (threading.Lock(), [])
            lock, cell = self._held.pop((scope, space), fresh)
            self._held[scope, space] = (lock, cell)  # last: most recently used
        with lock:
            yield cell
        with self._guard:
            self._sizes[scope, space] = sum(columns.nbytes for columns in cell)
            while sum(self._sizes.values()) > MEMORY_BYTES and len(self._held) > 1:
                oldest = next(iter(self._held))
                del self._held[oldest]
                self._sizes.pop(oldest, None)

    def forget(self) -> None:
        """Let go of all."""
        with self._guard:
            self._held.clear()
            self._sizes.clear()


def in_step(sql: sqlite3.Connection, cell: list[Columns], row: ScopeRow, space: int, dim: int) -> Columns:
    """The columns as the transaction's snapshot has them."""
    if cell:
        columns = cell[0]
        gone = columns.rows - int(columns.notes["alive"].sum())
        another = columns.scope != row.number or columns.dim != dim
        stale = another or not row.floor <= columns.changed <= row.changed
        if stale or (gone > FEW_ROWS and 2 * gone > columns.rows):
            cell.clear()
    if not cell:
        cell.append(Columns(row.number, dim))
    columns = cell[0]
    if columns.changed != row.changed:
        try:
            _update(sql, columns, space)
        except BaseException:
            cell.clear()  # half a step would be neither state
            raise
        columns.changed = row.changed
    return columns


def _update(sql: sqlite3.Connection, columns: Columns, space: int) -> None:
    rows = sql.execute(_NOTES, (space, columns.scope, columns.changed)).fetchall()
    rows.sort(key=lambda row: row[0])
    links = sql.execute(_LINKS, (columns.scope, columns.changed)).fetchall()
    removed = sql.execute(
        "SELECT note, event FROM removed WHERE scope = ? AND changed > ?", (columns.scope, columns.changed)
    ).fetchall()
    affected: set[int] = _take_events(sql, columns, [event for _, event in removed if event])
    gone = columns.rows_of(as_ints([note for note, _ in removed if note]))
    gone = gone[gone != GONE]
    affected.update(columns.notes["session"][gone].tolist())
    columns.notes["alive"][gone] = False
    columns.notes["shown"][gone] = False
    columns.notes["vector"][gone] = 0
    columns.clear(gone)
    if rows:
        affected.update(_take_notes(sql, columns, rows))
    _take_links(columns, links)
    affected.discard(-1)
    if affected:
        columns.arrange(as_ints(sorted(affected)))
    columns.compact()


def _take_notes(sql: sqlite3.Connection, columns: Columns, fetched: Sequence[tuple[Any, ...]]) -> set[int]:
    """New notes as new rows, changed ones in their place; the sessions that they were or are in."""
    numeric = np.array([row[:11] for row in fetched], np.int64)
    *_, ids, kinds, roles, sessions, entries, terms, vectors = zip(*fetched, strict=True)
    rows = columns.rows_of(numeric[:, 0])
    old = rows != GONE
    affected = set(columns.notes["session"][rows[old]].tolist())
    embedded = np.array([vector is not None for vector in vectors], bool)
    matrix = np.zeros((len(fetched), columns.dim), np.float32)
    if columns.dim:
        filled = b"".join(vector for vector in vectors if vector is not None)
        matrix[embedded] = np.frombuffer(filled, "<f4").reshape(-1, columns.dim)
    fields = {
        "number": numeric[:, 0], "seq": numeric[:, 1], "event": numeric[:, 2], "event_seq": numeric[:, 3],
        "part": numeric[:, 4], "occurred_at": numeric[:, 5], "valid_from": numeric[:, 6],
        "recorded_at": numeric[:, 7], "length": numeric[:, 8], "asks": numeric[:, 9].astype(bool),
        "shown": numeric[:, 10] == 0, "alive": np.ones(len(fetched), bool),
        "kind": np.array([KINDS.index(kind) for kind in kinds], np.int32),
        "role": np.array([columns.roles.number(role) for role in roles], np.int32),
        "session": np.array([columns.sessions.number(session) for session in sessions], np.int32),
        "embedded": (matrix != 0).any(axis=1), "vector": matrix,
    }  # fmt: skip
    if old.any():
        columns.clear(rows[old])
        for name, values in fields.items():
            columns.notes[name][rows[old]] = values[old]
    first = columns.rows
    columns.notes.append(**{name: values[~old] for name, values in fields.items()})
    columns.ids.extend(id for id, known in zip(ids, old.tolist(), strict=True) if not known)
    rows[~old] = np.arange(first, columns.rows)
    keys, counts, sizes = columns_of(entries)
    columns.post(np.repeat(rows, sizes), keys, counts)
    keys, counts, sizes = columns_of(terms)
    columns.hold(np.repeat(rows, sizes), keys, counts)
    _name_terms(sql, columns)
    affected.update(fields["session"].tolist())
    return affected


def _name_terms(sql: sqlite3.Connection, columns: Columns) -> None:
    """Fetch the names of Terms that are new here."""
    fresh = columns.unnamed_terms
    if not fresh:
        return
    rows = sql.execute(
        "SELECT terms.key, name FROM json_each(?) CROSS JOIN terms ON scope = ? AND terms.key = value",
        (json.dumps(fresh), columns.scope),
    )
    names = {key: name for key, name in rows.fetchall()}
    columns.term_names.extend(names.get(key, "") for key in fresh)


def _take_links(columns: Columns, fetched: Sequence[tuple[Any, ...]]) -> None:
    if not fetched:
        return
    sources, targets, owners, recorded, types, weights = zip(*fetched, strict=True)
    source, target = columns.rows_of(as_ints(sources)), columns.rows_of(as_ints(targets))
    columns.links.append(
        source=np.where(target == GONE, GONE, source),
        target=target,
        owner=columns.rows_of(as_ints(owners)),
        type=as_ints([_TYPE_NUMBERS[type] for type in types]),
        weight=np.array(weights, np.float32),
        recorded_at=as_ints(recorded),
    )


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
        codes = as_ints([columns.sessions.number(session) for session in sessions])
        events.append(
            number=as_ints(numbers), session=codes, seq=as_ints(seqs), occurred_at=as_ints(occurred),
            order_time=np.zeros(len(rows), np.int64),
        )  # fmt: skip
        affected.update(codes.tolist())
    return affected
