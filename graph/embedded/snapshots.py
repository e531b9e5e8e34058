"""What a large scope's columns hold, kept in the file as it is: to read a million notes one by one takes half a minute.

A snapshot stands at one of the scope's counts; whoever loads it brings it in step by what changed since, as columns
that were in memory. It is written in pieces, each in a transaction of its own, so that nobody waits long, and only
while the scope stands where the columns stand: nothing that somebody else deletes can come back into the file. Of what
is gone it has nothing but numbers. It tells nothing that is not in the file, and one that does not fit is left aside.
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
from zettel.graph.columnar.columns import GONE, KINDS, LINK_TYPES, LINKED, Columns
from zettel.graph.columnar.growing import require, within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.graph.columnar.growing import Gathered
    from zettel.graph.embedded.connections import Connections
    from zettel.graph.embedded.lists import Listed
    from zettel.graph.scopes import ScopeRow
    from zettel.query import Bools

FORMAT: Literal[1] = 1
"""Another one for other columns, or the same with another meaning."""
WRITTEN_AT = 0.125
"""Share of the notes that changed since the last snapshot, when another one is written."""
PIECE_BYTES = 4 << 20
TOGETHER = 8
"""Pieces written in one transaction: about a quarter of a second."""
_CODES = (*KINDS, *(type.value for type in LINK_TYPES))
_DTYPES = {
    np.dtype(kind).str: np.dtype(kind)
    for kind in (np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, LINKED)
}
"""What arrays may be of. The names tell the order of bytes, so that another machine's are left aside."""
_IDS = TypeAdapter(list[str])
_NUMBERS_OF_GONE = ("number", "seq")
"""Rows are found by these."""


class _Part(BaseModel):
    """One array: its pieces follow one another."""

    name: str
    dtype: str
    shape: tuple[NonNegativeInt, ...]
    crc: int


class _Contents(BaseModel):
    """Piece 0: what a snapshot holds, and what it was made for."""

    format: Literal[1] = FORMAT
    codes: tuple[str, ...] = _CODES
    dim: int
    rows: NonNegativeInt
    lists: tuple[int, int]
    roles: list[str | None]
    sessions: list[str | None]
    parts: list[_Part]


def load(sql: sqlite3.Connection, row: ScopeRow, space: int, dim: int, listed: Listed) -> Columns:
    """The columns of a scope as they were written last, or empty ones if there are none that can be brought in step."""
    columns = Columns(row.number, dim, listed)
    found = _find(sql, row, space, dim, listed)
    if found is None:
        return columns
    token, changed, contents = found
    try:
        _fill(columns, contents, _read(sql, (row.number, space, token), contents.parts))
    except (ValueError, KeyError):
        columns = Columns(row.number, dim, listed)
        columns.misled = True
        return columns
    columns.changed = changed
    return columns


def exists(sql: sqlite3.Connection, row: ScopeRow, space: int) -> bool:
    """Whether there is one that can be brought in step, if it is sound."""
    (found,) = sql.execute(
        "SELECT EXISTS (SELECT 1 FROM snapshots WHERE scope = ? AND space = ? AND piece = 0 AND changed >= ?)",
        (row.number, space, row.floor),
    ).fetchone()
    return bool(found)


def due(sql: sqlite3.Connection, row: ScopeRow, space: int, columns: Columns) -> bool:
    """Whether too much changed since the last snapshot that can be used, or too much of it has gone."""
    assert columns.listed is not None
    found = _find(sql, row, space, columns.dim, columns.listed)
    if found is None or columns.misled:
        return True
    _, changed, contents = found
    (since,) = sql.execute(
        """SELECT (SELECT COUNT(*) FROM notes WHERE scope = :scope AND changed > :changed)
        + (SELECT COUNT(*) FROM removed WHERE scope = :scope AND changed > :changed)""",
        {"scope": row.number, "changed": changed},
    ).fetchone()
    return bool(max(since, contents.rows - columns.rows) > WRITTEN_AT * columns.rows)


