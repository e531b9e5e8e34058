"""A scope as it was known at a moment: every note folded back to its state then, and all of them candidates.

What was known then is in no index, so the whole scope is read. Nothing is left out either: the pool is every note that
the filter lets through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.annotate.extractive import is_question
from zettel.annotate.index import index_note, vector_text
from zettel.batch import NoteIndex
from zettel.fold import fold
from zettel.graph.neo4j import rows
from zettel.graph.neo4j.candidates import KINDS, LINK_TYPES, moment_at
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.graph.neo4j.reads import told_by
from zettel.model import TIME_MAX, TIME_MIN, Kind, Link, LinkType, Note, as_metadata_pairs, to_micros
from zettel.query import Candidates, Filter, Query, ScopeStats, Seed
from zettel.search.pool import RARE_TERM_DF

if TYPE_CHECKING:
    from zettel.query import Floats, Ints


class Past(NamedTuple):
    """A note as it was known, the links that it had decided by then, and its cosine with the question."""

    note: Note
    links: tuple[Link, ...]
    cosine: float


class Place(NamedTuple):
    """Where an event stands among those of its session, and the file it was read from."""

    place: str
    file: str | None


async def candidates_known(connection: Connection, query: Query) -> Candidates:
    """The candidates for a question about what was known at its ``known_at``."""
    assert query.known_at is not None
    known_at = query.known_at
    values: dict[str, Any] = {
        "scope": query.scope.key,
        "space": query.space,
        "vector": None if query.vector is None else query.vector.astype(float).tolist(),
        "known": moment_at(known_at),
    }

    async def work(
        transaction: Transaction,
    ) -> tuple[list[Past], list[Link], dict[str, Place], Mapping[str, bool]]:
        past = []
        for row in await transaction.run("known", **values):
            base, revisions = rows.read_note(row["base"]), told_by(row["revisions"])
            note, links = fold(base, revisions, known_at)
            # The vector of a note that was reworded since says what was learned later.
            same = not revisions or vector_text(note) == vector_text(fold(base, revisions)[0])
            past.append(Past(note, links, row["cosine"] if same else 0.0))
        mentions = [rows.read_link(row) for row in await transaction.run("known_links", **values)]
        events = await transaction.run("known_events", **values)
        (anywhere,) = await transaction.run("known_scope", scope=query.scope.key)
        return past, mentions, {row["id"]: Place(row["place"], row["file"]) for row in events}, anywhere

    return _gathered(query, *await connection.reading(work))


def _gathered(
    query: Query,
    past: Sequence[Past],
    mentions: Sequence[Link],
    events: Mapping[str, Place],
    anywhere: Mapping[str, bool],
) -> Candidates:
    notes = {one.note.id: one for one in past}
    assert query.known_at is not None
    links = [link for one in past for link in one.links] + list(mentions)
    links = [x for x in links if {x.source, x.target} <= notes.keys() and to_micros(x.recorded_at) <= query.known_at]
    valid_from = {id: _micros(one.note.valid_from) for id, one in notes.items()}
    begun = {id for id, start in valid_from.items() if query.as_of is None or start <= query.as_of}
    ends = dict.fromkeys(notes, TIME_MAX)
    for link in links:
        if link.type is LinkType.SUPERSEDES and link.source in begun:
            start = valid_from[link.source]
            ends[link.target] = min(ends[link.target], to_micros(link.recorded_at) if start == TIME_MIN else start)
    seen = sorted(
        (one for one in past if one.note.id in begun and not one.note.archived), key=lambda one: one.note.seq
    )
    shown = [one.note for one in seen]
    row = {note.id: number for number, note in enumerate(shown)}
    index = [index_note(note) for note in shown]
    n, q = len(shown), len(query.tokens)
    tf = np.array([[found.tokens.get(token, 0) for token in query.tokens] for found in index], np.float32)
    tf = tf.reshape(n, q)
    length = np.array([found.length for found in index], np.int64)
    session, previous, following, sums = _sessions(shown, events, tf, length)
    wholes = [note.event_ids[0] if note.kind is Kind.EPISODIC else note.id for note in shown]
    whole = {name: number for number, name in enumerate(dict.fromkeys(wholes))}
    roles = list(dict.fromkeys(note.role for note in shown if note.role is not None))
    terms, uses = _terms(index, query)
    cosine = np.array([one.cosine for one in seen], np.float32)
    kept = sorted(
        (row[x.source], row[x.target], LINK_TYPES[x.type.value], x.weight)
        for x in links
        if x.source in row and x.target in row
    )
    return Candidates(
        ids=tuple(row),
        pool=np.array([_passes(note, query.filter, events) for note in shown], bool),
        seeds=_seeds(query, shown, index, tf, cosine),
        seq=np.array([note.seq for note in shown], np.int64),
        event=np.array([whole[name] for name in wholes], np.int64),
        kind=np.array([KINDS[note.kind.value] for note in shown], np.int64),
        role=np.array([-1 if note.role is None else roles.index(note.role) for note in shown], np.int64),
        role_names=tuple(roles),
        session=session,
        previous=previous,
        next=following,
        occurred_at=np.array([_micros(note.occurred_at) for note in shown], np.int64),
        valid_from=np.array([valid_from[id] for id in row], np.int64),
        valid_to=np.array([ends[id] for id in row], np.int64),
        length=length,
        is_question=np.array([is_question(note.content) for note in shown], bool),
        tf=tf,
        cosine=cosine,
        link_source=np.array([link[0] for link in kept], np.int64),
        link_target=np.array([link[1] for link in kept], np.int64),
        link_type=np.array([link[2] for link in kept], np.int64),
        link_weight=np.array([link[3] for link in kept], np.float32),
        term_keys=tuple(terms),
        term_df=np.array(list(terms.values()), np.int64),
        term_named=np.array([key in query.names for key in terms], bool),
        term_note=np.array([use[0] for use in uses], np.int64),
        term_index=np.array([use[1] for use in uses], np.int64),
        session_tf=sums[:, :q].astype(np.float32),
        session_length=sums[:, q].astype(np.int64),
        stats=ScopeStats(n, int(length.sum()), (tf > 0).sum(axis=0).astype(np.int64), **anywhere),
    )


def _sessions(
    shown: Sequence[Note], events: Mapping[str, Place], tf: Floats, length: Ints
) -> tuple[Ints, Ints, Ints, Floats]:
    """Per row its session (a number) and the rows before and after it there; per session the sums of tf and length."""
    members: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for number, note in enumerate(shown):
        if note.session is not None:
            members[note.session].append((events[note.event_ids[0]].place, note.part, number))
    session, previous, following = np.full((3, len(shown)), -1, np.int64)
    sums = np.zeros((len(members), tf.shape[1] + 1))
    for number, held in enumerate(members.values()):
        ordered = [at for _, _, at in sorted(held)]
        session[ordered], previous[ordered[1:]], following[ordered[:-1]] = number, ordered[:-1], ordered[1:]
        sums[number] = np.append(tf[ordered].sum(axis=0), length[ordered].sum())
    return session, previous, following, sums


def _terms(index: Sequence[NoteIndex], query: Query) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Terms that the question names or that bind, with how many notes hold each; and the uses, as (row, Term)."""
    holders: dict[str, list[int]] = defaultdict(list)
    for number, found in enumerate(index):
        for use in found.terms:
            holders[use.key].append(number)
    kept = sorted(key for key, held in holders.items() if key in query.names or 2 <= len(held) <= RARE_TERM_DF)
    uses = [(number, place) for place, key in enumerate(kept) for number in holders[key]]
    return {key: len(holders[key]) for key in kept}, uses


