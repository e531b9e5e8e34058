"""A write of many notes is acknowledged before a slow embedder runs; embed jobs add the same vectors."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import pytest

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import picture, search_texts
from tests.contract.test_durable import ROOT, TOPICS
from zettel import AsyncMemory, Memory, Note
from zettel.core import vectors
from zettel.core.vectors import EMBEDDED_AT_ONCE
from zettel.embed import load_embedder, onnx, static
from zettel.embed.static import StaticEmbedder
from zettel.errors import FlushTimeout
from zettel.jobs import embed_job, link_job
from zettel.model import Job, JobKind, JobState
from zettel.text.index import vector_text

if TYPE_CHECKING:
    from zettel.ports.query import Floats

MANY = 3 * EMBEDDED_AT_ONCE
QUESTIONS = ["Who has a dog?", "What about the harbour?", "Which instrument is taught?", "What did Ann bake?"]


class Gated(StaticEmbedder):
    """A slow embedder that embeds notes only while its gate is open."""

    slow = True
    is_open = False

    async def embed(self, texts: Sequence[str]) -> Floats:
        while not self.is_open:  # noqa: ASYNC110 - another thread opens it
            await anyio.sleep(0.01)
        return await super().embed(texts)

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        return await super().embed(texts)


class Slow(StaticEmbedder):
    slow = True


def talk(count: int = MANY) -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{n}",
            "speaker": ["Ann", "Bob"][n % 2],
            "session": f"s{n // 10}",
            "occurred_at": f"2024-01-{1 + n // 10:02}T10:{n % 10:02}Z",
            "content": f"Number {n}: {TOPICS[n % len(TOPICS)]} again, and {TOPICS[n * 7 % 5]}.",
        }
        for n in range(count)
    ]


def kinds(memory: Memory) -> set[JobKind]:
    return {job.kind for job in memory.jobs()}


def stored_vectors(memory: Memory) -> dict[str, Floats]:
    """Return the stored vectors of all notes by their embedded text."""
    inner: AsyncMemory = memory._bridge.inner
    assert inner._backend.memory.engine is not None
    store = inner._backend.memory.engine.store
    (space,) = memory._bridge.call(store.spaces)
    notes: list[Note] = [note for _, parts in memory.dump() for note in parts]
    rows = memory._bridge.call(partial(store.vectors, memory.scope, [note.id for note in notes], space.id))
    return {vector_text(note): rows[note.id] for note in notes if note.id in rows}


@pytest.mark.parametrize("store", EVERY_STORE)
def test_many_notes_are_acknowledged_and_found_by_words_before_they_are_embedded(store: str, tmp_path: Path) -> None:
    embedder = Gated()
    with Memory(BACKENDS[store](tmp_path), embedder=embedder) as memory:
        memory.add_many(talk())
        assert kinds(memory) == {JobKind.EMBED}, "near links wait for the vectors"
        assert not stored_vectors(memory)
        assert "Number 31:" in search_texts(memory, "Number 31")[0]
        embedder.is_open = True
        memory.flush()
        assert len(stored_vectors(memory)) == MANY
        assert memory.jobs() == []
        assert memory.check() == []


@pytest.mark.any_store
def test_few_notes_and_a_fast_embedder_are_embedded_at_once(tmp_path: Path) -> None:
    few = talk(EMBEDDED_AT_ONCE)
    with Memory(tmp_path / "few.db", embedder=Slow()) as memory:
        memory.add_many(few)
        assert len(stored_vectors(memory)) == len(few)
    with Memory(tmp_path / "fast.db", embedder="static") as memory:
        memory.add_many(talk())
        assert len(stored_vectors(memory)) == MANY


@pytest.mark.parametrize("store", EVERY_STORE)
def test_embedding_by_jobs_gives_the_same_answers(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors, links and rankings equal those of a memory that embeds before it acknowledges."""
    monkeypatch.setattr(embed_job, "PART", 20)
    pictures, rankings = [], []
    for limit in (EMBEDDED_AT_ONCE, MANY):
        monkeypatch.setattr(vectors, "EMBEDDED_AT_ONCE", limit)
        folder = tmp_path / str(limit)
        folder.mkdir()
        with Memory(BACKENDS[store](folder)) as memory:
            memory.add_many(talk())
            memory.add("Kestrel the dog chased the night ferry.", id="last", speaker="Ann", session="s9")
            memory.flush()
            pictures.append(picture(memory))
            rankings.append([search_texts(memory, question) for question in QUESTIONS])
            alone = load_embedder()
            for text, row in stored_vectors(memory).items():
                expected = anyio.run(alone.embed, [text])[0]
                np.testing.assert_allclose(row, expected, atol=1e-3, err_msg=text)  # stores may keep 16 bits
    assert pictures[0] == pictures[1]
    assert rankings[0] == rankings[1]