def save(connections: Connections, columns: Columns, space: int) -> bool:
    """Write a snapshot in place of older ones. False: the scope has moved on, or somebody is in the way."""
    key = (columns.scope, space, secrets.randbits(62))
    parts: list[_Part] = []
    pieces = _pieces(columns, parts)
    written, whole = 0, False
    try:
        while not whole:
            with connections.write() as sql:
                if not _stands(sql, columns, key, written):
                    drop(sql, "scope = ? AND space = ? AND token = ?", *key)
                    return False
                if not written:
                    broken_off = "token NOT IN (SELECT token FROM snapshots WHERE piece = 0)"
                    drop(sql, f"scope = ? AND space = ? AND {broken_off}", *key[:2])
                before = written
                for written, piece in enumerate(islice(pieces, TOGETHER), before + 1):
                    _put(sql, key, columns.changed, written, piece)
                whole = written < before + TOGETHER
                if whole:
                    _put(sql, key, columns.changed, 0, _contents(columns, parts).model_dump_json().encode())
                    drop(sql, "scope = ? AND space = ? AND token != ?", *key)
    except StoreError:
        with suppress(StoreError), connections.write() as sql:
            drop(sql, "scope = ? AND space = ? AND token = ?", *key)
        return False
    return True


def drop_older(sql: sqlite3.Connection) -> None:
    """Destroy snapshots that may hold what was destroyed since they were written."""
    drop(sql, "changed < (SELECT changed FROM scopes WHERE number = scope)")


def drop(sql: sqlite3.Connection, condition: str, *values: int) -> None:
    """Destroy some pieces, without overwriting their pages: these may be hundreds of megabytes.

    What is deleted is gone when the purge that follows rewrites the file, which leaves out all that is free.
    """
    sql.execute("PRAGMA secure_delete = OFF")
    try:
        sql.execute(f"DELETE FROM snapshots WHERE {condition}", values)
    finally:
        sql.execute("PRAGMA secure_delete = ON")


# writing ------------------------------------------------------------------------------------------------------


def _stands(sql: sqlite3.Connection, columns: Columns, key: tuple[int, int, int], written: int) -> bool:
    """Whether the scope and its vectors are there as the columns have them, and all pieces as they were written."""
    scope, space, token = key
    (stands,) = sql.execute(
        """SELECT EXISTS (SELECT 1 FROM scopes WHERE number = :scope AND changed = :changed)
        AND EXISTS (SELECT 1 FROM spaces WHERE id = :space) AND :written =
        (SELECT COUNT(*) FROM snapshots WHERE scope = :scope AND space = :space AND token = :token)""",
        {"scope": scope, "space": space, "token": token, "changed": columns.changed, "written": written},
    ).fetchone()
    return bool(stands)


def _put(sql: sqlite3.Connection, key: tuple[int, int, int], changed: int, piece: int, data: bytes) -> None:
    sql.execute(
        "INSERT INTO snapshots (scope, space, token, changed, piece, data) VALUES (?, ?, ?, ?, ?, ?)",
        (*key, changed, piece, data),
    )


