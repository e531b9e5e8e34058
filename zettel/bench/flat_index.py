"""A baseline for search times: FAISS's ``IndexFlatIP`` and SQLite's FTS5 over the same events.

FTS5 uses Porter stems, its own bm25, merged segments, and queries without stop words. Both indices are files, so that a
child process can load and time them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from zettel.core.vectors import embed_questions
from zettel.text.tokens import words

from .results import usable_cores

if TYPE_CHECKING:
    from zettel.model import Event
    from zettel.ports import Embedder
    from zettel.ports.query import Floats

VECTORS, TEXTS = "flat.faiss", "texts.db"
"""The two files in a folder. That of the vectors appears last, and complete."""
BATCH = 2_000  # texts
TUNING_QUESTIONS = 20  # for the number of threads


class FlatAnswer(NamedTuple):
    """Places of the texts by either index, best first, and seconds of each part."""

    by_vector: list[int]
    by_text: list[int]
    seconds: dict[str, float]


async def build(folder: Path, events: Iterable[Event], embedder: Embedder) -> None:
    """Write both indices over ``speaker: content``."""
    import faiss

    index = faiss.IndexFlatIP(embedder.info.dim)
    (folder / TEXTS).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / TEXTS)) as texts, texts:
        texts.execute("CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='porter unicode61')")
        place = 0
        for batch in _batches(events):
            lines = [f"{event.speaker}: {event.content}" for event in batch]
            index.add(await embedder.embed(lines))
            texts.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", enumerate(lines, place))
            place += len(lines)
        texts.execute("INSERT INTO texts(texts) VALUES ('optimize')")
    unfinished = folder / f"{VECTORS}.unfinished"
    faiss.write_index(index, str(unfinished))
    unfinished.replace(folder / VECTORS)


async def search(folder: Path, questions: Sequence[str], embedder: Embedder, k: int) -> list[FlatAnswer]:
    """Search both indices, FAISS with one thread or all, whichever is faster."""
    import faiss

    index = faiss.read_index(str(folder / VECTORS))
    vectors = await embed_questions(embedder, questions[:TUNING_QUESTIONS])
    faiss.omp_set_num_threads(_faster_thread_count(index, vectors))
    with closing(sqlite3.connect(folder / TEXTS)) as texts:
        await _search(questions[0], index, texts, embedder, k)  # loads what is loaded once
        return [await _search(question, index, texts, embedder, k) for question in questions]


def _faster_thread_count(index: Any, vectors: Floats) -> int:
    """Return 1 or the number of cores; threads slow down a small index."""
    import faiss

    median_seconds: dict[int, float] = {}
    for threads in (1, usable_cores()):
        faiss.omp_set_num_threads(threads)
        times = []
        for row in vectors:
            began = time.perf_counter()
            index.search(row[None], 1)
            times.append(time.perf_counter() - began)
        median_seconds[threads] = median(times)
    return min(median_seconds, key=median_seconds.__getitem__)


async def _search(question: str, index: Any, texts: sqlite3.Connection, embedder: Embedder, k: int) -> FlatAnswer:
    began = time.perf_counter()
    vector = await embed_questions(embedder, [question])
    embedded = time.perf_counter()
    _, places = index.search(vector, k)
    scanned = time.perf_counter()
    match = " OR ".join(f'"{word.text}"' for word in words(question) if word.token)
    rows = texts.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (match, k)).fetchall()
    ended = time.perf_counter()
    parts = {"embed": embedded - began, "scan": scanned - embedded, "FTS5": ended - scanned, "all": ended - began}
    return FlatAnswer([int(place) for place in places[0] if place >= 0], [place for (place,) in rows], parts)


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    waiting = iter(events)
    while batch := list(islice(waiting, BATCH)):
        yield batch
