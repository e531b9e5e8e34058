"""Where asked keys stand, and what leads from note to note, among the visible rows of a scope's columns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.embedded.columns import Columns

if TYPE_CHECKING:
    from zettel.query import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Matches:
    """Where asked keys stand: ``row`` and ``count`` of each place, and ``asked``, the position of its key."""

    row: Ints
    count: Ints
    asked: Ints


@dataclass(frozen=True, slots=True)
class Edges:
    """Links between visible notes, as rows, and the entries of Terms that visible notes hold."""

    source: Ints
    target: Ints
    type: Ints
    weight: Floats
    term: Ints
    holder: Ints
    count: Ints
    term_df: Ints


def matches(columns: Columns, wanted: list[int], visible: Bools) -> Matches:
    """Where keys stand among visible notes: one pass over the low 16 bits of all, then exactly."""
    none = np.zeros(0, np.int64)
    if not wanted:
        return Matches(none, none, none)
    asked = np.array(wanted, np.int64)
    near = np.zeros(2**16, bool)
    near[asked.astype(np.uint64).astype(np.uint16)] = True
    entries = columns.entries
    hits = np.flatnonzero(near[entries["low"]])
    hits = hits[visible[entries["row"][hits]]]
    sort = np.argsort(asked, kind="stable")
    places = np.minimum(np.searchsorted(asked[sort], entries["key"][hits]), len(asked) - 1)
    exact = asked[sort][places] == entries["key"][hits]
    hits, places = hits[exact], places[exact]
    return Matches(entries["row"][hits].astype(np.int64), entries["count"][hits].astype(np.int64), sort[places])


def only(found: Matches, mask: Bools) -> Matches:
    return Matches(found.row[mask], found.count[mask], found.asked[mask])


def edges_among(columns: Columns, visible: Bools) -> Edges:
    links, terms = columns.links, columns.terms
    live = visible[links["source"]] & visible[links["target"]]
    held = visible[terms["row"]]
    term = terms["term"][held]
    return Edges(
        source=links["source"][live],
        target=links["target"][live],
        type=links["type"][live],
        weight=links["weight"][live],
        term=term,
        holder=terms["row"][held],
        count=terms["count"][held],
        term_df=np.bincount(term, minlength=len(columns.term_names)).astype(np.int64),
    )
