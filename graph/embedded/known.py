"""A scope as it was known at a moment: its columns with every later change taken back.

Notes that changed since are folded and indexed again, one by one; there are few of them unless one looks far back.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import numpy as np

from zettel.annotate.extractive import is_question
from zettel.annotate.index import index_note, vector_text
from zettel.batch import NoteIndex
from zettel.fold import fold
from zettel.graph.embedded import reads
from zettel.graph.embedded.bodies import micros_or_min, read_note
from zettel.graph.embedded.columns import GONE, KINDS, LINK_TYPES, Columns, as_ints
from zettel.graph.embedded.keys import Entry, Keys
from zettel.model import Link, Note, to_micros


class Former(NamedTuple):
    """A note as it was known, in its row."""

    row: int
    note: Note
    links: tuple[Link, ...]
    reworded: bool
    event: int
    event_seq: int
    sources: frozenset[str]


def as_known(sql: sqlite3.Connection, columns: Columns, known_at: int, keys: Keys) -> Columns:
    """A copy of the columns as they would have been at ``known_at`` (microseconds).

    A note whose wording changed since has no vector: the one it has tells what was learned later.
    """
    known = columns.copied()
    notes, links = known.notes, known.links
    notes["alive"][:] &= notes["recorded_at"] <= known_at
    formers = [former for former in _formers(sql, known, known_at) if notes["alive"][former.row]]
    changed = known.mask([former.row for former in formers])
    known.clear(as_ints([former.row for former in formers]), links=False)
    links["source"][(links["recorded_at"] > known_at) | changed[links["owner"]]] = GONE
    names: dict[int, str] = {}
    for former in formers:
        _set_back(known, former, keys, names)
        known.term_names.extend(names[key] for key in known.unnamed_terms)
    ids = {link.target: GONE for former in formers for link in former.links}
    ids |= {link.source: GONE for former in formers for link in former.links}
    for id in ids:
        found = sql.execute("SELECT number FROM notes WHERE scope = ? AND id = ?", (known.scope, id)).fetchone()
        ids[id] = int(known.rows_of(as_ints([found[0]]))[0]) if found else GONE
    for former in formers:
        _link_back(known, former, ids, known_at)
    known.arrange(np.arange(len(known.sessions.all)))
    return known


def _formers(sql: sqlite3.Connection, columns: Columns, known_at: int) -> list[Former]:
    rows = sql.execute(
        """SELECT n.number, COALESCE(t.base, t.body), t.body FROM notes n JOIN texts t ON t.note = n.number
        WHERE n.number IN (SELECT note FROM revisions WHERE scope = ? AND recorded_at > ?)""",
        (columns.scope, known_at),
    ).fetchall()
    formers: list[Former] = []
    for number, base, body in rows:
        note, links = fold(read_note(base), reads.revisions_of(sql, number), known_at)
        events = [
            sql.execute("SELECT number, seq, source FROM events WHERE scope = ? AND id = ?", (columns.scope, event))
            for event in note.event_ids
        ]
        found = [row for row in (event.fetchone() for event in events) if row is not None]
        first = found[0] if found else (GONE, note.seq, None)
        formers.append(
            Former(
                row=int(columns.rows_of(as_ints([number]))[0]),
                note=note,
                links=links,
                reworded=vector_text(note) != vector_text(read_note(body)),
                event=first[0],
                event_seq=first[1],
                sources=frozenset(source for _, _, source in found if source is not None),
            )
        )
    return formers


def _set_back(columns: Columns, former: Former, keys: Keys, names: dict[int, str]) -> None:
    row, note, notes = former.row, former.note, columns.notes
    index: NoteIndex = index_note(note)
    for name, value in {
        "event": former.event, "event_seq": former.event_seq, "part": note.part,
        "kind": KINDS.index(note.kind.value), "role": columns.roles.number(note.role),
        "session": columns.sessions.number(note.session), "occurred_at": micros_or_min(note.occurred_at),
        "valid_from": micros_or_min(note.valid_from), "length": index.length, "asks": is_question(note.content),
        "shown": not note.archived,
    }.items():  # fmt: skip
        notes[name][row] = value
    if former.reworded:
        notes["vector"][row] = 0
        notes["embedded"][row] = False
    entries: list[Entry] = keys.entries(index) + keys.facets(note, former.sources)
    columns.post(
        np.full(len(entries), row), as_ints([key for key, _ in entries]), np.array([n for _, n in entries], np.int32)
    )
    terms = [(keys.term(use.key), use.key, use.count) for use in index.terms]
    names.update((key, name) for key, name, _ in terms)
    columns.hold(
        np.full(len(terms), row), as_ints([key for key, _, _ in terms]), np.array([n for _, _, n in terms], np.int32)
    )


def _link_back(columns: Columns, former: Former, rows: dict[str, int], known_at: int) -> None:
    for link in former.links:
        source, target, recorded_at = rows[link.source], rows[link.target], to_micros(link.recorded_at)
        if GONE in (source, target) or recorded_at > known_at:
            continue
        columns.links.append(
            source=as_ints([source]),
            target=as_ints([target]),
            type=as_ints([LINK_TYPES.index(link.type)]),
            owner=as_ints([former.row]),
            weight=np.array([link.weight], np.float32),
            recorded_at=as_ints([recorded_at]),
        )
