"""From a question to its statement, and from what that and the notes tell to Candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.reads import filter_values
from zettel.model import TIME_MAX, Kind, LinkType, from_micros, to_micros
from zettel.query import Candidates, Filter, Query, ScopeStats
from zettel.search import pool

if TYPE_CHECKING:
    from zettel.query import Floats, Ints

REACH = 2
"""How many times the wanted number the index is asked for: it may miss some."""
FAR = 32
"""The same when that brought too few, because other scopes or the filter were in the way."""

KINDS = {kind.value: number for number, kind in enumerate(Kind)}
LINK_TYPES = {type.value: number for number, type in enumerate(LinkType)}
EPISODIC = Kind.EPISODIC.value


class Told(NamedTuple):
    """A note as a search reads it whatever it asks: what ``hashes.rest_row`` packs, and the rest of what
    ``notes_told.cypher`` answers."""

    seq: int
    id: str
    kind: str
    role: str | None
    session: str | None
    event: str
    occurred_at: int
    valid_from: int
    asks: bool
    length: int
    code: bytes | str
    """Its vector; "": none."""
    replaced: bool
    """Whether a note may have taken its place."""
    links: Sequence[tuple[int, str, float]]
    """Those that lead from it: the other note's ``seq``, type, weight."""
    terms: Sequence[str]


class Bound(NamedTuple):
    """What binds notes and changes with others."""

    holders: Mapping[str, int]
    """How many notes hold each of the Terms that the question names or that two notes of the pool hold."""
    ends: Mapping[str, int]
    """Since when a note, by id, is no longer valid."""


def asked(query: Query, keys: Keys, order: Sequence[int], reach: int) -> dict[str, Any]:
    """The parameters of ``candidates.cypher``; the words in ``order``."""
    filtered = query.filter != Filter()
    return {
        "scope": query.scope.key,
        "space": query.space,
        "vector": None if query.vector is None else query.vector.astype(float).tolist(),
        "words": [hashes.word(keys, query.tokens[place]) for place in order],
        "names": sorted(set(query.names)),
        "times": [{"start": moment_at(start), "end": moment_at(end)} for start, end in query.times],
        "as_of": query.as_of,
        "moment": None if query.as_of is None else moment_at(query.as_of),
        "pool": query.pool,
        "window": query.window,
        "beyond": (query.window if filtered else 2 * query.window) + 1,
        "budget": pool.POSTINGS_BUDGET,
        "anchors": pool.ANCHORS,
        "walk_seeds": pool.WALK_SEEDS,
        "walk_notes": pool.WALK_NOTES,
        "walk_beam": pool.WALK_BEAM,
        "hub_links": pool.HUB_LINKS,
        "rare_term_df": pool.RARE_TERM_DF,
        "k1": pool.BM25_K1,
        "b": pool.BM25_B,
        "reach": reach * query.pool,
        **filter_values(query.filter),
    }


def moment_at(micros: int) -> datetime:
    """A time, or as early or late as there is one."""
    return from_micros(min(max(micros, to_micros(datetime.min)), to_micros(datetime.max)))


def flags(query: Query, *, indexed: bool, searching: bool) -> list[str]:
    """Which lines of ``candidates.cypher`` a question needs."""
    filtered = query.filter != Filter()
    told = {
        "as_of": query.as_of is not None,
        "filtered": filtered,
        "narrowed": filtered or query.as_of is not None,
        "wordless": query.vector is None,
        "vector": query.vector is not None and not indexed,
        "indexed": query.vector is not None and indexed,
        "newer": query.vector is not None and indexed and searching,
    }
    return [name for name, wanted in told.items() if wanted]


def told_of(rows: Sequence[Sequence[Any]]) -> list[Told]:
    """The notes of an answer of ``notes_told.cypher``."""
    packed = hashes.unpacked([row[0] for row in rows])
    return [Told(*known, *rest) for known, (_, *rest) in zip(packed, rows, strict=True)]


def binding(answer: Mapping[str, Any], notes: Mapping[str, Told], query: Query) -> list[str]:
    """The Terms of an answer's pool that the question names, and those that two of its notes hold; in order."""
    columns = answer["columns"]
    pooled = [id for id, pool in zip(columns["id"], columns["pool"], strict=True) if pool and id in notes]
    held = Counter(chain.from_iterable(notes[id].terms for id in pooled))
    named = set(query.names)
    return sorted(name for name, times in held.items() if times > 1 or name in named)


def replaced(notes: Mapping[str, Told]) -> list[str]:
    """The ids of the notes whose place another one may have taken."""
    return sorted(id for id, note in notes.items() if note.replaced)


def nothing(query: Query, order: Sequence[int]) -> Candidates:
    """The Candidates of a scope that nothing was ever written to."""
    empty: dict[str, Any] = dict.fromkeys(("counts", "runs", "told", "lengths"), ())
    empty |= {"columns": {"id": (), "seeds": (), "pool": ()}, "df": [0] * len(order), "notes": 0, "tokens": 0}
    return shaped(empty | {"used": False, "archived": False}, {}, Bound({}, {}), query, order)


