"""The model part of the evolve job: new notes rewrite, link and unlink their neighbours.

Each note counts as new once: a revision records that the model has seen it. Fields that a person wrote stay, and so do
reverts. A note is rewritten a few times a day at most, and its vector must stay close to the original. The content
never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from zettel.core.commit import Clock, Commits
from zettel.core.fold import fold, live_revisions, worded_at
from zettel.core.follow_ups import erase_answers_plan
from zettel.core.mentions import mention_ops
from zettel.core.merges import is_reverted
from zettel.core.paging import pages
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.errors import InvalidModelOutput
from zettel.evolve.neighborhood import strongest_ties
from zettel.jobs.annotation_writer import is_outdated, set_by_people
from zettel.jobs.counters import Counters
from zettel.jobs.retry_limit import RetryLimit
from zettel.link.neighbors import is_older
from zettel.model import Cause, Input, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.language_model import (
    AskFactory,
    CandidateBatch,
    EvolutionResult,
    LinkChange,
    ModelEvolver,
    NoteCandidates,
    Rewrite,
)
from zettel.ports.operations import Op, PutRevision, PutVector, StaleLease
from zettel.text.index import vector_text

PAGE = 200
"""Notes per page."""
REWRITES_A_DAY = 3
"""Rewrites of one note per DAY, so that the notes of a busy topic stay different."""
DAY = timedelta(days=1)
LIKENESS = 0.6
"""The lowest cosine between the vectors of the original note and of the rewritten one."""
TIE_WEIGHT = 0.9
"""The weight of a link that a model makes."""


class ModelEvolution:
    """Evolves the notes of a store by a model."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        evolver: ModelEvolver,
        ask_about: AskFactory,
        counters: Counters,
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._evolver = evolver
        self._ask_about = ask_about
        self._counters = counters

    async def do(self, scope: Scope) -> None:
        """Send all notes that the model has not seen as new, in order of arrival.

        Raises what the model raises; the error of a useless answer comes last, see ``RetryLimit``. Finished changes
        stay, and the next run sends the rest.
        """
        retry_limit = RetryLimit()
        async for page in pages(self._store, scope, PAGE):
            worded = [note for note in page if "context" in note.authored and note.kind is not Kind.INSIGHT]
            histories = await self._store.histories(scope, [note.id for note in worded]) if worded else {}
            fresh = [note.id for note in worded if note.id in histories and not _was_seen(histories[note.id])]
            for start in range(0, len(fresh), self._evolver.batch):
                # One after another, so that each request sees the changes of the one before.
                with retry_limit:
                    await self._evolve(scope, fresh[start : start + self._evolver.batch])
        retry_limit.raise_last()

    async def _evolve(self, scope: Scope, ids: Sequence[str]) -> None:
        choices = await self._choices(scope, ids)
        if not choices.notes:
            return
        shown = {note.id: note for note in (*(choice.note for choice in choices.notes), *choices.others)}
        try:
            rewrote = await self._evolver.evolve(choices, self._ask_about(scope, shown.values()))
        except InvalidModelOutput:
            await self._commits.commit(scope, erase_answers_plan(shown))
            raise
        drafts = await self._drafts(scope, [change for change in rewrote.changes if isinstance(change, Rewrite)])
        changed = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal changed
            now = await self._store.notes(scope, sorted(shown))
            if any(is_outdated(now.get(id), note) for id, note in shown.items()):
                raise StaleLease("a note changed while the model processed it")
            histories = Rows(await self._store.histories(scope, sorted(shown)))
            inputs = tuple(Input(id, worded_at(*histories[id])) for id in sorted(shown))
            put = _Put(histories, clock, inputs, rewrote)
            puts = [made for draft in drafts if (made := put.rewritten(draft)) is not None]
            changed = len(puts)
            indexed = [one.note for one in puts if one.index is not None]
            ops: list[Op] = [*puts, *(put.seen(choice.note.id) for choice in choices.notes)]
            ops += await mention_ops(
                self._store, scope, indexed, again=[note.id for note in indexed], recorded_at=clock.recorded_at
            )
            space = await self._vectors.space()
            rows = {draft.rewrite.note: draft.row for draft in drafts}
            return [*ops, *(PutVector(note.id, space.id, rows[note.id]) for note in indexed)]

        if await self._commits.commit(scope, plan):
            self._counters.count(scope, revised=changed)

    async def _choices(self, scope: Scope, ids: Sequence[str]) -> CandidateBatch:
        """Return the notes that have older neighbours, with these neighbours."""
        notes = await self._store.notes(scope, ids)
        ties = strongest_ties(ids, await self._store.links(scope, ids))
        found = await self._store.notes(scope, sorted({there for near in ties.values() for there in near}))
        places: dict[str, int] = {}
        chosen: list[NoteCandidates] = []
        for note in sorted((note for note in notes.values() if not note.archived), key=lambda note: note.seq):
            older = [found[id] for id in ties[note.id] if id in found and _is_candidate(found[id], note)]
            older.sort(key=lambda other: (-ties[note.id][other.id], other.seq))
            if older:
                near = tuple(places.setdefault(other.id, len(places)) for other in older[: self._evolver.offered])
                chosen.append(NoteCandidates(note, near))
        return CandidateBatch(tuple(chosen), tuple(found[id] for id in places))

    async def _drafts(self, scope: Scope, rewrites: Sequence[Rewrite]) -> list[_Draft]:
        """Return the rewrites that stay close to their originals, each with its vector."""
        histories = await self._store.histories(scope, [one.note for one in rewrites]) if rewrites else {}
        made: list[tuple[Rewrite, dict[str, Any], str, str]] = []
        for rewrite in rewrites:
            if rewrite.note in histories:
                history = histories[rewrite.note]
                change = _change(history, rewrite)
                after = _as_changed(fold(*history)[0], change)
                made.append((rewrite, change, vector_text(_before(history)), vector_text(after)))
        texts = [text for _, _, before, after in made for text in (before, after)]
        rows = await self._vectors.embedder.embed(texts) if texts else np.empty((0, 0), np.float32)
        return [
            _Draft(rewrite, change, after, row)
            for (rewrite, change, _, after), was, row in zip(made, rows[0::2], rows[1::2], strict=True)
            if float(was @ row) >= LIKENESS
        ]


