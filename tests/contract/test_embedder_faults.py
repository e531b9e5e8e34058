"""An embedder's mistake raises EmbedderError with advice, and nothing wrong is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from zettel import Memory
from zettel.errors import EmbedderError
from zettel.ports import EmbedderInfo

DIM = 8


def letters(texts: Sequence[str]) -> Any:
    rows = np.zeros((len(texts), DIM), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for letter in text.lower():
            row[ord(letter) % DIM] += 1
        row /= np.linalg.norm(row) or 1
    return rows


class Letters:
    """Counts letters, and changes its rows for texts with the word "overflow"."""

    remote = False
    info = EmbedderInfo("letters", DIM, hashlib.sha256(b"letters").hexdigest())

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self._change = change

    async def embed(self, texts: Sequence[str]) -> Any:
        rows = letters(texts)
        return self._change(rows) if any("overflow" in text for text in texts) else rows


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN": (lambda rows: rows * np.nan, "vector of length nan for 'A red boat can overflow"),
    "infinite": (lambda rows: rows + np.inf, "vector of length inf for"),
    "long": (lambda rows: rows * 140, "vector of length 140 for .*: return rows of length 1"),
    "too few rows": (lambda rows: rows[:-1], r"array of shape \(0, 8\), not \(1, 8\)"),
    "other dimension": (lambda rows: rows[:, :3], r"array of shape \(1, 3\), not \(1, 8\)"),
    "nothing": (lambda rows: None, r"array of shape \(\)|no array of numbers"),
    "words": (lambda rows: ["red"], "no array of numbers"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_vectors_are_refused(fault: str) -> None:
    change, message = FAULTS[fault]
    with Memory(":memory:", embedder=Letters(change)) as memory:
        memory.add("The boat is red.")
        with pytest.raises(EmbedderError, match=message):
            memory.add("A red boat can overflow.")
        with pytest.raises(EmbedderError, match="'overflow'" if fault in ("NaN", "infinite", "long") else message):
            memory.search("overflow")
        assert [hit.note.content for hit in memory.search("Which boat is red?")] == ["The boat is red."]
        assert memory.check() == []


def test_rows_may_be_lists_and_zero() -> None:
    with Memory(":memory:", embedder=Letters(lambda rows: (rows * 0).tolist())) as memory:
        memory.add("A red boat can overflow.")
        assert [hit.note.content for hit in memory.search("Which boat is red?")] == ["A red boat can overflow."]


def test_an_embedder_without_async_is_refused() -> None:
    class Impatient(Letters):
        def embed(self, texts: Sequence[str]) -> Any:  # type: ignore[override]
            return letters(texts)

    with (
        Memory(":memory:", embedder=Impatient(lambda rows: rows)) as memory,
        pytest.raises(EmbedderError, match="'async def'"),
    ):
        memory.add("The boat is red.")
