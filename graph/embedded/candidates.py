"""From a scope's columns and a question to its Candidates, by the rules of ``zettel.search.pool``. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.embedded.columns import GONE, KINDS, Columns
from zettel.graph.embedded.keys import FACET, TITLE, Keys
from zettel.graph.embedded.matching import Edges, Matches, edges_among, matches, only
from zettel.graph.embedded.shaping import columnar
from zettel.graph.embedded.vectors import nearest
from zettel.model import TIME_MAX, TIME_MIN
from zettel.query import Candidates, ScopeStats, Seed
from zettel.search.pool import (
    ANCHORS,
    HUB_LINKS,
    RARE_TERM_DF,
    WALK_NOTES,
    WALK_SEEDS,
    affordable,
    best,
    idf,
    saturation,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Bools, Filter, Ints, Query



def gather(columns: Columns, query: Query, keys: Keys) -> Candidates:
    """The candidates for a question. ``columns`` must stand at the question's ``known_at``."""
    notes, rows = columns.notes, columns.rows
    visible = np.zeros(rows + 1, bool)
    visible[:rows] = notes["shown"] & notes["alive"]
    if query.as_of is not None:
        visible[:rows] &= notes["valid_from"] <= query.as_of
    asked = [keys.word(token) for token in query.tokens] + [keys.title(name) for name in query.names]
    matched = matches(columns, asked, visible)
    words, titles = only(matched, matched.count > 0), only(matched, matched.count == TITLE)
    allowed = visible & _let_through(columns, query.filter, keys, visible)
    lengths = notes["length"]
    stats = ScopeStats(
        notes=int(visible.sum()),
        tokens=int(lengths[visible[:rows]].sum()),
        df=np.bincount(words.asked, minlength=len(query.tokens)).astype(np.int64),
    )
    edges = edges_among(columns, visible)
    named = _named_terms(columns, query, keys)

    seeds = np.zeros(rows + 1, np.int64)
    by_vector = _by_vector(columns, query, allowed)
    by_text = _by_text(columns, query, words, stats, allowed)
    by_title = _first(columns, np.unique(titles.row[allowed[titles.row]]), query.pool)
    by_term = _by_term(columns, query, edges, named, allowed)
    by_time = _by_time(columns, query, allowed)
    anchors = np.concatenate([by_vector[:ANCHORS], by_text[:ANCHORS]])
    around = _windows(columns, columns.mask(anchors), visible, query.window) & allowed
    start = np.zeros(rows + 1)
    for ranked in (by_vector[:WALK_SEEDS], by_text[:WALK_SEEDS]):
        start[ranked] += 1.0 / (1.0 + np.arange(len(ranked)))
    start[by_title] += 1.0
    start[by_term] += 1.0 / max(len(by_term), 1)
    walked = _walk(columns, edges, start, visible)
    for flag, found in (
        (Seed.VECTOR, by_vector), (Seed.TEXT, by_text), (Seed.TITLE, by_title), (Seed.TERM, by_term),
        (Seed.TIME, by_time), (Seed.NEIGHBOUR, np.flatnonzero(around)), (Seed.WALK, walked[allowed[walked]]),
    ):  # fmt: skip
        seeds[found] |= int(flag)
    pool = seeds != 0
    context = _windows(columns, pool, visible, query.window)
    context[walked] = True
    chosen = np.flatnonzero(pool | context)
    chosen = chosen[np.lexsort((chosen, notes["seq"][chosen]))]
    return columnar(columns, query, chosen, pool, seeds, visible, words, edges, named, stats)


def _let_through(columns: Columns, filter: Filter, keys: Keys, visible: Bools) -> Bools:
    """Which rows pass the filter."""
    notes = columns.notes
    passed = np.ones(columns.rows, bool)
    if filter.kinds:
        passed &= np.isin(notes["kind"], [KINDS.index(kind) for kind in filter.kinds if kind in KINDS])
    if filter.session is not None:
        passed &= (notes["session"] == columns.sessions.known(filter.session)) & (notes["session"] >= 0)
    if filter.role is not None:
        passed &= (notes["role"] == columns.roles.known(filter.role)) & (notes["role"] >= 0)
    if filter.since is not None or filter.until is not None:
        passed &= notes["occurred_at"] != TIME_MIN
        passed &= notes["occurred_at"] >= (TIME_MIN if filter.since is None else filter.since)
        passed &= notes["occurred_at"] < (TIME_MAX if filter.until is None else filter.until)
    some, every = keys.asked(filter)
    for wanted, needed in ((some, 1), (list(dict.fromkeys(every)), len(set(every)))):
        if wanted:
            found = matches(columns, wanted, visible)
            held = np.bincount(found.row[found.count == FACET], minlength=columns.rows)
            passed &= held[: columns.rows] >= needed
    return np.append(passed, False)


