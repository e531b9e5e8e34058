"""From a question to its one statement, and from that statement's answer to Candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.reads import filter_values
from zettel.model import TIME_MAX, Kind, LinkType, from_micros, to_micros
from zettel.query import Candidates, Filter, Query, ScopeStats
from zettel.search import pool

if TYPE_CHECKING:
    from zettel.query import Floats, Ints

EXACT_NOTES = 500
"""Notes up to which a scope's vectors are compared one by one: below, an index is hardly quicker, and it may miss."""
REACH = 2
"""How many times the wanted number the index is asked for: it may miss some."""
FAR = 32
"""The same when that brought too few, because other scopes or the filter were in the way."""

KINDS = {kind.value: number for number, kind in enumerate(Kind)}
LINK_TYPES = {type.value: number for number, type in enumerate(LinkType)}
EPISODIC = Kind.EPISODIC.value
PACKED = 9
"""Values of a row that ``hashes.rest_row`` packs."""
COLUMNS = ("row", "length", "seeds", "pool", "code")
"""What the statement answers of each note, in lists of the same order."""
ANSWER = ("notes", "tokens", "df", "columns", "counts", "replaced", "runs", "edges", "terms", "told", "lengths", "used")
"""What ``candidates.cypher`` answers, in one row."""


def asked(query: Query, keys: Keys, order: Sequence[int], reach: int) -> dict[str, Any]:
    """The parameters of ``candidates.cypher``; the words in ``order``."""
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
        "beyond": query.window + 1,
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


def shaped(answer: Mapping[str, Any] | None, query: Query, order: Sequence[int]) -> Candidates:
    """The statement's answer (None: nothing was ever written to the scope) as Candidates, rows in ``seq`` order."""
    told: Mapping[str, Any] = answer or dict.fromkeys(ANSWER, ())
    asked_of: Mapping[str, Sequence[Any]] = told["columns"] or dict.fromkeys(COLUMNS, ())
    packed = hashes.unpacked(asked_of["row"])
    n, q = len(packed), len(query.tokens)
    by_seq = sorted(range(n), key=[row[0] for row in packed].__getitem__)
    known = zip(*[packed[at] for at in by_seq], strict=True) if n else iter([()] * PACKED)
    seqs, ids, kinds, role_of, session_of, events, occurred, valid_from, asks = known
    lengths, seeds, pooled, codes = ([asked_of[name][at] for at in by_seq] for name in COLUMNS[1:])
    row_of = {seq: row for row, seq in enumerate(seqs)}
    positions = np.array(order, np.int64)
    roles, sessions = _numbers(role_of), _numbers(session_of)
    wholes = [event if kind == EPISODIC else id for event, kind, id in zip(events, kinds, ids, strict=True)]
    previous, following = _beside(told["runs"], _ints(seqs))
    tf, session_tf = np.zeros((n, q), np.float32), np.zeros((len(sessions), q), np.float32)
    for seq, at, count in told["counts"]:
        tf[row_of[seq], order[at]] = count
    for session, at, count in told["told"]:
        session_tf[sessions[session], order[at]] = count
    links = sorted((row_of[source], row_of[target], LINK_TYPES[type], weight)
                   for source, target, type, weight in told["edges"])  # fmt: skip
    terms = sorted(told["terms"])
    uses = [(row_of[seq], place) for place, (*_, held) in enumerate(terms) for seq in held]
    session_length = dict(told["lengths"])
    valid_to = np.full(n, TIME_MAX, np.int64)
    for seq, since in told["replaced"]:
        valid_to[row_of[seq]] = since
    df = np.zeros(q, np.int64)
    df[positions] = told["df"] if answer else 0
    return Candidates(
        ids=tuple(ids),
        pool=np.array(pooled, bool),
        seeds=_ints(seeds),
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
        term_keys=tuple(term[0] for term in terms),
        term_df=_ints([term[1] for term in terms]),
        term_named=np.array([term[2] for term in terms], bool),
        term_note=_ints([use[0] for use in uses]),
        term_index=_ints([use[1] for use in uses]),
        session_tf=session_tf,
        session_length=_numbered(sessions, session_length, 0),
        stats=ScopeStats(
            notes=told["notes"] if answer else 0,
            tokens=told["tokens"] if answer else 0,
            df=df,
            used=bool(told["used"]),
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
