"""Where a question's tokens stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zettel.search.pool import affordable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zettel.graph.columnar.columns import Columns, View
    from zettel.query import Ints


@dataclass(frozen=True, slots=True)
class Words:
    """The asked tokens among visible notes."""

    keys: list[int]  # (q,)
    df: Ints  # (q,)
    read: list[tuple[int, Ints, NDArray[np.int16]]]
    """Of those that can be afforded: position in the question, rows, counts."""


def look_up(columns: Columns, view: View, keys: list[int], tokens: Sequence[str]) -> Words:
    """Count all tokens and read the rarest."""
    if view.usual:  # an archived note has no words, so all that are there are visible
        df = np.array([columns.words.count(key) for key in keys], np.int64)
    else:
        df = np.array([view.visible[columns.words.find(key)[0]].sum() for key in keys], np.int64)
    read = []
    for position in affordable(tuple(tokens), df):
        rows, counts = columns.words.find(keys[position])
        if not view.usual:
            rows, counts = rows[view.visible[rows]], counts[view.visible[rows]]
        read.append((position, rows, counts))
    return Words(keys, df, read)
