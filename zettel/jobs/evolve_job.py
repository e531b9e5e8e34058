"""The evolve job: updates notes from their neighbours, by rules and, if configured, by a model.

The rules add terms that the neighbours of a note share to its keywords, and derive its importance from its links.
Neighbours of lower trust do not count. The rules
do not change content, context, vector, or fields that a person or a model wrote. People and prompts read these
keywords; searches do not. The model part is in ``evolve_by_model``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from zettel.core.authority import may_replace
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import is_reverted, not_reverted
from zettel.core.fold import fold, live_revisions, state_of, worded_at
from zettel.core.follow_ups import UnfinishedJobs, finish
from zettel.core.paging import pages
from zettel.core.present import is_active
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.errors import ZettelError
from zettel.evolve.neighborhood import NEIGHBOURS, importance, spread, strongest_ties, tokens_of
from zettel.jobs.counters import Counters
from zettel.jobs.evolve_by_model import ModelEvolution, is_by_rule
from zettel.jobs.spec import JobContext, JobHandler, JobSpec
from zettel.link.near import Binding, binding
from zettel.model import Cause, Input, Job, JobKind, Kind, Note, Scope
from zettel.ports import GraphStore, LookupQuery, NoteHistory, ScopeState
from zettel.ports.operations import Op, PutRevision
from zettel.text.tokens import tokenize

PAGE = 200
"""Notes per transaction."""
TIMES_A_DAY = 4
"""The most changes of one note per DAY; further changes wait."""
DAY = timedelta(days=1)


class EvolveJob(JobHandler):
    """Evolves the notes of a store."""

    def __init__(
        self, store: GraphStore, commits: Commits, counters: Counters, model_evolution: ModelEvolution | None
    ) -> None:
        self._store = store
        self._commits = commits
        self._counters = counters
        self._model_evolution = model_evolution

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Evolve all notes in the scope of these jobs: first the model, then the rules, which read its keywords."""
        unfinished: list[UnfinishedJobs] = []
        if self._model_evolution is not None:
            try:
                await self._model_evolution.do(scope)
            except ZettelError as error:  # finished changes stay; the next attempt continues
                unfinished.append(UnfinishedJobs(list(jobs), error))
        async for page in pages(self._store, scope, PAGE):
            await self._commit(scope, [note.id for note in page], ())
        if not unfinished:
            await self._commit(scope, (), jobs)
        return unfinished

    async def _commit(self, scope: Scope, ids: Sequence[str], jobs: Sequence[Job]) -> None:
        changed = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal changed
            puts = await self._revisions(scope, ids, clock) if ids else []
            changed = len(puts)
            return [*puts, *finish(jobs)]

        if await self._commits.commit(scope, plan):
            self._counters.count(scope, revised=changed)

    async def _revisions(self, scope: Scope, ids: Sequence[str], clock: Clock) -> list[PutRevision]:
        """Return revisions of the notes whose neighbourhoods changed."""
        neighborhoods = await self._neighborhoods(scope, ids)
        targets: dict[str, dict[str, Any]] = {}
        for id in ids:
            if id in neighborhoods.visible:
                degree = len(neighborhoods.neighbours[id])
                targets[id] = {"importance": importance(degree), "keywords": neighborhoods.spread(id)}
        histories = Rows(await self._store.histories(scope, list(targets)))
        changes = {id: _change(histories[id], target, clock.recorded_at) for id, target in targets.items()}
        changing = [(id, change, neighborhoods.neighbours[id]) for id, change in changes.items() if change is not None]
        others = {other for _, _, neighbours in changing for other in neighbours} - histories.keys()
        histories |= await self._store.histories(scope, sorted(others)) if others else {}
        return [_revised(histories, id, neighbours, change, clock) for id, change, neighbours in changing]

    async def _neighborhoods(self, scope: Scope, ids: Sequence[str]) -> _Neighborhoods:
        strongest = strongest_ties(ids, await self._store.links(scope, ids))
        others = {other for ties in strongest.values() for other in ties}
        notes = Rows(await self._store.notes(scope, sorted(others.union(ids))))
        # Insights only repeat their notes.
        visible = {id for id, note in notes.items() if is_active(note) and note.kind is not Kind.INSIGHT}
        neighbours: dict[str, list[str]] = {}
        for id, ties in strongest.items():
            entitled = [other for other in ties.keys() & visible if may_replace(notes[other], notes[id])]
            neighbours[id] = sorted(entitled, key=lambda other: (-ties[other], notes[other].seq))[:NEIGHBOURS]
        uses = await self._store.uses(scope, sorted(set().union(*neighbours.values())))
        bindings = Rows({id: binding(terms) for id, terms in uses.items()})
        tokens = {token for terms in bindings.values() for term in terms.values() for token in tokens_of(term)}
        df = (await self._store.lookup(scope, LookupQuery(tokens=tuple(sorted(tokens))))).df if tokens else {}
        return _Neighborhoods(notes, visible, neighbours, bindings, df)


