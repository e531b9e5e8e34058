"""``Searcher``: from questions to hits, with one read of candidates and one scoring per question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import anyio.to_thread
import numpy as np

from zettel.core.authority import is_trusted, trust
from zettel.core.bounded_gather import both, bounded_gather
from zettel.core.identity import new_id
from zettel.core.pacing import paced
from zettel.core.paging import archived_pages
from zettel.core.present import present, present_micros
from zettel.core.search_log import FoundNote, PendingSearch, SearchLogBuffer
from zettel.core.vectors import Vectors, embed_questions
from zettel.errors import InvalidQuestion
from zettel.model import Hit, Kind, Note, NoteUse, Scope, to_micros
from zettel.ports import GraphStore, JointScorer, Reranker, ScopeState, Scorer
from zettel.ports.candidate_rules import passes
from zettel.ports.expiry import expired
from zettel.ports.query import Candidates, Query, Question, SearchRequest, Seed
from zettel.scoring.ranking import Ranked, outdated, rank
from zettel.scoring.strength import FRESH, strength, with_weak_use
from zettel.search.archived import PAGE, ArchiveCandidates, is_requested
from zettel.search.decayed import DecayedNotes, RestoreDecayed
from zettel.search.disputed import disputes, votes_on, weighed
from zettel.search.hits import completed, hits_of
from zettel.search.near_ties import PLACES, decided, near_ties, priority
from zettel.search.no_answers import answers_nothing, may_answer_nothing, ranked_last
from zettel.search.note_states import Found, is_current, known_then, notes_of
from zettel.search.overview import (
    choose,
    insights_first,
    names_insights,
    without_insights,
)
from zettel.search.reorder import examined, reordered
from zettel.search.rerank import Reranking
from zettel.search.scope_search import Place, ScopeSearch, Search, parsed_questions
from zettel.search.trusted_first import fits_any, is_doubtful, merged
from zettel.search.updated import updates

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.core.privacy import SecretGuard
    from zettel.ports.language_model import AskFactory
    from zettel.ports.query import Floats, Scores

SCORED_TOGETHER = 16
"""Searches scored in one pass: more would leave the processor's cache, and keep the event loop busy for longer."""


