"""Find: from questions to hits. One round trip for candidates, one scoring each, and the notes of the best of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread
import numpy as np

from zettel.embed.vectors import Vectors, embed_questions
from zettel.errors import InvalidQuestion
from zettel.evolve.strength import FAINTEST, FRESH, strength, weights
from zettel.fold import fold
from zettel.identity import new_id
from zettel.model import TIME_MAX, TIME_MIN, Hit, Kind, Note, Scope, from_micros, to_micros
from zettel.pages import archived_pages
from zettel.ports import GraphStore, Reranker, Scorer
from zettel.query import Asked, Candidates, Query, Question, Seed
from zettel.scoring.answering import wanted
from zettel.search.again import read_again
from zettel.search.away import PAGE, Looking, is_asked_for, passes
from zettel.search.explain import explain
from zettel.search.faded import BringBack, Faded
from zettel.search.log import Found, SearchLog
from zettel.search.question import parse_question
from zettel.search.rank import Ranked, outdated, rank
from zettel.search.rerank import Reranking
from zettel.together import together

if TYPE_CHECKING:
    from zettel.llm.ports import Asker
    from zettel.query import Floats, Ints
    from zettel.search.slots import Slots


class Finding:
    """Asks a store."""

    def __init__(
        self, store: GraphStore, vectors: Vectors, bring_back: BringBack, slots: Slots, asker: Asker | None = None
    ) -> None:
        self._store = store
        self._vectors = vectors
        self._reranking = Reranking(store, asker, slots)
        self.log = SearchLog(store)
        self.faded = Faded(store, bring_back)

    async def search(
        self, scope: Scope, asked: Sequence[Asked], scorer: Scorer, stages: Sequence[Reranker] = ()
    ) -> list[list[Hit]]:
        """For each question the best ``k`` notes, best first; of one event's parts only the best.

        Each of the ``stages`` orders the best of what the one before it made anew. Raises ``InvalidQuestion`` for an
        empty question, ``ScorerError`` for a reranker's useless answer.
        """
        for one in asked:
            if not isinstance(one.text, str) or not one.text.strip():
                raise InvalidQuestion("the question is empty: ask something")
        if not asked:
            return []
        questions = await self._parse(scope, asked)
        space = await self._vectors.space()
        reads = max((stage.reads for stage in stages), default=0)
        pairs = list(zip(asked, questions, strict=True))
        ranked = await together([partial(self._rank, scope, space.id, *pair, scorer, reads) for pair in pairs])
        notes = await self._notes(scope, asked, ranked)
        ranked = [_again(*one, scorer, reads) for one in zip(asked, ranked, notes, strict=True)]
        for stage in stages:
            ranked = await self._reranking.reranked(scope, space, stage, asked, ranked, notes)
        hits = [self._hits(scope, *one) for one in zip(asked, ranked, notes, strict=True)]
        return [
            await self._named(scope, found) if one.explain else found for one, found in zip(asked, hits, strict=True)
        ]

    async def _rank(
        self, scope: Scope, space: int, asked: Asked, question: Question, scorer: Scorer, reads: int
    ) -> Ranked:
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
        candidates = await self._with_archive(scope, asked, question, candidates)
        scores = scorer.score(question, candidates)
        least = asked.min_score or 0.0
        old = outdated(candidates, question.today) & asked.current_only
        insights = Kind.INSIGHT.value in asked.filter.kinds
        k = max(asked.k, reads, _reads_again(question, scorer))
        best = rank(scores, candidates, k, old | (scores.score < least), insights=insights)
        faint: Mapping[int, float] = {}
        if best and candidates.stats.used and asked.as_of is None and asked.known_at is None:
            last = scores.score[best].min() if len(best) == k else least
            rivals = np.flatnonzero(candidates.pool & (scores.score >= FAINTEST * last))
            faint = await self._faint(scope, candidates, rivals, asked.now or datetime.now(timezone.utc))
        if faint:
            score = scores.score.copy()
            score[list(faint)] *= weights(list(faint.values()))
            scores = replace(scores, score=score)
            best = rank(scores, candidates, k, old | (scores.score < least), insights=insights)
        return Ranked(question, candidates, scores, best, scorer.name, faint)

    async def _with_archive(
        self, scope: Scope, asked: Asked, question: Question, candidates: Candidates
    ) -> Candidates:
        """The candidates and what was put away: all of it if that is asked for, or what only a faded note can tell."""
        if not candidates.stats.archived:
            return candidates
        if asked.archived or asked.quarantined:
            looking = Looking(question, asked, self._vectors.embedder)
            async for page in archived_pages(self._store, scope, PAGE):
                if asked.known_at is not None:
                    page = await self._archived_then(scope, page, asked.known_at)
                await looking.look([note for note in page if is_asked_for(note, asked)])
            return looking.joined(candidates)
        if not asked.recalls or asked.as_of is not None or asked.known_at is not None:
            return candidates
        named = await self.faded.named(scope, question, candidates)
        if not named:
            return candidates
        looking = Looking(question, asked, self._vectors.embedder)
        await looking.look([note for note in named if passes(note, asked.filter)])
        return looking.joined(candidates)

    async def _archived_then(self, scope: Scope, page: Sequence[Note], known_at: datetime) -> list[Note]:
        """Those notes of the archive that were in it then, as they were known then."""
        then = await self._known_then(scope, [note.id for note in page], known_at)
        return [
            then[note.id].model_copy(update={"valid_to": note.valid_to})  # which no state tells
            for note in page
            if note.id in then and then[note.id].archived
        ]

    async def _faint(self, scope: Scope, candidates: Candidates, rows: Ints, now: datetime) -> dict[int, float]:
        """The strengths of those of the rows that are no longer fresh at ``now``."""
        uses = await self._store.note_uses(scope, [candidates.ids[row] for row in rows])
        strengths = {int(row): strength(uses[id], now) for row in rows if (id := candidates.ids[row]) in uses}
        return {row: left for row, left in strengths.items() if left < FRESH}

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
        states = await self._known_then(scope, _ids(ranked), asked.known_at)
        ends = dict(zip(_ids(ranked), ranked.candidates.valid_to[ranked.rows].tolist(), strict=True))
        return {
            id: note.model_copy(update={"valid_to": None if ends[id] >= TIME_MAX else from_micros(ends[id])})
            for id, note in states.items()
        }

    async def _known_then(self, scope: Scope, ids: Sequence[str], known_at: datetime | None) -> dict[str, Note]:
        """Notes in the state known then; None: by now. What is gone is left out."""
        upto = None if known_at is None else to_micros(known_at)
        histories = await self._store.histories(scope, ids)
        return {id: fold(base, revisions, upto)[0] for id, (base, revisions) in histories.items()}

    def _hits(self, scope: Scope, asked: Asked, ranked: Ranked, notes: Mapping[str, Note]) -> list[Hit]:
        """The hits, which are logged if that was asked for. A note that went since it was ranked is no hit."""
        candidates, scores, scorer = ranked.candidates, ranked.scores, ranked.scorer
        today = ranked.question.today
        search = new_id("s") if asked.log else None
        rows = [row for row in ranked.rows if candidates.ids[row] in notes][: asked.k]
        hits = [
            Hit(
                note=notes[candidates.ids[row]],
                score=float(scores.score[row]),
                why=explain(row, candidates, scores, scorer, today, ranked.faint.get(row), full=asked.explain),
                search_id=search,
            )
            for row in rows
        ]
        if asked.explain:
            for name, said in ranked.told.items():
                hits = [_with_feature(hit, name, said.get(row)) for row, hit in zip(rows, hits, strict=True)]
        back = [id for row in rows if candidates.seeds[row] & Seed.ARCHIVE and notes[id := candidates.ids[row]].faded]
        if back and asked.brings_back and not asked.archived:
            self.faded.bring_back(scope, back)
        if search is not None and hits:
            told = scores.features[rows]
            self.log.add(Found(scope, search, asked.text, datetime.now(timezone.utc), scorer, hits, told,
                               scores.feature_names))  # fmt: skip
        return hits

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
        vectors = await embed_questions(self._vectors.embedder, [one.text for one in asked])
        latest = TIME_MIN
        if any(one.now is None and one.as_of is None for one in asked):
            latest = (await self._store.state(scope)).latest
        # In a thread: a question in a script that needs a dictionary takes a second the first time.
        return await anyio.to_thread.run_sync(_parsed, asked, vectors, latest)


def _parsed(asked: Sequence[Asked], vectors: Floats, latest: int) -> list[Question]:
    questions = []
    for one, vector in zip(asked, vectors, strict=True):
        today = one.now or one.as_of
        micros, zone = (latest, None) if today is None else (to_micros(today), today.tzinfo)
        questions.append(parse_question(one.text, vector=vector if vector.any() else None, today=micros, zone=zone))
    return questions


def _reads_again(question: Question, scorer: Scorer) -> int:
    """How many notes are read before they are hits: none unless one state of things is asked for."""
    most: int = getattr(scorer, "reads_again", 0)
    return most if most and wanted(question.text) else 0


def _again(asked: Asked, ranked: Ranked, notes: Mapping[str, Note], scorer: Scorer, reads: int) -> Ranked:
    """What was ranked, in the order in which it answers the question, and no more than was asked for or is read."""
    most = _reads_again(ranked.question, scorer)
    if not most:
        return ranked
    question, candidates, scores = ranked.question, ranked.candidates, ranked.scores
    insights = Kind.INSIGHT.value in asked.filter.kinds
    rows, score, worth = read_again(
        question, candidates, scores.score, ranked.rows, notes, most, insights=insights
    )
    rows = rows[: max(asked.k, reads)]
    return ranked._replace(rows=rows, scores=replace(scores, score=score), told={"statement": worth})


def _with_feature(hit: Hit, name: str, value: float | None) -> Hit:
    if value is None:
        return hit
    features = hit.why.features | {name: round(value, 4)}
    return hit.model_copy(update={"why": hit.why.model_copy(update={"features": features})})


def _ids(ranked: Ranked) -> list[str]:
    return [ranked.candidates.ids[row] for row in ranked.rows]
