"""A store records its embedder; reembedding is one command that can be interrupted and resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.contract.support import LIFE, search_texts
from zettel import AsyncMemory, Memory
from zettel.errors import EmbedderError, EmbedderMismatch, JobFailed
from zettel.jobs import reembed_job
from zettel.model import JobKind
from zettel.ports import EmbedderInfo
from zettel.text.index import vector_text


class Letters:
    """An embedder of 26 letter counts that fails after a given number of texts."""

    remote = False
    info = EmbedderInfo("letters", 26, "letters/1")

    def __init__(self, breaks_after: int = 10**9) -> None:
        self.left = breaks_after
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> Any:
        self.left -= len(texts)
        if self.left < 0:
            raise EmbedderError("out of letters")
        self.embedded += len(texts)
        rows = np.array([[text.casefold().count(chr(97 + n)) for n in range(26)] for text in texts], np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def test_another_embedder_raises_and_names_the_command(url: Any) -> None:
    with Memory(url) as memory:
        memory.add_many(LIFE)
    with Memory(url, embedder=Letters()) as memory:
        for use in (lambda: memory.search("cello"), lambda: memory.add("More.")):
            with pytest.raises(EmbedderMismatch, match="zettel reembed --embedder letters") as caught:
                use()
            assert "all-MiniLM-L6-v2" in str(caught.value)
        assert len(memory.list().notes) == 7


def test_reembed_resumes_and_switches_embedders(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembed_job, "REEMBED_BATCH", 3)
    with Memory(url) as memory:
        memory.add_many(LIFE)
        memory.flush()
    with Memory(url, embedder=Letters(breaks_after=5)) as memory, pytest.raises(JobFailed, match="out of letters"):
        memory.reembed()
    with Memory(url) as memory:  # the old vectors serve until the change
        assert search_texts(memory, "Where is the cello?")
        assert [(job.kind, job.error) for job in memory.jobs()] == [(JobKind.REEMBED, "EmbedderError: out of letters")]
    letters = Letters()
    with Memory(url, embedder=letters) as memory:
        progress: list[tuple[int, int]] = []
        assert memory.reembed(on_progress=lambda done, total: progress.append((done, total))) == 4
        assert progress == [(3, 7), (4, 7)]
        assert letters.embedded == 4
        assert memory.stats()["embedder"] == "letters"
        assert search_texts(memory, "Where is the cello?")
        memory.add("A new one.")
        memory.flush()
        assert memory.check() == []
    with Memory(url) as memory, pytest.raises(EmbedderMismatch, match="letters"):
        memory.search("cello")


def test_notes_edited_during_a_reembed_are_found_by_their_new_words(
    url: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed_job, "REEMBED_BATCH", 3)
    with Memory(url) as memory:
        first, *_ = ids = memory.add_many(LIFE)
        memory.flush()
    with Memory(url, embedder=Letters(breaks_after=5)) as memory, pytest.raises(JobFailed, match="out of letters"):
        memory.reembed()
    with Memory(url) as memory:
        memory.update(first, content="Jazz quiz: zebras, oxen, foxes.")
    letters = Letters()
    with Memory(url, embedder=letters) as memory:
        assert memory.reembed() == 5
        inner: AsyncMemory = memory._bridge.inner
        store = inner._backend.memory.engine.store  # type: ignore[union-attr]
        (space,) = memory._bridge.call(store.spaces)
        vectors = memory._bridge.call(partial(store.vectors, memory.scope, ids, space.id))
        texts = [vector_text(memory.get(id)) for id in ids]  # type: ignore[arg-type]
        assert np.allclose([vectors[id] for id in ids], asyncio.run(letters.embed(texts)), atol=1e-3)


def test_reembed_with_the_same_embedder_has_nothing_to_do(url: Any) -> None:
    with Memory(url) as memory:
        memory.add_many(LIFE)
        assert memory.reembed() == 0
        memory.flush(timeout=20)
        assert memory.jobs() == []
