"""2-bit codes of very large scopes: hits as with floats, erasure, and size, recall and times at a million vectors."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import faiss
import numpy as np
import pytest

from tests.integration.test_embedded_ivf import OVERLAP, hits, overlap, stored_lists
from zettel import Memory
from zettel.bench.synthetic import large_scope
from zettel.embed.static import StaticEmbedder
from zettel.graph.columnar import ivf
from zettel.graph.columnar.ivf import CompactIndex
from zettel.graph.columnar.tables import Table
from zettel.graph.embedded import ivf_lists, schema
from zettel.graph.embedded.vectors import vectors_of_rows

pytestmark = pytest.mark.integration

NOTES = 1500
CONVERSATIONS = Path(__file__).parents[1] / "data" / "conversations"
MEMORY_SHARE, RECALL_SHARE = 0.1, 0.99
"""Required of 2-bit codes, relative to floats: at most this memory, and at least this recall."""
POOL, CANDIDATES, QUESTIONS, K = 96, 900, 300, 10
"""Of a search: notes by vector, notes whose cosine it needs, questions, and the neighbours that count."""


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits so that few vectors count as many."""
    for module, name, limit in (
        (ivf_lists, "LARGE", 600), (ivf, "COMPACT", 600), (ivf_lists, "COMPACT", 600), (ivf_lists, "_SAMPLED", 8),
        (ivf, "PROBED", 24), (ivf, "FEW_READ", 100),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, limit)


