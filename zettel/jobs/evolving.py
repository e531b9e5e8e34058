"""The job that has the notes of a scope tell more about each other, by rules and, where there is one, by a model.

By rules, words that bind a note's neighbours join its keywords, and its importance follows its links. Its content,
context and vector stay, and so does whatever a person or a model wrote: the keywords given here are for people and
prompts, like those extracted from the content, and no search reads them. What a model does is in ``rewriting``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from zettel.annotate.tokens import tokenize
from zettel.batch import Op, PutRevision
from zettel.commit import Clock, Commits
from zettel.errors import ZettelError
from zettel.evolve.spread import NEIGHBOURS, importance, spread, strongest_ties, tokens_of
from zettel.fold import fold, live_revisions, worded_at
from zettel.jobs.queue import Left, finish
from zettel.jobs.rewriting import EVOLVER, Rewriting, is_by_rule
from zettel.jobs.tally import Tally
from zettel.link.near import Binding, binding
from zettel.merged import taken_back
from zettel.model import Cause, Input, Job, Kind, Note, Scope
from zettel.pages import pages
from zettel.ports import GraphStore, Lookup, NoteHistory, ScopeState
from zettel.revise import revised

PAGE = 200
"""Notes looked at, and changed, in one transaction."""
TIMES_A_DAY = 4
"""Changes of one note within DAY; what more there is to change waits."""
DAY = timedelta(days=1)


class Evolving:
    """Evolves the notes of a store."""

    def __init__(self, store: GraphStore, commits: Commits, tally: Tally, rewriting: Rewriting | None) -> None:
        self._store = store
        self._commits = commits
        self._tally = tally
        self._rewriting = rewriting

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        """Evolve all notes in the scope of these jobs, by rules after the model: they look at what it writes."""
        left: list[Left] = []
        if self._rewriting is not None:
            try:
                await self._rewriting.do(scope)
            except ZettelError as error:  # what was done until then stays; the next attempt goes on from there
                left.append(Left(list(jobs), error))
        async for page in pages(self._store, scope, PAGE):
            await self._commit(scope, [note.id for note in page], ())
        if not left:
            await self._commit(scope, (), jobs)
        return left

    async def _commit(self, scope: Scope, ids: Sequence[str], jobs: Sequence[Job]) -> None:
        changed = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal changed
            puts = await self._evolved(scope, ids, clock) if ids else []
            changed = len(puts)
            return [*puts, *finish(jobs)]

        if await self._commits.commit(scope, plan):
            self._tally.count(scope, revised=changed)

    async def _evolved(self, scope: Scope, ids: Sequence[str], clock: Clock) -> list[PutRevision]:
        """Revisions of those of the notes about which their neighbourhoods say something new."""
        seen = await self._neighbourhoods(scope, ids)
        wanted: dict[str, dict[str, Any]] = {}
        for id in ids:
            if id in seen.shown:
                wanted[id] = {"importance": importance(len(seen.around[id])), "keywords": seen.spread(id)}
        histories = await self._store.histories(scope, list(wanted))
        made = [(id, _change(histories[id], told, clock.recorded_at)) for id, told in wanted.items()]
        changing = [(id, change) for id, change in made if change is not None]
        others = {other for id, _ in changing for other in seen.around[id]} - histories.keys()
        histories |= await self._store.histories(scope, sorted(others)) if others else {}
        return [_revised(histories, id, seen.around[id], change, clock) for id, change in changing]

    async def _neighbourhoods(self, scope: Scope, ids: Sequence[str]) -> _Seen:
        strongest = strongest_ties(ids, await self._store.links(scope, ids))
        reached = {there for ties in strongest.values() for there in ties}
        notes = await self._store.notes(scope, sorted(reached.union(ids)))
        # An insight repeats what its notes say: it tells them nothing new.
        shown = {id for id, note in notes.items() if not note.archived and note.kind is not Kind.INSIGHT}
        around = {
            id: sorted(ties.keys() & shown, key=lambda there: (-ties[there], notes[there].seq))[:NEIGHBOURS]
            for id, ties in strongest.items()
        }
        uses = await self._store.uses(scope, sorted({there for near in around.values() for there in near}))
        bindings = {id: binding(terms) for id, terms in uses.items()}
        tokens = {token for terms in bindings.values() for term in terms.values() for token in tokens_of(term)}
        df = (await self._store.lookup(scope, Lookup(tokens=tuple(sorted(tokens))))).df if tokens else {}
        return _Seen(notes, shown, around, bindings, df)


class _Seen(NamedTuple):
    """Notes, those that take part, their neighbours, strongest links first, what binds these, and how rare that is."""

    notes: Mapping[str, Note]
    shown: Collection[str]
    around: Mapping[str, Sequence[str]]
    bindings: Mapping[str, Binding]
    df: Mapping[str, int]

    def spread(self, id: str) -> tuple[str, ...]:
        """The words that a note gets from around it."""
        note, around = self.notes[id], sorted(self.around[id], key=lambda other: self.notes[other].seq)
        speakers = {(self.notes[other].role or "").casefold() for other in (id, *around)}
        said = tokenize(" ".join((note.title or "", note.content)))
        found = spread(said, [self.bindings[other] for other in around], self.df, speakers)
        return tuple(term.text for term in found)


def _change(history: NoteHistory, told: Mapping[str, Any], now: datetime) -> dict[str, Any] | None:
    """The fields to set anew on top of what others decided, or None: all is as it should be, or not to be touched."""
    if taken_back(history, EVOLVER) or _times_since(history, now - DAY) >= TIMES_A_DAY:
        return None
    note, _ = fold(*history)
    bare, _ = fold(history.base, [revision for revision in history.revisions if not is_by_rule(revision.cause)])
    written = _written_by_others(history)
    change: dict[str, Any] = {}
    if "importance" not in written and told["importance"] != bare.importance:
        change["importance"] = told["importance"]
    if "keywords" not in written and told["keywords"]:
        change["keywords"] = (*bare.keywords, *told["keywords"])
    after = bare.model_copy(update=change)
    return None if (after.importance, after.keywords) == (note.importance, note.keywords) else change


def _written_by_others(history: NoteHistory) -> set[str]:
    """Fields that a person or a model has set."""
    told = [r for r in live_revisions(history.revisions) if not is_by_rule(r.cause)]
    return set(history.base.authored).union(*(r.change.keys() - set(r.extracted) for r in told))


def _times_since(history: NoteHistory, moment: datetime) -> int:
    return sum(is_by_rule(r.cause) and r.recorded_at >= moment for r in history.revisions)


def _revised(
    histories: Mapping[str, NoteHistory], id: str, around: Iterable[str], change: Mapping[str, Any], clock: Clock
) -> PutRevision:
    history = histories[id]
    former = tuple(r.version for r in live_revisions(history.revisions) if is_by_rule(r.cause))
    near = [other for other in around if other in histories]
    inputs = tuple(Input(other, worded_at(*histories[other])) for other in (id, *near))
    newest = max(near, key=lambda other: histories[other].base.seq, default=None)
    cause = Cause(by=EVOLVER, note=newest)
    extracted = tuple(name for name in change if name == "keywords")
    return revised(history, clock, cause, change, extracted=extracted, undoes=former, inputs=inputs)
