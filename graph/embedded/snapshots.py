"""Snapshots of large scopes' columns in the file; reading a million notes one by one takes half a minute.

A snapshot belongs to one value of the scope's ``changed`` counter, and loading updates it from later changes. It is
written in pieces, one transaction each, so other writers wait only briefly. Each piece is written only while the scope
is unchanged, so no data deleted meanwhile returns to the file. Of deleted notes it contains only numbers. A snapshot
contains nothing that is not in the file, and one that does not match is ignored.
"""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, NonNegativeInt, TypeAdapter

from zettel.errors import StoreError
from zettel.graph.columnar.columns import KINDS, LINK_TYPES, LINKED, MISSING, Columns
from zettel.graph.columnar.tables import require, within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.graph.columnar.ivf import IvfLists
    from zettel.graph.columnar.tables import RowSelection
    from zettel.graph.embedded.connections import Connections
    from zettel.graph.scopes import ScopeRow
    from zettel.ports.query import Bools

FORMAT: Literal[4] = 4
"""Increased with every change of the columns or their meaning."""
WRITTEN_AT = 0.125
"""Share of notes changed since the last snapshot that makes another one due."""
PIECE_BYTES = 4 << 20
TOGETHER = 8
"""Pieces written in one transaction: about a quarter of a second."""
_CODES = (*KINDS, *(type.value for type in LINK_TYPES))
_DTYPES: dict[str, np.dtype[Any]] = {
    np.dtype(kind).str: np.dtype(kind)
    for kind in (np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, LINKED)
}
"""Permitted dtypes by name. The name includes the byte order, so a snapshot of another machine is ignored."""
_IDS = TypeAdapter(list[str])
_COLUMNS_OF_DELETED = ("number", "seq")
"""Columns saved for deleted notes too, because rows are looked up by them."""


class _Part(BaseModel):
    """One array in consecutive pieces."""

    name: str
    dtype: str
    shape: tuple[NonNegativeInt, ...]
    crc: int


class _Contents(BaseModel):
    """Piece 0: the contents of a snapshot, and the state it belongs to."""

    format: Literal[4] = FORMAT
    codes: tuple[str, ...] = _CODES
    dim: int
    rows: NonNegativeInt
    lists: tuple[int, int]
    speakers: list[str | None]
    sessions: list[str | None]
    parts: list[_Part]


def load(sql: sqlite3.Connection, row: ScopeRow, space: int, dim: int, ivf: IvfLists) -> Columns:
    """Load the columns of a scope from its last usable snapshot, or return empty columns."""
    columns = Columns(row.number, dim, ivf)
    usable = _find(sql, row, space, dim, ivf)
    if usable is None:
        return columns
    token, changed, contents = usable
    try:
        _fill(columns, contents, _read(sql, (row.number, space, token), contents.parts))
    except (ValueError, KeyError):
        columns = Columns(row.number, dim, ivf)
        columns.snapshot_damaged = True
        return columns
    columns.changed = changed
    return columns


def exists(sql: sqlite3.Connection, row: ScopeRow, space: int) -> bool:
    """Return if the scope has a usable snapshot; it may still turn out to be damaged."""
    (is_there,) = sql.execute(
        "SELECT EXISTS (SELECT 1 FROM snapshots WHERE scope = ? AND space = ? AND piece = 0 AND changed >= ?)",
        (row.number, space, row.floor),
    ).fetchone()
    return bool(is_there)


def due(sql: sqlite3.Connection, row: ScopeRow, space: int, columns: Columns) -> bool:
    """Return if too many notes changed or were deleted since the last usable snapshot."""
    assert columns.ivf is not None
    usable = _find(sql, row, space, columns.dim, columns.ivf)
    if usable is None or columns.snapshot_damaged:
        return True
    _, changed, contents = usable
    (since,) = sql.execute(
        """SELECT (SELECT COUNT(*) FROM notes WHERE scope = :scope AND changed > :changed)
        + (SELECT COUNT(*) FROM removed WHERE scope = :scope AND changed > :changed)""",
        {"scope": row.number, "changed": changed},
    ).fetchone()
    return bool(max(since, contents.rows - columns.rows) > WRITTEN_AT * columns.rows)