class _Draft(NamedTuple):
    """A model_evolution: the fields it sets, the text of the vector then, and that vector."""

    rewrite: Rewrite
    change: Mapping[str, Any]
    text: str
    row: np.ndarray


class _Put:
    """Builds the revisions of one answer."""

    def __init__(
        self, histories: Mapping[str, NoteHistory], clock: Clock, inputs: tuple[Input, ...], rewrote: EvolutionResult
    ) -> None:
        self._histories = Rows(histories)
        self._clock = clock
        self._inputs = inputs
        self._rewrote = rewrote

    def rewritten(self, draft: _Draft) -> PutRevision | None:
        """Return the rewritten neighbour, or None if it must not change, or not today."""
        history = self._histories[draft.rewrite.note]
        lately = self._clock.recorded_at - DAY
        times = sum(_by_model(r.cause) and "context" in r.change and r.recorded_at >= lately for r in history.revisions)
        if not draft.change or is_reverted(history, JobKind.EVOLVE) or times >= REWRITES_A_DAY:
            return None
        cause = self._cause(draft.rewrite.because, draft.rewrite.why)
        put = revised(history, self._clock, cause, draft.change, inputs=self._inputs)
        if vector_text(put.note) != draft.text:
            return None
        self._histories[history.base.id] = NoteHistory(history.base, (*history.revisions, put.revision))
        return put

    def seen(self, id: str) -> PutRevision:
        """Return the revision that marks a new note as seen, with the links that the model added or removed."""
        history = self._histories[id]
        changes = [one for one in self._rewrote.changes if isinstance(one, LinkChange) and one.because == id]
        dropped = {one.target for one in changes if not one.makes}
        linked = live_revisions(history.revisions, JobKind.LINK)
        broken = linked if any(not dropped.isdisjoint(_related(r.links)) for r in linked) else []
        # All of them: a live revision has replaced earlier ones, which must not become live again.
        undoes = tuple(r.version for r in history.revisions if r.cause.by == JobKind.LINK) if broken else ()
        links = [link for r in broken for link in r.links]
        kept = [link for link in links if link.target not in dropped or link.type is not LinkType.RELATES]
        change = {name: value for r in broken for name, value in r.change.items()}
        added = [
            Link(source=id, target=one.target, type=LinkType.RELATES, weight=TIE_WEIGHT, reason=one.why,
                 recorded_at=self._clock.recorded_at)
            for one in changes
            if one.makes
        ]  # fmt: skip
        why = "; ".join(one.why for one in changes if not one.makes)
        # Of a note about which nothing was decided only this is known: that it was looked at.
        inputs = self._inputs if changes else tuple(read for read in self._inputs if read.note == id)
        return revised(
            history, self._clock, self._cause(id, why), change,
            links=(*kept, *added), undoes=undoes, inputs=inputs,
        )  # fmt: skip

    def _cause(self, note: str, why: str) -> Cause:
        return Cause(by=JobKind.EVOLVE, note=note, model=self._rewrote.model, prompt=self._rewrote.prompt, reason=why)


def is_by_rule(cause: Cause) -> bool:
    """Return whether the rules of the evolve job made a revision, not a model."""
    return cause.by == JobKind.EVOLVE and cause.prompt is None


def _by_model(cause: Cause) -> bool:
    return cause.by == JobKind.EVOLVE and cause.prompt is not None


def _was_seen(history: NoteHistory) -> bool:
    return any(_by_model(r.cause) and r.cause.note == r.note for r in history.revisions)


def _before(history: NoteHistory) -> Note:
    """Return the note without any evolution."""
    return fold(history.base, [r for r in history.revisions if r.cause.by != JobKind.EVOLVE])[0]


def _change(history: NoteHistory, rewrite: Rewrite) -> dict[str, Any]:
    """Return the fields to set; the note keeps its own tags."""
    note, _ = fold(*history)
    written = rewrite.written
    tags = tuple(dict.fromkeys((*note.tags, *written.tags)))
    change: dict[str, Any] = {"context": written.context, "keywords": written.keywords, "tags": tags}
    if written.importance is not None:
        change["importance"] = written.importance
    if not written.keywords:
        del change["keywords"]
    by_people = set_by_people(history)
    return {name: value for name, value in change.items() if name not in by_people and getattr(note, name) != value}


def _as_changed(note: Note, change: Mapping[str, Any]) -> Note:
    authored = tuple(sorted({*note.authored, *(change.keys() & {"context", "keywords", "tags"})}))
    return note.model_copy(update={**change, "authored": authored})


def _is_candidate(other: Note, note: Note) -> bool:
    return is_older(other, note) and not other.archived and other.kind is not Kind.INSIGHT


def _related(links: Iterable[Link]) -> set[str]:
    return {link.target for link in links if link.type is LinkType.RELATES}
