"""Construction of the ``Candidates`` arrays for selected rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.columns import KINDS, LINK_TYPES, MISSING, Columns, LazyStrings, View
from zettel.graph.columnar.link_walk import term_df
from zettel.model import TIME_MAX, TIME_MIN, Kind, LinkType
from zettel.ports.candidate_rules import RARE_TERM_DF
from zettel.ports.query import Candidates, ScopeStats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from zettel.graph.columnar.words import QueryWords
    from zettel.ports.query import Floats, Ints, Query

_SUPERSEDES = LINK_TYPES.index(LinkType.SUPERSEDES)
_EPISODIC = KINDS.index(Kind.EPISODIC.value)
_COLUMNS = (
    "number", "seq", "event", "kind", "speaker", "role", "session", "occurred_at", "valid_from", "length", "asks",
)  # fmt: skip


def build_candidates(
    columns: Columns,
    view: View,
    query: Query,
    chosen: Ints,
    seeds: Ints,
    words: QueryWords,
    named: Sequence[int],
    stats: ScopeStats,
    names_of: Callable[[Ints], Sequence[str]],
) -> Candidates:
    """Build Candidates from the chosen n rows, in this order. ``seeds`` is (n,), 0 for mere context."""
    notes = {name: columns.notes[name][chosen] for name in _COLUMNS}
    place = columns.scratch()  # of each row among the chosen ones
    place[chosen] = np.arange(len(chosen))
    previous, following = _session_neighbours(columns, view, chosen, place)
    link_source, links = _links(columns, chosen, place)
    tf = _tf(columns, chosen, words, place)
    place[chosen] = MISSING
    number = np.full(len(columns.sessions.all) + 1, MISSING, np.int32)  # of each session among those of the chosen rows
    number[notes["session"]] = 0
    number[MISSING] = MISSING  # notes without a session write into the last place
    codes = np.flatnonzero(number != MISSING)
    number[codes] = np.arange(len(codes))
    starts, before = columns.sessions_of(view)
    named_terms = np.array(named, np.int64)
    term_note, term, numbers, df = _terms(columns, view, chosen, np.flatnonzero(seeds), named_terms)
    return Candidates(
        ids=tuple(map(columns.ids.__getitem__, chosen.tolist())),
        pool=seeds != 0,
        seeds=seeds,
        seq=notes["seq"],
        # A derived note does not belong to its events.
        event=np.where(notes["kind"] == _EPISODIC, notes["event"], -notes["number"]),
        kind=notes["kind"].astype(np.int64),
        speaker=view.speaker[notes["speaker"]],
        speaker_names=view.speaker_names,
        role=notes["role"].astype(np.int64),
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
        link_source=link_source,
        link_target=links["target"],
        link_type=links["type"],
        link_weight=links["weight"].astype(np.float32),
        term_keys=LazyStrings(columns.term_numbers.keys[numbers], names_of),
        term_df=df,
        term_named=columns.among(numbers, named_terms),
        term_note=term_note,
        term_index=term,
        session_tf=_session_tf(columns, words, number, len(codes)),
        session_length=before[starts[codes + 1]] - before[starts[codes]],
        stats=stats,
    )


def _session_neighbours(columns: Columns, view: View, chosen: Ints, place: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Return the places of the previous and next visible note in each row's session, -1 if missing or not chosen."""
    at = view.place[chosen].astype(np.int64)
    session = columns.notes["session"]

    def neighbours(step: int) -> Ints:
        inside = np.flatnonzero((at >= 0) & (at + step >= 0) & (at + step < len(view.order)))
        rows = view.order[at[inside] + step]
        same = session[rows] == session[chosen[inside]]
        result = np.full(len(chosen), MISSING, np.int64)
        result[inside[same]] = place[rows[same]]
        return result

    return neighbours(-1), neighbours(1)


