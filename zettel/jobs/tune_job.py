"""The tune job: learns the preferences of a scope from the use of its notes.

It learns from scratch from the newest searches with feedback, and stores the preferences only if they rank the used
notes of other searches better (``zettel.scoring.tuning``). They are stored as derived from all notes that these
searches found, so that deleting one of the notes destroys them. The default scorer then applies them
(``zettel.search.learned``).
"""

from __future__ import annotations

from collections.abc import Sequence

from zettel.core.commit import Clock, Commits
from zettel.core.feedback import PREFERENCES
from zettel.core.follow_ups import UnfinishedJobs, finish, finish_plan
from zettel.core.vectors import Vectors
from zettel.errors import InvalidInput
from zettel.jobs.spec import JobHandler, JobSpec
from zettel.model import Job, JobKind, LoggedSearch, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Op, PutAnswer
from zettel.ports.query import SearchRequest
from zettel.search.learned import learned_preferences
from zettel.search.searcher import Searcher

SEARCHES = 500
"""Newest searches with feedback from which a scope learns. The job repeats each of them."""
MIN_STANDARD_ERRORS = 3.0
"""Least gain, in standard errors. More than for ``zettel scorer tune``: nobody reads the report, the job tries many
times, and not every note that zettel recognised in an answer was used."""
NEW_SHARE = 0.25
"""Share of new ones among them from which the job learns again."""


class TuneJob(JobHandler):
    """Learns the preferences of scopes."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, searcher: Searcher) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._searcher = searcher

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Learn from the log of the scope of these jobs, if it contains enough new feedback."""
        from zettel.scoring.fusion import FusionScorer
        from zettel.scoring.preferences import Preferences
        from zettel.scoring.tuned import DefaultOdds, TunedScorer
        from zettel.scoring.tuning import MIN_SEARCHES, TraitRecorder, new_searches, tune

        before = await learned_preferences(self._store, scope)
        await self._searcher.log.flush()
        searches = [search async for search in self._store.searches(scope)]
        space = await self._vectors.space()
        empty = Preferences.empty(space.dim, space.fingerprint)
        teaching = new_searches(searches, empty, SEARCHES)
        new = teaching if before is None else new_searches(teaching, before)
        least = MIN_SEARCHES if before is None else max(MIN_SEARCHES, round(NEW_SHARE * before.searches))
        if sum(bool(search.used) for search in new) < least:
            await self._commits.commit(scope, finish_plan(jobs))
            return []

        async def repeat(search: LoggedSearch, recorder: TraitRecorder) -> None:
            request = SearchRequest(search.question, k=1, now=search.asked_at, known_at=search.asked_at)
            await self._searcher.search(scope, [request], FusionScorer(), [recorder])

        start = TunedScorer(DefaultOdds(), empty)
        try:
            scorer, report = await tune(start, [(searches, repeat)], lambda stage, done, total: None, SEARCHES)
        except InvalidInput:  # too few useful notes are left: the others were archived, or wait for a person
            await self._commits.commit(scope, finish_plan(jobs))
            return []
        is_better = report.after - report.before > MIN_STANDARD_ERRORS * report.error
        text = scorer.preferences.to_text() if is_better else ""
        notes = tuple(sorted({hit.note for search in teaching for hit in search.hits})) if text else ()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return [PutAnswer(PREFERENCES, text, notes), *finish(jobs)]

        await self._commits.commit(scope, plan)
        return []


JOB = JobSpec(
    JobKind.TUNE,
    lambda context: TuneJob(context.store, context.commits, context.vectors, context.searcher),
    round=5,
    quotes_texts=True,
)
