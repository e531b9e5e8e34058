"""The annotate job: groups turns into requests and writes the annotations of a model.

The job calls the model outside of any transaction. It writes the answer only if no note of the request has changed;
else it annotates the turns again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from zettel.annotate.segments import segments
from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import FollowUps, UnfinishedJobs, finish, finish_plan, needs_own_request, newest_jobs
from zettel.core.mentions import mention_ops
from zettel.core.present import is_active
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors, embed_texts
from zettel.errors import InvalidModelItem, InvalidModelOutput
from zettel.jobs.annotation_writer import AnnotationWriter
from zettel.jobs.spec import JobContext, JobHandler, JobLane, JobSpec
from zettel.model import EventRecord, Job, JobKind, Kind, Note, Scope
from zettel.ports import Annotator, GraphStore, Passage, ScopeState
from zettel.ports.language_model import (
    AnnotationItem,
    AnnotationRequest,
    AskFactory,
    InvalidItem,
    ModelAnnotation,
    ModelAnnotator,
)
from zettel.ports.operations import EraseAnswers, Op, StaleLease
from zettel.ports.query import Filter
from zettel.text.index import vector_text

LOOK_BACK = 400
"""The sequence numbers to search for the turns before a note."""
MIN_SUMMARY_TURNS = 4
"""The fewest turns of one topic that get a summary."""


class AnnotateJob(JobHandler):
    """Annotates the notes of a store by a model."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        extractive: Annotator,
        vectors: Vectors,
        annotator: ModelAnnotator,
        follow_ups: FollowUps,
        ask_about: AskFactory,
    ) -> None:
        self._store = store
        self._commits = commits
        self._extractive = extractive
        self._vectors = vectors
        self._annotator = annotator
        self._follow_ups = follow_ups
        self._ask_about = ask_about

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Annotate the notes of these jobs; return the jobs that failed and why."""
        by_note, superseded = newest_jobs(jobs)
        stored = await self._store.notes(scope, sorted(by_note))
        notes = {id: note for id, note in stored.items() if is_active(note)}
        done = [job for job in superseded if job.note in stored] + [by_note[id] for id in stored.keys() - notes.keys()]
        if done:  # a later job of the same note supersedes them, or the note is archived or expired
            await self._commits.commit(scope, finish_plan(done))
        groups = await self._groups(scope, notes, by_note)
        requests = (self._annotate(scope, group, by_note) for group in groups)
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        unfinished: list[UnfinishedJobs] = []
        for group, outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                unfinished.append(UnfinishedJobs([by_note[note.id] for note in group.stretch], outcome))
            else:
                unfinished += outcome
        return unfinished

    # grouping -----------------------------------------------------------------------------------------------

    async def _groups(self, scope: Scope, notes: Mapping[str, Note], jobs: Mapping[str, Job]) -> list[_Group]:
        """Group the notes by session, topic and trust; a note that an earlier answer omitted gets its own group.

        Notes of different trust never share a request, so that none affects what a model writes about a trusted one.
        """
        ordered = sorted(notes.values(), key=lambda note: note.seq)
        sessions: dict[tuple[float, str | None], list[Note]] = {}
        stretches: list[list[Note]] = []
        for note in ordered:
            if needs_own_request(jobs[note.id]):
                stretches.append([note])
            else:
                sessions.setdefault((note.trust, note.session), []).append(note)
        for turns in sessions.values():
            for start, end in await self._cuts(turns):
                if stretches and start == 0 and self._fits(stretches[-1], turns[:end], jobs):
                    stretches[-1] += turns[:end]  # short sessions share a request at the same cost
                else:
                    stretches.append(turns[start:end])
        before = [await self._before(scope, stretch[0]) for stretch in stretches]
        shown = {note.id: note for group in (*stretches, *before) for note in group}
        events = await self._store.events(scope, sorted({note.event_ids[0] for note in shown.values()}))
        return [_Group(stretch, earlier, events) for stretch, earlier in zip(stretches, before, strict=True)]

    async def _cuts(self, notes: Sequence[Note]) -> list[tuple[int, int]]:
        limit = self._annotator.batch
        if len(notes) > limit and not self._vectors.embedder.remote:
            rows = await embed_texts(self._vectors.embedder, [vector_text(note) for note in notes])
            return segments(rows, most=limit)
        return [(start, min(start + limit, len(notes))) for start in range(0, len(notes), limit)]

    def _fits(self, stretch: Sequence[Note], more: Sequence[Note], jobs: Mapping[str, Job]) -> bool:
        last = stretch[-1]
        is_short = len(stretch) + len(more) <= self._annotator.batch
        return is_short and last.trust == more[0].trust and not needs_own_request(jobs[last.id])

    async def _before(self, scope: Scope, first: Note) -> list[Note]:
        """Return the turns of a note's session that arrived just before it, apart from less trusted ones."""
        if first.session is None or not self._annotator.before:
            return []
        turns = Filter(session=first.session, kinds=(Kind.EPISODIC.value,))
        page = await self._store.page(scope, turns, max(0, first.seq - LOOK_BACK), LOOK_BACK)
        turns_before = [note for note in page if note.seq < first.seq and note.trust >= first.trust and is_active(note)]
        return turns_before[-self._annotator.before :]

    # writing --------------------------------------------------------------------------------------------------

    async def _annotate(self, scope: Scope, group: _Group, jobs: Mapping[str, Job]) -> list[UnfinishedJobs]:
        result = await self._annotator.annotate(group.request, self._ask_about(scope, group.shown.values()))
        annotations = list(zip(group.stretch, result.turns, strict=True))
        flaws = {note.id: annotation.why for note, annotation in annotations if isinstance(annotation, InvalidItem)}
        is_useless = len(flaws) == len(group.stretch)

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            current = await self._store.notes(scope, list(group.shown))
            if any(_wording(current.get(id)) != _wording(note) for id, note in group.shown.items()):
                raise StaleLease("a note changed while the model processed it")
            writer = AnnotationWriter(self._store, self._extractive, scope, clock, [*group.shown.values()])
            histories = Rows(await self._store.histories(scope, [note.id for note in group.stretch]))
            for note, annotation in annotations:
                if isinstance(annotation, ModelAnnotation):
                    before = group.before(note, self._annotator.before)
                    await writer.write(note, histories[note.id], annotation, before, result)
            if result.summary and group.has_one_topic and not is_useless:
                await writer.summarize(group.stretch, result)
            ops: list[Op] = [EraseAnswers(tuple(flaws))] if is_useless else []  # else the cache would return it again
            ops += writer.ops
            again = [note.id for note in writer.notes if note.id in group.shown]
            ops += await mention_ops(self._store, scope, writer.notes, again=again, recorded_at=clock.recorded_at)
            ops += await self._vectors.embed_now(writer.notes)
            embeds = self._vectors.defers(len(writer.notes))
            ops += [job for note in writer.notes for job in self._follow_ups.of_index(scope, note, clock.now, embeds)]
            return ops + finish(jobs[note.id] for note in group.stretch if note.id not in flaws)

        await self._commits.commit(scope, plan)
        if is_useless:
            error = InvalidModelOutput(f"no note of the answer is valid: {min(flaws.values())}")
            return [UnfinishedJobs([jobs[id] for id in flaws], error)]
        return [
            UnfinishedJobs([jobs[id]], InvalidModelItem(f"not valid in the answer: {why}")) for id, why in flaws.items()
        ]