def _seeds(query: Query, shown: Sequence[Note], index: Sequence[NoteIndex], tf: Floats, cosine: Floats) -> Ints:
    names = set(query.names)
    seeds = np.zeros(len(shown), np.int64)
    seeds[cosine != 0] |= int(Seed.VECTOR)
    seeds[tf.any(axis=1)] |= int(Seed.TEXT)
    for number, (note, found) in enumerate(zip(shown, index, strict=True)):
        time = _micros(note.occurred_at)
        if time != TIME_MIN and any(start <= time < end for start, end in query.times):
            seeds[number] |= int(Seed.TIME)
        if not names.isdisjoint(found.title_keys):
            seeds[number] |= int(Seed.TITLE)
        if not names.isdisjoint(use.key for use in found.terms):
            seeds[number] |= int(Seed.TERM)
    return seeds


def _passes(note: Note, wanted: Filter, events: Mapping[str, Place]) -> bool:
    """Whether a filter lets a note through."""
    time = None if note.occurred_at is None else to_micros(note.occurred_at)
    return (
        (not wanted.kinds or note.kind.value in wanted.kinds)
        and (not wanted.tags or not set(wanted.tags).isdisjoint(note.tags))
        and wanted.session in (None, note.session)
        and wanted.role in (None, note.role)
        and (wanted.since is None or (time is not None and time >= wanted.since))
        and (wanted.until is None or (time is not None and time < wanted.until))
        and set(wanted.metadata) <= set(as_metadata_pairs(note.metadata))
        and (wanted.source is None or wanted.source in {events[id].file for id in note.event_ids if id in events})
    )


def _micros(moment: datetime | None) -> int:
    return TIME_MIN if moment is None else to_micros(moment)