def shaped(
    answer: Mapping[str, Any], notes: Mapping[str, Told], bound: Bound, query: Query, order: Sequence[int]
) -> Candidates:
    """The answer of ``candidates.cypher``, and what is known of its notes, as Candidates; rows in ``seq`` order."""
    columns = answer["columns"]
    rows = sorted(
        (notes[id], seeds, pooled)
        for id, seeds, pooled in zip(columns["id"], columns["seeds"], columns["pool"], strict=True)
        if id in notes
    )
    n, q = len(rows), len(query.tokens)
    known = zip(*[row[0] for row in rows], strict=True) if n else iter([()] * len(Told._fields))
    (seqs, ids, kinds, role_of, session_of, events, occurred, valid_from, asks, lengths, codes, _, links_of,
     _) = known  # fmt: skip
    row_of = {seq: row for row, seq in enumerate(seqs)}
    positions = np.array(order, np.int64)
    roles, sessions = _numbers(role_of), _numbers(session_of)
    wholes = [event if kind == EPISODIC else id for event, kind, id in zip(events, kinds, ids, strict=True)]
    previous, following = _beside(answer["runs"], _ints(seqs))
    tf, session_tf = np.zeros((n, q), np.float32), np.zeros((len(sessions), q), np.float32)
    for seq, at, count in answer["counts"]:
        if seq in row_of:
            tf[row_of[seq], order[at]] = count
    for session, at, count in answer["told"]:
        session_tf[sessions[session], order[at]] = count
    links = sorted(
        (row, row_of[target], LINK_TYPES[type], weight)
        for row, leaving in enumerate(links_of)
        for target, type, weight in leaving
        if target in row_of
    )
    named = set(query.names)
    terms = {
        name: df for name, df in bound.holders.items() if (df > 0 if name in named else 1 < df <= pool.RARE_TERM_DF)
    }
    place_of = {name: place for place, name in enumerate(terms)}
    uses = [
        (row, place_of[name])
        for row, (note, _, pooled) in enumerate(rows)
        if pooled
        for name in note.terms
        if name in place_of
    ]
    session_length = dict(answer["lengths"])
    valid_to = np.full(n, TIME_MAX, np.int64)
    for row, id in enumerate(ids):
        valid_to[row] = bound.ends.get(id, TIME_MAX)
    df = np.zeros(q, np.int64)
    df[positions] = answer["df"]
    return Candidates(
        ids=tuple(ids),
        pool=np.array([row[2] for row in rows], bool),
        seeds=_ints([row[1] for row in rows]),
        seq=_ints(seqs),
        event=_numbered(wholes, _numbers(wholes)),
        kind=_numbered(kinds, KINDS),
        role=_numbered(role_of, roles),
        role_names=tuple(roles),
        session=_numbered(session_of, sessions),
        previous=previous,
        next=following,
        occurred_at=_ints(occurred),
        valid_from=_ints(valid_from),
        valid_to=valid_to,
        length=_ints(lengths),
        is_question=np.array(asks, bool),
        tf=tf,
        cosine=_cosines(codes, query.vector),
        link_source=_ints([link[0] for link in links]),
        link_target=_ints([link[1] for link in links]),
        link_type=_ints([link[2] for link in links]),
        link_weight=np.array([link[3] for link in links], np.float32),
        term_keys=tuple(terms),
        term_df=_ints(list(terms.values())),
        term_named=np.array([name in named for name in terms], bool),
        term_note=_ints([use[0] for use in uses]),
        term_index=_ints([use[1] for use in uses]),
        session_tf=session_tf,
        session_length=_numbered(sessions, session_length, 0),
        stats=ScopeStats(
            notes=answer["notes"],
            tokens=answer["tokens"],
            df=df,
            used=answer["used"],
            archived=answer["archived"],
        ),
    )


def _cosines(codes: Sequence[bytes | str], vector: Floats | None) -> Floats:
    """The cosine of each note's vector with the question's, (n,); 0 where either has none, which is told as ""."""
    cosines = np.zeros(len(codes), np.float32)
    held = [row for row, code in enumerate(codes) if code]
    if vector is not None and held:
        joined = b"".join(code for code in codes if isinstance(code, bytes))
        cosines[held] = np.frombuffer(joined, hashes.CODE).reshape(len(held), -1).astype(np.float32) @ vector
    return cosines


def _beside(runs: Sequence[Sequence[int]], seqs: Ints) -> tuple[Ints, Ints]:
    """The row before and the row after each one in its session, from runs of neighbours: (n,), (n,); -1: none here.

    ``seqs`` are those of the rows, in order.
    """
    previous, following = np.full((2, len(seqs)), -1, np.int64)
    told = _ints([seq for run in runs for seq in run])
    if len(told):
        rows = np.minimum(np.searchsorted(seqs, told), len(seqs) - 1)
        here = seqs[rows] == told
        goes_on = np.ones(len(told), bool)
        goes_on[np.cumsum([len(run) for run in runs]) - 1] = False
        pairs = np.flatnonzero(here[:-1] & here[1:] & goes_on[:-1])
        previous[rows[pairs + 1]], following[rows[pairs]] = rows[pairs], rows[pairs + 1]
    return previous, following


def _numbers(names: Iterable[str | None]) -> dict[str, int]:
    """Small numbers for names, in the order they come."""
    known = dict.fromkeys(names)
    known.pop(None, None)
    return {name: number for number, name in enumerate(known) if name is not None}


def _numbered(names: Iterable[str | None], numbers: Mapping[str, int], otherwise: int = -1) -> Ints:
    return np.array([otherwise if name is None else numbers.get(name, otherwise) for name in names], np.int64)


def _ints(values: Sequence[Any]) -> Ints:
    return np.array(values, np.int64)