def test_2_bit_codes_find_the_hits_of_floats(tmp_path: Path, low_limits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a filter, after changes and deletes, and loaded from a snapshot, which is purged with the notes."""
    searched: list[int] = []
    probe = CompactIndex._probe
    monkeypatch.setattr(CompactIndex, "_probe", lambda index, *rest: (searched.append(1), probe(index, *rest))[1])
    events, questions = large_scope(NOTES)
    path, plain, embedder = tmp_path / "large.db", tmp_path / "plain.db", StaticEmbedder()
    with Memory(path, embedder=embedder) as memory:
        memory.add_many(events[:1000])
        memory.flush()
        hits(memory, questions[:1])
        memory.add_many(events[1000:])
        memory.flush()
        large, filtered = hits(memory, questions), hits(memory, questions, speaker="Ann")
        assert len(searched) >= len(questions)
        assert hits(memory, questions[:5], known_at=datetime.now(timezone.utc)) == large[:5]
    assert stored_lists(path)
    with monkeypatch.context() as patch:
        patch.setattr(ivf_lists, "LARGE", 10**9)
        with Memory(plain, embedder=embedder) as memory:
            memory.add_many(events)
            memory.flush()
            assert overlap(large, hits(memory, questions)) >= OVERLAP
            assert overlap(filtered, hits(memory, questions, speaker="Ann")) >= OVERLAP
    with Memory(path, embedder=embedder) as memory:
        assert hits(memory, questions) == large
        first = memory.search(questions[0])[0].note
        memory.delete(first.id)
        memory.flush()
        assert first.content not in {content for contents in hits(memory, questions) for content in contents}
        assert memory.check() == []


def varied_sentences(count: int) -> list[str]:
    """Return sentences of the conversations, then variations with a third of the words of others in their place."""
    chance = random.Random(5)
    real: list[str] = []
    for path in sorted(CONVERSATIONS.glob("*.json")):
        for talk in json.loads(path.read_text(encoding="utf-8")):
            sessions = [turns for turns in talk["conversation"].values() if isinstance(turns, list)]
            real += [text for turns in sessions for turn in turns for text in re.split(r"(?<=[.!?])\s+", turn["text"])]
    real = [text for text in dict.fromkeys(real) if len(text) > 25]
    words = [word for text in real for word in text.split() if len(word) > 3]
    sentences = real[:count]
    while len(sentences) < count:
        text, other = chance.choice(real).split(), chance.choice(real).split()
        if chance.random() < 0.4:
            text = text[: len(text) // 2] + other[len(other) // 2 :]
        sentences.append(" ".join(chance.choice(words) if chance.random() < 0.33 else word for word in text))
    return sentences


def questions_of_conversations() -> list[str]:
    talks = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CONVERSATIONS.glob("*.json"))]
    asked = [question["question"] for file in talks for talk in file for question in talk["qa"]]
    return random.Random(1).sample(asked, QUESTIONS)


def stored_vectors(path: Path, vectors: np.ndarray) -> sqlite3.Connection:
    """Create a store with these vectors of notes 1, 2, ... in set 1."""
    sql = sqlite3.connect(path, isolation_level=None)
    schema.migrate(sql, str(path))
    sql.execute("BEGIN")
    rows: Iterator[tuple[int, bytes]] = ((number, row.tobytes()) for number, row in enumerate(vectors, 1))
    sql.executemany("INSERT INTO vectors (note, space, vector) VALUES (?, 1, ?)", rows)
    sql.execute("COMMIT")
    return sql


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_memory_recall_and_times_of_2_bit_codes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """Static vectors of sentences, in a store. Neighbours are compared with those by floats: all, and in the lists."""
    count, embedder = soak_scale(1_000_000), StaticEmbedder()
    dim = embedder.info.dim
    vectors = asyncio.run(embedder.embed(varied_sentences(count)))
    asked = asyncio.run(embedder.embed(questions_of_conversations()))
    _, truth = faiss.knn(asked, vectors, K, metric=faiss.METRIC_INNER_PRODUCT)
    sql = stored_vectors(tmp_path / "vectors.db", vectors)
    notes = Table(number=(np.int64, ()))
    notes.append(number=np.arange(1, count + 1))
    everything = np.ones(count + 1, bool)
    measured: dict[str, dict[str, float]] = {}
    for name, compact in (("8-bit", 10**9), ("2-bit", 0)):
        monkeypatch.setattr(ivf, "COMPACT", compact)
        trained = ivf_lists.train(sql, ivf_lists.TrainingRequest(notes["number"], dim, 1, searched=True), 1)
        assert trained is not None
        _, index = trained
        index.renumber(np.arange(count), count)
        if isinstance(index, CompactIndex):
            index.read = partial(vectors_of_rows, sql, notes, 1, dim)
        seconds, shares, listed = [], [], []
        for vector, exact in zip(asked, truth, strict=True):
            began = time.perf_counter()
            rows = index.nearest(vector, POOL, everything)
            near = rows[:, None] + np.arange(-4, 6)  # a search needs the cosines of neighbouring notes too
            index.cosines(np.unique(np.clip(near, 0, count - 1))[:CANDIDATES], vector)
            seconds.append(time.perf_counter() - began)
            shares.append(np.isin(exact, rows[:K]).mean())
            in_lists = ivf_lists_probed(index, vector)
            listed.append(np.isin(index.lists(exact), in_lists).mean())
        measured[name] = {
            "bytes": round(ivf.bytes_per_vector(dim, count), 1), "array_bytes": round(index.nbytes / count, 1),
            "recall": float(np.mean(shares)), "recall_floats_in_lists": float(np.mean(listed)),
            "p50_ms": round(median(seconds) * 1000, 2),
        }  # fmt: skip
    codes, bits = measured["8-bit"], measured["2-bit"]
    for name, values in measured.items():
        record_property(name, {key: round(value, 4) for key, value in values.items()})
    record_property("vectors", count)
    record_property("float_bytes", 4 * dim)
    record_property("memory_of_float", round(bits["bytes"] / (4 * dim), 4))
    record_property("recall_of_float", round(bits["recall"] / bits["recall_floats_in_lists"], 4))
    record_property("p50_of_8_bit", round(bits["p50_ms"] / codes["p50_ms"], 2))
    assert bits["bytes"] <= MEMORY_SHARE * 4 * dim
    assert bits["recall"] >= RECALL_SHARE * bits["recall_floats_in_lists"]


def ivf_lists_probed(index: Any, vector: np.ndarray) -> np.ndarray:
    """Return the lists that a search without a filter reads."""
    rotated = vector @ index._rotation if isinstance(index, CompactIndex) else vector
    return np.asarray(index._quantizer.search(rotated[None], min(ivf.PROBED, index._index.nlist))[1][0])
