"""Normalisation of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from zettel.ports.query import Floats


def unit_rows(rows: Floats) -> Floats:
    """Scale the rows of (n, dim) to length 1, in place; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, norms, out=rows, where=norms > 0)
    return rows
