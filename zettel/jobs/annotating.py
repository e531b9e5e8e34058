"""The job that has a model write notes: which turns are read together, and what is written of the answer.

The model is asked outside of any transaction. What it says is written only if every note that stood before it is still
there with the same wording; else the turns are read anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from zettel.annotate.index import vector_text
from zettel.annotate.segments import segments
from zettel.batch import EraseAnswers, Op, StaleLease
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import ItemUnusable, ModelUnusable
from zettel.jobs.queue import FollowUps, Left, ending, finish, goes_alone, newest
from zettel.jobs.writing import Writing
from zettel.link.mentions import mention_ops
from zettel.llm.ports import Asker, Flaw, ModelAnnotator, Reading, Turn, Written
from zettel.model import EventRecord, Input, Job, Kind, Note, Scope
from zettel.ports import Annotator, GraphStore, Passage, ScopeState
from zettel.query import Filter

READ_AHEAD = 4
"""Times a batch that is claimed at once, so that batches can follow the borders of topics."""
LOOK_BACK = 400
"""Places in the order of arrival that are searched for the turns before one."""
SUMMED_UP = 4
"""Turns that a stretch must have for a summary of its own."""


class Annotating:
    """Has a model annotate the notes of a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        extractive: Annotator,
        vectors: Vectors,
        annotator: ModelAnnotator,
        follow_ups: FollowUps,
        asker: Asker,
    ) -> None:
        self._store = store
        self._commits = commits
        self._extractive = extractive
        self._vectors = vectors
        self._annotator = annotator
        self._follow_ups = follow_ups
        self._asker = asker

    @property
    def claim(self) -> int:
        """Jobs taken at once."""
        return READ_AHEAD * self._annotator.batch

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        """Annotate the notes of these jobs; what could not be done, and why."""
        by_note, needless = newest(jobs)
        found = await self._store.notes(scope, sorted(by_note))
        notes = {id: note for id, note in found.items() if not note.archived}
        needless = [job for job in needless if job.note in found] + [by_note[id] for id in found.keys() - notes.keys()]
        if needless:  # a later one of its note says the same, or the note was put away
            await self._commits.commit(scope, ending(needless))
        readings = await self._readings(scope, notes, by_note)
        done = await asyncio.gather(
            *(self._read(scope, reading, by_note) for reading in readings), return_exceptions=True
        )
        left: list[Left] = []
        for reading, outcome in zip(readings, done, strict=True):
            if isinstance(outcome, BaseException):
                left.append(Left([by_note[note.id] for note in reading.stretch], outcome))
            else:
                left += outcome
        return left

    # which turns are read together ----------------------------------------------------------------------------

    async def _readings(self, scope: Scope, notes: Mapping[str, Note], jobs: Mapping[str, Job]) -> list[_Reading]:
        """Stretches of one session and one topic; a note that a former answer left out is read by itself."""
        ordered = sorted(notes.values(), key=lambda note: note.seq)
        sessions: dict[str | None, list[Note]] = {}
        stretches: list[list[Note]] = []
        for note in ordered:
            if goes_alone(jobs[note.id]):
                stretches.append([note])
            else:
                sessions.setdefault(note.session, []).append(note)
        for of_session in sessions.values():
            for start, end in await self._cuts(of_session):
                if stretches and start == 0 and self._fits(stretches[-1], end, jobs):
                    stretches[-1] += of_session[:end]  # short sessions share a question: it costs the same
                else:
                    stretches.append(of_session[start:end])
        before = [await self._before(scope, stretch[0]) for stretch in stretches]
        shown = {note.id: note for group in (*stretches, *before) for note in group}
        events = await self._store.events(scope, sorted({note.event_ids[0] for note in shown.values()}))
        return [_Reading(stretch, earlier, events) for stretch, earlier in zip(stretches, before, strict=True)]

    async def _cuts(self, notes: Sequence[Note]) -> list[tuple[int, int]]:
        most = self._annotator.batch
        if len(notes) > most and not self._vectors.embedder.remote:
            rows = await self._vectors.embedder.embed([vector_text(note) for note in notes])
            return segments(rows, most=most)
        return [(start, min(start + most, len(notes))) for start in range(0, len(notes), most)]

    def _fits(self, stretch: Sequence[Note], more: int, jobs: Mapping[str, Job]) -> bool:
        return len(stretch) + more <= self._annotator.batch and not goes_alone(jobs[stretch[-1].id])

    async def _before(self, scope: Scope, first: Note) -> list[Note]:
        """The turns of its session that arrived just before a note."""
        if first.session is None or not self._annotator.before:
            return []
        wanted = Filter(session=first.session, kinds=(Kind.EPISODIC.value,))
        page = await self._store.page(scope, wanted, max(0, first.seq - LOOK_BACK), LOOK_BACK)
        return [note for note in page if note.seq < first.seq][-self._annotator.before :]

    # what is written ------------------------------------------------------------------------------------------

    async def _read(self, scope: Scope, reading: _Reading, jobs: Mapping[str, Job]) -> list[Left]:
        wrote = await self._annotator.annotate(reading.asked, self._asker(scope, reading.shown.values()))
        said_of = list(zip(reading.stretch, wrote.turns, strict=True))
        flaws = {note.id: said.why for note, said in said_of if isinstance(said, Flaw)}
        useless = len(flaws) == len(reading.stretch)

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            now = await self._store.notes(scope, list(reading.shown))
            if any(_wording(now.get(id)) != _wording(note) for id, note in reading.shown.items()):
                raise StaleLease("a note changed while the model read it")
            writing = Writing(self._store, self._extractive, scope, clock, reading.inputs)
            histories = await self._store.histories(scope, [note.id for note in reading.stretch])
            for note, said in said_of:
                if isinstance(said, Written):
                    await writing.write(note, histories[note.id], said, wrote)
            if wrote.summary and reading.has_one_topic and not useless:
                await writing.sum_up(reading.stretch, wrote)
            ops: list[Op] = [EraseAnswers(tuple(flaws))] if useless else []  # else it would be given again
            ops += writing.ops
            again = [note.id for note in writing.notes if note.id in reading.shown]
            ops += await mention_ops(self._store, scope, writing.notes, again=again, recorded_at=clock.recorded_at)
            ops += await self._vectors.embed_now(writing.notes)
            ops += [job for note in writing.notes for job in self._follow_ups.of_index(scope, note, clock.now)]
            return ops + finish(jobs[note.id] for note in reading.stretch if note.id not in flaws)

        await self._commits.commit(scope, plan)
        if useless:
            told = ModelUnusable(f"no note of the answer is valid: {min(flaws.values())}")
            return [Left([jobs[id] for id in flaws], told)]
        return [Left([jobs[id]], ItemUnusable(f"not valid in the answer: {why}")) for id, why in flaws.items()]


class _Reading:
    """A stretch of notes, those just before it, and how both are put to the annotator."""

    def __init__(self, stretch: Sequence[Note], before: Sequence[Note], events: Mapping[str, EventRecord]) -> None:
        self.stretch = stretch
        self.shown = {note.id: note for note in (*before, *stretch)}
        sessions = {note.session for note in stretch}
        self.has_one_topic = len(stretch) >= SUMMED_UP and len(sessions) == 1 and None not in sessions
        self.inputs = tuple(Input(note.id, note.version) for note in self.shown.values())
        self.asked = Reading(
            tuple(_turn(note, events) for note in stretch), tuple(_turn(note, events) for note in before)
        )


def _turn(note: Note, events: Mapping[str, EventRecord]) -> Turn:
    event = events.get(note.event_ids[0])
    return Turn(note.id, event.id if event else None, Passage(note.content, note.title, note.role, note.occurred_at))


def _wording(note: Note | None) -> tuple[Any, ...] | None:
    """What of a note a model is shown."""
    return None if note is None or note.archived else (note.content, note.title, note.role, note.occurred_at)
