"""An embedder's mistake raises EmbedderError with advice, and nothing wrong is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.contract.test_reembed import Letters
from zettel import Memory
from zettel.errors import EmbedderError


class Overflowing(Letters):
    """Changes its rows for texts with the word "overflow"."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self._change = change

    async def embed(self, texts: Sequence[str]) -> Any:
        rows = await super().embed(texts)
        return self._change(rows) if any("overflow" in text for text in texts) else rows


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN": (lambda rows: rows * np.nan, "vector of length nan for 'A red boat can overflow"),
    "infinite": (lambda rows: rows + np.inf, "vector of length inf for"),
    "long": (lambda rows: rows * 140, "vector of length 140 for .*: return rows of length 1"),
    "too few rows": (lambda rows: rows[:-1], r"array of shape \(0, 26\), not \(1, 26\)"),
    "other dimension": (lambda rows: rows[:, :3], r"array of shape \(1, 3\), not \(1, 26\)"),
    "nothing": (lambda rows: None, r"array of shape \(\)|no array of numbers"),
    "words": (lambda rows: ["red"], "no array of numbers"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_vectors_are_refused(fault: str) -> None:
    change, message = FAULTS[fault]
    with Memory(":memory:", embedder=Overflowing(change)) as memory:
        memory.add("The boat is red.")
        with pytest.raises(EmbedderError, match=message):
            memory.add("A red boat can overflow.")
        with pytest.raises(EmbedderError, match="'overflow'" if fault in ("NaN", "infinite", "long") else message):
            memory.search("overflow")
        assert [hit.note.content for hit in memory.search("Which boat is red?")] == ["The boat is red."]
        assert memory.check() == []


def test_rows_may_be_lists_and_zero() -> None:
    with Memory(":memory:", embedder=Overflowing(lambda rows: (rows * 0).tolist())) as memory:
        memory.add("A red boat can overflow.")
        assert [hit.note.content for hit in memory.search("Which boat is red?")] == ["A red boat can overflow."]


def test_an_embedder_without_async_is_refused() -> None:
    class Impatient(Letters):
        def embed(self, texts: Sequence[str]) -> Any:  # type: ignore[override]
            return np.zeros((len(texts), self.info.dim), np.float32)

    with Memory(":memory:", embedder=Impatient()) as memory, pytest.raises(EmbedderError, match="'async def'"):
        memory.add("The boat is red.")
