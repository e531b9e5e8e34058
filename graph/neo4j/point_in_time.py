"""Candidates of a scope at an earlier transaction time (`known_at`): every note is folded to its state at that time.

No index stores past states, so this reads the whole scope. The candidates are all notes that pass the filter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.core.fold import fold
from zettel.graph.bodies import micros_or_min
from zettel.graph.columnar.columns import as_ints
from zettel.graph.neo4j import rows
from zettel.graph.neo4j.candidates import KINDS, LINK_TYPES, ROLE_NUMBERS, numbered, numbering
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.graph.neo4j.reads import clamped_datetime, revisions_of
from zettel.model import TIME_MAX, TIME_MIN, Kind, Link, LinkType, Note, NoteIndex, to_micros
from zettel.ports.candidate_rules import RARE_TERM_DF, passes
from zettel.ports.query import Candidates, Filter, Query, ScopeStats, Seed
from zettel.text.extraction import is_question
from zettel.text.index import index_note, vector_text

if TYPE_CHECKING:
    from zettel.ports.query import Floats, Ints


class NoteAtTime(NamedTuple):
    """The former state of a note, its decided links, and its cosine with the question."""

    note: Note
    links: tuple[Link, ...]
    cosine: float


class EventPlace(NamedTuple):
    """The place of an event in its session, and its source file."""

    place: str
    file: str | None


async def candidates_known(connection: Neo4jConnection, query: Query) -> Candidates:
    """Return the candidates of a query with ``known_at``."""
    assert query.known_at is not None
    known_at = query.known_at
    values: dict[str, Any] = {
        "scope": query.scope.key,
        "space": query.space,
        "vector": None if query.vector is None else query.vector.astype(float).tolist(),
        "known": clamped_datetime(known_at),
    }

    async def work(
        transaction: Transaction,
    ) -> tuple[list[NoteAtTime], list[Link], dict[str, EventPlace], Mapping[str, bool]]:
        past = []
        for row in await transaction.run("known_notes", **values):
            base, revisions = rows.read_note(row["base"]), revisions_of(row["revisions"])
            note, links = fold(base, revisions, known_at)
            # The vector of a note that was reworded since then contains later knowledge.
            same = not revisions or vector_text(note) == vector_text(fold(base, revisions)[0])
            past.append(NoteAtTime(note, links, row["cosine"] if same else 0.0))
        mentions = [rows.read_link(row) for row in await transaction.run("known_links", **values)]
        events = await transaction.run("known_events", **values)
        (flags,) = await transaction.run("known_scope", scope=query.scope.key)
        return past, mentions, {row["id"]: EventPlace(row["place"], row["file"]) for row in events}, flags

    return _candidates(query, *await connection.reading(work))


def _candidates(
    query: Query,
    past: Sequence[NoteAtTime],
    mentions: Sequence[Link],
    events: Mapping[str, EventPlace],
    scope_flags: Mapping[str, bool],
) -> Candidates:
    notes = {former.note.id: former for former in past}
    assert query.known_at is not None
    links = [link for former in past for link in former.links] + list(mentions)
    links = [x for x in links if {x.source, x.target} <= notes.keys() and to_micros(x.recorded_at) <= query.known_at]
    valid_from = {id: micros_or_min(former.note.valid_from) for id, former in notes.items()}
    begun = {id for id, start in valid_from.items() if query.as_of is None or start <= query.as_of}
    by_hand = {id: to_micros(former.note.valid_to) for id, former in notes.items() if former.note.valid_to}
    valid_to = dict.fromkeys(notes, TIME_MAX) | {
        id: end for id, end in by_hand.items() if query.as_of is None or end <= query.as_of
    }
    for link in links:
        if link.type is LinkType.SUPERSEDES and link.source in begun and link.target not in by_hand:
            start = valid_from[link.source]
            end = to_micros(link.recorded_at) if start == TIME_MIN else start
            valid_to[link.target] = min(valid_to[link.target], end)
    visible = sorted(
        (former for former in past if former.note.id in begun and not former.note.archived),
        key=lambda former: former.note.seq,
    )
    shown = [former.note for former in visible]
    row = {note.id: number for number, note in enumerate(shown)}
    indexes = [index_note(note) for note in shown]
    n, q = len(shown), len(query.tokens)
    tf = np.array([[index.tokens.get(token, 0) for token in query.tokens] for index in indexes], np.float32)
    tf = tf.reshape(n, q)
    length = as_ints([index.length for index in indexes])
    session, previous, following, sums = _sessions(shown, events, tf, length)
    wholes = [note.event_ids[0] if note.kind is Kind.EPISODIC else note.id for note in shown]
    speakers = numbering(note.speaker for note in shown)
    terms, uses = _terms(indexes, query)
    cosine = np.array([former.cosine for former in visible], np.float32)
    edges = sorted(
        (row[x.source], row[x.target], LINK_TYPES[x.type.value], x.weight)
        for x in links
        if x.source in row and x.target in row
    )
    return Candidates(
        ids=tuple(row),
        pool=np.array([_passes(note, query.filter, events) for note in shown], bool),
        seeds=_seeds(query, shown, indexes, tf, cosine),
        seq=as_ints([note.seq for note in shown]),
        event=numbered(wholes, numbering(wholes)),
        kind=as_ints([KINDS[note.kind.value] for note in shown]),
        speaker=numbered((note.speaker for note in shown), speakers),
        speaker_names=tuple(speakers),
        role=numbered((note.role for note in shown), ROLE_NUMBERS),
        session=session,
        previous=previous,
        next=following,
        occurred_at=as_ints([micros_or_min(note.occurred_at) for note in shown]),
        valid_from=as_ints([valid_from[id] for id in row]),
        valid_to=as_ints([valid_to[id] for id in row]),
        length=length,
        is_question=np.array([is_question(note.content) for note in shown], bool),
        tf=tf,
        cosine=cosine,
        link_source=as_ints([edge[0] for edge in edges]),
        link_target=as_ints([edge[1] for edge in edges]),
        link_type=as_ints([edge[2] for edge in edges]),
        link_weight=np.array([edge[3] for edge in edges], np.float32),
        term_keys=tuple(terms),
        term_df=as_ints(list(terms.values())),
        term_named=np.array([key in query.names for key in terms], bool),
        term_note=as_ints([use[0] for use in uses]),
        term_index=as_ints([use[1] for use in uses]),
        session_tf=sums[:, :q].astype(np.float32),
        session_length=sums[:, q].astype(np.int64),
        stats=ScopeStats(n, int(length.sum()), (tf > 0).sum(axis=0).astype(np.int64), **scope_flags),
    )


def _sessions(
    shown: Sequence[Note], events: Mapping[str, EventPlace], tf: Floats, length: Ints
) -> tuple[Ints, Ints, Ints, Floats]:
    """Return each row's session number and its previous and next rows there, and each session's sums of tf and length.

    Shapes: (n,), (n,), (n,), (s, q + 1).
    """
    members: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for row, note in enumerate(shown):
        if note.session is not None:
            members[note.session].append((events[note.event_ids[0]].place, note.part, row))
    session, previous, following = np.full((3, len(shown)), -1, np.int64)
    sums = np.zeros((len(members), tf.shape[1] + 1))
    for number, places in enumerate(members.values()):
        rows = [row for _, _, row in sorted(places)]
        session[rows], previous[rows[1:]], following[rows[:-1]] = number, rows[:-1], rows[1:]
        sums[number] = np.append(tf[rows].sum(axis=0), length[rows].sum())
    return session, previous, following, sums


def _terms(indexes: Sequence[NoteIndex], query: Query) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Return the note counts of named terms and of rare shared terms, and the uses as (row, term number)."""
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, index in enumerate(indexes):
        for use in index.terms:
            rows_of[use.key].append(row)
    keys = sorted(key for key, rows in rows_of.items() if key in query.names or 2 <= len(rows) <= RARE_TERM_DF)
    uses = [(row, number) for number, key in enumerate(keys) for row in rows_of[key]]
    return {key: len(rows_of[key]) for key in keys}, uses


def _seeds(query: Query, shown: Sequence[Note], indexes: Sequence[NoteIndex], tf: Floats, cosine: Floats) -> Ints:
    names = set(query.names)
    seeds = np.zeros(len(shown), np.int64)
    seeds[cosine != 0] |= int(Seed.VECTOR)
    seeds[tf.any(axis=1)] |= int(Seed.TEXT)
    for row, (note, index) in enumerate(zip(shown, indexes, strict=True)):
        time = micros_or_min(note.occurred_at)
        if time != TIME_MIN and any(start <= time < end for start, end in query.times):
            seeds[row] |= int(Seed.TIME)
        if not names.isdisjoint(index.title_keys):
            seeds[row] |= int(Seed.TITLE)
        if not names.isdisjoint(use.key for use in index.terms):
            seeds[row] |= int(Seed.TERM)
    return seeds


def _passes(note: Note, filter: Filter, events: Mapping[str, EventPlace]) -> bool:
    files = {events[id].file for id in note.event_ids if id in events}
    return passes(note, filter) and (filter.source is None or filter.source in files)