def save(connections: Connections, columns: Columns, space: int) -> bool:
    """Write a snapshot and delete older ones. Returns False if the scope has changed or the file is busy."""
    key = (columns.scope, space, secrets.randbits(62))
    parts: list[_Part] = []
    pieces = _pieces(columns, parts)
    written, complete = 0, False
    try:
        while not complete:
            with connections.write() as sql:
                if not _is_unchanged(sql, columns, key, written):
                    drop(sql, "scope = ? AND space = ? AND token = ?", *key)
                    return False
                if not written:
                    incomplete = "token NOT IN (SELECT token FROM snapshots WHERE piece = 0)"
                    drop(sql, f"scope = ? AND space = ? AND {incomplete}", *key[:2])
                before = written
                for written, piece in enumerate(islice(pieces, TOGETHER), before + 1):
                    _put(sql, key, columns.changed, written, piece)
                complete = written < before + TOGETHER
                if complete:
                    _put(sql, key, columns.changed, 0, _contents(columns, parts).model_dump_json().encode())
                    drop(sql, "scope = ? AND space = ? AND token != ?", *key)
    except StoreError:
        with suppress(StoreError), connections.write() as sql:
            drop(sql, "scope = ? AND space = ? AND token = ?", *key)
        return False
    return True


def drop_older(sql: sqlite3.Connection) -> None:
    """Destroy snapshots older than the latest change, which may contain deleted data."""
    drop(sql, "changed < (SELECT changed FROM scopes WHERE number = scope)")


def drop(sql: sqlite3.Connection, condition: str, *values: int) -> None:
    """Delete pieces without overwriting their pages, which may be hundreds of megabytes.

    The next purge rewrites the file without free pages.
    """
    sql.execute("PRAGMA secure_delete = OFF")
    try:
        sql.execute(f"DELETE FROM snapshots WHERE {condition}", values)
    finally:
        sql.execute("PRAGMA secure_delete = ON")


# writing ------------------------------------------------------------------------------------------------------


def _is_unchanged(sql: sqlite3.Connection, columns: Columns, key: tuple[int, int, int], written: int) -> bool:
    """Return if the scope is in the columns' state, and the file contains the vector set and all written pieces."""
    scope, space, token = key
    (unchanged,) = sql.execute(
        """SELECT EXISTS (SELECT 1 FROM scopes WHERE number = :scope AND changed = :changed)
        AND EXISTS (SELECT 1 FROM spaces WHERE id = :space) AND :written =
        (SELECT COUNT(*) FROM snapshots WHERE scope = :scope AND space = :space AND token = :token)""",
        {"scope": scope, "space": space, "token": token, "changed": columns.changed, "written": written},
    ).fetchone()
    return bool(unchanged)


def _put(sql: sqlite3.Connection, key: tuple[int, int, int], changed: int, piece: int, data: bytes) -> None:
    sql.execute(
        "INSERT INTO snapshots (scope, space, token, changed, piece, data) VALUES (?, ?, ?, ?, ?, ?)",
        (*key, changed, piece, data),
    )


