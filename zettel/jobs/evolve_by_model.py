"""The model part of the evolve job: new notes rewrite, link and unlink their neighbours.

Each note counts as new once: a revision records that the model has seen it. The job does not change fields that a
person wrote, or repeat reverted changes. It rewrites a note at most a few times a day, and the vector of the note must
stay close to the original. The content never changes, and a new note changes no note of higher trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from zettel.core.authority import may_replace
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import is_reverted, not_reverted, set_by_people, versions_by
from zettel.core.fold import fold, live_revisions, state_of, worded_at
from zettel.core.follow_ups import erase_answers_plan
from zettel.core.mentions import mention_ops
from zettel.core.paging import pages
from zettel.core.present import is_active
from zettel.core.revise import flagged, revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors, embed_texts
from zettel.errors import InvalidModelOutput
from zettel.evolve.neighborhood import strongest_ties
from zettel.jobs.annotation_writer import is_outdated, own_tags
from zettel.jobs.counters import Counters
from zettel.jobs.retry_limit import RetryLimit
from zettel.link.neighbors import is_older
from zettel.model import Cause, Input, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.model.tags import without_reserved
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
MIN_COSINE = 0.6
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

        Raises the errors of the model; the error of a useless answer comes last, see ``RetryLimit``. Finished changes
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
            result = await self._evolver.evolve(choices, self._ask_about(scope, shown.values()))
        except InvalidModelOutput:
            await self._commits.commit(scope, erase_answers_plan(shown))
            raise
        drafts = await self._drafts(scope, [change for change in result.changes if isinstance(change, Rewrite)])
        changed = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal changed
            current = await self._store.notes(scope, sorted(shown))
            if any(is_outdated(current.get(id), note) for id, note in shown.items()):
                raise StaleLease("a note changed while the model processed it")
            histories = Rows(await self._store.histories(scope, sorted(shown)))
            inputs = tuple(Input(id, worded_at(histories[id])) for id in sorted(shown))
            revisions = _Revisions(histories, clock, inputs, result)
            puts = [put for draft in drafts if (put := revisions.rewrite(draft)) is not None]
            changed = len(puts)
            indexed = [put.note for put in puts if put.index is not None]
            ops: list[Op] = [*puts, *(revisions.mark_seen(choice.note.id) for choice in choices.notes)]
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
        neighbours = await self._store.notes(scope, sorted({id for tied in ties.values() for id in tied}))
        positions: dict[str, int] = {}
        chosen: list[NoteCandidates] = []
        for note in sorted(filter(is_active, notes.values()), key=lambda note: note.seq):
            tied = [neighbours[id] for id in ties[note.id] if id in neighbours]
            older = [other for other in tied if _is_candidate(other, note)]
            older.sort(key=lambda other: (-ties[note.id][other.id], other.seq))
            if older:
                offered = older[: self._evolver.offered]
                others = tuple(positions.setdefault(other.id, len(positions)) for other in offered)
                chosen.append(NoteCandidates(note, others))
        return CandidateBatch(tuple(chosen), tuple(neighbours[id] for id in positions))

    async def _drafts(self, scope: Scope, rewrites: Sequence[Rewrite]) -> list[_Draft]:
        """Return the rewrites that stay close to their originals, each with its vector."""
        histories = await self._store.histories(scope, [rewrite.note for rewrite in rewrites]) if rewrites else {}
        changes: list[tuple[Rewrite, Mapping[str, Any], str, str]] = []
        for rewrite in rewrites:
            if rewrite.note in histories:
                history = histories[rewrite.note]
                note, _ = state_of(history)
                change, _ = not_reverted(history, _change(history, rewrite), ())
                change = flagged(note, change) if change else change
                after = _as_changed(note, change)
                changes.append((rewrite, change, vector_text(_original(history)), vector_text(after)))
        texts = [text for _, _, before, after in changes for text in (before, after)]
        rows = await embed_texts(self._vectors.embedder, texts) if texts else np.empty((0, 0), np.float32)
        return [
            _Draft(rewrite, change, after, row)
            for (rewrite, change, _, after), original, row in zip(changes, rows[0::2], rows[1::2], strict=True)
            if float(original @ row) >= MIN_COSINE
        ]


class _Draft(NamedTuple):
    """A rewrite, the fields that it sets, the new text of the vector, and the new vector."""

    rewrite: Rewrite
    change: Mapping[str, Any]
    text: str
    row: np.ndarray


class _Revisions:
    """Builds the revisions of one answer."""

    def __init__(
        self, histories: Mapping[str, NoteHistory], clock: Clock, inputs: tuple[Input, ...], result: EvolutionResult
    ) -> None:
        self._histories = Rows(histories)
        self._clock = clock
        self._inputs = inputs
        self._result = result

    def rewrite(self, draft: _Draft) -> PutRevision | None:
        """Return the rewritten neighbour, or None if it must not change now."""
        history = self._histories[draft.rewrite.note]
        since = self._clock.recorded_at - DAY
        times = sum(_by_model(r.cause) and "context" in r.change and r.recorded_at >= since for r in history.revisions)
        if not draft.change or is_reverted(history, JobKind.EVOLVE) or times >= REWRITES_A_DAY:
            return None
        cause = self._cause(draft.rewrite.because, draft.rewrite.why)
        put = revised(history, self._clock, cause, draft.change, inputs=self._inputs)
        if vector_text(put.note) != draft.text:
            return None
        self._histories[history.base.id] = history.then(put.revision)
        return put

    def mark_seen(self, id: str) -> PutRevision:
        """Return the revision that marks a new note as seen, with the links that the model added or removed."""
        history = self._histories[id]
        changes = [change for change in self._result.changes if isinstance(change, LinkChange) and change.because == id]
        dropped = {change.target for change in changes if not change.makes}
        linked = live_revisions(history.revisions, JobKind.LINK)
        replaced = linked if any(not dropped.isdisjoint(_related(r.links)) for r in linked) else []
        undoes = versions_by(history, JobKind.LINK) if replaced else ()
        links = [link for r in replaced for link in r.links]
        remaining = [link for link in links if link.target not in dropped or link.type is not LinkType.RELATES]
        fields = {name: value for r in replaced for name, value in r.change.items()}
        added = [
            Link(source=id, target=change.target, type=LinkType.RELATES, weight=TIE_WEIGHT, reason=change.why,
                 recorded_at=self._clock.recorded_at)
            for change in changes
            if change.makes
        ]  # fmt: skip
        why = "; ".join(change.why for change in changes if not change.makes)
        # Without a decision the revision depends on the note alone.
        inputs = self._inputs if changes else tuple(source for source in self._inputs if source.note == id)
        return revised(
            history, self._clock, self._cause(id, why), fields,
            links=(*remaining, *added), undoes=undoes, inputs=inputs,
        )  # fmt: skip

    def _cause(self, note: str, why: str) -> Cause:
        return Cause(by=JobKind.EVOLVE, note=note, model=self._result.model, prompt=self._result.prompt, reason=why)


def is_by_rule(cause: Cause) -> bool:
    """Return whether the rules of the evolve job made a revision, not a model."""
    return cause.by == JobKind.EVOLVE and cause.prompt is None


def _by_model(cause: Cause) -> bool:
    return cause.by == JobKind.EVOLVE and cause.prompt is not None


def _was_seen(history: NoteHistory) -> bool:
    return any(_by_model(r.cause) and r.cause.note == r.note for r in history.revisions)


def _original(history: NoteHistory) -> Note:
    """Return the note without any evolution."""
    return fold(history.base, [r for r in history.revisions if r.cause.by != JobKind.EVOLVE])[0]


def _change(history: NoteHistory, rewrite: Rewrite) -> dict[str, Any]:
    """Return the fields to set; the note keeps its own tags."""
    note, _ = state_of(history)
    written = rewrite.written
    tags = tuple(dict.fromkeys((*own_tags(note), *without_reserved(written.tags))))
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
    """Return whether a new note may change another one: an older one of no higher trust."""
    return is_active(other) and other.kind is not Kind.INSIGHT and is_older(other, note) and may_replace(note, other)


def _related(links: Iterable[Link]) -> set[str]:
    return {link.target for link in links if link.type is LinkType.RELATES}
