"""Chosen rows as Candidates: every column in the order of the rows, every sum over what is visible. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.embedded.columns import GONE, KINDS, LINK_TYPES, Columns
from zettel.graph.embedded.matching import Edges, Matches, only
from zettel.model import TIME_MAX, TIME_MIN, Kind, LinkType
from zettel.query import Candidates, ScopeStats
from zettel.search.pool import RARE_TERM_DF

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from zettel.query import Bools, Floats, Ints, Query

_SUPERSEDES = LINK_TYPES.index(LinkType.SUPERSEDES)
_EPISODIC = KINDS.index(Kind.EPISODIC.value)


def columnar(
    columns: Columns,
    query: Query,
    chosen: Ints,
    pool: Bools,
    seeds: Ints,
    visible: Bools,
    words: Matches,
    edges: Edges,
    named: Ints,
    stats: ScopeStats,
) -> Candidates:
    """The chosen rows as Candidates; n of them, in this order."""
    from scipy.sparse import csr_array

    notes, n, q = columns.notes, len(chosen), len(query.tokens)
    place = np.full(columns.rows + 1, -1, np.int64)  # of a row among the chosen ones
    place[chosen] = np.arange(n)
    previous, following = _beside(columns, visible, chosen, place)

    def counts(row: Ints, column: Ints, count: Ints, shape: tuple[int, int]) -> csr_array:
        return csr_array((count.astype(np.float32), (row, column)), shape=shape)

    here = only(words, place[words.row] >= 0)
    here_too = np.zeros(len(columns.sessions.all) + 1, bool)
    here_too[notes["session"][chosen]] = True
    codes = np.flatnonzero(here_too[:-1])
    number = np.full(len(columns.sessions.all) + 1, -1, np.int64)  # of a session among those here
    number[codes] = np.arange(len(codes))
    told = number[notes["session"][words.row]]
    in_session = told >= 0

    # The Terms in reach: what the question names, and what binds. Others lead nowhere, and there are many.
    reach = (edges.term_df >= 2) & (edges.term_df <= RARE_TERM_DF)
    reach[named] = True
    own = np.flatnonzero((place[edges.holder] >= 0) & reach[edges.term])
    present = np.zeros(len(reach), bool)
    present[edges.term[own]] = True
    numbers = np.flatnonzero(present)
    numbers = numbers[np.argsort(columns.term_keys["key"][numbers])]  # one order, however the scope was read
    term_place = np.full(len(columns.term_names), -1, np.int64)
    term_place[numbers] = np.arange(len(numbers))

    ends = (place[edges.source] >= 0) & (place[edges.target] >= 0)
    link_sort = np.flatnonzero(ends)
    link_sort = link_sort[
        np.lexsort((edges.type[link_sort], place[edges.target[link_sort]], place[edges.source[link_sort]]))
    ]
    roles = [*columns.roles.all, None]
    return Candidates(
        ids=tuple([columns.ids[row] for row in chosen.tolist()]),
        pool=pool[chosen],
        seeds=seeds[chosen],
        seq=notes["seq"][chosen],
        # What was derived is no part of its events.
        event=np.where(notes["kind"][chosen] == _EPISODIC, notes["event"][chosen], -notes["number"][chosen]),
        kind=tuple([KINDS[kind] for kind in notes["kind"][chosen].tolist()]),
        role=tuple([roles[role] for role in notes["role"][chosen].tolist()]),
        session=number[notes["session"][chosen]],
        previous=previous,
        next=following,
        occurred_at=notes["occurred_at"][chosen],
        valid_from=notes["valid_from"][chosen],
        valid_to=_valid_to(columns, query)[chosen],
        length=notes["length"][chosen],
        is_question=notes["asks"][chosen],
        tf=counts(place[here.row], here.asked, here.count, (n, q)),
        vectors=notes["vector"][chosen],
        link_source=place[edges.source[link_sort]],
        link_target=place[edges.target[link_sort]],
        link_type=tuple([LINK_TYPES[type] for type in edges.type[link_sort].tolist()]),
        link_weight=edges.weight[link_sort],
        term_keys=tuple([columns.term_names[term] for term in numbers.tolist()]),
        term_df=edges.term_df[numbers],
        term_named=np.isin(numbers, named),
        has_term=counts(place[edges.holder[own]], term_place[edges.term[own]], edges.count[own], (n, len(numbers))),
        session_names=tuple([columns.sessions.all[code] for code in codes.tolist()]),
        session_tf=counts(
            told[in_session], words.asked[in_session], words.count[in_session], (len(codes), q)
        ),
        session_length=_session_lengths(columns, visible)[codes],
        session_vectors=_session_vectors(columns, query, codes, visible),
        stats=stats,
    )


def _beside(columns: Columns, visible: Bools, chosen: Ints, place: Ints) -> tuple[Ints, Ints]:
    """The places of the visible notes before and after each chosen one in its session; -1: none, or not chosen."""
    order = columns.order[visible[columns.order]]
    session = columns.notes["session"][order]
    before, after = np.full((2, columns.rows + 1), GONE, np.int64)
    same = session[1:] == session[:-1]
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    return place[before[chosen]], place[after[chosen]]


def _valid_to(columns: Columns, query: Query) -> Ints:
    """Per row, when the earliest of the notes that supersede it began to hold.

    One that always held replaces from when that was found out. With ``as_of``, those not yet valid replace nothing.
    """
    notes, links = columns.notes, columns.links
    replaces = np.append(notes["alive"], False)
    if query.as_of is not None:
        replaces[:-1] &= notes["valid_from"] <= query.as_of
    ends = np.flatnonzero((links["type"] == _SUPERSEDES) & replaces[links["source"]])
    start = notes["valid_from"][links["source"][ends]]
    start = np.where(start == TIME_MIN, links["recorded_at"][ends], start)
    valid_to = np.full(columns.rows + 1, TIME_MAX, np.int64)
    np.minimum.at(valid_to, links["target"][ends], start)
    return valid_to[:-1]


def _session_lengths(columns: Columns, visible: Bools) -> Ints:
    rows = columns.order[visible[columns.order]]
    sums = np.bincount(
        columns.notes["session"][rows], columns.notes["length"][rows], len(columns.sessions.all)
    )
    return sums.astype(np.int64)


def _session_vectors(columns: Columns, query: Query, codes: Ints, visible: Bools) -> Floats:
    """(s, d) sums over the visible notes of each session; kept, unless ``as_of`` hides some of them."""
    sums = columns.session_sums if query.as_of is None else {}
    missing = [code for code in codes.tolist() if code not in sums]
    if missing:
        from scipy.sparse import csr_array

        number = np.full(len(columns.sessions.all) + 1, -1, np.int64)
        number[missing] = np.arange(len(missing))
        rows = np.flatnonzero(visible[:-1] & (number[columns.notes["session"]] >= 0))
        member = csr_array(
            (np.ones(len(rows), np.float32), (number[columns.notes["session"][rows]], rows)),
            shape=(len(missing), columns.rows),
        )
        for code, row in zip(missing, member @ columns.notes["vector"], strict=True):
            sums[code] = row
    if not len(codes):
        return np.zeros((0, columns.dim), np.float32)
    return np.stack([sums[code] for code in codes.tolist()])
