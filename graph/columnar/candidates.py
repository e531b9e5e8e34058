"""From a scope's columns and a question to its Candidates, by the rules of ``zettel.search.pool``.

What is looked at is bounded by those rules and not by the size of the scope, but for a question with a filter, a time
or a clock of its own: these pass once over the scope's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.columnar.columns import GONE, KINDS, Columns, View
from zettel.graph.columnar.shaping import columnar
from zettel.graph.columnar.walking import reached, term_df
from zettel.graph.columnar.words import Words, look_up
from zettel.graph.keys import FACET, Keys
from zettel.model import TIME_MAX, TIME_MIN
from zettel.query import Candidates, ScopeStats, Seed
from zettel.search.pool import ANCHORS, WALK_SEEDS, best, idf, saturation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zettel.query import Bools, Filter, Ints, Query

_NONE: Ints = np.zeros(0, np.int64)


def gather(
    columns: Columns, query: Query, keys: Keys, names_of: Callable[[Ints], Sequence[str]], *, used: bool, archived: bool
) -> Candidates:
    """The candidates for a question. ``columns`` must stand at the question's ``known_at``.

    ``names_of`` tells what Terms are called, by their keys; it is asked when somebody asks the candidates. ``used``
    and ``archived`` are those of the scope's statistics.
    """
    view = columns.view(query.as_of)
    words = look_up(columns, view, [keys.word(token) for token in query.tokens], query.tokens)
    stats = ScopeStats(notes=view.notes, tokens=view.tokens, df=words.df, used=used, archived=archived)
    allowed = _allowed(columns, view, query.filter, keys)
    named = {columns.term_numbers.find(keys.term(name)): name for name in query.names}
    named.pop(GONE, None)

    by_vector = _by_vector(columns, query, allowed)
    by_text = _by_text(columns, query, words, stats, allowed)
    by_title = _by_title(columns, query, allowed, keys)
    by_term = _by_term(columns, view, query, named, allowed)
    by_time = _by_time(columns, query, allowed)
    around = windows(columns, view, np.concatenate([by_vector[:ANCHORS], by_text[:ANCHORS]]), query.window)
    walked = reached(
        columns, view, [(by_vector[:WALK_SEEDS], None), (by_text[:WALK_SEEDS], None), (by_title, 1.0),
                        (by_term, 1.0 / max(len(by_term), 1))]
    )  # fmt: skip
    found = {
        Seed.VECTOR: by_vector, Seed.TEXT: by_text, Seed.TITLE: by_title, Seed.TERM: by_term, Seed.TIME: by_time,
        Seed.NEIGHBOUR: _only(around, allowed), Seed.WALK: _only(walked, allowed),
    }  # fmt: skip
    pool, places = columns.distinct(np.concatenate(list(found.values())))
    seeds = np.zeros(len(pool), np.int64)
    np.bitwise_or.at(seeds, places, np.repeat([int(flag) for flag in found], [len(rows) for rows in found.values()]))
    near = pool[seeds != int(Seed.WALK)]
    chosen, _ = columns.distinct(np.concatenate([pool, windows(columns, view, near, query.window), walked]))
    flags = np.zeros(len(chosen), np.int64)
    flags[: len(pool)] = seeds  # the first of them are the pool
    order = np.argsort(chosen)
    chosen, flags = chosen[order], flags[order]
    names_of = _with_former(names_of, columns.former_names) if columns.former_names else names_of
    return columnar(columns, view, query, chosen, flags, words, list(named), stats, names_of)


def _with_former(names_of: Callable[[Ints], Sequence[str]], former: dict[int, str]) -> Callable[[Ints], Sequence[str]]:
    def names(keys: Ints) -> Sequence[str]:
        told = zip(keys.tolist(), names_of(keys), strict=True)
        return [former.get(key, name) for key, name in told]

    return names


def _allowed(columns: Columns, view: View, filter: Filter, keys: Keys) -> Bools:
    """Which rows may be hits: the visible ones that pass the filter, (rows + 1,)."""
    notes, passed = columns.notes, view.visible[:-1]
    if filter.kinds:
        passed = passed & np.isin(notes["kind"], [KINDS.index(kind) for kind in filter.kinds if kind in KINDS])
    if filter.session is not None:
        passed = passed & (notes["session"] == columns.sessions.known(filter.session)) & (notes["session"] >= 0)
    if filter.role is not None:
        passed = passed & (notes["role"] == columns.roles.known(filter.role)) & (notes["role"] >= 0)
    if filter.since is not None or filter.until is not None:
        passed = passed & (notes["occurred_at"] != TIME_MIN)
        passed &= notes["occurred_at"] >= (TIME_MIN if filter.since is None else filter.since)
        passed &= notes["occurred_at"] < (TIME_MAX if filter.until is None else filter.until)
    some, every = keys.asked(filter)
    for wanted, needed in ((some, 1), (list(dict.fromkeys(every)), len(set(every)))):
        if wanted:
            held = np.concatenate([rows[count == FACET] for rows, count in map(columns.words.find, wanted)])
            passed = passed & (np.bincount(held, minlength=columns.rows) >= needed)
    return view.visible if passed.base is view.visible else np.append(passed, False)


def _by_vector(columns: Columns, query: Query, allowed: Bools) -> Ints:
    if query.vector is None or not columns.dim:
        return _NONE
    return columns.vectors.nearest(query.vector, query.pool, allowed)


def _by_text(columns: Columns, query: Query, words: Words, stats: ScopeStats, allowed: Bools) -> Ints:
    mean_length = stats.tokens / max(stats.notes, 1)
    rarity = idf(stats.df, stats.notes)
    sums, touched = columns.sums(), [_NONE]
    for position, rows, counts in words.read:
        held = allowed[rows]
        if not held.all():
            rows, counts = rows[held], counts[held]
        sums[rows] += (
            saturation(counts.astype(np.float64), columns.notes["length"][rows], mean_length) * rarity[position]
        )
        touched.append(rows)
    rows, _ = columns.distinct(np.concatenate(touched))  # a row stands there once for each of its words
    scores = sums[rows]
    sums[rows] = 0.0
    found: Ints = rows[best(scores, columns.notes["seq"][rows], query.pool)]
    return found


def _by_title(columns: Columns, query: Query, allowed: Bools, keys: Keys) -> Ints:
    titled = [columns.words.find(keys.title(name))[0] for name in query.names]
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
        taken.append(columns.holders.find(number)[0])
    return _ascending(columns, taken, allowed)


def _ascending(columns: Columns, parts: Sequence[Ints], allowed: Bools) -> Ints:
    """The rows of these parts that are allowed, each once. NumPy's ``unique`` loads its masked arrays first."""
    rows, _ = columns.distinct(np.concatenate([_NONE, *parts]))
    return np.sort(_only(rows, allowed))


def _only(rows: Ints, allowed: Bools) -> Ints:
    held: Ints = rows[allowed[rows]]
    return held


def _by_time(columns: Columns, query: Query, allowed: Bools) -> Ints:
    if not query.times:
        return _NONE
    within = np.zeros(columns.rows, bool)
    occurred_at = columns.notes["occurred_at"]
    for start, end in query.times:
        within |= (occurred_at >= start) & (occurred_at < end)
    return np.flatnonzero(within & (occurred_at != TIME_MIN) & allowed[:-1])[: query.pool]


def windows(columns: Columns, view: View, rows: Ints, window: int) -> Ints:
    """The visible rows within ``window`` places of these in their sessions, they themselves included."""
    at = view.place[rows].astype(np.int64)
    rows, at = rows[at >= 0], at[at >= 0]
    places = at[:, None] + np.arange(-window, window + 1)
    there = (places >= 0) & (places < len(view.order))
    near = view.order[np.where(there, places, 0)]
    session = columns.notes["session"]
    return columns.distinct(near[there & (session[near] == session[rows][:, None])].astype(np.int64))[0]
