"""What every embedder does to its texts and rows, so that all keep the promises of their port."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from zettel.query import Floats


def readable(text: str) -> str:
    """The same text; a lone surrogate, which is no character and which no tokenizer takes, becomes ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unit_rows(rows: Floats) -> Floats:
    """Scale the rows of (n, dim) to length 1, in place; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, norms, out=rows, where=norms > 0)
    return rows
