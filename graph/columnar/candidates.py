"""Candidate selection on a scope's columns, by the rules of ``zettel.ports.candidate_rules``.

The rules bound the cost, not the size of the scope. Only queries with a filter, times, ``as_of`` or ``known_at`` scan
all rows once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.columnar.candidate_columns import build_candidates
from zettel.graph.columnar.columns import KINDS, MISSING, ROLE_NUMBERS, Columns, View
from zettel.graph.columnar.link_walk import reached, term_df
from zettel.graph.columnar.words import QueryWords, look_up
from zettel.graph.keys import FACET, Keys
from zettel.model import TIME_MAX, TIME_MIN
from zettel.ports.candidate_rules import ANCHORS, WALK_SEEDS, best, idf, saturation
from zettel.ports.query import Candidates, ScopeStats, Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zettel.ports.query import Bools, Filter, Ints, Query

_NONE: Ints = np.zeros(0, np.int64)


def gather(
    columns: Columns,
    query: Query,
    keys: Keys,
    names_of: Callable[[Ints], Sequence[str]],
    *,
    used: bool,
    archived: bool,
    matching: Bools | None = None,
) -> Candidates:
    """Return the candidates of a query. ``columns`` must be in the state known at the query's ``known_at``.

    ``names_of`` returns the names of terms by key, at the first access to them. ``used`` and ``archived`` are part of
    the scope's statistics. ``matching``, (rows + 1,), are the rows that meet the filter's ``where`` and
    ``unexpired_at``, if it has one of them.
    """
    view = columns.view(query.as_of)
    words = look_up(columns, view, [keys.word(token) for token in query.tokens], query.tokens)
    stats = ScopeStats(notes=view.notes, tokens=view.tokens, df=words.df, used=used, archived=archived)
    allowed = _allowed(columns, view, query.filter, keys)
    allowed = allowed if matching is None else allowed & matching
    numbers = columns.term_numbers.find([keys.term(name) for name in query.names])
    named = {number: name for number, name in zip(numbers, query.names, strict=True) if number != MISSING}

    by_vector = _by_vector(columns, query, allowed)
    by_text = _by_text(columns, query, words, stats, allowed)
    by_title = _by_title(columns, query, allowed, keys)
    by_term = _by_term(columns, view, query, named, allowed)
    by_time = _by_time(columns, query, allowed)
    neighbours = windows(columns, view, np.concatenate([by_vector[:ANCHORS], by_text[:ANCHORS]]), query.window)
    walked = reached(
        columns, view, [(by_vector[:WALK_SEEDS], None), (by_text[:WALK_SEEDS], None), (by_title, 1.0),
                        (by_term, 1.0 / max(len(by_term), 1))]
    )  # fmt: skip
    sources = {
        Seed.VECTOR: by_vector, Seed.TEXT: by_text, Seed.TITLE: by_title, Seed.TERM: by_term, Seed.TIME: by_time,
        Seed.NEIGHBOUR: _only(neighbours, allowed), Seed.WALK: _only(walked, allowed),
    }  # fmt: skip
    pool, places = columns.distinct(np.concatenate(list(sources.values())))
    seeds = np.zeros(len(pool), np.int64)
    flags = np.repeat([int(flag) for flag in sources], [len(rows) for rows in sources.values()])
    np.bitwise_or.at(seeds, places, flags)
    near = pool[seeds != int(Seed.WALK)]
    chosen, _ = columns.distinct(np.concatenate([pool, windows(columns, view, near, query.window), walked]))
    chosen_seeds = np.zeros(len(chosen), np.int64)
    chosen_seeds[: len(pool)] = seeds  # the pool comes first
    order = np.argsort(chosen)
    chosen, chosen_seeds = chosen[order], chosen_seeds[order]
    names_of = _with_former(names_of, columns.former_names) if columns.former_names else names_of
    return build_candidates(columns, view, query, chosen, chosen_seeds, words, list(named), stats, names_of)


def _with_former(names_of: Callable[[Ints], Sequence[str]], former: dict[int, str]) -> Callable[[Ints], Sequence[str]]:
    def names(keys: Ints) -> Sequence[str]:
        return [former.get(key, name) for key, name in zip(keys.tolist(), names_of(keys), strict=True)]

    return names


def _allowed(columns: Columns, view: View, filter: Filter, keys: Keys) -> Bools:
    """Return which rows may be hits, (rows + 1,): the visible ones that pass the filter."""
    notes, passed = columns.notes, view.visible[:-1]
    if filter.kinds:
        passed = passed & np.isin(notes["kind"], [KINDS.index(kind) for kind in filter.kinds if kind in KINDS])
    if filter.session is not None:
        passed = passed & (notes["session"] == columns.sessions.known(filter.session)) & (notes["session"] >= 0)
    if filter.speaker is not None:
        passed = passed & (notes["speaker"] == columns.speakers.known(filter.speaker)) & (notes["speaker"] >= 0)
    if filter.role is not None:
        passed = passed & (notes["role"] == ROLE_NUMBERS[filter.role])
    if filter.since is not None or filter.until is not None:
        passed = passed & (notes["occurred_at"] != TIME_MIN)
        passed &= notes["occurred_at"] >= (TIME_MIN if filter.since is None else filter.since)
        passed &= notes["occurred_at"] < (TIME_MAX if filter.until is None else filter.until)
    any_of, all_of = keys.filter_facets(filter)
    for facets, needed in ((any_of, 1), (list(dict.fromkeys(all_of)), len(set(all_of)))):
        if facets:
            matches = np.concatenate([rows[count == FACET] for rows, count in map(columns.words.find, facets)])
            passed = passed & (np.bincount(matches, minlength=columns.rows) >= needed)
    return view.visible if passed.base is view.visible else np.append(passed, False)


def _by_vector(columns: Columns, query: Query, allowed: Bools) -> Ints:
    if query.vector is None or not columns.dim:
        return _NONE
    return columns.vectors.nearest(query.vector, query.pool, allowed)


def _by_text(columns: Columns, query: Query, words: QueryWords, stats: ScopeStats, allowed: Bools) -> Ints:
    position, rows, counts = words.position, words.rows, words.counts
    is_allowed = allowed[rows]
    if not is_allowed.all():
        position, rows, counts = position[is_allowed], rows[is_allowed], counts[is_allowed]
    mean_length, rarity = stats.tokens / max(stats.notes, 1), idf(stats.df, stats.notes)
    weights = saturation(counts.astype(np.float64), columns.notes["length"][rows], mean_length) * rarity[position]
    rows, entry_places = columns.distinct(rows)  # a row occurs once for each of its words
    scores = np.bincount(entry_places, weights, minlength=len(rows)).astype(np.float64)
    ranked: Ints = rows[best(scores, columns.notes["seq"][rows], query.pool)]
    return ranked


def _by_title(columns: Columns, query: Query, allowed: Bools, keys: Keys) -> Ints:
    _, titled, _ = columns.words.find_many(np.array([keys.title(name) for name in query.names], np.int64))
    return _ascending(columns, titled, allowed)[: query.pool]


def _by_term(columns: Columns, view: View, query: Query, named: dict[int, str], allowed: Bools) -> Ints:
    df = term_df(columns, view, np.array(list(named), np.int64)).tolist()
    taken, spent = [], 0
    for count, _, number in sorted(
        (count, name, number) for count, (number, name) in zip(df, named.items(), strict=True)
    ):
        spent += count
        if spent > query.pool:
            break
        taken.append(number)
    return _ascending(columns, columns.holders.find_many(np.array(taken, np.int64))[1], allowed)


def _ascending(columns: Columns, rows: Ints, allowed: Bools) -> Ints:
    """Return the allowed ones of these rows, each once. NumPy's ``unique`` would import its masked arrays."""
    return np.sort(_only(columns.distinct(rows)[0], allowed))


def _only(rows: Ints, allowed: Bools) -> Ints:
    passed: Ints = rows[allowed[rows]]
    return passed


def _by_time(columns: Columns, query: Query, allowed: Bools) -> Ints:
    if not query.times:
        return _NONE
    within = np.zeros(columns.rows, bool)
    occurred_at = columns.notes["occurred_at"]
    for start, end in query.times:
        within |= (occurred_at >= start) & (occurred_at < end)
    return np.flatnonzero(within & (occurred_at != TIME_MIN) & allowed[:-1])[: query.pool]


def windows(columns: Columns, view: View, rows: Ints, window: int) -> Ints:
    """Return the visible rows within ``window`` places of these in their sessions, including these."""
    at = view.place[rows].astype(np.int64)
    rows, at = rows[at >= 0], at[at >= 0]
    places = at[:, None] + np.arange(-window, window + 1)
    inside = (places >= 0) & (places < len(view.order))
    near = view.order[np.where(inside, places, 0)]
    session = columns.notes["session"]
    return columns.distinct(near[inside & (session[near] == session[rows][:, None])].astype(np.int64))[0]
