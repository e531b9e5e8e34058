"""The rows of columns that meet a condition on metadata and fields, and those that expired."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.columns import MISSING, Columns, as_ints
from zettel.graph.embedded.conditions import clause
from zettel.graph.embedded.reads import FILTER, filter_values, is_rare
from zettel.ports.conditions import matches
from zettel.ports.expiry import expired

if TYPE_CHECKING:
    from zettel.graph.keys import Keys
    from zettel.ports.conditions import Condition
    from zettel.ports.query import Bools, Filter, Ints


RECENT = 8
"""Conditions whose rows are cached for each scope, so that a search compares only the notes that changed."""


def passing_rows(
    sql: sqlite3.Connection, columns: Columns, keys: Keys, filter: Filter, known_at: int | None
) -> Bools | None:
    """Return which rows meet the filter's ``where`` and ``unexpired_at``, (rows + 1,); None if it has neither."""
    met = matching_rows(sql, columns, keys, filter, known_at)
    if filter.unexpired_at is None:
        return met
    values = columns.scope, filter.unexpired_at
    rows = sql.execute("SELECT number FROM notes WHERE scope = ? AND archived = 0 AND expires_at <= ?", values)
    is_expired = columns.mask(columns.rows_of(as_ints([number for (number,) in rows])))
    for row, note in columns.former_notes.items():
        is_expired[row] = expired(note, filter.unexpired_at)
    return ~is_expired if met is None else met & ~is_expired


def matching_rows(
    sql: sqlite3.Connection, columns: Columns, keys: Keys, filter: Filter, known_at: int | None
) -> Bools | None:
    """Return which rows meet the filter's ``where`` as known at ``known_at``, (rows + 1,); None without a ``where``.

    Rows that fail the rest of the filter may be False.
    """
    where = filter.where
    if where is None:
        return None
    if known_at is not None:
        mask = columns.mask(_met(sql, columns, where, "n.scope = :scope", {"scope": columns.scope}))
        for row, note in columns.former_notes.items():
            mask[row] = matches(where, note.metadata, note)
        return mask
    _, facets = keys.filter_facets(filter)
    if any(is_rare(sql, columns.scope, facet) for facet in facets):
        return columns.mask(_met(sql, columns, where, FILTER, filter_values(columns.scope, keys, filter)))
    since, mask = columns.meeting.pop(repr(where), (-1, columns.mask(())))
    if since != columns.changed:
        mask = np.append(mask[:-1], np.zeros(columns.rows + 2 - len(mask), bool))
        values, condition = {"scope": columns.scope, "since": since}, "n.scope = :scope AND n.changed > :since"
        changed = sql.execute(f"SELECT n.number FROM notes n WHERE {condition}", values)
        mask[columns.rows_of(as_ints([number for (number,) in changed]))] = False
        mask[_met(sql, columns, where, condition, values)] = True
        mask[MISSING] = False
    columns.meeting[repr(where)] = columns.changed, mask
    while len(columns.meeting) > RECENT:
        del columns.meeting[next(iter(columns.meeting))]
    return mask


def _met(
    sql: sqlite3.Connection, columns: Columns, where: Condition, condition: str, values: Mapping[str, Any]
) -> Ints:
    """Return the rows that meet ``where`` among the notes ``n`` of a condition."""
    rows = sql.execute(f"SELECT n.number FROM notes n WHERE {condition} {clause(sql, where)}", values)
    return columns.rows_of(as_ints([number for (number,) in rows]))