def _pieces(columns: Columns, parts: list[_Part]) -> Iterator[bytes]:
    """All arrays in pieces; what each array is goes to ``parts``."""
    for name, array in _arrays(columns):
        crc, row_bytes = 0, array.dtype.itemsize * int(np.prod(array.shape[1:]))
        step = max(1, PIECE_BYTES // row_bytes)
        for start in range(0, array.shape[0], step):
            piece = array[start : start + step].tobytes()
            crc = zlib.crc32(piece, crc)
            yield piece
        parts.append(_Part(name=name, dtype=array.dtype.str, shape=array.shape, crc=crc))


def _arrays(columns: Columns) -> Iterator[tuple[str, NDArray[Any] | Gathered]]:
    """What the columns hold, but for names."""
    alive = columns.notes["alive"]
    for name, column in columns.notes.saved():
        gone = name not in _NUMBERS_OF_GONE and not alive.all()
        yield f"notes.{name}", np.where(alive, column, column.dtype.type(0)) if gone else column
    ids = [id if there else "" for id, there in zip(columns.ids, alive.tolist(), strict=True)]
    yield "ids.json", np.frombuffer(json.dumps(ids).encode(), np.uint8)
    yield "order.rows", columns.order
    for table in ("words", "terms", "holders", "links", "linking", "events", "term_df", "vectors"):
        yield from ((f"{table}.{name}", array) for name, array in getattr(columns, table).saved())
    held = np.zeros(columns.term_df.used, bool)
    held[columns.terms["term"]] = True  # which are tidy, having been saved
    yield from ((f"term_numbers.{name}", array) for name, array in columns.term_numbers.saved(held))


def _contents(columns: Columns, parts: list[_Part]) -> _Contents:
    assert columns.listed is not None
    role, session = columns.notes["role"], columns.notes["session"]
    alive = columns.notes["alive"]
    sessions = np.concatenate([session[alive], columns.events["session"]])
    return _Contents(
        dim=columns.dim,
        rows=columns.rows,
        lists=columns.listed.mark,
        roles=columns.roles.saved(_used(role[alive], len(columns.roles.all))),
        sessions=columns.sessions.saved(_used(sessions, len(columns.sessions.all))),
        parts=parts,
    )


def _used(numbers: NDArray[Any], count: int) -> Bools:
    used = np.zeros(count + 1, bool)
    used[numbers] = True
    return used[:-1]  # the last is that of no name


# reading ------------------------------------------------------------------------------------------------------


def _find(
    sql: sqlite3.Connection, row: ScopeRow, space: int, dim: int, listed: Listed
) -> tuple[int, int, _Contents] | None:
    """Token, count and contents of the last snapshot, if it can be used."""
    found = sql.execute(
        """SELECT token, changed, data FROM snapshots WHERE scope = ? AND space = ? AND piece = 0
        AND TYPEOF(data) = 'blob' AND changed BETWEEN ? AND ? ORDER BY changed DESC""",
        (row.number, space, row.floor, row.changed),
    ).fetchone()
    if found is None:
        return None
    token, changed, told = found
    try:
        contents = _Contents.model_validate_json(told)
    except ValueError:
        return None
    fits = (contents.codes, contents.dim, contents.lists) == (_CODES, dim, listed.mark)
    return (token, changed, contents) if fits else None


def _read(sql: sqlite3.Connection, key: tuple[int, int, int], parts: list[_Part]) -> dict[str, NDArray[Any]]:
    """The arrays. Raises ``ValueError`` unless they are as they were written, ``KeyError`` if they never were."""
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
    """Put all into empty columns. Raises ``ValueError``, ``KeyError`` if it does not hold together."""
    tables: dict[str, dict[str, NDArray[Any]]] = defaultdict(dict)
    for name, array in arrays.items():
        table, _, own = name.partition(".")
        tables[table][own] = array
    for table in ("notes", "events", "term_df"):
        getattr(columns, table).restore(tables[table])
    rows, terms = columns.rows, columns.term_df.used
    for table in ("words", "terms", "holders", "links", "linking", "vectors"):
        getattr(columns, table).restore(tables[table], rows)
    columns.term_numbers.restore(tables["term_numbers"], terms)
    columns.roles.restore(contents.roles)
    columns.sessions.restore(contents.sessions)
    columns.ids = _IDS.validate_json(tables["ids"]["json"].tobytes())
    columns.order = tables["order"]["rows"]
    number = columns.notes["number"]
    require(len(columns.ids) == rows and bool((number[1:] > number[:-1]).all()))
    require(columns.order.dtype == np.int32 and columns.order.ndim == 1)
    for values, low, high in (
        (columns.order, 0, rows),
        (columns.notes["kind"], 0, len(KINDS)),
        (columns.notes["role"], GONE, len(contents.roles)),
        (columns.notes["session"], GONE, len(contents.sessions)),
        (columns.events["session"], 0, len(contents.sessions)),
        (columns.terms["term"], 0, terms),
        (columns.links["target"], 0, rows),
        (columns.links["owner"], GONE, rows),
        (columns.links["type"], 0, len(LINK_TYPES)),
    ):
        require(within(values, low, high))
