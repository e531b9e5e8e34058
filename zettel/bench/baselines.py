"""Baseline retrieval systems: functions of events and questions.

A ``Baseline`` returns the places of the best events for each question, best first. Rankings are exact; ties go to the
earlier event. ``zettel.bench.baselines`` selects baselines by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from zettel.annotate.extractive import annotate
from zettel.core.vectors import embed_questions
from zettel.embed import load_embedder
from zettel.errors import EmbedderUnavailable, InvalidInput, MissingExtra
from zettel.ports import Annotation, Passage, TermStats
from zettel.ports.candidate_rules import idf, saturation
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.model import Event
    from zettel.ports import Embedder, EmbedderInfo
    from zettel.ports.query import Floats

Ranks: TypeAlias = list[list[int]]
"""For each question the places of events, best first."""
Baseline: TypeAlias = "Callable[[Sequence[Event], Sequence[str], int], Awaitable[Ranks]]"
"""(n events, q questions, k) -> q lists of at most k places."""

RRF_K = 60
"""Constant of reciprocal rank fusion, the paper's value."""
RRF_DEPTH = 100
"""Depth to which rankings are fused."""
AMEM_LINKS = 5
"""Nearest older memories that A-MEM offers its model as link targets."""
AMEM_COSINE = 0.8
"""Cosine from which a neighbour is linked without a model. It favours A-MEM: more links lower its recall."""

QUICK = ("bm25", "vectors")
SIMPLE = (*QUICK, "rrf")
ALL = (*SIMPLE, "minilm", "amem")
"""``rrf`` fuses BM25 and vectors, ``minilm`` adds vectors and fusion with MiniLM. ``amem`` also uses MiniLM."""
MINILM = "all-MiniLM-L6-v2"


def indexed_text(event: Event) -> str:
    """Return ``speaker: text`` or ``title: text``."""
    who = event.speaker or event.title
    return f"{who}: {event.content}" if who else event.content


class BM25:
    """Okapi BM25 over zettel's tokens, with zettel's constants."""

    def __init__(self, events: Sequence[Event]) -> None:
        counts = [Counter(tokenize(indexed_text(event))) for event in events]
        self._lengths = np.array([count.total() for count in counts], dtype=np.float64)
        self._mean = float(self._lengths.mean()) if len(events) else 0.0
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for token, times in count.items():
                self._postings.setdefault(token, []).append((place, times))

    def rank(self, question: str, k: int) -> list[int]:
        """Return the places of the best k events; events without any token of the question are left out."""
        scores = np.zeros(len(self._lengths))
        for token in set(tokenize(question)):
            if token in self._postings:
                rows, tf = np.array(self._postings[token]).T
                scores[rows] += idf(np.array(len(rows)), len(scores)) * saturation(tf, self._lengths[rows], self._mean)
        return [place for place in best_places(scores, k) if scores[place] > 0]


