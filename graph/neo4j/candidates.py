"""Candidates from the database: statement parameters, and conversion of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.graph.columnar.columns import as_ints
from zettel.graph.columnar.vector_index import products
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.connection import Neo4jConnection
from zettel.graph.neo4j.reads import clamped_datetime, filter_values
from zettel.model import ROLES, TIME_MAX, Kind, LinkType, implied_role
from zettel.ports import candidate_rules as rules
from zettel.ports.query import Candidates, Filter, Query, ScopeStats

if TYPE_CHECKING:
    from zettel.ports.query import Floats, Ints

REACH = 2
"""Factor on the number of notes requested from the vector index, which may miss some."""
FAR = 32
"""The factor of a second request, after other scopes or the filter left too few notes."""

KINDS = {kind.value: number for number, kind in enumerate(Kind)}
LINK_TYPES = {type.value: number for number, type in enumerate(LinkType)}
ROLE_NUMBERS: Mapping[str, int] = {role: number for number, role in enumerate(ROLES)}
EPISODIC = Kind.EPISODIC.value
_PACKED, _SPEAKER = 11, 3
"""Number of values in a packed row that candidates need, and the place of the speaker among them."""


class NoteFields(NamedTuple):
    """The fields of a note that every search reads: those that ``hashes.index_row`` packs, then the others of
    ``parts/note_values.cypher``."""

    seq: int
    id: str
    kind: str
    speaker: str | None
    session: str | None
    event: str
    occurred_at: int
    valid_from: int
    is_question: bool
    role: str | None
    valid_to: int
    """As set by a person, else TIME_MAX."""
    length: int
    vector: bytes | None
    """Half floats."""


async def gather(
    connection: Neo4jConnection, query: Query, keys: Keys, dim: int, reach: int, matching: Sequence[str] | None = None
) -> Candidates:
    """Return the candidates of a query about the present. ``matching`` are the notes that meet ``where``, if any.

    With a vector, request ``reach`` times as many notes as needed from the vector index, or compare every note (0).
    """
    order = sorted(range(len(query.tokens)), key=query.tokens.__getitem__)
    rows = await connection.read(
        "candidates",
        *_flags(query, indexed=reach > 0, cypher25=connection.searches_in_scope),
        fill={"dim": dim} if reach else None,
        **_parameters(query, keys, order, reach, matching),
    )
    if not rows:
        return _empty(query, order)
    return _candidates(rows[0], query, order)


def _parameters(
    query: Query, keys: Keys, order: Sequence[int], reach: int, matching: Sequence[str] | None
) -> dict[str, Any]:
    """Return the parameters of ``candidates.cypher``, with the words in ``order``."""
    filtered = query.filter != Filter()
    return {
        "scope": query.scope.key,
        "space": query.space,
        "vector": None if query.vector is None else query.vector.astype(float).tolist(),
        "words": [hashes.word_hash(keys, query.tokens[place]) for place in order],
        "names": sorted(set(query.names)),
        "times": [{"start": clamped_datetime(start), "end": clamped_datetime(end)} for start, end in query.times],
        "as_of": query.as_of,
        "moment": None if query.as_of is None else clamped_datetime(query.as_of),
        "pool": query.pool,
        "window": query.window,
        "beyond": (query.window if filtered else 2 * query.window) + 1,
        "budget": rules.POSTINGS_BUDGET,
        "anchors": rules.ANCHORS,
        "walk_seeds": rules.WALK_SEEDS,
        "walk_notes": rules.WALK_NOTES,
        "walk_beam": rules.WALK_BEAM,
        "hub_links": rules.HUB_LINKS,
        "rare_term_df": rules.RARE_TERM_DF,
        "k1": rules.BM25_K1,
        "b": rules.BM25_B,
        "reach": reach * query.pool,
        **filter_values(query.filter, matching),
    }


def _flags(query: Query, *, indexed: bool, cypher25: bool) -> list[str]:
    """Return the flags of ``candidates.cypher`` for a query."""
    filtered, vector = query.filter != Filter(), query.vector is not None
    flags = {
        "as_of": query.as_of is not None,
        "filtered": filtered,
        "narrowed": filtered or query.as_of is not None,
        "no_vector": not vector,
        "vector": vector and not indexed,
        "indexed": vector and indexed,
        "cypher25": vector and indexed and cypher25,
    }
    return [name for name, is_set in flags.items() if is_set]


def _complete(fields: Sequence[Any], *others: Any) -> Sequence[Any]:
    """Return the fields of a packed row with the role, which rows of zettel 0.1 lack, an end if it has none, and the
    other fields."""
    packed = fields[:_PACKED]
    later = (implied_role(packed[_SPEAKER]), TIME_MAX)
    return [*packed, *later[len(packed) + len(later) - _PACKED :], *others]


def _valid_to(by_links: Ints, by_hand: Ints, query: Query) -> Ints:
    """Return the ends that a person set, else those by links; with ``as_of``, later ends are ignored, (n,)."""
    ends = by_hand if query.as_of is None else np.where(by_hand <= query.as_of, by_hand, TIME_MAX)
    return np.where(by_hand < TIME_MAX, ends, by_links)


def _empty(query: Query, order: Sequence[int]) -> Candidates:
    """Return the candidates of a scope that was never written to."""
    lists = "fields seeds pool links terms ends counts runs session_counts session_lengths"
    answer: dict[str, Any] = dict.fromkeys(lists.split(), ())
    answer |= {"df": [0] * len(order), "notes": 0, "tokens": 0, "used": False, "archived": False}
    return _candidates(answer, query, order)


def _candidates(answer: Mapping[str, Any], query: Query, order: Sequence[int]) -> Candidates:
    """Return the row of ``candidates.cypher`` as Candidates, in ``seq`` order."""
    packed = hashes.unpack_rows([row for _, row, _, _ in answer["fields"]])
    notes = sorted(
        (NoteFields(*_complete(known, length, vector)), place)
        for known, (place, _, length, vector) in zip(packed, answer["fields"], strict=True)
    )
    row_of_place = {place: row for row, (_, place) in enumerate(notes)}
    places = list(row_of_place)
    n, q = len(notes), len(query.tokens)
    fields = zip(*[note for note, _ in notes], strict=True) if n else iter([()] * len(NoteFields._fields))
    (seqs, ids, kinds, speaker_of, session_of, events, occurred_at, valid_from, is_question, roles, by_hand, lengths,
     vectors) = fields  # fmt: skip
    row_of = {seq: row for row, seq in enumerate(seqs)}
    speakers, sessions = numbering(speaker_of), numbering(session_of)
    wholes = [event if kind == EPISODIC else id for event, kind, id in zip(events, kinds, ids, strict=True)]
    previous, following = _neighbours(answer["runs"], as_ints(seqs))
    tf, session_tf = np.zeros((n, q), np.float32), np.zeros((len(sessions), q), np.float32)
    for seq, at, count in answer["counts"]:
        if seq in row_of:
            tf[row_of[seq], order[at]] = count
    for session, at, count in answer["session_counts"]:
        session_tf[sessions[session], order[at]] = count
    links = sorted(
        (row_of_place[place], row_of[target], LINK_TYPES[type], weight)
        for place, target, type, weight in answer["links"]
        if target in row_of
    )
    named, ends = set(query.names), dict(answer["ends"])
    terms = sorted(answer["terms"])
    uses = sorted((row_of_place[place], number) for number, (_, _, users) in enumerate(terms) for place in users)
    df = np.zeros(q, np.int64)
    df[np.array(order, np.int64)] = answer["df"]
    return Candidates(
        ids=tuple(ids),
        pool=np.array([answer["pool"][place] for place in places], bool),
        seeds=as_ints([answer["seeds"][place] for place in places]),
        seq=as_ints(seqs),
        event=numbered(wholes, numbering(wholes)),
        kind=numbered(kinds, KINDS),
        speaker=numbered(speaker_of, speakers),
        speaker_names=tuple(speakers),
        role=numbered(roles, ROLE_NUMBERS),
        session=numbered(session_of, sessions),
        previous=previous,
        next=following,
        occurred_at=as_ints(occurred_at),
        valid_from=as_ints(valid_from),
        valid_to=_valid_to(as_ints([ends.get(place, TIME_MAX) for place in places]), as_ints(by_hand), query),
        length=as_ints(lengths),
        is_question=np.array(is_question, bool),
        tf=tf,
        cosine=_cosines(vectors, query.vector),
        link_source=as_ints([link[0] for link in links]),
        link_target=as_ints([link[1] for link in links]),
        link_type=as_ints([link[2] for link in links]),
        link_weight=np.array([link[3] for link in links], np.float32),
        term_keys=tuple(name for name, _, _ in terms),
        term_df=as_ints([df for _, df, _ in terms]),
        term_named=np.array([name in named for name, _, _ in terms], bool),
        term_note=as_ints([use[0] for use in uses]),
        term_index=as_ints([use[1] for use in uses]),
        session_tf=session_tf,
        session_length=numbered(sessions, dict(answer["session_lengths"]), 0),
        stats=ScopeStats(
            notes=answer["notes"],
            tokens=answer["tokens"],
            df=df,
            used=answer["used"],
            archived=answer["archived"],
        ),
    )


def _cosines(vectors: Sequence[bytes | None], query: Floats | None) -> Floats:
    """Return the cosine of each note's vector with the query's, (n,); 0 where either is missing."""
    cosines = np.zeros(len(vectors), np.float32)
    rows = [row for row, vector in enumerate(vectors) if vector]
    if query is not None and rows:
        joined = b"".join(vector for vector in vectors if vector)
        cosines[rows] = products(np.frombuffer(joined, hashes.HALF).reshape(len(rows), -1).astype(np.float32), query)
    return cosines


def _neighbours(runs: Sequence[Sequence[int]], seqs: Ints) -> tuple[Ints, Ints]:
    """Return the previous and the next row in each row's session, (n,) and (n,); -1 if it is not a candidate.

    ``runs`` are sequences of neighbouring ``seq``; ``seqs`` are those of the rows, sorted.
    """
    previous, following = np.full((2, len(seqs)), -1, np.int64)
    joined = as_ints([seq for run in runs for seq in run])
    if len(joined):
        rows = np.minimum(np.searchsorted(seqs, joined), len(seqs) - 1)
        is_row = seqs[rows] == joined
        is_last = np.zeros(len(joined), bool)
        is_last[np.cumsum([len(run) for run in runs]) - 1] = True
        pairs = np.flatnonzero(is_row[:-1] & is_row[1:] & ~is_last[:-1])
        previous[rows[pairs + 1]], following[rows[pairs]] = rows[pairs], rows[pairs + 1]
    return previous, following


def numbering(names: Iterable[str | None]) -> dict[str, int]:
    """Return a number for each distinct name, in order of appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(name for name in names if name is not None))}


def numbered(names: Iterable[str | None], numbers: Mapping[str, int], default: int = -1) -> Ints:
    return as_ints([default if name is None else numbers.get(name, default) for name in names])
