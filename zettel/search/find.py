"""Find: from a question to hits. One round trip for candidates, one scoring, and the notes of the best."""

from __future__ import annotations

from zettel.embed.vectors import Vectors
from zettel.errors import InvalidQuestion
from zettel.fold import fold
from zettel.model import TIME_MAX, TIME_MIN, Hit, Note, Scope, from_micros, to_micros
from zettel.ports import GraphStore, Scorer
from zettel.query import Asked, Query, Question
from zettel.search.explain import explain
from zettel.search.question import parse_question
from zettel.search.rank import rank


class Finding:
    """Asks a store."""

    def __init__(self, store: GraphStore, vectors: Vectors) -> None:
        self._store = store
        self._vectors = vectors

    async def search(self, scope: Scope, asked: Asked, scorer: Scorer) -> list[Hit]:
        """The best ``k`` notes, best first; of one event's parts only the best.

        Raises ``InvalidQuestion`` for an empty question.
        """
        if not isinstance(asked.text, str) or not asked.text.strip():
            raise InvalidQuestion("the question is empty: ask something")
        question = await self._parse(scope, asked)
        space = await self._vectors.space()
        candidates = await self._store.candidates(
            Query(
                scope=scope,
                space=space.id,
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
        rows = [row for row in rank(scores, candidates, asked.k) if scores.score[row] >= (asked.min_score or 0.0)]
        notes = await self._notes(scope, asked, {candidates.ids[row]: int(candidates.valid_to[row]) for row in rows})
        hits = [
            Hit(
                note=notes[candidates.ids[row]],
                score=float(scores.score[row]),
                why=explain(row, candidates, scores, scorer.name, question.today, full=asked.explain),
            )
            for row in rows
            if candidates.ids[row] in notes
        ]
        return await self._named(scope, hits) if asked.explain else hits

    async def _notes(self, scope: Scope, asked: Asked, valid_to: dict[str, int]) -> dict[str, Note]:
        """The notes of hits as the two clocks show them: in the state known then, replaced by what was true then."""
        if asked.as_of is None and asked.known_at is None:
            return await self._store.notes(scope, list(valid_to))
        upto = None if asked.known_at is None else to_micros(asked.known_at)
        histories = await self._store.histories(scope, list(valid_to))
        states = {id: fold(base, revisions, upto)[0] for id, (base, revisions) in histories.items()}
        ends = {id: None if end >= TIME_MAX else from_micros(end) for id, end in valid_to.items()}
        return {id: note.model_copy(update={"valid_to": ends[id]}) for id, note in states.items()}

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

    async def _parse(self, scope: Scope, asked: Asked) -> Question:
        (vector,) = await self._vectors.embedder.embed([asked.text])
        today = asked.now or asked.as_of
        micros = to_micros(today) if today is not None else (await self._store.state(scope)).latest
        known = None if micros == TIME_MIN else micros
        return parse_question(asked.text, vector=vector if vector.any() else None, today=known)
