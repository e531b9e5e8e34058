"""Reranking of the best hits.

A reranker's values only define an order. The calibrated scores of the default scorer are reassigned along that order:
the best note gets the best score, so ``min_score`` keeps its meaning. As in every ranking, a replacement ranks above
the note it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import ModelError, ScorerError
from zettel.ports import UtilityReranker
from zettel.ports.query import Shortlist
from zettel.search.answer_order import replaced

if TYPE_CHECKING:
    from zettel.model import Note, Scope
    from zettel.ports import GraphStore, Reranker, VectorSet
    from zettel.ports.language_model import AskFactory
    from zettel.ports.query import Floats, Question, SearchRequest
    from zettel.scoring.ranking import Ranked


class Reranking:
    """Runs rerankers. ``ask_about`` calls the memory's language model; None for a memory without one."""

    def __init__(self, store: GraphStore, ask_about: AskFactory | None) -> None:
        self._store = store
        self._ask_about = ask_about

    async def reranked(
        self,
        scope: Scope,
        space: VectorSet,
        reranker: Reranker,
        requests: Sequence[SearchRequest],
        ranked: Sequence[Ranked],
        notes: Sequence[Mapping[str, Note]],
    ) -> list[Ranked]:
        """The best notes of each request in the reranker's order, then the others.

        ``notes`` are by id, for each request. Leaves out deleted notes. Raises ``ScorerError``.
        """
        ranked = [
            ranking._replace(rows=[row for row in ranking.rows if ranking.candidates.ids[row] in by_id])
            for ranking, by_id in zip(ranked, notes, strict=True)
        ]
        vectors: Mapping[str, Floats] = {}
        if reranker.wants_vectors:
            ids = {ranking.candidates.ids[row] for ranking in ranked for row in ranking.rows[: reranker.reads]}
            vectors = await self._store.vectors(scope, sorted(ids), space.id) if ids else {}
        shortlists = [
            self._shortlist(scope, ranking, reranker, by_id, vectors, space)
            for ranking, by_id in zip(ranked, notes, strict=True)
        ]
        if isinstance(reranker, UtilityReranker) and reranker.wants_utility:
            shortlists = [await self._with_utility(scope, shortlist) for shortlist in shortlists]
        values = await rerank(reranker, [ranking.question for ranking in ranked], shortlists)
        return [_applied(*row, reranker.name) for row in zip(requests, ranked, shortlists, values, strict=True)]

    async def _with_utility(self, scope: Scope, shortlist: Shortlist) -> Shortlist:
        from zettel.scoring.preferences import utilities

        ids = [note.id for note in shortlist.notes]
        return replace(shortlist, utility=utilities(ids, await self._store.proved(scope, ids)))

    def _shortlist(
        self,
        scope: Scope,
        ranking: Ranked,
        reranker: Reranker,
        notes: Mapping[str, Note],
        vectors: Mapping[str, Floats],
        space: VectorSet,
    ) -> Shortlist:
        rows = ranking.rows[: reranker.reads]
        dim = space.dim if reranker.wants_vectors else 0
        ids = [ranking.candidates.ids[row] for row in rows]
        shown = [notes[id] for id in ids]
        missing = np.zeros(dim, np.float32)
        return Shortlist(
            candidates=ranking.candidates,
            first=ranking.scores,
            rows=np.array(rows, np.int64),
            score=ranking.scores.score[rows],
            notes=shown,
            vectors=np.array([vectors.get(id, missing) for id in ids], np.float32).reshape(len(ids), dim),
            embedder=space.fingerprint,
            ask=None if self._ask_about is None else self._ask_about(scope, shown),
        )


async def rerank(
    reranker: Reranker, questions: Sequence[Question], shortlists: Sequence[Shortlist]
) -> list[Floats | ModelError | None]:
    """The reranker's values for each shortlist, (m,), or its ``ModelError``; None for fewer than two notes.

    Raises ``ScorerError`` for values that do not define an order.
    """
    results: list[Floats | ModelError | None] = [None] * len(shortlists)
    places = [place for place, shortlist in enumerate(shortlists) if len(shortlist.rows) > 1]
    if not places:
        return results
    try:
        answer = await reranker.rerank([questions[n] for n in places], [shortlists[n] for n in places])
    except ModelError as error:
        answer = [error] * len(places)
    if not hasattr(answer, "__len__"):
        raise ScorerError(f"{reranker.name} returned {type(answer).__name__}: return one array for each question")
    if len(answer) != len(places):
        raise ScorerError(f"{reranker.name} returned {len(answer)} arrays for {len(places)} questions")
    for place, values in zip(places, answer, strict=True):
        failed = isinstance(values, ModelError)
        results[place] = values if failed else _checked(values, len(shortlists[place].rows), reranker.name)
    return results


def reordered(shortlist: Shortlist, values: Floats, today: int | None) -> tuple[list[int], Floats]:
    """The rows in the reranker's order (ties keep their order), and all scores with those of the rows reassigned.

    Outdated notes come after their replacements.
    """
    order = np.argsort(-values, kind="stable").tolist()
    rows = shortlist.rows[_after_replacements(order, replaced(shortlist.candidates, shortlist.rows.tolist(), today))]
    score = shortlist.first.score.copy()
    score[rows] = np.sort(shortlist.score)[::-1]
    return rows.tolist(), score


def _after_replacements(order: Sequence[int], replacements: Mapping[int, int]) -> list[int]:
    """The places in order, each after the place of its replacement."""
    moved: dict[int, None] = {}  # in order
    waiting: dict[int, list[int]] = {}
    for place in order:
        replacement = replacements.get(place, place)
        if replacement != place and replacement not in moved:
            waiting.setdefault(replacement, []).append(place)
            continue
        free = [place]
        while free:
            moved[free[0]] = None
            free[:1] = waiting.pop(free[0], [])
    return [*moved, *(place for place in order if place not in moved)]  # cycles come last


def _applied(
    request: SearchRequest, ranking: Ranked, shortlist: Shortlist, values: Floats | ModelError | None, name: str
) -> Ranked:
    """The ranking with the reranker's order applied."""
    if values is None:
        return ranking
    if isinstance(values, ModelError):
        return ranking._replace(scorer=f"{ranking.scorer} (not {name}: {values})")
    rows, score = reordered(shortlist, values, ranking.question.valid_at)
    by_row = dict(zip(shortlist.rows.tolist(), values.tolist(), strict=True))
    return ranking._replace(
        rows=rows + ranking.rows[len(rows) :],
        scores=replace(ranking.scores, score=score),
        scorer=f"{ranking.scorer}+{name}",
        extra_features={**ranking.extra_features, name: by_row},
    )


def _checked(values: object, count: int, name: str) -> Floats:
    """One float for each of ``count`` notes."""
    try:
        numbers: Floats = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise ScorerError(f"{name} returned {type(values).__name__}: return an array of {count} numbers") from None
    if numbers.shape != (count,):
        raise ScorerError(f"{name} returned shape {numbers.shape} for {count} notes: return ({count},)")
    if not np.isfinite(numbers).all():
        raise ScorerError(f"{name} returned {numbers[~np.isfinite(numbers)][0]} for a note: return finite numbers")
    return numbers