class Searcher:
    """Searches a store, logs searches on request, and recalls decayed notes."""

    def __init__(
        self,
        store: GraphStore,
        vectors: Vectors,
        restore: RestoreDecayed,
        ask_about: AskFactory | None,
        guard: SecretGuard,
    ) -> None:
        self._store = store
        self._vectors = vectors
        self._reranking = Reranking(store, ask_about)
        self.log = SearchLogBuffer(store, guard)
        self.decayed = DecayedNotes(store, restore)

    async def search(
        self,
        scope: Scope,
        requests: Sequence[SearchRequest],
        scorer: Scorer,
        stages: Sequence[Reranker] = (),
    ) -> list[list[Hit]]:
        """Return :meth:`search_scopes` of one scope."""

        async def same_stages(_: Scope) -> Sequence[Reranker]:
            return stages

        (results,) = await self.search_scopes([scope], requests, scorer, same_stages)
        return results

    async def search_scopes(
        self,
        scopes: Sequence[Scope],
        requests: Sequence[SearchRequest],
        scorer: Scorer,
        stages_of: Callable[[Scope], Awaitable[Sequence[Reranker]]],
    ) -> list[list[list[Hit]]]:
        """Return for each scope and request the best ``k`` notes, best first, and only the best part of an event.

        The scorer scores all candidates in one pass, with the statistics of each scope.

        An abstract question gets insights first (:mod:`zettel.search.overview`).
        Each of a scope's rerankers, from ``stages_of``, reorders the best notes of the order before it. Raises
        ``InvalidQuestion`` for an empty question, ``ScorerError`` for invalid values from a reranker.
        """
        if not all(isinstance(request.text, str) and request.text.strip() for request in requests):
            raise InvalidQuestion("the question is empty: ask something")
        if not requests:
            return [[] for _ in scopes]
        # The scopes are read while the embedder computes, on another core or elsewhere.
        vectors, places = await both(
            partial(self._embedded, requests), partial(self._places, scopes, requests, stages_of)
        )
        searches = [ScopeSearch(place, requests, vectors) for place in places]
        ranked = await self._ranked([search.notes for search in searches], scorer)
        insights = await self._ranked([search.insights for search in searches], scorer)
        return await bounded_gather([
            partial(self._results, *each, scorer) for each in zip(searches, ranked, insights, strict=True)
        ])  # fmt: skip

    async def _embedded(self, requests: Sequence[SearchRequest]) -> dict[str, Floats]:
        """Return the vector of each question, (dim,)."""
        texts = list(dict.fromkeys(request.text for request in requests))
        rows = await embed_questions(self._vectors.embedder, texts)
        return dict(zip(texts, rows, strict=True))

    async def _places(
        self,
        scopes: Sequence[Scope],
        requests: Sequence[SearchRequest],
        stages_of: Callable[[Scope], Awaitable[Sequence[Reranker]]],
    ) -> list[Place]:
        async def read(scope: Scope) -> tuple[ScopeState, Sequence[Reranker]]:
            return await self._store.state(scope), await stages_of(scope)

        states = await bounded_gather([partial(read, scope) for scope in scopes])
        # In a thread: the first question in a script that needs a dictionary takes a second.
        questions = await anyio.to_thread.run_sync(parsed_questions, requests, [state.latest for state, _ in states])
        return [Place(scope, *each, asked) for scope, each, asked in zip(scopes, states, questions, strict=True)]

    async def _ranked(self, searches: Sequence[Sequence[Search]], scorer: Scorer) -> list[list[Ranked]]:
        """Return the rankings of the searches of each scope."""
        every = list(chain.from_iterable(searches))
        if not every:
            return [[] for _ in searches]
        space = await self._vectors.space()
        candidates = await bounded_gather([partial(self._candidates, space.id, search) for search in every])
        pairs = [(search.question, found) for search, found in zip(every, candidates, strict=True)]
        scores = await _scores(scorer, pairs)
        ranked = iter(
            await bounded_gather([
                partial(self._rank, *each, scorer) for each in zip(every, candidates, scores, strict=True)
            ])
        )  # fmt: skip
        return [list(islice(ranked, len(of_scope))) for of_scope in searches]

    async def _results(
        self, search: ScopeSearch, ranked: Sequence[Ranked], insights: Sequence[Ranked], scorer: Scorer
    ) -> list[list[Hit]]:
        """Return the hits of each request in a scope."""
        scope = search.scope
        found = await self._found(scope, search.notes, ranked, scorer, search.stages)
        by_place = dict(
            zip(search.abstract, await self._found(scope, search.insights, insights, scorer, ()), strict=True)
        )
        results = []
        async for place, request in paced(enumerate(search.requests)):
            pairs = [(hit, found[place]) for hit in hits_of(found[place])]
            if place in by_place:
                pairs = await self._with_insights(scope, request, pairs, by_place[place])
            hits = self._recorded(scope, request, pairs[: request.k])
            is_overview = place in by_place or Kind.INSIGHT.value in request.filter.kinds
            results.append(await completed(self._store, scope, request, hits, is_overview=is_overview))
        return results

    async def _found(
        self,
        scope: Scope,
        searches: Sequence[Search],
        ranked: Sequence[Ranked],
        scorer: Scorer,
        stages: Sequence[Reranker],
    ) -> list[Found]:
        """Return the final ranking of each request, and the notes of its rows."""
        if not searches:
            return []
        requests, reads = [search.request for search in searches], searches[0].reads
        notes = await notes_of(self._store, scope, requests, ranked)
        rows = zip(requests, ranked, notes, strict=True)
        ranked = [reordered(*row, scorer, reads) async for row in paced(rows)]
        triples = list(zip(requests, ranked, notes, strict=True))
        before = ranked
        answering = [await self._answering(scope, *row, scorer, reads) for row in triples]
        triples = [(request, *each[:2]) for request, each in zip(requests, answering, strict=True)]
        screened = [await self._screened(scope, *row, scorer, reads) for row in triples]
        ranked = [ranking for ranking, _, _ in screened]
        notes = [{**known, **by_id} for (_, known, _), (_, by_id, _) in zip(answering, screened, strict=True)]
        space = await self._vectors.space()
        for stage in stages:
            ranked = await self._reranking.reranked(scope, space, stage, requests, ranked, notes)
        late = [doubtful for _, _, doubtful in screened]
        ranked = [each if more is None else merged(each, more) for each, more in zip(ranked, late, strict=True)]
        ranked = [
            ranked_last(each, former, silent, request.min_score or 0.0) if silent else each
            for request, each, former, (_, _, silent) in zip(requests, ranked, before, answering, strict=True)
        ]
        return [Found(*row) for row in zip(requests, ranked, notes, strict=True)]

    async def _with_insights(
        self, scope: Scope, request: SearchRequest, pairs: Sequence[tuple[Hit, Found]], insights: Found
    ) -> list[tuple[Hit, Found]]:
        """The hits of an abstract question with insights first, each with its ranking."""
        notes = [hit for hit, _ in pairs]
        chosen = choose(request.text, insights.ranked.question.time_only, notes, hits_of(insights))
        origin = {hit.note.id: each for hit, each in pairs} | {hit.note.id: insights for hit in chosen}
        least = request.min_score or 0.0
        return [(hit, origin[hit.note.id]) for hit in insights_first(chosen, notes) if hit.score >= least]

    async def _candidates(self, space: int, search: Search) -> Candidates:
        scope, request, question, _ = search
        candidates = await self._store.candidates(
            Query(
                scope=scope,
                space=space,
                vector=question.vector,
                tokens=question.tokens,
                names=question.names,
                times=question.times,
                filter=request.filter,
                as_of=None if request.as_of is None else to_micros(request.as_of),
                known_at=None if request.known_at is None else to_micros(request.known_at),
            )
        )
        candidates = await self._with_archive(scope, request, question, candidates)
        return candidates if names_insights(request) else without_insights(candidates)

    async def _rank(self, search: Search, candidates: Candidates, scores: Scores, scorer: Scorer) -> Ranked:
        scope, request, question, reads = search
        confidences: Mapping[int, float] = {}
        witnesses: Mapping[int, tuple[int, int]] = {}
        if pairs := disputes(candidates, question.today):
            confidences, witnesses = await self._votes(scope, request, candidates, pairs)
            scores = replace(scores, score=weighed(scores.score, pairs, confidences))
        least = request.min_score or 0.0
        old = outdated(candidates, question.valid_at) & request.current_only
        updated = updates(candidates, question.valid_at)
        depth = examined(question, scorer, updated)
        k = max(request.k, reads, depth)
        # A note that rises by what it states gets the score of its new place: it is compared later.
        hidden = old if depth else old | (scores.score < least)
        best = rank(scores, candidates, max(k, PLACES), hidden)
        strengths: Mapping[int, float] = {}
        if is_current(request) and (ties := near_ties(scores.score, best)):
            now = request.now or present()
            best, scores, strengths = await self._decided(scope, candidates, scores, best, ties, now)
        return Ranked(
            question, candidates, scores, best[:k], scorer.name, strengths, confidences=confidences,
            witnesses=witnesses, updated=updated,
        )  # fmt: skip

    async def _votes(
        self, scope: Scope, request: SearchRequest, candidates: Candidates, pairs: Sequence[tuple[int, int]]
    ) -> tuple[dict[int, float], dict[int, tuple[int, int]]]:
        """The confidence of the rows in these pairs, and the writers for and against them, at the request's time."""
        rows = {candidates.ids[row]: row for pair in pairs for row in pair}
        known_at = request.known_at
        notes = await (self._store.notes(scope, list(rows)) if known_at is None
                       else known_then(self._store, scope, list(rows), known_at))  # fmt: skip
        ids = [(candidates.ids[first], candidates.ids[second]) for first, second in pairs]
        votes = await votes_on(self._store, scope, ids, notes)
        confidences = {rows[id]: confidence for id, confidence in votes.confidences.items()}
        return confidences, {rows[id]: numbers for id, numbers in votes.witnesses.items()}

    async def _with_archive(
        self, scope: Scope, request: SearchRequest, question: Question, candidates: Candidates
    ) -> Candidates:
        """The candidates with archived notes: all on request, else those that a rare query word recalls."""
        if not candidates.stats.archived:
            return candidates
        if request.archived or request.quarantined:
            archive = ArchiveCandidates(question, request, self._vectors.embedder)
            async for page in archived_pages(self._store, scope, PAGE):
                if request.known_at is not None:
                    page = await self._archived_then(scope, page, request.known_at)
                await archive.add([note for note in page if is_requested(note, request)])
            return archive.joined(candidates)
        if not request.recalls or not is_current(request):
            return candidates
        named = await self.decayed.named(scope, question, candidates)
        if not named:
            return candidates
        archive = ArchiveCandidates(question, request, self._vectors.embedder)
        now = present_micros()
        await archive.add([note for note in named if passes(note, request.filter) and not expired(note, now)])
        return archive.joined(candidates)

    async def _archived_then(self, scope: Scope, page: Sequence[Note], known_at: datetime) -> list[Note]:
        """Those notes that were archived at ``known_at``, in their state at that time."""
        then = await known_then(self._store, scope, [note.id for note in page], known_at)
        return [
            then[note.id].model_copy(update={"valid_to": note.valid_to})  # derived, so not in the state
            for note in page
            if note.id in then and then[note.id].archived
        ]

    async def _answering(
        self,
        scope: Scope,
        request: SearchRequest,
        ranked: Ranked,
        notes: Mapping[str, Note],
        scorer: Scorer,
        reads: int,
    ) -> tuple[Ranked, Mapping[str, Note], list[int]]:
        """The ranking without notes that cannot answer, all notes of both, and the rows of these notes."""
        candidates = ranked.candidates
        possible = candidates.pool & may_answer_nothing(candidates)

        def silent(rows: Iterable[int]) -> list[int]:
            known = (row for row in rows if possible[row] and candidates.ids[row] in notes)
            return [row for row in known if answers_nothing(notes[candidates.ids[row]], request.text)]

        if not silent(ranked.rows[: max(request.k, reads)]):
            return ranked, notes, []
        every = [int(row) for row in np.flatnonzero(possible)]
        (more,) = await notes_of(self._store, scope, [request], [ranked._replace(rows=every)])
        notes = {**notes, **more}
        late = silent(every)
        again = await self._ranked_without(scope, request, ranked, late, scorer, reads)
        (found,) = await notes_of(self._store, scope, [request], [again])
        return reordered(request, again, found, scorer, reads), {**notes, **found}, late

    async def _screened(
        self,
        scope: Scope,
        request: SearchRequest,
        ranked: Ranked,
        notes: Mapping[str, Note],
        scorer: Scorer,
        reads: int,
    ) -> tuple[Ranked, Mapping[str, Note], Ranked | None]:
        """The ranking without notes of less than ``min_trust``, its notes, and the ranking of doubtful notes, if any.

        The first ranking leaves out doubtful notes if another note fits the question.
        """
        least, ids = request.min_trust or 0.0, ranked.candidates.ids

        def is_excluded(row: int) -> bool:
            return ids[row] not in notes or trust(notes[ids[row]]) < least

        def is_late(row: int) -> bool:
            return ids[row] in notes and is_doubtful(notes[ids[row]], request.text)

        shown = ranked.rows[: max(request.k, reads)]
        if not any(is_excluded(row) or is_late(row) for row in shown):
            return ranked, notes, None
        pool = [int(row) for row in np.flatnonzero(ranked.candidates.pool)]
        (notes,) = await notes_of(self._store, scope, [request], [ranked._replace(rows=pool)])
        excluded, late = list(filter(is_excluded, pool)), list(filter(is_late, pool))
        without = ranked
        if excluded:
            ranked = await self._ranked_without(scope, request, ranked, excluded, scorer, reads)
            ranked = without = reordered(request, ranked, notes, scorer, reads)
        if late:
            without = await self._ranked_without(scope, request, ranked, late, scorer, reads)
            without = reordered(request, without, notes, scorer, reads)
        full = [row for row in without.rows if is_trusted(notes[ids[row]])]
        if not late or not fits_any(ranked.question, ranked.candidates, full, without.scores.score):
            return ranked, notes, None
        hidden = set(late)
        return without, notes, ranked._replace(rows=[row for row in ranked.rows if row in hidden])

    async def _ranked_without(
        self,
        scope: Scope,
        request: SearchRequest,
        ranked: Ranked,
        rows: Sequence[int],
        scorer: Scorer,
        reads: int,
    ) -> Ranked:
        """The ranking as if these rows were no candidates, before :func:`reordered`."""
        pool = ranked.candidates.pool.copy()
        pool[rows] = False
        candidates = replace(ranked.candidates, pool=pool)
        scores = scorer.score(ranked.question, candidates)
        search = Search(scope, request, ranked.question, reads)
        return await self._rank(search, candidates, scores, scorer)

    async def _decided(
        self,
        scope: Scope,
        candidates: Candidates,
        scores: Scores,
        best: Sequence[int],
        ties: Sequence[Sequence[int]],
        now: datetime,
    ) -> tuple[list[int], Scores, dict[int, float]]:
        """The best rows with near-ties decided, the scores in this order, and the strengths of decayed tied rows."""
        rows = {candidates.ids[row]: row for run in ties for row in run}
        notes = await self._store.notes(scope, list(rows))
        uses = await self._store.note_uses(scope, list(rows)) if candidates.stats.used else {}
        proved = await self._store.proved(scope, list(rows))
        priorities, strengths = dict.fromkeys(rows.values(), 0.0), dict[int, float]()
        for id, note in notes.items():
            use = with_weak_use(uses.get(id) or NoteUse(note.recorded_at), proved.get(id))
            priorities[rows[id]] = priority(note, use, now)
            if (value := strength(use, now)) < FRESH:
                strengths[rows[id]] = value
        score, order = scores.score.copy(), list(best)
        for run in ties:
            start, moved = order.index(run[0]), decided(run, priorities, candidates)
            score[moved] = score[run]
            order[start : start + len(run)] = moved
        return order, replace(scores, score=score), strengths

    def _recorded(self, scope: Scope, request: SearchRequest, pairs: Sequence[tuple[Hit, Found]]) -> list[Hit]:
        """The hits, logged on request. Restores the decayed notes among them."""
        hits = [hit for hit, _ in pairs]
        recalled = [hit for hit in hits if hit.note.faded and Seed.ARCHIVE.name.lower() in hit.why.seeds]
        if recalled and request.restore_decayed and not request.archived:
            self.decayed.restore(scope, [hit.note.id for hit in recalled])
        if not request.log or not hits:
            return hits
        search, now = new_id("s"), present()
        hits = [hit.model_copy(update={"search_id": search}) for hit in hits]
        features = np.stack([found.features_of(hit.note.id) for hit, found in pairs])
        ranked = pairs[0][1].ranked
        names = ranked.scores.feature_names
        notes = [FoundNote(hit.note.id, hit.note.version, hit.score) for hit in hits]
        self.log.add(PendingSearch(scope, search, request.text, now, ranked.scorer, notes, features, names))
        return hits


async def _scores(scorer: Scorer, searches: Sequence[tuple[Question, Candidates]]) -> list[Scores]:
    """Return the scores of each search, up to SCORED_TOGETHER in one pass if the scorer can."""
    if not isinstance(scorer, JointScorer):
        return [scorer.score(*search) async for search in paced(searches)]
    groups = [searches[start : start + SCORED_TOGETHER] for start in range(0, len(searches), SCORED_TOGETHER)]
    return [scores async for group in paced(groups) for scores in scorer.score_each(group)]
