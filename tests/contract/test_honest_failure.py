"""Honest failure: a job that fails keeps its error and can be retried; nothing is logged and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.contract.support import said
from zettel import Memory, ZettelError
from zettel.errors import (
    EmbedderError,
    FlushTimeout,
    InvalidEvent,
    InvalidInput,
    InvalidQuestion,
    JobFailed,
    MemoryClosed,
)
from zettel.model import JobState
from zettel.ports import EmbedderInfo


class RemoteWords:
    """A remote embedder that is down until it is put right: hashes of words, so that equal texts are near."""

    remote = True
    info = EmbedderInfo("words", 64, "words/1")
    error: Exception | None = EmbedderError("the embedder says no")

    async def embed(self, texts: Sequence[str]) -> Any:
        if self.error is not None:
            raise self.error
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.casefold().split():
                row[sum(word.encode()) % 64] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def test_a_remote_embedder_that_fails_loses_nothing(url: Any) -> None:
    embedder = RemoteWords()
    with Memory(url, embedder=embedder) as memory:
        memory.add("The lighthouse keeper collects stamps.")
        with pytest.raises(JobFailed, match="the embedder says no"):
            memory.flush(timeout=30)
        (job,) = memory.jobs()
        assert job.state is JobState.FAILED
        assert job.error == "EmbedderError: the embedder says no"
        embedder.error = None
        assert "stamps" in said(memory, "lighthouse")[0]  # by text: the vector is still missing
        assert memory.retry_jobs() == 1
        memory.flush(timeout=30)
        assert memory.jobs() == []
        assert memory.check() == []


def test_a_flush_that_runs_out_of_time_says_so(url: Any) -> None:
    class Slow(RemoteWords):
        error = None

        async def embed(self, texts: Sequence[str]) -> Any:
            import asyncio

            await asyncio.sleep(0.5)
            return await super().embed(texts)

    with Memory(url, embedder=Slow()) as memory:
        id = memory.add("Something slow.")
        with pytest.raises(FlushTimeout, match="pending"):
            memory.flush(timeout=0)
        memory.flush()
        assert memory.get(id).content == "Something slow."


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": "   \n\t"}, "says nothing"),
        ({"content": ""}, "says nothing"),
        ({"content": "x" * 1_000_001}, "1,000,001 bytes"),
        ({"content": "a\x00b"}, "content: holds a NUL"),
        ({"content": "a\ud800b"}, "content: holds a lone surrogate at character 1"),
        ({"content": "x", "role": "\x00"}, "role: holds a NUL"),
        ({"content": "x", "occurred_at": "2024-02-31"}, "occurred_at"),
        ({"content": "x", "occurred_at": "soon"}, "occurred_at"),
        ({"content": "x", "metadata": {"a": object()}}, "metadata"),
        ({"content": "x", "payload": {"a": {1, 2}}}, "payload"),
    ],
)
def test_a_bad_event_is_refused_in_one_line(memory: Memory, fields: dict[str, Any], complaint: str) -> None:
    memory.add("Something good.", id="good")
    with pytest.raises(InvalidEvent, match=complaint) as refused:
        memory.add(**fields)
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidEvent):
        memory.add_many([{"content": "fine"}, fields])
    assert [note.content for note in memory.list().notes] == ["Something good."]


def test_a_bad_question_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidQuestion, match="empty"):
        memory.search("   ")
    with pytest.raises(InvalidInput, match="k=0"):
        memory.search("x", k=0)
    with pytest.raises(InvalidInput, match="'factual'"):
        memory.search("x", kinds=["factual"])
    with pytest.raises(InvalidInput, match="max_tokens"):
        memory.context("x", max_tokens=0)


@pytest.mark.parametrize(
    "question", ['a OR (b"', "NEAR/3 * ^", "'; DROP TABLE notes; --", "zzgrblfx", "?!", "🦉", "\\", "a" * 20_000]
)
def test_any_other_question_is_answered(memory: Memory, question: str) -> None:
    memory.add_many([{"content": "The owl or the barn."}, {"content": "A table of notes."}], wait=True)
    assert len(memory.search(question)) <= 2


def test_a_closed_memory_says_so(memory: Memory) -> None:
    memory.close()
    with pytest.raises(MemoryClosed, match="closed"):
        memory.add("too late")
    memory.close()  # and again: nothing


def test_all_errors_are_ours() -> None:
    from zettel import errors

    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(cls, ZettelError) for cls in classes)
    for cls in classes:
        assert cls.__doc__
        assert cls.__name__ in (errors.__doc__ or "")
