"""Lookup of a query's tokens in the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zettel.ports.candidate_rules import affordable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zettel.graph.columnar.columns import Columns, View
    from zettel.ports.query import Ints


@dataclass(frozen=True, slots=True)
class QueryWords:
    """The tokens of a query among visible notes, and the entries of the affordable tokens."""

    keys: list[int]  # (q,)
    df: Ints  # (q,)
    read: list[int]  # positions in the query of the affordable tokens, rarest first
    position: Ints  # (m,) in the query
    rows: Ints  # (m,)
    counts: NDArray[np.int16]  # (m,)


def look_up(columns: Columns, view: View, keys: list[int], tokens: Sequence[str]) -> QueryWords:
    """Count all tokens and read the rarest."""
    wanted = np.array(keys, np.int64)
    if view.usual:  # archived notes have no words, so every entry is visible
        df = np.array(columns.words.counts(keys), np.int64)
    else:
        position, rows, _ = columns.words.find_many(wanted)
        df = np.bincount(position[view.visible[rows]], minlength=len(keys)).astype(np.int64)
    read = affordable(tuple(tokens), df)
    place, rows, counts = columns.words.find_many(wanted[read])
    if not view.usual:
        is_visible = view.visible[rows]
        place, rows, counts = place[is_visible], rows[is_visible], counts[is_visible]
    return QueryWords(keys, df, read, np.array(read, np.int64)[place], rows, counts)
