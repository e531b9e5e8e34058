"""What a simple system does for one question, to divide by: embed it, scan all vectors, ask a full-text index.

FAISS's ``IndexFlatIP`` over the same vectors, and SQLite's FTS5 over the same texts (Porter stems, ranked by its own
bm25, its segments merged), asked without stop words. Both are files, so that a process of its own can load and time
them.
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

from zettel.annotate.tokens import words
from zettel.embed.vectors import embed_questions

from .machine import usable_cores

if TYPE_CHECKING:
    from zettel.model import Event
    from zettel.ports import Embedder
    from zettel.query import Floats

VECTORS, TEXTS = "flat.faiss", "texts.db"
"""The two files in a folder."""
BATCH = 2_000  # texts embedded at once
TRIED = 20  # questions by which the number of threads is chosen


class Answered(NamedTuple):
    """One question: places of the texts found either way, best first, and seconds of each part."""

    by_vector: list[int]
    by_text: list[int]
    seconds: dict[str, float]


async def build(folder: Path, events: Iterable[Event], embedder: Embedder) -> None:
    """Write both indices over ``role: content``, the texts in order."""
    import faiss

    index = faiss.IndexFlatIP(embedder.info.dim)
    (folder / TEXTS).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / TEXTS)) as texts, texts:
        texts.execute("CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='porter unicode61')")
        place = 0
        for batch in _batches(events):
            said = [f"{event.role}: {event.content}" for event in batch]
            index.add(await embedder.embed(said))
            texts.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", enumerate(said, place))
            place += len(said)
        texts.execute("INSERT INTO texts(texts) VALUES ('optimize')")
    faiss.write_index(index, str(folder / VECTORS))


async def ask(folder: Path, questions: Sequence[str], embedder: Embedder, k: int) -> list[Answered]:
    """Ask both indices, FAISS with one thread or all, whichever is quicker here."""
    import faiss

    index = faiss.read_index(str(folder / VECTORS))
    faiss.omp_set_num_threads(_quicker(index, await embed_questions(embedder, questions[:TRIED])))
    with closing(sqlite3.connect(folder / TEXTS)) as texts:
        await _ask(questions[0], index, texts, embedder, k)  # for what is loaded only once
        return [await _ask(question, index, texts, embedder, k) for question in questions]


def _quicker(index: Any, vectors: Floats) -> int:
    """One thread or one for each core: a small index is scanned before the threads have met."""
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


async def _ask(question: str, index: Any, texts: sqlite3.Connection, embedder: Embedder, k: int) -> Answered:
    began = time.perf_counter()
    vector = await embed_questions(embedder, [question])
    embedded = time.perf_counter()
    _, places = index.search(vector, k)
    scanned = time.perf_counter()
    match = " OR ".join(f'"{word.text}"' for word in words(question) if word.token)
    found = texts.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (match, k)).fetchall()
    ended = time.perf_counter()
    parts = {"embed": embedded - began, "scan": scanned - embedded, "FTS5": ended - scanned, "all": ended - began}
    return Answered([int(place) for place in places[0] if place >= 0], [place for (place,) in found], parts)


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    waiting = iter(events)
    while batch := list(islice(waiting, BATCH)):
        yield batch
