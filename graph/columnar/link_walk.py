"""The link step (WALK) of ``zettel.ports.candidate_rules``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.ports.candidate_rules import HUB_LINKS, RARE_TERM_DF, WALK_BEAM, WALK_NOTES, best

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zettel.graph.columnar.columns import Columns, View
    from zettel.ports.query import Ints

    Amounts = NDArray[np.float64]


def term_df(columns: Columns, view: View, terms: Ints) -> Ints:
    """Return the number of visible notes with each term."""
    if view.usual:
        return columns.term_df["notes"][terms].astype(np.int64)
    positions, rows, _ = columns.holders.find_many(terms)
    return np.bincount(positions[view.visible[rows]], minlength=len(terms)).astype(np.int64)


def reached(columns: Columns, view: View, seeds: Sequence[tuple[Ints, float | None]]) -> Ints:
    """Return the rows that receive most from the seeds: rows with a start amount each, None for 1 / rank."""
    rows = np.concatenate([seed_rows for seed_rows, _ in seeds])
    amounts = np.concatenate(
        [1.0 / np.arange(1, len(rows) + 1) if each is None else np.full(len(rows), each) for rows, each in seeds]
    )
    if not len(rows):
        return rows
    start, amounts = _added(columns, rows, amounts)
    started = columns.mask(start)
    first, gained = _hop(columns, view, start, amounts)
    fresh = ~started[first]
    first, gained = first[fresh], gained[fresh]
    beam = best(gained, first, WALK_BEAM)
    second, more = _hop(columns, view, first[beam], gained[beam])
    fresh = ~started[second]
    rows, gained = _added(columns, np.concatenate([first, second[fresh]]), np.concatenate([gained, more[fresh]]))
    return rows[best(gained, rows, WALK_NOTES)]


def _hop(columns: Columns, view: View, rows: Ints, amounts: Amounts) -> tuple[Ints, Amounts]:
    """Pass amounts on over links in both directions, and over rare terms."""
    visible = view.visible
    out, places = columns.links.take(rows)
    targets = columns.links["target"][places].astype(np.int64)
    seen = visible[targets]
    out, targets, outward = out[seen], targets[seen], columns.links["weight"][places][seen]
    back, sources, link = columns.linking.find_many(rows)
    seen = visible[sources]
    back, sources, inward = back[seen], sources[seen], link["weight"][seen]
    degree = np.bincount(out, minlength=len(rows)) + np.bincount(back, minlength=len(rows))
    amounts = np.where(degree <= HUB_LINKS, amounts, 0.0)

    owner, places = columns.terms.take(rows)
    terms, inverse = columns.distinct(columns.terms["term"][places].astype(np.int64))
    df = term_df(columns, view, terms)
    # A term passes its amount on to all its notes equally.
    passed = np.bincount(inverse, amounts[owner], minlength=len(terms)) / np.maximum(df, 1) ** 2
    binding = np.flatnonzero((df >= 2) & (df <= RARE_TERM_DF))
    term, holders, _ = columns.holders.find_many(terms[binding])
    seen = visible[holders]
    each, gained = _added(
        columns,
        np.concatenate([targets, sources, holders[seen]]),
        np.concatenate([outward * amounts[out], inward * amounts[back], passed[binding][term[seen]]]),
    )
    return each[gained > 0], gained[gained > 0]  # a hub passes nothing on


def _added(columns: Columns, rows: Ints, amounts: Amounts) -> tuple[Ints, Amounts]:
    """Return each row once, with the sum of its amounts."""
    each, inverse = columns.distinct(rows)
    return each, np.bincount(inverse, amounts, minlength=len(each)).astype(np.float64)
