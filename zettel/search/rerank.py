"""The best hits put in the order that a reranker gives them.

The default scorer's scores are calibrated; a reranker's values need mean nothing but an order. So the scores are dealt
out anew along that order: the best note gets the best score, and ``min_score`` keeps its meaning. What holds for every
ranking holds for this one too: what replaced a note stands above it, and an insight after what it was made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import ModelError, ScorerError
from zettel.model import Kind
from zettel.query import Shortlist
from zettel.search.again import replaced
from zettel.search.rank import repeats
from zettel.search.slots import are_for

if TYPE_CHECKING:
    from zettel.llm.ports import Asker
    from zettel.model import Note, Scope
    from zettel.ports import GraphStore, Reranker, Space
    from zettel.query import Asked, Bools, Floats, Question
    from zettel.search.rank import Ranked
    from zettel.search.slots import Bank, Slots


class Reranking:
    """Has rerankers read what was ranked. ``asker`` asks the memory's language model; None: it has none."""

    def __init__(self, store: GraphStore, asker: Asker | None, slots: Slots) -> None:
        self._store = store
        self._asker = asker
        self._slots = slots

    async def reranked(
        self,
        scope: Scope,
        space: Space,
        reranker: Reranker,
        asked: Sequence[Asked],
        ranked: Sequence[Ranked],
        notes: Sequence[Mapping[str, Note]],
    ) -> list[Ranked]:
        """The best of each question, as far as the reranker reads, in its order; the others after them.

        ``notes`` are those of each question by id; what is not there any more is left out. Raises ``ScorerError``.
        """
        there = [
            one._replace(rows=[row for row in one.rows if one.candidates.ids[row] in held])
            for one, held in zip(ranked, notes, strict=True)
        ]
        vectors: Mapping[str, Floats] = {}
        if reranker.wants_vectors:
            ids = {one.candidates.ids[row] for one in there for row in one.rows[: reranker.reads]}
            vectors = await self._store.vectors(scope, sorted(ids), space.id) if ids else {}
        lists = [
            self._shortlist(scope, one, reranker, held, vectors, space)
            for one, held in zip(there, notes, strict=True)
        ]
        if getattr(reranker, "wants_utility", False):
            lists = [await self._with_utility(scope, one) for one in lists]
        bank: Bank | None = getattr(reranker, "bank", None)
        if bank is not None and bank.embedder == space.fingerprint:
            known = await self._slots.of(scope, bank)
            lists = [
                replace(one, slots=known) if are_for(what) else one for one, what in zip(lists, asked, strict=True)
            ]
        said = await rerank(reranker, [one.question for one in there], lists)
        return [_with(*one, reranker.name) for one in zip(asked, there, lists, said, strict=True)]

    async def _with_utility(self, scope: Scope, one: Shortlist) -> Shortlist:
        from zettel.scoring.taste import utilities

        ids = [note.id for note in one.notes]
        return replace(one, utility=utilities(ids, await self._store.proved(scope, ids)))

    def _shortlist(
        self,
        scope: Scope,
        one: Ranked,
        reranker: Reranker,
        notes: Mapping[str, Note],
        vectors: Mapping[str, Floats],
        space: Space,
    ) -> Shortlist:
        rows = one.rows[: reranker.reads]
        dim = space.dim if reranker.wants_vectors else 0
        ids = [one.candidates.ids[row] for row in rows]
        shown = [notes[id] for id in ids]
        nothing = np.zeros(dim, np.float32)
        return Shortlist(
            candidates=one.candidates,
            first=one.scores,
            rows=np.array(rows, np.int64),
            score=one.scores.score[rows],
            notes=shown,
            vectors=np.array([vectors.get(id, nothing) for id in ids], np.float32).reshape(len(ids), dim),
            embedder=space.fingerprint,
            ask=None if self._asker is None else self._asker(scope, shown),
        )


async def rerank(
    reranker: Reranker, questions: Sequence[Question], shortlists: Sequence[Shortlist]
) -> list[Floats | ModelError | None]:
    """What the reranker makes of each shortlist: (m,) values, or what kept a language model from telling them.

    It is not bothered with those of fewer than two notes, of which nothing is said: None. Raises ``ScorerError`` for an
    answer that is no order.
    """
    said: list[Floats | ModelError | None] = [None] * len(shortlists)
    places = [place for place, one in enumerate(shortlists) if len(one.rows) > 1]
    if not places:
        return said
    try:
        told = await reranker.rerank([questions[n] for n in places], [shortlists[n] for n in places])
    except ModelError as error:
        told = [error] * len(places)
    if not hasattr(told, "__len__"):
        raise ScorerError(f"{reranker.name} answered {type(told).__name__}: one order for each question is wanted")
    if len(told) != len(places):
        raise ScorerError(f"{reranker.name} was given {len(places)} questions and answered {len(told)}")
    for place, values in zip(places, told, strict=True):
        failed = isinstance(values, ModelError)
        said[place] = values if failed else _checked(values, len(shortlists[place].rows), reranker.name)
    return said


def reordered(one: Shortlist, said: Floats, today: int | None, last: Bools) -> tuple[list[int], Floats]:
    """The rows by what the reranker said, of equals as before, and all scores with theirs dealt out anew.

    Those marked ``last``, (m,), stay after the others, and what holds no more by ``today`` after what replaced it.
    """
    order = np.lexsort((-said, last)).tolist()
    rows = one.rows[_after(order, replaced(one.candidates, one.rows.tolist(), today))]
    score = one.first.score.copy()
    score[rows] = np.sort(one.score)[::-1]
    return rows.tolist(), score


def _after(order: Sequence[int], over: Mapping[int, int]) -> list[int]:
    """The places in their order, but each with one ``over`` it only after that."""
    moved: dict[int, None] = {}  # in order
    waiting: dict[int, list[int]] = {}
    for place in order:
        above = over.get(place, place)
        if above != place and above not in moved:
            waiting.setdefault(above, []).append(place)
            continue
        free = [place]
        while free:
            moved[free[0]] = None
            free[:1] = waiting.pop(free[0], [])
    return [*moved, *(place for place in order if place not in moved)]  # the last: what replaced each other in a ring


def _with(
    asked: Asked, one: Ranked, best: Shortlist, said: Floats | ModelError | None, name: str
) -> Ranked:
    """What was ranked, with what a reranker made of its best."""
    if said is None:
        return one
    if isinstance(said, ModelError):
        return one._replace(scorer=f"{one.scorer} (not {name}: {said})")
    last = repeats(one.candidates, best.rows, insights=Kind.INSIGHT.value in asked.filter.kinds)
    rows, score = reordered(best, said, one.question.today, last)
    return one._replace(
        rows=rows + one.rows[len(rows) :],
        scores=replace(one.scores, score=score),
        scorer=f"{one.scorer}+{name}",
        told={**one.told, name: dict(zip(best.rows.tolist(), said.tolist(), strict=True))},
    )


def _checked(values: object, count: int, name: str) -> Floats:
    """One float for each of ``count`` notes."""
    try:
        found: Floats = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise ScorerError(f"{name} gave {type(values).__name__} in place of {count} numbers") from None
    if found.shape != (count,):
        raise ScorerError(f"{name} gave values of shape {found.shape} for {count} notes")
    if not np.isfinite(found).all():
        raise ScorerError(f"{name} gave {found[~np.isfinite(found)][0]} for a note: its order means nothing")
    return found