def _by_vector(columns: Columns, query: Query, allowed: Bools) -> Ints:
    if query.vector is None or not columns.dim:
        return np.zeros(0, np.int64)
    rows, _ = nearest(columns, np.flatnonzero(allowed[:-1] & columns.notes["embedded"]), query.vector, query.pool)
    return rows


def _by_text(columns: Columns, query: Query, words: Matches, stats: ScopeStats, allowed: Bools) -> Ints:
    read = np.zeros(len(query.tokens), bool)
    read[affordable(query.tokens, stats.df)] = True
    found = only(words, read[words.asked] & allowed[words.row])
    mean_length = stats.tokens / max(stats.notes, 1)
    gain = saturation(found.count.astype(np.float64), columns.notes["length"][found.row], mean_length)
    gain = gain * idf(stats.df, stats.notes)[found.asked]
    scores = _sums(found.row, gain, columns.rows)
    held = np.flatnonzero(scores > 0)
    return held[best(scores[held], columns.notes["seq"][held], query.pool)]


def _named_terms(columns: Columns, query: Query, keys: Keys) -> Ints:
    numbers = {columns.term_number(keys.term(name)) for name in query.names}
    return np.array(sorted(numbers - {GONE}), np.int64)


def _by_term(columns: Columns, query: Query, edges: Edges, named: Ints, allowed: Bools) -> Ints:
    taken = np.zeros(len(columns.term_names), bool)
    spent = 0
    for number in sorted(named.tolist(), key=lambda n: (edges.term_df[n], columns.term_names[n])):
        spent += int(edges.term_df[number])
        if spent > query.pool:
            break
        taken[number] = True
    holders = np.unique(edges.holder[taken[edges.term]])
    return holders[allowed[holders]]


def _by_time(columns: Columns, query: Query, allowed: Bools) -> Ints:
    within = np.zeros(columns.rows, bool)
    occurred_at = columns.notes["occurred_at"]
    for start, end in query.times:
        within |= (occurred_at >= start) & (occurred_at < end)
    return _first(columns, np.flatnonzero(within & (occurred_at != TIME_MIN) & allowed[:-1]), query.pool)


def _first(columns: Columns, rows: Ints, limit: int) -> Ints:
    """The rows of lowest seq."""
    return rows[np.argsort(columns.notes["seq"][rows], kind="stable")[:limit]]


def _windows(columns: Columns, marked: Bools, visible: Bools, window: int) -> Bools:
    """The visible rows within ``window`` places of a marked one in its session, itself included if it has one."""
    order = columns.order[visible[columns.order]]
    session = columns.notes["session"][order]
    centre = marked[order]
    near = centre.copy()
    for step in range(1, min(window, len(order) - 1) + 1):
        same = session[step:] == session[:-step]
        near[step:] |= centre[:-step] & same
        near[:-step] |= centre[step:] & same
    return columns.mask(order[near])


def _walk(columns: Columns, edges: Edges, start: NDArray[np.float64], visible: Bools) -> Ints:
    """Rows reached in two hops from those with a ``start``, (rows + 1,): those that most of it leads to."""
    places = columns.rows + 1
    degree = np.bincount(edges.source, minlength=places) + np.bincount(edges.target, minlength=places)
    rare = edges.term_df[edges.term] <= RARE_TERM_DF
    term, holder = edges.term[rare], edges.holder[rare]
    leaving, reached = start, np.zeros(places)
    for _ in range(2):
        leaving = np.where(degree <= HUB_LINKS, leaving, 0.0)
        leading = _sums(edges.target, edges.weight * leaving[edges.source], places)
        leading += _sums(edges.source, edges.weight * leaving[edges.target], places)
        # A Term hands what it gets to all its holders alike.
        handed = _sums(term, leaving[holder], len(columns.term_names)) / np.maximum(edges.term_df, 1) ** 2
        leading += _sums(holder, handed[term], places)
        leaving = np.where(start > 0, 0.0, leading)
        reached += leaving
    there = np.flatnonzero((reached > 0) & visible)
    return there[best(reached[there], columns.notes["seq"][there], WALK_NOTES)]


def _sums(places: Ints, values: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """(size,) sums of the values at each place; of nothing too, for which bincount would give whole numbers."""
    return np.bincount(places, values, size).astype(np.float64)
