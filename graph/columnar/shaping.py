"""Chosen rows as Candidates: every column in the order of the rows, every sum over what is visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.columns import GONE, KINDS, LINK_TYPES, Columns, Picked, View
from zettel.graph.columnar.walking import term_df
from zettel.model import TIME_MAX, TIME_MIN, Kind, LinkType
from zettel.query import Candidates, ScopeStats
from zettel.search.pool import RARE_TERM_DF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from zettel.graph.columnar.words import Words
    from zettel.query import Floats, Ints, Query

_SUPERSEDES = LINK_TYPES.index(LinkType.SUPERSEDES)
_EPISODIC = KINDS.index(Kind.EPISODIC.value)
_TAKEN = ("number", "seq", "event", "kind", "role", "session", "occurred_at", "valid_from", "length", "asks")


def columnar(
    columns: Columns,
    view: View,
    query: Query,
    chosen: Ints,
    seeds: Ints,
    words: Words,
    named: Sequence[int],
    stats: ScopeStats,
    names_of: Callable[[Ints], Sequence[str]],
) -> Candidates:
    """The chosen rows as Candidates; n of them, in this order. ``seeds``: (n,), 0 for what is only context."""
    notes = {name: columns.notes[name][chosen] for name in _TAKEN}
    place = columns.scratch()  # of a row among the chosen ones
    place[chosen] = np.arange(len(chosen))
    previous, following = _beside(columns, view, chosen, place)
    whose, links = _links(columns, chosen, place)
    tf = _tf(columns, chosen, words, place)
    place[chosen] = GONE
    number = np.full(len(columns.sessions.all) + 1, GONE, np.int32)  # of a session among those here
    number[notes["session"]] = 0
    number[GONE] = GONE  # notes of none write into the last place
    codes = np.flatnonzero(number != GONE)
    number[codes] = np.arange(len(codes))
    starts, before = columns.sessions_of(view)
    asked = np.array(named, np.int64)
    holder, term, numbers, df = _terms(columns, view, chosen, np.flatnonzero(seeds), asked)
    return Candidates(
        ids=tuple([columns.ids[row] for row in chosen.tolist()]),
        pool=seeds != 0,
        seeds=seeds,
        seq=notes["seq"],
        # What was derived is no part of its events.
        event=np.where(notes["kind"] == _EPISODIC, notes["event"], -notes["number"]),
        kind=notes["kind"].astype(np.int64),
        role=view.role[notes["role"]],
        role_names=view.role_names,
        session=number[notes["session"]].astype(np.int64),
        previous=previous,
        next=following,
        occurred_at=notes["occurred_at"],
        valid_from=notes["valid_from"],
        valid_to=_valid_to(columns, query, chosen),
        length=notes["length"].astype(np.int64),
        is_question=notes["asks"],
        tf=tf,
        cosine=_cosine(columns, query, chosen),
        link_source=whose,
        link_target=links["target"],
        link_type=links["type"],
        link_weight=links["weight"].astype(np.float32),
        term_keys=Picked(columns.term_numbers.keys[numbers], names_of),
        term_df=df,
        term_named=columns.among(numbers, asked),
        term_note=holder,
        term_index=term,
        session_tf=_session_tf(columns, words, number, len(codes)),
        session_length=before[starts[codes + 1]] - before[starts[codes]],
        stats=stats,
    )


def _beside(columns: Columns, view: View, chosen: Ints, place: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """The places of the visible notes before and after each chosen one in its session; -1: none, or not chosen."""
    at = view.place[chosen].astype(np.int64)
    order = np.append(view.order, GONE).astype(np.int64)
    session = columns.notes["session"]
    found = []
    for step in (-1, 1):
        beside = order[np.where(at >= 0, np.clip(at + step, -1, len(order) - 1), -1)]  # the last place is nowhere
        same = (beside != GONE) & (session[beside] == session[chosen])
        found.append(np.where(same, place[beside], GONE).astype(np.int64))
    return found[0], found[1]


def _links(columns: Columns, chosen: Ints, place: NDArray[np.int32]) -> tuple[Ints, dict[str, NDArray[Any]]]:
    """Links between chosen rows by (source, target, type): the source's place, and target's place, type and weight."""
    source, places = columns.links.take(chosen)
    target = place[columns.links["target"][places]].astype(np.int64)
    here = np.flatnonzero(target != GONE)
    source, target, places = source[here], target[here], places[here]
    types = columns.links["type"][places].astype(np.int64)
    sort = np.lexsort((types, target, source))
    return source[sort], {
        "target": target[sort], "type": types[sort], "weight": columns.links["weight"][places][sort],
    }  # fmt: skip


def _tf(columns: Columns, chosen: Ints, words: Words, place: NDArray[np.int32]) -> Floats:
    tf = np.zeros((len(chosen), len(words.keys)), np.float32)
    read = set()
    for position, rows, counts in words.read:
        read.add(position)
        here = place[rows]
        kept = here != GONE
        tf[here[kept], position] = counts[kept]
    for position, key in enumerate(words.keys):
        if position not in read and words.df[position]:
            where, counts = columns.words.among(key, chosen)
            tf[where, position] = counts
    return tf


def _session_tf(columns: Columns, words: Words, number: NDArray[np.int32], sessions: int) -> Floats:
    """Counts of the tokens that were read over the whole of each session, 0 for the others."""
    tf = np.zeros((sessions, len(words.keys)), np.float32)
    for position, rows, counts in words.read:
        told = number[columns.notes["session"][rows]]
        kept = told != GONE
        tf[:, position] = np.bincount(told[kept], counts[kept], minlength=sessions)
    return tf


def _cosine(columns: Columns, query: Query, chosen: Ints) -> Floats:
    if query.vector is None or not columns.dim:
        return np.zeros(len(chosen), np.float32)
    return columns.vectors.cosines(chosen, query.vector)


def _terms(columns: Columns, view: View, chosen: Ints, pool: Ints, named: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The Terms in reach: what the question names, and what binds two of the pool's notes. There are many others.

    Per use the note and the Term (a position); per Term its number and df.
    """
    holder, places = columns.terms.take(chosen[pool])
    numbers, term = columns.distinct(columns.terms["term"][places].astype(np.int64))
    uses = np.bincount(term, minlength=len(numbers))
    df = term_df(columns, view, numbers)
    reach = ((uses >= 2) & (df >= 2) & (df <= RARE_TERM_DF)) | columns.among(numbers, named)
    position = np.cumsum(reach) - 1
    kept = reach[term]
    return pool[holder[kept]], position[term[kept]], numbers[reach], df[reach]


def _valid_to(columns: Columns, query: Query, chosen: Ints) -> Ints:
    """Per row, when the earliest of the notes that supersede it began to hold.

    One that always held replaces from when that was found out. With ``as_of``, those not yet valid replace nothing.
    """
    valid_to = np.full(len(chosen), TIME_MAX, np.int64)
    replaced, source, link = columns.linking.find_many(chosen)
    start = columns.notes["valid_from"][source]
    replaces = (link["type"] == _SUPERSEDES) & columns.notes["alive"][source]
    if query.as_of is not None:
        replaces &= start <= query.as_of
    start = np.where(start == TIME_MIN, link["recorded_at"], start)
    np.minimum.at(valid_to, replaced[replaces], start[replaces])
    return valid_to
