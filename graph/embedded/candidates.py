"""From a scope's columns and a question to its Candidates, by the rules of ``zettel.search.pool``. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.embedded.columns import GONE, KINDS, LINK_TYPES, Columns
from zettel.graph.embedded.keys import FACET, TITLE, Keys
from zettel.graph.embedded.vectors import nearest
from zettel.model import TIME_MAX, TIME_MIN, Kind, LinkType
from zettel.ports import Candidates, ScopeStats, Seed
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

    from zettel.ports import Bools, Filter, Floats, Ints, Query

_SUPERSEDES = LINK_TYPES.index(LinkType.SUPERSEDES)
_EPISODIC = KINDS.index(Kind.EPISODIC.value)


@dataclass(frozen=True, slots=True)
class Matches:
    """Where asked keys stand: ``row`` and ``count`` of each place, and ``asked``, the position of its key."""

    row: Ints
    count: Ints
    asked: Ints


@dataclass(frozen=True, slots=True)
class Edges:
    """Links between visible notes, as rows, and the entries of Terms that visible notes hold."""

    source: Ints
    target: Ints
    type: Ints
    weight: Floats
    term: Ints
    holder: Ints
    count: Ints
    term_df: Ints


def gather(columns: Columns, query: Query, keys: Keys) -> Candidates:
    """The candidates for a question. ``columns`` must stand at the question's ``known_at``."""
    notes, rows = columns.notes, columns.rows
    visible = np.zeros(rows + 1, bool)
    visible[:rows] = notes["shown"] & notes["alive"]
    if query.as_of is not None:
        visible[:rows] &= notes["valid_from"] <= query.as_of
    asked = [keys.word(token) for token in query.tokens] + [keys.title(name) for name in query.names]
    matched = matches(columns, asked, visible)
    words, titles = _only(matched, matched.count > 0), _only(matched, matched.count == TITLE)
    allowed = visible & _let_through(columns, query.filter, keys, visible)
    lengths = notes["length"]
    stats = ScopeStats(
        notes=int(visible.sum()),
        tokens=int(lengths[visible[:rows]].sum()),
        df=np.bincount(words.asked, minlength=len(query.tokens)).astype(np.int64),
    )
    edges = _edges(columns, visible)
    named = _named_terms(columns, query, keys)

    seeds = np.zeros(rows + 1, np.int64)
    by_vector = _by_vector(columns, query, allowed)
    by_text = _by_text(columns, query, words, stats, allowed)
    by_title = _first(columns, np.unique(titles.row[allowed[titles.row]]), query.pool)
    by_term = _by_term(columns, query, edges, named, allowed)
    by_time = _by_time(columns, query, allowed)
    anchors = np.concatenate([by_vector[:ANCHORS], by_text[:ANCHORS]])
    around = _windows(columns, columns.mask(anchors), visible, query.window) & allowed
    starts = columns.mask(np.concatenate([by_vector[:WALK_SEEDS], by_text[:WALK_SEEDS], by_title, by_term]))
    walked = _walk(columns, edges, starts, visible)
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
    return _columnar(columns, query, chosen, pool, seeds, visible, words, edges, named, stats)


def matches(columns: Columns, wanted: list[int], visible: Bools) -> Matches:
    """Where keys stand among visible notes: one pass over the low 16 bits of all, then exactly."""
    none = np.zeros(0, np.int64)
    if not wanted:
        return Matches(none, none, none)
    asked = np.array(wanted, np.int64)
    near = np.zeros(2**16, bool)
    near[asked.astype(np.uint64).astype(np.uint16)] = True
    entries = columns.entries
    hits = np.flatnonzero(near[entries["low"]])
    hits = hits[visible[entries["row"][hits]]]
    sort = np.argsort(asked, kind="stable")
    places = np.minimum(np.searchsorted(asked[sort], entries["key"][hits]), len(asked) - 1)
    exact = asked[sort][places] == entries["key"][hits]
    hits, places = hits[exact], places[exact]
    return Matches(entries["row"][hits].astype(np.int64), entries["count"][hits].astype(np.int64), sort[places])


def _only(found: Matches, mask: Bools) -> Matches:
    return Matches(found.row[mask], found.count[mask], found.asked[mask])


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
    found = _only(words, read[words.asked] & allowed[words.row])
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


def _edges(columns: Columns, visible: Bools) -> Edges:
    links, terms = columns.links, columns.terms
    live = visible[links["source"]] & visible[links["target"]]
    held = visible[terms["row"]]
    term = terms["term"][held]
    return Edges(
        source=links["source"][live],
        target=links["target"][live],
        type=links["type"][live],
        weight=links["weight"][live],
        term=term,
        holder=terms["row"][held],
        count=terms["count"][held],
        term_df=np.bincount(term, minlength=len(columns.term_names)).astype(np.int64),
    )


def _walk(columns: Columns, edges: Edges, starts: Bools, visible: Bools) -> Ints:
    """Rows reached in two hops, the first hop first, within a hop those that most leads to."""
    places = columns.rows + 1
    degree = np.bincount(edges.source, minlength=places) + np.bincount(edges.target, minlength=places)
    rare = edges.term_df[edges.term] <= RARE_TERM_DF
    term, holder = edges.term[rare], edges.holder[rare]
    seen, frontier = starts.copy(), starts
    reached: list[Ints] = []
    for _ in range(2):
        leaving = (frontier & (degree <= HUB_LINKS)).astype(np.float64)
        leading = _sums(edges.target, edges.weight * leaving[edges.source], places)
        leading += _sums(edges.source, edges.weight * leaving[edges.target], places)
        # A Term hands what it gets to all its holders alike.
        handed = _sums(term, leaving[holder], len(columns.term_names)) / np.maximum(edges.term_df, 1) ** 2
        leading += _sums(holder, handed[term], places)
        frontier = (leading > 0) & visible & ~seen
        seen |= frontier
        hop = np.flatnonzero(frontier)
        reached.append(hop[best(leading[hop], columns.notes["seq"][hop], WALK_NOTES)])
    return np.concatenate(reached)[:WALK_NOTES]


def _sums(places: Ints, values: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """(size,) sums of the values at each place; of nothing too, for which bincount would give whole numbers."""
    return np.bincount(places, values, size).astype(np.float64)


def _columnar(
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

    here = _only(words, place[words.row] >= 0)
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