def _links(columns: Columns, chosen: Ints, place: NDArray[np.int32]) -> tuple[Ints, dict[str, NDArray[Any]]]:
    """Return source places, and target places, types and weights of links between chosen rows, in this order."""
    source, places = columns.links.take(chosen)
    target = place[columns.links["target"][places]].astype(np.int64)
    inside = np.flatnonzero(target != MISSING)
    source, target, places = source[inside], target[inside], places[inside]
    types = columns.links["type"][places].astype(np.int64)
    sort = np.lexsort((types, target, source))
    return source[sort], {
        "target": target[sort], "type": types[sort], "weight": columns.links["weight"][places][sort],
    }  # fmt: skip


def _tf(columns: Columns, chosen: Ints, words: QueryWords, place: NDArray[np.int32]) -> Floats:
    tf = np.zeros((len(chosen), len(words.keys)), np.float32)
    row_places = place[words.rows]
    is_chosen = np.flatnonzero(row_places != MISSING)
    tf[row_places[is_chosen], words.position[is_chosen]] = words.counts[is_chosen]
    for position in set(np.flatnonzero(words.df).tolist()).difference(words.read):
        positions, counts = columns.words.among(words.keys[position], chosen)
        tf[positions, position] = counts
    return tf


def _session_tf(columns: Columns, words: QueryWords, number: NDArray[np.int32], sessions: int) -> Floats:
    """Return the counts of the tokens read, over each whole session; 0 for other tokens."""
    tokens = len(words.keys)
    session = number[columns.notes["session"][words.rows]]
    is_chosen = np.flatnonzero(session != MISSING)
    places = session[is_chosen].astype(np.int64) * tokens + words.position[is_chosen]
    tf = np.bincount(places, words.counts[is_chosen], minlength=sessions * tokens)
    return tf.reshape(sessions, tokens).astype(np.float32)


def _cosine(columns: Columns, query: Query, chosen: Ints) -> Floats:
    if query.vector is None or not columns.dim:
        return np.zeros(len(chosen), np.float32)
    return columns.vectors.cosines(chosen, query.vector)


def _terms(columns: Columns, view: View, chosen: Ints, pool: Ints, named: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the terms that the query names, and rare terms that connect two notes of the pool.

    Per use: the note and the term's position. Per term: its number and df.
    """
    note, places = columns.terms.take(chosen[pool])
    numbers, term = columns.distinct(columns.terms["term"][places].astype(np.int64))
    uses = np.bincount(term, minlength=len(numbers))
    df = term_df(columns, view, numbers)
    reach = ((uses >= 2) & (df >= 2) & (df <= RARE_TERM_DF)) | columns.among(numbers, named)
    position = np.cumsum(reach) - 1
    is_reached = reach[term]
    return pool[note[is_reached]], position[term[is_reached]], numbers[reach], df[reach]


def _valid_to(columns: Columns, query: Query, chosen: Ints) -> Ints:
    """Return for each row the end that a person set, else the earliest ``valid_from`` of the notes that supersede it.

    An unknown ``valid_from`` counts as the link's ``recorded_at``. With ``as_of``, later ends are ignored, and so are
    notes not yet valid.
    """
    valid_to = np.full(len(chosen), TIME_MAX, np.int64)
    places = np.flatnonzero(columns.superseded()[chosen])
    replaced, source, link = columns.linking.find_many(chosen[places])
    start = columns.notes["valid_from"][source]
    replaces = (link["type"] == _SUPERSEDES) & columns.notes["alive"][source]
    if query.as_of is not None:
        replaces &= start <= query.as_of
    start = np.where(start == TIME_MIN, link["recorded_at"], start)
    np.minimum.at(valid_to, places[replaced[replaces]], start[replaces])
    by_hand = columns.notes["valid_to"][chosen]
    ends = by_hand if query.as_of is None else np.where(by_hand <= query.as_of, by_hand, TIME_MAX)
    return np.where(by_hand < TIME_MAX, ends, valid_to)
