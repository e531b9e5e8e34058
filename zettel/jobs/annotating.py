"""The job that has a model write notes: which turns are read together, and what is written of the answer.

The model is asked outside of any transaction. What it says is written only if every note that stood before it is still
there with the same wording; else the turns are read anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from zettel.annotate.drafts import annotate
from zettel.annotate.index import index_note, vector_text
from zettel.annotate.segments import segments
from zettel.batch import EraseAnswers, FinishJob, Op, PutNote, StaleLease
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import ItemUnusable, ModelUnusable
from zettel.fold import live_versions
from zettel.identity import new_id
from zettel.jobs.queue import FollowUps, Left
from zettel.link.mentions import mention_ops
from zettel.llm.desk import Desk, nobody
from zettel.llm.ports import Flaw, ModelAnnotator, Reading, Turn, Written, Wrote
from zettel.model import Cause, EventRecord, Input, Job, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.ports import Annotator, GraphStore, NoteHistory, Passage, ScopeState
from zettel.query import Filter
from zettel.revise import revised

READER = JobKind.ANNOTATE.value
READ_AHEAD = 4
"""Times a batch that is claimed at once, so that batches can follow the borders of topics."""
LOOK_BACK = 400
"""Places in the order of arrival that are searched for the turns before one."""
SUMMED_UP = 4
"""Turns that a stretch must have for a summary of its own."""
ALONE_AFTER = 2
"""Attempts after which a turn is read alone, whatever was wrong before."""


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
        desk: Desk | None,
    ) -> None:
        self._store = store
        self._commits = commits
        self._extractive = extractive
        self._vectors = vectors
        self._annotator = annotator
        self._follow_ups = follow_ups
        self._desk = desk

    @property
    def claim(self) -> int:
        """Jobs taken at once."""
        return READ_AHEAD * self._annotator.batch

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        """Annotate the notes of these jobs; what could not be done, and why."""
        by_note = {job.note: job for job in jobs if job.note}
        notes = await self._store.notes(scope, sorted(by_note))
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
            if _reads_alone(jobs[note.id]):
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
        return len(stretch) + more <= self._annotator.batch and not _reads_alone(jobs[stretch[-1].id])

    async def _before(self, scope: Scope, first: Note) -> list[Note]:
        """The turns of its session that arrived just before a note."""
        if first.session is None or not self._annotator.before:
            return []
        wanted = Filter(session=first.session, kinds=(Kind.EPISODIC.value,))
        page = await self._store.page(scope, wanted, max(0, first.seq - LOOK_BACK), LOOK_BACK)
        return [note for note in page if note.seq < first.seq][-self._annotator.before :]

    # what is written ------------------------------------------------------------------------------------------

    async def _read(self, scope: Scope, reading: _Reading, jobs: Mapping[str, Job]) -> list[Left]:
        ask = nobody if self._desk is None else self._desk.asker(scope, reading.shown.values())
        wrote = await self._annotator.annotate(reading.asked, ask)
        said_of = list(zip(reading.stretch, wrote.turns, strict=True))
        flaws = {note.id: said.why for note, said in said_of if isinstance(said, Flaw)}
        useless = len(flaws) == len(reading.stretch)

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            now = await self._store.notes(scope, list(reading.shown))
            if any(_wording(now.get(id)) != _wording(note) for id, note in reading.shown.items()):
                raise StaleLease("a note changed while the model read it")
            ops: list[Op] = [EraseAnswers(tuple(flaws))] if useless else []  # else it would be given again
            written: list[Note] = []
            histories = await self._store.histories(scope, [note.id for note in reading.stretch])
            for note, said in said_of:
                if isinstance(said, Written):
                    written += await self._write(scope, reading, note, histories[note.id], said, wrote, clock, ops)
            if wrote.summary and reading.has_one_topic and not useless:
                written.append(await self._sum_up(scope, reading, wrote, clock, ops))
            again = [note.id for note in written if note.id in reading.shown]
            ops += await mention_ops(self._store, scope, written, again=again, recorded_at=clock.recorded_at)
            ops += await self._vectors.embed_now(written)
            ops += [job for note in written for job in self._follow_ups.of_index(scope, note, clock.recorded_at)]
            finished = [jobs[note.id] for note in reading.stretch if note.id not in flaws]
            return ops + [FinishJob(job.id, job.token or "") for job in finished]

        await self._commits.commit(scope, plan)
        if useless:
            told = ModelUnusable(f"no note of the answer is valid: {min(flaws.values())}")
            return [Left([jobs[id] for id in flaws], told)]
        return [Left([jobs[id]], ItemUnusable(f"not valid in the answer: {why}")) for id, why in flaws.items()]

    async def _write(
        self,
        scope: Scope,
        reading: _Reading,
        note: Note,
        history: NoteHistory,
        said: Written,
        wrote: Wrote,
        clock: Clock,
        ops: list[Op],
    ) -> list[Note]:
        """A revision of the note, and its facts in place of those that it had."""
        cause = Cause(by=READER, note=note.id, model=wrote.model, prompt=wrote.prompt)
        change: dict[str, Any] = {"context": said.context, "keywords": said.keywords, "tags": _tags(note, said)}
        if said.importance is not None:
            change["importance"] = said.importance
        for name in _set_by_people(history):
            change.pop(name, None)
        put = revised(history, clock, cause, change, inputs=reading.inputs)
        ops.append(put)
        kept = await self._archive_facts(scope, note, said.facts, cause, clock, ops)
        facts = [fact for fact in dict.fromkeys(said.facts) if fact not in kept]
        kind = said.kind if said.kind in (Kind.SEMANTIC, Kind.PROCEDURAL) else Kind.SEMANTIC
        made = [await self._derive(scope, [note], fact, kind, cause, reading, clock, ops) for fact in facts]
        return [put.note, *made]

    async def _archive_facts(
        self, scope: Scope, note: Note, facts: Sequence[str], cause: Cause, clock: Clock, ops: list[Op]
    ) -> set[str]:
        """Put away what was derived from a former wording and is said no more; returns what is said still."""
        links = await self._store.links(scope, [note.id])
        derived = [link.source for link in links if link.type is LinkType.DERIVED_FROM and link.target == note.id]
        kept: set[str] = set()
        for history in (await self._store.histories(scope, derived)).values() if derived else ():
            if history.base.kind not in (Kind.SEMANTIC, Kind.PROCEDURAL):
                continue
            if history.base.content in facts:
                kept.add(history.base.content)
            else:
                ops.append(revised(history, clock, cause, {"archived": True}, inputs=(Input(note.id, note.version),)))
        return kept

    async def _sum_up(self, scope: Scope, reading: _Reading, wrote: Wrote, clock: Clock, ops: list[Op]) -> Note:
        cause = Cause(by=READER, model=wrote.model, prompt=wrote.prompt)
        return await self._derive(scope, reading.stretch, wrote.summary, Kind.INSIGHT, cause, reading, clock, ops)

    async def _derive(
        self,
        scope: Scope,
        origins: Sequence[Note],
        content: str,
        kind: Kind,
        cause: Cause,
        reading: _Reading,
        clock: Clock,
        ops: list[Op],
    ) -> Note:
        """A new note that rests on others. It stands in no session: what is said there was said by people."""
        last = origins[-1]
        (fields,) = await annotate(
            self._store, scope, self._extractive, [Passage(content, None, None, last.occurred_at)]
        )
        note = Note(
            id=new_id("n"),
            kind=kind,
            content=content,
            event_ids=tuple(dict.fromkeys(event for origin in origins for event in origin.event_ids)),
            occurred_at=last.occurred_at,
            valid_from=origins[0].valid_from,
            seq=clock.next(),
            recorded_at=clock.recorded_at,
            **fields._asdict(),
        )
        links = tuple(
            Link(source=note.id, target=origin.id, type=LinkType.DERIVED_FROM, recorded_at=clock.recorded_at)
            for origin in origins
        )
        put = revised(NoteHistory(note, ()), clock, cause, {}, links=links, inputs=reading.inputs)
        ops += [PutNote(note, index_note(note)), put]
        return put.note


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


def _reads_alone(job: Job) -> bool:
    left_out = (job.error or "").startswith(ItemUnusable.__name__)
    return left_out or job.attempts > ALONE_AFTER + 1


def _wording(note: Note | None) -> tuple[Any, ...] | None:
    """What of a note a model is shown."""
    return None if note is None or note.archived else (note.content, note.title, note.role, note.occurred_at)


def _tags(note: Note, said: Written) -> tuple[str, ...]:
    """What the text itself shows stays beside what the model calls it."""
    return tuple(dict.fromkeys((*note.tags, *said.tags)))


def _set_by_people(history: NoteHistory) -> set[str]:
    live = live_versions(history.revisions)
    return {name for r in history.revisions if r.version in live and r.cause.by == "user" for name in r.change}
