"""What simple systems reach over the same texts with the same counting, each a function of events and questions.

A ``Baseline`` gives for each question the places of the best events, best first. Rankings are exact; ties go to the
earlier event. Which there are, and how to have them by name, is in ``zettel.bench.beside``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from zettel.annotate.extractive import annotate
from zettel.annotate.tokens import tokenize
from zettel.embed.vectors import embed_questions
from zettel.ports import Annotation, Passage, TermStats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.model import Event
    from zettel.ports import Embedder

Ranks: TypeAlias = list[list[int]]
"""For each question the places of events, best first."""
Baseline: TypeAlias = "Callable[[Sequence[Event], Sequence[str], int], Awaitable[Ranks]]"
"""(n events, q questions, k) -> q lists of at most k places."""

K1 = 1.2
"""How soon repeating a word stops counting; the usual value, see ``bm25``."""
B = 0.75
"""How much long texts are marked down; the usual value."""
RRF_K = 60
"""Flattens the first ranks, see ``fused``; the paper's value."""
RRF_DEPTH = 100
"""Places of each ranking that are fused: what stands deeper in both reaches no first page."""
AMEM_LINKS = 5
"""Nearest older memories that A-MEM shows its model to link with."""
AMEM_COSINE = 0.8
"""From here on such a neighbour is linked, where no model chooses: with fewer links its recall is better, with more
worse."""


def said(event: Event) -> str:
    """``speaker: text`` or ``title: text``, what a simple system would index."""
    who = event.role or event.title
    return f"{who}: {event.content}" if who else event.content


async def bm25(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
    """Okapi BM25 over tokens as zettel makes them; events without any asked word are left out.

    Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", equation 3.15;
    rarity is ln(1 + (N - df + 0.5) / (df + 0.5)), which never goes below zero.
    """
    counts = [Counter(tokenize(said(event))) for event in events]
    lengths = np.array([count.total() for count in counts], dtype=np.float64)
    norm = K1 * (1 - B + B * lengths / max(lengths.mean() if len(events) else 0.0, 1.0))
    postings: dict[str, list[tuple[int, int]]] = {}
    for place, count in enumerate(counts):
        for token, times in count.items():
            postings.setdefault(token, []).append((place, times))
    ranks = []
    for question in questions:
        scores = np.zeros(len(events))
        for token in set(tokenize(question)):
            of_token = postings.get(token, [])
            rarity = np.log1p((len(events) - len(of_token) + 0.5) / (len(of_token) + 0.5))
            for place, times in of_token:
                scores[place] += rarity * times * (K1 + 1) / (times + norm[place])
        ranks.append([place for place in _best(scores, k) if scores[place] > 0])
    return ranks


def vectors(embedder: Embedder) -> Baseline:
    """Cosine between the question and every event."""

    async def rank(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
        return await _nearest(embedder, [said(event) for event in events], questions, k)

    return rank


def fused(one: Baseline, other: Baseline) -> Baseline:
    """Reciprocal rank fusion: each ranking gives its event at rank r, from 1, the score 1 / (RRF_K + r).

    Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods".
    """

    async def rank(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
        rankings = [await baseline(events, questions, max(k, RRF_DEPTH)) for baseline in (one, other)]
        return [_fuse(both, k) for both in zip(*rankings, strict=True)]

    return rank


def _fuse(rankings: Sequence[Sequence[int]], k: int) -> list[int]:
    scores: dict[int, float] = {}
    for places in rankings:
        for r, place in enumerate(places, start=1):
            scores[place] = scores.get(place, 0.0) + 1 / (RRF_K + r)
    return sorted(scores, key=lambda place: (-scores[place], place))[:k]


def amem(embedder: Embedder) -> Baseline:
    """How A-MEM searches: notes by the cosine of content, context, keywords and tags together, and what they link to.

    Xu et al. 2025, "A-MEM: Agentic Memory for LLM Agents". There a model writes the notes and chooses links among the
    AMEM_LINKS nearest older ones; here the notes are those that zettel extracts without a model, and from AMEM_COSINE
    on a neighbour is linked. As there, a hit is followed by what it links to; each takes a place.
    """

    async def rank(events: Sequence[Event], questions: Sequence[str], k: int) -> Ranks:
        rows = await embedder.embed(_noted(events))
        links = _links(rows)
        asked = await embed_questions(embedder, questions)
        return [_with_linked(_best(rows @ vector, k), links, k) for vector in asked]

    return rank


def _noted(events: Sequence[Event]) -> list[str]:
    """Each event's content, context, keywords and tags as one text."""
    counts: Counter[str] = Counter(token for event in events for token in set(tokenize(said(event))))
    stats = TermStats(len(events), counts)
    passages = [Passage(event.content, event.title, event.role, event.occurred_at) for event in events]
    notes: list[Annotation] = [annotate(passage, stats) for passage in passages]
    return [
        f"{said(event)}\n{note.context}\n{', '.join(note.keywords)}\n{', '.join(note.tags)}"
        for event, note in zip(events, notes, strict=True)
    ]


def _links(rows: NDArray[np.float32]) -> list[list[int]]:
    """For each row the nearest earlier ones, at most AMEM_LINKS, from AMEM_COSINE on. ``rows``: (n, d), unit."""
    links: list[list[int]] = []
    for place in range(len(rows)):
        cosines = rows[:place] @ rows[place]
        links.append([other for other in _best(cosines, AMEM_LINKS) if cosines[other] >= AMEM_COSINE])
    return links


def _with_linked(hits: Sequence[int], links: Sequence[Sequence[int]], k: int) -> list[int]:
    told = dict.fromkeys(place for hit in hits for place in (hit, *links[hit]))
    return list(told)[:k]


async def _nearest(embedder: Embedder, texts: Sequence[str], questions: Sequence[str], k: int) -> Ranks:
    rows, asked = await embedder.embed(texts), await embed_questions(embedder, questions)
    return [_best(rows @ vector, k) for vector in asked]


def _best(scores: NDArray[np.floating], k: int) -> list[int]:
    return [int(place) for place in np.argsort(-scores, kind="stable")[:k]]
