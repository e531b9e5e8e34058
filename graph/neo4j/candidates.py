"""From a question to its one statement, and from that statement's answer to Candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.embedded.keys import Keys
from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.reads import filter_values
from zettel.model import TIME_MAX, TIME_MIN, Kind, LinkType, from_micros, to_micros
from zettel.query import Candidates, Filter, Query, ScopeStats
from zettel.search import pool

if TYPE_CHECKING:
    from zettel.query import Ints

EXACT_NOTES = 5_000
"""Notes up to which a scope's vectors are compared one by one: below, an index is hardly quicker, and it may miss."""
REACH = 4
"""How many times the wanted number the index is asked for: it may miss some, and filters take others."""

KINDS = tuple(kind.value for kind in Kind)
LINK_TYPES = tuple(type.value for type in LinkType)
ANSWER = ("notes", "tokens", "df", "columns", "replaced", "runs", "edges", "terms", "told", "lengths")
"""What ``candidates.cypher`` answers, in one row."""
COLUMNS = ("ids", "seq", "pool", "seeds", "kind", "role", "session", "event", "occurred_at", "valid_from",
           "length", "asks", "cosine", "place", "tf")  # fmt: skip
"""What it says of each note, in ``columns``."""


def asked(query: Query, keys: Keys, order: Sequence[int]) -> dict[str, Any]:
    """The parameters of ``candidates.cypher``; the words in ``order``."""
    return {
        "scope": query.scope.key,
        "space": query.space,
        "of_space": f"/{query.space}",
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
        "reach": REACH * query.pool,
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
    rows = sorted(told["columns"], key=lambda row: row[1])
    column: dict[str, list[Any]] = {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}
    n, q = len(rows), len(query.tokens)
    row_of = {seq: row for row, seq in enumerate(column["seq"])}
    positions = np.array(order, np.int64)
    roles = _numbers(role for role in column["role"] if role is not None)
    sessions = _numbers(place for place in column["place"] if place is not None)
    wholes = [
        event if kind == Kind.EPISODIC.value else id
        for event, kind, id in zip(column["event"], column["kind"], column["ids"], strict=True)
    ]
    whole_of = _numbers(wholes)
    previous, following = _beside(told["runs"], row_of)
    tf, session_tf = np.zeros((n, q), np.float32), np.zeros((len(sessions), q), np.float32)
    tf[:, positions] = np.array(column["tf"], np.float32).reshape(n, q)
    for place, at, count in told["told"]:
        session_tf[sessions[place], order[at]] = count
    links = sorted((row_of[source], row_of[target], LINK_TYPES.index(type), weight)
                   for source, target, type, weight in told["edges"])  # fmt: skip
    terms = sorted(told["terms"])
    uses = [(row_of[seq], place) for place, (*_, held) in enumerate(terms) for seq in held]
    lengths, replaced = dict(told["lengths"]), dict(told["replaced"])
    df = np.zeros(q, np.int64)
    df[positions] = told["df"] if answer else 0
    return Candidates(
        ids=tuple(column["ids"]),
        pool=np.array(column["pool"], bool),
        seeds=_ints(column["seeds"]),
        seq=_ints(column["seq"]),
        event=_ints(whole_of[whole] for whole in wholes),
        kind=_ints(KINDS.index(kind) for kind in column["kind"]),
        role=_ints(roles.get(role, -1) for role in column["role"]),
        role_names=tuple(roles),
        session=_ints(sessions.get(place, -1) for place in column["place"]),
        previous=previous,
        next=following,
        occurred_at=_ints(TIME_MIN if time is None else time for time in column["occurred_at"]),
        valid_from=_ints(column["valid_from"]),
        valid_to=_ints(replaced.get(seq, TIME_MAX) for seq in column["seq"]),
        length=_ints(column["length"]),
        is_question=np.array(column["asks"], bool),
        tf=tf,
        cosine=np.array(column["cosine"], np.float32),
        link_source=_ints(link[0] for link in links),
        link_target=_ints(link[1] for link in links),
        link_type=_ints(link[2] for link in links),
        link_weight=np.array([link[3] for link in links], np.float32),
        term_keys=tuple(term[0] for term in terms),
        term_df=_ints(term[1] for term in terms),
        term_named=np.array([term[2] for term in terms], bool),
        term_note=_ints(use[0] for use in uses),
        term_index=_ints(use[1] for use in uses),
        session_tf=session_tf,
        session_length=_ints(lengths.get(place, 0) for place in sessions),
        stats=ScopeStats(notes=told["notes"] if answer else 0, tokens=told["tokens"] if answer else 0, df=df),
    )


def _beside(runs: Sequence[Sequence[int]], row_of: Mapping[int, int]) -> tuple[Ints, Ints]:
    """The row before and the row after each one in its session, from runs of neighbours: (n,), (n,); -1: none here."""
    previous, following = np.full((2, len(row_of)), -1, np.int64)
    for run in runs:
        here = [row_of.get(seq, -1) for seq in run]
        for one, other in pairwise(here):
            if one >= 0 and other >= 0:
                previous[other], following[one] = one, other
    return previous, following


def _numbers(names: Iterable[str]) -> dict[str, int]:
    """Small numbers for names, in the order they come."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)