async def bm25(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
    """Rank with ``BM25``."""
    index = BM25(events)
    return [index.rank(question, k) for question in questions]


def vectors(embedder: Embedder) -> Baseline:
    """Cosine between the question and every event."""

    async def rank(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
        rows = await embedder.embed([indexed_text(event) for event in events])
        return [best_places(rows @ vector, k) for vector in await embed_questions(embedder, questions)]

    return rank


def fused(first: Baseline, second: Baseline) -> Baseline:
    """Reciprocal rank fusion: each ranking gives its event at rank r, from 1, the score 1 / (RRF_K + r).

    Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods".
    """

    async def rank(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
        rankings = [await baseline(events, questions, max(k, RRF_DEPTH)) for baseline in (first, second)]
        return [_fuse(both, k) for both in zip(*rankings, strict=True)]

    return rank


def _fuse(rankings: Sequence[Sequence[int]], k: int) -> list[int]:
    scores: dict[int, float] = {}
    for places in rankings:
        for r, place in enumerate(places, start=1):
            scores[place] = scores.get(place, 0.0) + 1 / (RRF_K + r)
    return sorted(scores, key=lambda place: (-scores[place], place))[:k]


def amem(embedder: Embedder) -> Baseline:
    """A-MEM's search (Xu et al. 2025, "A-MEM: Agentic Memory for LLM Agents") without its model.

    It ranks notes by the cosine of content, context, keywords and tags. zettel's extractive annotator writes the
    notes, and each links to its AMEM_LINKS nearest older notes from AMEM_COSINE on. Linked notes follow each hit.
    """

    async def rank(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
        rows = await embedder.embed(_note_texts(events))
        links = _links(rows)
        queries = await embed_questions(embedder, questions)
        return [_with_linked(best_places(rows @ vector, k), links, k) for vector in queries]

    return rank


def _note_texts(events: Sequence[Event]) -> list[str]:
    """Each event's content, context, keywords and tags as one text."""
    counts: Counter[str] = Counter(token for event in events for token in set(tokenize(indexed_text(event))))
    stats = TermStats(len(events), counts)
    passages = [Passage(event.content, event.title, event.speaker, event.occurred_at) for event in events]
    notes: list[Annotation] = [annotate(passage, stats) for passage in passages]
    return [
        f"{indexed_text(event)}\n{note.context}\n{', '.join(note.keywords)}\n{', '.join(note.tags)}"
        for event, note in zip(events, notes, strict=True)
    ]


def _links(rows: NDArray[np.float32]) -> list[list[int]]:
    """For each row the nearest earlier ones, at most AMEM_LINKS, from AMEM_COSINE on. ``rows``: (n, d), unit."""
    links: list[list[int]] = []
    for place in range(len(rows)):
        cosines = rows[:place] @ rows[place]
        links.append([other for other in best_places(cosines, AMEM_LINKS) if cosines[other] >= AMEM_COSINE])
    return links


def _with_linked(hits: Sequence[int], links: Sequence[Sequence[int]], k: int) -> list[int]:
    return list(dict.fromkeys(place for hit in hits for place in (hit, *links[hit])))[:k]


def best_places(scores: NDArray[np.floating], k: int) -> list[int]:
    """Return the places of the k highest scores, best first; equal ones in their order."""
    return [int(place) for place in np.argsort(-scores, kind="stable")[:k]]


class Baselines(NamedTuple):
    """Baselines by their name in the table, and remarks for the result."""

    systems: dict[str, Baseline]
    notes: list[str]


def load_baselines(names: Sequence[str], embedder: Embedder) -> Baselines:
    """Load baselines by name. Raises ``InvalidInput`` for a name that is not in ALL.

    Without MiniLM its rows are missing, A-MEM searches with ``embedder``, and a remark gives the reason.
    """
    if unknown := sorted(set(names) - set(ALL)):
        raise InvalidInput(f"unknown baseline {unknown[0]!r}: use {', '.join(ALL)}")
    notes: list[str] = []
    transformer = _transformer(notes) if {"minilm", "amem"} & set(names) else None
    flat = vectors(CachingEmbedder(embedder))  # RRF embeds the same texts
    systems: dict[str, Baseline] = {}
    if "bm25" in names:
        systems["BM25"] = bm25
    if "vectors" in names:
        systems["vectors"] = flat
    if "rrf" in names:
        systems["RRF"] = fused(bm25, flat)
    if "minilm" in names and transformer is not None:
        systems["vectors, MiniLM"] = vectors(transformer)
        systems["RRF, MiniLM"] = fused(bm25, vectors(transformer))
    if "amem" in names:
        systems["A-MEM search"] = amem(transformer or embedder)
        if transformer is None:
            notes.append(f"A-MEM's search used {embedder.info.name}.")
    return Baselines(systems, notes)


def silence_transformers() -> None:
    """Silence progress bars and reports of the transformers library."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _transformer(notes: list[str]) -> Embedder | None:
    try:
        if find_spec("transformers") is not None:
            silence_transformers()
        return CachingEmbedder(load_embedder(f"transformer:{MINILM}"))
    except (MissingExtra, EmbedderUnavailable) as error:
        notes.append(f"Not measured with MiniLM: {error}.")
        return None


class CachingEmbedder:
    """An embedder that embeds each text once; several baselines share it."""

    remote = False

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._texts: dict[str, Floats] = {}
        self._questions: dict[str, Floats] = {}

    @property
    def info(self) -> EmbedderInfo:
        return self._inner.info

    async def embed(self, texts: Sequence[str]) -> Floats:
        return await _cached_rows(self._texts, texts, self._inner.embed)

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        return await _cached_rows(self._questions, texts, partial(embed_questions, self._inner))


async def _cached_rows(
    rows: dict[str, Floats], texts: Sequence[str], embed: Callable[[list[str]], Awaitable[Floats]]
) -> Floats:
    """Return the rows of all texts, and add those of new texts to ``rows``."""
    new = [text for text in dict.fromkeys(texts) if text not in rows]
    if new:
        rows.update(zip(new, await embed(new), strict=True))
    return np.stack([rows[text] for text in texts])