def link_job_of(memory: Memory) -> Job:
    (job,) = [job for job in memory.jobs() if job.kind is JobKind.LINK]
    return job


def test_links_wait_until_another_worker_has_embedded_the_older_notes(url: Any, tmp_path: Path) -> None:
    last = {"id": "last", "speaker": "Ann", "session": "s9", "content": f"Number 99: {TOPICS[0]} again."}
    with Memory(tmp_path / "undisturbed.db", embedder="static") as memory:
        memory.add_many([*talk(), last])
        memory.flush()
        undisturbed = picture(memory)
    embedder = Gated()
    with Memory(url, embedder=embedder) as embedding:
        embedding.add_many(talk())
        while all(job.state is JobState.QUEUED for job in embedding.jobs()):
            time.sleep(0.01)
        with Memory(url, embedder="static") as linking:
            linking.add_many([last])
            with pytest.raises(FlushTimeout):
                linking.flush(timeout=1)
            while (waiting := link_job_of(linking)).state is not JobState.QUEUED:
                time.sleep(0.01)  # it is claimed for a moment several times a second
            assert (waiting.attempts, waiting.error) == (0, link_job.EMBEDDING.reason)
            embedder.is_open = True
            linking.flush()
            embedding.flush()
            assert picture(linking) == undisturbed


@pytest.mark.integration
def test_a_kill_before_the_embedding_loses_no_vector(url: Any, tmp_path: Path) -> None:
    """The next process embeds what a killed one had acknowledged."""
    code = (
        "import os, signal, sys; from zettel import Memory; from tests.contract.test_embed_jobs import talk\n"
        "memory = Memory(sys.argv[1])\n"
        "memory.add_many(talk())\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(url)], cwd=ROOT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with Memory(tmp_path / "undisturbed.db") as memory:
        memory.add_many(talk())
        memory.flush()
        undisturbed = picture(memory), [search_texts(memory, question) for question in QUESTIONS]
    with Memory(url) as memory:
        memory.flush(timeout=60)
        assert len(stored_vectors(memory)) == MANY
        assert memory.check() == []
        assert (picture(memory), [search_texts(memory, question) for question in QUESTIONS]) == undisturbed


def test_an_interrupted_job_keeps_the_parts_that_it_has_embedded(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_job, "PART", 10)

    class Breaking(StaticEmbedder):
        slow = True
        left = 25

        async def embed(self, texts: Sequence[str]) -> Floats:
            self.left -= len(texts)
            if self.left < 0:
                await anyio.sleep_forever()
            return await super().embed(texts)

    with Memory(url, embedder=Breaking()) as memory:
        memory.add_many(talk())
        with pytest.raises(TimeoutError):
            memory.flush(timeout=3)
    with Memory(url, embedder=Gated()) as memory:
        assert len(stored_vectors(memory)) == 20


# The embedder that a store records ---------------------------------------------------------------------------


def test_a_store_of_the_static_embedder_continues_with_it(url: Any) -> None:
    with Memory(url, embedder="static") as memory:
        memory.add_many(talk())
        memory.flush()
        before = stored_vectors(memory), [search_texts(memory, question) for question in QUESTIONS]
    with Memory(url) as memory:
        assert memory.stats()["embedder"] == static.SHIPPED_NAME
        after = stored_vectors(memory), [search_texts(memory, question) for question in QUESTIONS]
        memory.add("Kestrel swam.")
        assert memory.reembed() == 0
        memory.flush()
        assert {row.shape for row in stored_vectors(memory).values()} == {(256,)}
    assert after[1] == before[1]
    assert before[0].keys() == after[0].keys()
    for text, row in before[0].items():
        np.testing.assert_array_equal(row, after[0][text])


def test_reembed_changes_the_embedder_that_later_memories_use(url: Any) -> None:
    with Memory(url, embedder="static") as memory:
        memory.add_many(talk())
        memory.flush()
    with Memory(url, embedder="minilm") as memory:
        assert memory.reembed() == MANY
    with Memory(url) as memory:
        assert memory.stats()["embedder"] == onnx.SHIPPED_NAME
        assert search_texts(memory, QUESTIONS[0])
        memory.add("Kestrel swam.")
        memory.flush()
        assert {row.shape for row in stored_vectors(memory).values()} == {(384,)}


def test_a_new_store_records_the_default_even_if_killed_before_the_embedding(url: Any) -> None:
    with Memory(url, embedder=Gated()) as memory:
        memory.add_many(talk())
        assert memory.stats()["embedder"] == static.SHIPPED_NAME
    with Memory(url) as memory:
        assert memory.stats()["embedder"] == static.SHIPPED_NAME
        memory.flush()
