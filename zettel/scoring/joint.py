"""Candidates of several searches end to end, so that one pass over the columns scores them all.

Rows, sessions and terms get new numbers. Statistics belong to each search, and so they are not part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.ports.query import Candidates

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from zettel.ports.query import Floats, Ints

_COLUMNS = (
    "pool", "seeds", "seq", "event", "kind", "role", "occurred_at", "valid_from", "valid_to", "length", "is_question",
    "cosine", "link_type", "link_weight", "term_df", "term_named", "session_length",
)  # fmt: skip
"""Columns without numbers of rows, sessions or terms, which simply follow each other."""


def starts_of(sizes: Sequence[int]) -> Ints:
    """Return where each part starts, and the end of the last: (s,) -> (s + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def joined(parts: Sequence[Candidates]) -> Candidates:
    """Return the candidates of s searches, at least one, end to end. Speakers keep their numbers, ``stats`` is wrong.

    A column of ``tf`` is a token of each search, in its order; a search with fewer tokens has zeros.
    """
    if len(parts) == 1:
        return parts[0]
    rows = starts_of([len(part.ids) for part in parts])
    sessions = starts_of([len(part.session_length) for part in parts])
    terms = starts_of([len(part.term_df) for part in parts])
    tokens = max(part.tf.shape[1] for part in parts)

    def shifted(name: str, starts: Ints) -> Ints:
        return _shifted([getattr(part, name) for part in parts], starts)

    def padded(column: Callable[[Candidates], Floats]) -> Floats:
        return np.concatenate([_padded(column(part), tokens) for part in parts])

    columns: dict[str, NDArray[Any]] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
    }
    return Candidates(
        ids=range(int(rows[-1])),  # type: ignore[arg-type]  # only their number counts
        speaker=np.concatenate([part.speaker for part in parts]),
        speaker_names=(),
        session=shifted("session", sessions),
        previous=shifted("previous", rows),
        next=shifted("next", rows),
        tf=padded(lambda part: part.tf),
        link_source=shifted("link_source", rows),
        link_target=shifted("link_target", rows),
        term_keys=(),
        term_note=shifted("term_note", rows),
        term_index=shifted("term_index", terms),
        session_tf=padded(lambda part: part.session_tf),
        stats=parts[0].stats,
        **columns,
    )


def _shifted(columns: Sequence[Ints], starts: Ints) -> Ints:
    """Return numbers of rows end to end; -1 stays -1."""
    return np.concatenate(
        [np.where(column >= 0, column + start, column) for column, start in zip(columns, starts.tolist(), strict=False)]
    )


def _padded(tf: Floats, tokens: int) -> Floats:
    missing = tokens - tf.shape[1]
    return np.pad(tf, ((0, 0), (0, missing))) if missing else tf
