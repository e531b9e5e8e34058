"""Find: from questions to hits. One round trip for candidates, one scoring each, and the notes of the best of all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import anyio

from zettel.embed.vectors import Vectors
from zettel.errors import InvalidQuestion, ZettelError
from zettel.fold import fold
from zettel.model import TIME_MAX, TIME_MIN, Hit, Kind, Note, Scope, from_micros, to_micros
from zettel.ports import GraphStore, Scorer
from zettel.query import Asked, Candidates, Query, Question, Scores
from zettel.search.explain import explain
from zettel.search.question import parse_question
from zettel.search.rank import outdated, rank

AT_ONCE = 8
"""Questions of one call that are under way together: while one waits for the store another is scored."""


class Ranked(NamedTuple):
    """The best rows for a question, and what they were chosen from."""

    question: Question
    candidates: Candidates
    scores: Scores
    rows: list[int]


class Finding:
    """Asks a store."""

    def __init__(self, store: GraphStore, vectors: Vectors) -> None:
        self._store = store
        self._vectors = vectors

    async def search(self, scope: Scope, asked: Sequence[Asked], scorer: Scorer) -> list[list[Hit]]:
        """For each question the best ``k`` notes, best first; of one event's parts only the best.

        Raises ``InvalidQuestion`` for an empty question.
        """
        for one in asked:
            if not isinstance(one.text, str) or not one.text.strip():
                raise InvalidQuestion("the question is empty: ask something")
        if not asked:
            return []
        questions = await self._parse(scope, asked)
        space = (await self._vectors.space()).id
        pairs = list(zip(asked, questions, strict=True))
        ranked = await _side_by_side([partial(self._rank, scope, space, *pair, scorer) for pair in pairs])
        notes = await self._notes(scope, asked, ranked)
        hits = [_hits(*one, scorer.name) for one in zip(asked, ranked, notes, strict=True)]
        return [
            await self._named(scope, found) if one.explain else found for one, found in zip(asked, hits, strict=True)
        ]

    async def _rank(self, scope: Scope, space: int, asked: Asked, question: Question, scorer: Scorer) -> Ranked:
        candidates = await self._store.candidates(
            Query(
                scope=scope,
                space=space,
                vector=question.vector,
                tokens=question.tokens,
                names=question.names,
                times=question.times,
                filter=asked.filter,
                as_of=None if asked.as_of is None else to_micros(asked.as_of),
                known_at=None if asked.known_at is None else to_micros(asked.known_at),
            )
        )
        scores = scorer.score(question, candidates)
        without = outdated(candidates, question.today) if asked.current_only else None
        insights = Kind.INSIGHT.value in asked.filter.kinds
        best = rank(scores, candidates, asked.k, without, insights=insights)
        rows = [row for row in best if scores.score[row] >= (asked.min_score or 0.0)]
        return Ranked(question, candidates, scores, rows)

    async def _notes(self, scope: Scope, asked: Sequence[Asked], ranked: Sequence[Ranked]) -> list[Mapping[str, Note]]:
        """The notes of each question's hits as its two clocks show them; those of now are read together."""
        plain = [one.as_of is None and one.known_at is None for one in asked]
        ids = dict.fromkeys(id for one, now in zip(ranked, plain, strict=True) if now for id in _ids(one))
        notes = await self._store.notes(scope, list(ids)) if ids else {}
        return [
            notes if now else await self._notes_then(scope, one, found)
            for one, found, now in zip(asked, ranked, plain, strict=True)
        ]

    async def _notes_then(self, scope: Scope, asked: Asked, ranked: Ranked) -> dict[str, Note]:
        """Notes in the state known then, replaced by what was true then."""
        upto = None if asked.known_at is None else to_micros(asked.known_at)
        histories = await self._store.histories(scope, _ids(ranked))
        states = {id: fold(base, revisions, upto)[0] for id, (base, revisions) in histories.items()}
        ends = dict(zip(_ids(ranked), ranked.candidates.valid_to[ranked.rows].tolist(), strict=True))
        return {
            id: note.model_copy(update={"valid_to": None if ends[id] >= TIME_MAX else from_micros(ends[id])})
            for id, note in states.items()
        }

    async def _named(self, scope: Scope, hits: list[Hit]) -> list[Hit]:
        """The hits with the notes on their paths called by their titles or captions, not by their ids."""
        passed = {step.note for hit in hits for step in hit.why.path if step.note}
        notes = await self._store.notes(scope, sorted(passed))
        names = {id: note.title or note.caption or id for id, note in notes.items()}
        return [
            hit.model_copy(
                update={
                    "why": hit.why.model_copy(
                        update={
                            "path": tuple(
                                step.model_copy(update={"name": names.get(step.note or "", step.name)})
                                for step in hit.why.path
                            )
                        }
                    )
                }
            )
            for hit in hits
        ]

    async def _parse(self, scope: Scope, asked: Sequence[Asked]) -> list[Question]:
        vectors = await self._vectors.embedder.embed([one.text for one in asked])
        latest = TIME_MIN
        if any(one.now is None and one.as_of is None for one in asked):
            latest = (await self._store.state(scope)).latest
        questions = []
        for one, vector in zip(asked, vectors, strict=True):
            today = one.now or one.as_of
            micros = latest if today is None else to_micros(today)
            questions.append(
                parse_question(
                    one.text, vector=vector if vector.any() else None, today=None if micros == TIME_MIN else micros
                )
            )
        return questions


async def _side_by_side(tasks: Sequence[Callable[[], Awaitable[Ranked]]]) -> list[Ranked]:
    """What each task gives, in order; the first error of ours ends the others, and is raised as it is."""
    if len(tasks) == 1:
        return [await tasks[0]()]
    done: dict[int, Ranked] = {}
    failed: list[ZettelError] = []
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def do(place: int) -> None:
        async with limit:
            try:
                done[place] = await tasks[place]()
            except ZettelError as error:  # a group of tasks would raise it among others
                failed.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for place in range(len(tasks)):
            group.start_soon(do, place)
    if failed:
        raise failed[0]
    return [done[place] for place in range(len(tasks))]


def _ids(ranked: Ranked) -> list[str]:
    return [ranked.candidates.ids[row] for row in ranked.rows]


def _hits(asked: Asked, ranked: Ranked, notes: Mapping[str, Note], scorer: str) -> list[Hit]:
    """A note that went since it was ranked is no hit."""
    candidates, scores, today = ranked.candidates, ranked.scores, ranked.question.today
    return [
        Hit(
            note=notes[candidates.ids[row]],
            score=float(scores.score[row]),
            why=explain(row, candidates, scores, scorer, today, full=asked.explain),
        )
        for row in ranked.rows
        if candidates.ids[row] in notes
    ]
