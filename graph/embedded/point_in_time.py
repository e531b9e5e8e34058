"""A scope's columns as known at a moment, with every later change reverted.

Notes that changed since then are folded and indexed again one by one; there are few, except far in the past.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.core.fold import fold
from zettel.graph.bodies import micros_or_max, micros_or_min, read_note
from zettel.graph.columnar.columns import KINDS, LINK_TYPES, MISSING, ROLE_NUMBERS, Columns, as_ints
from zettel.graph.embedded import reads
from zettel.graph.keys import Entry, Keys
from zettel.model import Link, Note, to_micros
from zettel.text.extraction import is_question
from zettel.text.index import index_note, vector_text

if TYPE_CHECKING:
    from zettel.ports.query import Ints


class PastNote(NamedTuple):
    """A former state of a note, with its row."""

    row: int
    note: Note
    links: tuple[Link, ...]
    reworded: bool
    event: int
    event_seq: int
    sources: frozenset[str]


def as_known(sql: sqlite3.Connection, columns: Columns, known_at: int, keys: Keys) -> Columns:
    """Return a copy of the columns in the state known at ``known_at`` (microseconds).

    A note with changed wording has no vector, because its vector contains later knowledge.
    """
    known = columns.copy()
    notes = known.notes
    past = [former for former in _formers(sql, known, known_at) if notes["recorded_at"][former.row] <= known_at]
    changed = as_ints([former.row for former in past])
    later = np.flatnonzero(notes["alive"] & (notes["recorded_at"] > known_at))
    known.release(np.concatenate([later, changed]))
    notes["alive"][later] = False
    known.vectors.drop(as_ints([former.row for former in past if former.reworded]))
    known.former_notes = {former.row: former.note for former in past}
    for former in past:
        _restore_fields(known, former)
    _restore_entries(known, past, keys)
    _restore_links(sql, known, past, known_at)
    known.arrange(np.arange(len(known.sessions.all)))
    known.end_update()
    return known


def _formers(sql: sqlite3.Connection, columns: Columns, known_at: int) -> list[PastNote]:
    rows = sql.execute(
        """SELECT n.number, COALESCE(t.base, t.body), t.body FROM notes n JOIN texts t ON t.note = n.number
        WHERE n.number IN (SELECT note FROM revisions WHERE scope = ? AND recorded_at > ?)""",
        (columns.scope, known_at),
    ).fetchall()
    found: list[PastNote] = []
    for number, base, body in rows:
        note, links = fold(read_note(base), reads.revisions_of(sql, number), known_at)
        events = [
            sql.execute("SELECT number, seq, source FROM events WHERE scope = ? AND id = ?", (columns.scope, event))
            for event in note.event_ids
        ]
        event_rows = [row for row in (event.fetchone() for event in events) if row is not None]
        first = event_rows[0] if event_rows else (MISSING, note.seq, None)
        found.append(
            PastNote(
                row=int(columns.rows_of(as_ints([number]))[0]),
                note=note,
                links=links,
                reworded=vector_text(note) != vector_text(read_note(body)),
                event=first[0],
                event_seq=first[1],
                sources=frozenset(source for _, _, source in event_rows if source is not None),
            )
        )
    return found


def _restore_fields(columns: Columns, former: PastNote) -> None:
    row, note, notes = former.row, former.note, columns.notes
    for name, value in {
        "event": former.event, "event_seq": former.event_seq, "part": note.part,
        "kind": KINDS.index(note.kind.value), "speaker": columns.speakers.number(note.speaker),
        "role": ROLE_NUMBERS[note.role],
        "session": columns.sessions.number(note.session), "occurred_at": micros_or_min(note.occurred_at),
        "valid_from": micros_or_min(note.valid_from), "valid_to": micros_or_max(note.valid_to),
        "length": index_note(note).length, "asks": is_question(note.content), "shown": not note.archived,
    }.items():  # fmt: skip
        notes[name][row] = value


def _restore_entries(columns: Columns, past: Sequence[PastNote], keys: Keys) -> None:
    """Restore words, facets and terms; an archived note has none."""
    shown = [former for former in past if not former.note.archived]
    rows = as_ints([former.row for former in shown])
    entries: list[list[Entry]] = []
    terms: list[list[Entry]] = []
    for former in shown:
        index = index_note(former.note)
        entries.append(keys.entries(index) + keys.facets(former.note, former.sources))
        terms.append([(keys.term(use.key), use.count) for use in index.terms])
        columns.former_names.update((keys.term(use.key), use.key) for use in index.terms)
    sizes, (key, count) = as_ints([len(note) for note in entries]), _columns_of(entries)
    columns.post(np.repeat(rows, sizes), key, count)
    sizes, (key, count) = as_ints([len(note) for note in terms]), _columns_of(terms)
    columns.set_terms(rows, sizes, key, count)


def _columns_of(lists: Sequence[Sequence[Entry]]) -> tuple[Ints, Ints]:
    flat = as_ints([entry for entries in lists for entry in entries]).reshape(-1, 2)
    return flat[:, 0], flat[:, 1]


def _restore_links(sql: sqlite3.Connection, columns: Columns, past: Sequence[PastNote], known_at: int) -> None:
    """Restore the links known then; links of changed notes come from their former state."""
    rows = np.arange(columns.rows)
    source, places = columns.links.take(rows)
    links = {name: columns.links[name][places] for name in ("target", "type", "owner", "weight", "recorded_at")}
    changed = columns.mask([former.row for former in past])
    unchanged = (links["recorded_at"] <= known_at) & ~changed[links["owner"]]
    ids = {id for former in past for link in former.links for id in (link.source, link.target)}
    row_of = {id: _row_of(sql, columns, id) for id in sorted(ids)}
    former_links = [
        (row_of[link.source], row_of[link.target], LINK_TYPES.index(link.type), former.row, link.weight,
         to_micros(link.recorded_at))
        for former in past for link in former.links
        if MISSING not in (row_of[link.source], row_of[link.target]) and to_micros(link.recorded_at) <= known_at
    ]  # fmt: skip
    more = list(zip(*former_links, strict=True)) or [()] * 6
    source = np.concatenate([source[unchanged], as_ints(more[0])])
    order = np.argsort(source, kind="stable")
    added = zip(("target", "type", "owner", "weight", "recorded_at"), more[1:], strict=True)
    columns.link(
        rows,
        np.bincount(source, minlength=len(rows)),
        **{
            name: np.concatenate([links[name][unchanged], np.array(values, links[name].dtype)])[order]
            for name, values in added
        },
    )


def _row_of(sql: sqlite3.Connection, columns: Columns, id: str) -> int:
    row = sql.execute("SELECT number FROM notes WHERE scope = ? AND id = ?", (columns.scope, id)).fetchone()
    return int(columns.rows_of(as_ints([row[0]]))[0]) if row else MISSING