class _Group:
    """Notes to annotate together, the notes just before them, and the request for the annotator."""

    def __init__(self, stretch: Sequence[Note], before: Sequence[Note], events: Mapping[str, EventRecord]) -> None:
        self.stretch = stretch
        self.shown = {note.id: note for note in (*before, *stretch)}
        sessions = {note.session for note in stretch}
        self.has_one_topic = len(stretch) >= MIN_SUMMARY_TURNS and len(sessions) == 1 and None not in sessions
        self.request = AnnotationRequest(
            tuple(_turn(note, events) for note in stretch), tuple(_turn(note, events) for note in before)
        )

    def before(self, note: Note, most: int) -> list[Passage]:
        """Return at most so many turns of its session that the request shows before a note."""
        earlier = [other for other in self.shown.values() if other.session == note.session and other.seq < note.seq]
        turns = earlier[max(0, len(earlier) - most) :] if note.session is not None else []
        return [Passage(turn.content, turn.title, turn.speaker, turn.occurred_at) for turn in turns]


def _turn(note: Note, events: Mapping[str, EventRecord]) -> AnnotationItem:
    event = events.get(note.event_ids[0])
    passage = Passage(note.content, note.title, note.speaker, note.occurred_at)
    return AnnotationItem(note.id, event.external_id if event else None, passage)


def _wording(note: Note | None) -> tuple[Any, ...] | None:
    """Return the fields of a note that a request contains; None for a deleted or archived note."""
    return None if note is None or note.archived else (note.content, note.title, note.speaker, note.occurred_at)


def _make(context: JobContext) -> AnnotateJob | None:
    if context.models.annotator is None:
        return None
    return AnnotateJob(
        context.store, context.commits, context.extractive, context.vectors, context.models.annotator,
        context.follow_ups, context.ask_about,
    )  # fmt: skip


JOB = JobSpec(JobKind.ANNOTATE, _make, lane=JobLane.ANNOTATE, quotes_texts=True)