def _pieces(columns: Columns, parts: list[_Part]) -> Iterator[bytes]:
    """Yield all arrays in pieces, and append their descriptions to ``parts``."""
    for name, array in _arrays(columns):
        crc, row_bytes = 0, array.dtype.itemsize * int(np.prod(array.shape[1:]))
        step = max(1, PIECE_BYTES // row_bytes)
        for start in range(0, array.shape[0], step):
            piece = array[start : start + step].tobytes()
            crc = zlib.crc32(piece, crc)
            yield piece
        parts.append(_Part(name=name, dtype=array.dtype.str, shape=array.shape, crc=crc))


def _arrays(columns: Columns) -> Iterator[tuple[str, NDArray[Any] | RowSelection]]:
    """Yield the arrays of the columns, without names."""
    alive = columns.notes["alive"]
    for name, column in columns.notes.save():
        clears_deleted = name not in _COLUMNS_OF_DELETED and not alive.all()
        yield f"notes.{name}", np.where(alive, column, column.dtype.type(0)) if clears_deleted else column
    ids = [id if is_alive else "" for id, is_alive in zip(columns.ids, alive.tolist(), strict=True)]
    yield "ids.json", np.frombuffer(json.dumps(ids).encode(), np.uint8)
    yield "order.rows", columns.order
    for table in ("words", "terms", "holders", "links", "linking", "events", "term_df", "vectors"):
        yield from ((f"{table}.{name}", array) for name, array in getattr(columns, table).save())
    used = np.zeros(columns.term_df.used, bool)
    used[columns.terms["term"]] = True  # ``save`` has compacted these
    yield from ((f"term_numbers.{name}", array) for name, array in columns.term_numbers.save(used))


def _contents(columns: Columns, parts: list[_Part]) -> _Contents:
    assert columns.ivf is not None
    speaker, session = columns.notes["speaker"], columns.notes["session"]
    alive = columns.notes["alive"]
    sessions = np.concatenate([session[alive], columns.events["session"]])
    return _Contents(
        dim=columns.dim,
        rows=columns.rows,
        lists=columns.ivf.fingerprint,
        speakers=columns.speakers.save(_used(speaker[alive], len(columns.speakers.all))),
        sessions=columns.sessions.save(_used(sessions, len(columns.sessions.all))),
        parts=parts,
    )


def _used(numbers: NDArray[Any], count: int) -> Bools:
    used = np.zeros(count + 1, bool)
    used[numbers] = True
    return used[:-1]  # the last place is for no name


# reading ------------------------------------------------------------------------------------------------------


def _find(
    sql: sqlite3.Connection, row: ScopeRow, space: int, dim: int, ivf: IvfLists
) -> tuple[int, int, _Contents] | None:
    """Return token, counter and contents of the last snapshot, if it is usable."""
    piece = sql.execute(
        """SELECT token, changed, data FROM snapshots WHERE scope = ? AND space = ? AND piece = 0
        AND TYPEOF(data) = 'blob' AND changed BETWEEN ? AND ? ORDER BY changed DESC""",
        (row.number, space, row.floor, row.changed),
    ).fetchone()
    if piece is None:
        return None
    token, changed, data = piece
    try:
        contents = _Contents.model_validate_json(data)
    except ValueError:
        return None
    fits = (contents.codes, contents.dim, contents.lists) == (_CODES, dim, ivf.fingerprint)
    return (token, changed, contents) if fits else None


def _read(sql: sqlite3.Connection, key: tuple[int, int, int], parts: list[_Part]) -> dict[str, NDArray[Any]]:
    """Read the arrays. Raises ``ValueError`` or ``KeyError`` if they are damaged."""
    where = "FROM snapshots WHERE scope = ? AND space = ? AND token = ? AND piece > 0 AND TYPEOF(data) = 'blob'"
    kinds = [_DTYPES[part.dtype] for part in parts]
    (size,) = sql.execute(f"SELECT TOTAL(LENGTH(data)) {where}", key).fetchone()
    require(size == sum(kind.itemsize * math.prod(part.shape) for kind, part in zip(kinds, parts, strict=True)))
    pieces = sql.execute(f"SELECT data {where} ORDER BY piece", key)
    arrays: dict[str, NDArray[Any]] = {}
    for kind, part in zip(kinds, parts, strict=True):
        array = arrays[part.name] = np.empty(part.shape, kind)
        places, filled, crc = array.reshape(-1).view(np.uint8), 0, 0
        while filled < len(places):
            (piece,) = pieces.fetchone() or (b"",)
            require(0 < len(piece) <= len(places) - filled)
            places[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            crc, filled = zlib.crc32(piece, crc), filled + len(piece)
        require(crc == part.crc and (kind != np.bool_ or within(places, 0, 2)))
    return arrays


def _fill(columns: Columns, contents: _Contents, arrays: dict[str, NDArray[Any]]) -> None:
    """Fill empty columns. Raises ``ValueError`` or ``KeyError`` if the arrays are inconsistent."""
    tables: dict[str, dict[str, NDArray[Any]]] = defaultdict(dict)
    for name, array in arrays.items():
        table, _, own = name.partition(".")
        tables[table][own] = array
    for table in ("notes", "events", "term_df"):
        getattr(columns, table).load(tables[table])
    rows, terms = columns.rows, columns.term_df.used
    for table in ("words", "terms", "holders", "links", "linking", "vectors"):
        getattr(columns, table).load(tables[table], rows)
    columns.term_numbers.load(tables["term_numbers"], terms)
    columns.speakers.load(contents.speakers)
    columns.sessions.load(contents.sessions)
    columns.ids = _IDS.validate_json(tables["ids"]["json"].tobytes())
    columns.order = tables["order"]["rows"]
    number = columns.notes["number"]
    require(len(columns.ids) == rows and bool((number[1:] > number[:-1]).all()))
    require(columns.order.dtype == np.int32 and columns.order.ndim == 1)
    for values, low, high in (
        (columns.order, 0, rows),
        (columns.notes["kind"], 0, len(KINDS)),
        (columns.notes["speaker"], MISSING, len(contents.speakers)),
        (columns.notes["session"], MISSING, len(contents.sessions)),
        (columns.events["session"], 0, len(contents.sessions)),
        (columns.terms["term"], 0, terms),
        (columns.links["target"], 0, rows),
        (columns.links["owner"], MISSING, rows),
        (columns.links["type"], 0, len(LINK_TYPES)),
    ):
        require(within(values, low, high))