class _Neighborhoods(NamedTuple):
    """Notes, the ids of those that evolve, their neighbours by link strength, terms, and document frequencies."""

    notes: Mapping[str, Note]
    visible: Collection[str]
    neighbours: Mapping[str, Sequence[str]]
    bindings: Mapping[str, Binding]
    df: Mapping[str, int]

    def spread(self, id: str) -> tuple[str, ...]:
        """Return the keywords that a note gets from its neighbours."""
        note, others = self.notes[id], sorted(self.neighbours[id], key=lambda other: self.notes[other].seq)
        speakers = {(self.notes[other].speaker or "").casefold() for other in (id, *others)}
        tokens = tokenize(" ".join((note.title or "", note.content)))
        terms = spread(tokens, [self.bindings[other] for other in others], self.df, speakers)
        return tuple(term.text for term in terms)


def _change(history: NoteHistory, target: Mapping[str, Any], now: datetime) -> dict[str, Any] | None:
    """Return the fields that the rules set, or None if nothing changes or the note must not change."""
    if is_reverted(history, JobKind.EVOLVE) or _times_since(history, now - DAY) >= TIMES_A_DAY:
        return None
    note, _ = state_of(history)
    bare, _ = fold(history.base, [revision for revision in history.revisions if not is_by_rule(revision.cause)])
    written = _written_by_others(history)
    change: dict[str, Any] = {}
    if "importance" not in written and target["importance"] != bare.importance:
        change["importance"] = target["importance"]
    if "keywords" not in written and target["keywords"]:
        change["keywords"] = (*bare.keywords, *target["keywords"])
    change = {**not_reverted(history, change, ())[0]}
    after = bare.model_copy(update=change)
    return None if (after.importance, after.keywords) == (note.importance, note.keywords) else change


def _written_by_others(history: NoteHistory) -> set[str]:
    """Return the fields that a person or a model has set."""
    revisions = [r for r in live_revisions(history.revisions) if not is_by_rule(r.cause)]
    return set(history.base.authored).union(*(r.change.keys() - set(r.extracted) for r in revisions))


def _times_since(history: NoteHistory, moment: datetime) -> int:
    return sum(is_by_rule(r.cause) and r.recorded_at >= moment for r in history.revisions)


def _revised(
    histories: Mapping[str, NoteHistory], id: str, neighbours: Iterable[str], change: Mapping[str, Any], clock: Clock
) -> PutRevision:
    history = histories[id]
    # All, because a live one may have replaced another, which must not become live again.
    former = tuple(r.version for r in history.revisions if is_by_rule(r.cause))
    others = [other for other in neighbours if other in histories]
    inputs = tuple(Input(other, worded_at(histories[other])) for other in (id, *others))
    newest = max(others, key=lambda other: histories[other].base.seq, default=None)
    cause = Cause(by=JobKind.EVOLVE, note=newest)
    extracted = tuple(name for name in change if name == "keywords")
    return revised(history, clock, cause, change, extracted=extracted, undoes=former, inputs=inputs)


def _make(context: JobContext) -> EvolveJob:
    by_model = None
    if context.models.evolver is not None:
        by_model = ModelEvolution(
            context.store, context.commits, context.vectors, context.models.evolver, context.ask_about, context.counters
        )
    return EvolveJob(context.store, context.commits, context.counters, by_model)


JOB = JobSpec(JobKind.EVOLVE, _make, round=4, quotes_texts=True)
