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
    """The tokens of a query among visible notes."""

    keys: list[int]  # (q,)
    df: Ints  # (q,)
    read: list[tuple[int, Ints, NDArray[np.int16]]]
    """Position in the query, rows and counts of each affordable token."""


def look_up(columns: Columns, view: View, keys: list[int], tokens: Sequence[str]) -> QueryWords:
    """Count all tokens and read the rarest."""
    if view.usual:  # archived notes have no words, so every entry is visible
        df = np.array([columns.words.count(key) for key in keys], np.int64)
    else:
        df = np.array([view.visible[columns.words.find(key)[0]].sum() for key in keys], np.int64)
    read = []
    for position in affordable(tuple(tokens), df):
        rows, counts = columns.words.find(keys[position])
        if not view.usual:
            rows, counts = rows[view.visible[rows]], counts[view.visible[rows]]
        read.append((position, rows, counts))
    return QueryWords(keys, df, read)
