"""What the exhaustive store writes down: scopes, jobs and vector sets, in dictionaries."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timezone
from typing import Any, TypeVar

import numpy as np

from zettel import ports
from zettel.batch import (
    Batch,
    Conflict,
    DropMentions,
    EndRestore,
    EraseAnswers,
    EraseEvents,
    EraseNotes,
    EraseRevisions,
    EraseSearches,
    FinishJob,
    NoteIndex,
    Op,
    PutAnswer,
    PutEvent,
    PutFeedback,
    PutJob,
    PutMention,
    PutNote,
    PutNoteUse,
    PutRevision,
    PutTombstones,
    PutUse,
    PutVector,
    Restore,
    RestoreLinks,
    RestoreNote,
    StaleLease,
)
from zettel.evolve.feedback import LOGGED
from zettel.fold import fold
from zettel.model import (
    SIDE_BY_SIDE,
    TIME_MIN,
    EventRecord,
    Job,
    JobKind,
    JobState,
    Link,
    LoggedSearch,
    ModelUse,
    Note,
    NoteUse,
    Proved,
    Revision,
    Scope,
    in_utc,
    to_micros,
)

V = TypeVar("V")


@dataclass
class Kept:
    """All of one scope. A batch works on a copy, which takes the original's place when all of it went well."""

    state: ports.ScopeState
    events: dict[str, EventRecord] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)  # by event
    tombstones: dict[str, None] = field(default_factory=dict)
    bases: dict[str, Note] = field(default_factory=dict)
    revisions: dict[str, tuple[Revision, ...]] = field(default_factory=dict)
    mentions: dict[tuple[str, str], Link] = field(default_factory=dict)
    vectors: dict[tuple[int, str], Any] = field(default_factory=dict)  # by space and note
    indexes: dict[tuple[str, int], NoteIndex] = field(default_factory=dict)  # by note and version
    answers: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)  # text and notes, by key
    use: dict[tuple[date, str], ModelUse] = field(default_factory=dict)  # by day and model
    searches: dict[str, LoggedSearch] = field(default_factory=dict)  # by id, oldest first
    used: dict[str, NoteUse] = field(default_factory=dict)  # by note
    seen: dict[type, Any] = field(default_factory=dict)  # the view of now, once it was asked for

    def copied(self) -> Kept:
        tables: dict[str, Any] = {f.name: dict(getattr(self, f.name)) for f in fields(self)[1:-1]}
        return replace(self, **tables, seen={})

    def view(self, of: type[V]) -> V:
        if of not in self.seen:
            self.seen[of] = of(self)  # type: ignore[call-arg]
        made: V = self.seen[of]
        return made


class Books(ABC):
    """Writes, jobs and vector sets."""

    def __init__(self) -> None:
        self._kept: dict[Scope, Kept] = {}
        self._spaces: dict[int, ports.Space] = {}
        self._jobs: dict[str, Job] = {}
        self._leased: dict[str, float] = {}  # until when, by job
        self._restored: dict[tuple[Scope, str], Kept] = {}  # what is not whole yet, by scope and token

    def of(self, scope: Scope) -> Kept:
        """What is kept of a scope: nothing but a secret, if it was never written to."""
        if scope not in self._kept:
            self._kept[scope] = Kept(ports.ScopeState(0, secrets.token_bytes(32), TIME_MIN, TIME_MIN))
        return self._kept[scope]

    async def state(self, scope: Scope) -> ports.ScopeState:
        return self.of(scope).state

    async def scopes(self) -> list[Scope]:
        return [scope for scope, kept in self._kept.items() if kept.state.seq]

    async def drop_scope(self, scope: Scope) -> int:
        await self.abandon_restore(scope)
        self._jobs = {id: job for id, job in self._jobs.items() if job.scope != scope}
        kept = self._kept.pop(scope, None)
        return len(kept.bases) if kept else 0

    # -------------------------------------------------------------------------------------------------------- writes

    async def apply(self, batch: Batch) -> None:
        kept, jobs = self._place(batch.scope, batch.restore).copied(), dict(self._jobs)
        if kept.state.seq != batch.expects:
            raise Conflict
        for op in batch.ops:
            self._do(op, kept, jobs)
        times = [base.recorded_at for base in kept.bases.values()]
        times += [revision.recorded_at for revisions in kept.revisions.values() for revision in revisions]
        recorded_at = max([kept.state.recorded_at, *map(to_micros, times)])
        latest = max([TIME_MIN, *(to_micros(e.occurred_at) for e in kept.events.values() if e.occurred_at)])
        kept.state = ports.ScopeState(batch.seq, kept.state.secret, recorded_at, latest)
        ends = [op for op in batch.ops if isinstance(op, EndRestore)]
        if batch.restore and not ends:
            self._restored[batch.scope, batch.restore.token] = kept
            return
        for end in ends:
            if batch.restore is None or self.of(batch.scope).state.seq:
                raise Conflict
            kept.state = kept.state._replace(recorded_at=max(recorded_at, end.recorded_at))
            self._restored.pop((batch.scope, batch.restore.token), None)
        self._kept[batch.scope], self._jobs = kept, jobs

    def _place(self, scope: Scope, restore: Restore | None) -> Kept:
        if restore is None:
            return self.of(scope)
        empty = Kept(ports.ScopeState(0, restore.secret, TIME_MIN, TIME_MIN))
        return self._restored.get((scope, restore.token), empty)

    async def abandon_restore(self, scope: Scope) -> None:
        self._restored = {key: kept for key, kept in self._restored.items() if key[0] != scope}

    def _do(self, op: Op, kept: Kept, jobs: dict[str, Job]) -> None:
        match op:
            case PutEvent(event, identity):
                kept.events[event.event_id], kept.identities[event.event_id] = event, identity
            case PutNote(note, index):
                kept.bases[note.id], kept.revisions[note.id], kept.indexes[note.id, note.version] = note, (), index
            case PutRevision(revision):
                kept.revisions[revision.note] += (revision,)
            case PutVector(note_id, space, vector):
                kept.vectors[space, note_id] = np.asarray(vector, np.float32)
            case PutMention(link):
                kept.mentions[link.source, link.target] = link
            case DropMentions(ids):
                forgotten = set(ids)
                kept.mentions = {ends: x for ends, x in kept.mentions.items() if not {*ends} & forgotten}
            case EraseNotes(ids):
                gone = set(ids)
                kept.bases = {id: x for id, x in kept.bases.items() if id not in gone}
                kept.revisions = {id: x for id, x in kept.revisions.items() if id not in gone}
                kept.vectors = {key: x for key, x in kept.vectors.items() if key[1] not in gone}
                kept.indexes = {key: x for key, x in kept.indexes.items() if key[0] not in gone}
                kept.mentions = {ends: x for ends, x in kept.mentions.items() if not {*ends} & gone}
                kept.searches = {id: x for id, x in kept.searches.items() if not {h.note for h in x.hits} & gone}
                kept.used = {id: x for id, x in kept.used.items() if id not in gone}
                for job in [job for job in jobs.values() if job.note in gone]:
                    del jobs[job.id]
            case EraseEvents(ids):
                for id in ids:
                    kept.tombstones[kept.identities.pop(id)] = None
                    del kept.events[id]
            case EraseRevisions(note_id, versions):
                kept.revisions[note_id] = tuple(r for r in kept.revisions[note_id] if r.version not in versions)
                kept.indexes = {key: x for key, x in kept.indexes.items() if key[0] != note_id}
            case PutJob(job):
                if same_work(job) not in map(same_work, jobs.values()):
                    jobs[job.id] = job
            case RestoreNote(base, revisions, note, index):
                kept.bases[base.id], kept.revisions[base.id] = base, revisions
                kept.indexes[note.id, note.version] = index
            case PutTombstones(identities):
                kept.tombstones.update(dict.fromkeys(identities))
            case RestoreLinks() | EndRestore():
                pass  # links are the fold's here, whenever they are asked for
            case PutAnswer(key, text, about):
                if kept.bases.keys() >= {*about}:
                    kept.answers[key] = text, frozenset(about)
            case EraseAnswers(ids):
                kept.answers = {key: x for key, x in kept.answers.items() if x[1].isdisjoint(ids)}
            case PutUse(use):
                kept.use[use.day, use.model] = added(use, kept.use.get((use.day, use.model)))
            case PutFeedback(search) if search.id in kept.searches:
                kept.searches[search.id] = search
            case PutNoteUse(note_id, note_use):
                kept.used.pop(note_id, None)
                if note_use.times:
                    kept.used[note_id] = note_use
            case EraseSearches(ids):
                kept.searches = {id: x for id, x in kept.searches.items() if id not in ids}
            case FinishJob(job_id, token):
                if job_id not in jobs or jobs[job_id].token != token:
                    raise StaleLease
                del jobs[job_id]

    # ------------------------------------------------------------------------------------------- reads of what is kept

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        known = self.of(scope).identities
        asked = {known[id] for id in ids if id in known}
        return tuple(id for id, identity in known.items() if identity in asked)

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        found = (
            event.event_id
            for event in self.of(scope).events.values()
            if (source is None or (event.source is not None and event.source.file == source))
            and (session is None or event.session == session)
        )
        return tuple(found)[:limit]

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        kept, asked = self.of(scope), set(events)
        rests = {id: {*base.event_ids} for id, base in kept.bases.items()}
        for id, revisions in kept.revisions.items():
            for revision in revisions:
                change: Any = revision.change
                rests[id].update(change.get("event_ids", ()))
        return tuple(id for id, on in rests.items() if on & asked)

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        asked = set(notes)

        def cited(revision: Revision) -> set[str]:
            targets = (link.target for link in revision.links)
            return {*(read.note for read in revision.inputs), *targets, revision.cause.note or ""}

        all_ = (revision for revisions in self.of(scope).revisions.values() for revision in revisions)
        return tuple(revision for revision in all_ if cited(revision) & asked)

    async def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        kept = self.of(scope)
        for id, event in kept.events.items():
            now = await self.notes(scope, [base.id for base in kept.bases.values()])
            yield event, tuple(note for note in now.values() if id in note.event_ids)

    async def whole(self, scope: Scope) -> AsyncIterator[list[Any]]:
        if not (kept := self.of(scope)).state.seq:
            return
        yield [kept.state]
        yield [PutEvent(event, kept.identities[id]) for id, event in kept.events.items()]
        bases = sorted(kept.bases.values(), key=lambda base: base.seq)
        for base in bases:
            vectors = sorted((space, row) for (space, note), row in kept.vectors.items() if note == base.id)
            yield [ports.KeptNote(base, kept.revisions[base.id], tuple(vectors))]
        for base in bases:
            decided = [x for x in fold(base, kept.revisions[base.id])[1] if {x.source, x.target} <= kept.bases.keys()]
            if decided:
                decided.sort(key=lambda link: (link.source, link.type.value, link.target))
                yield [RestoreLinks(base.id, tuple(decided))]
        yield [PutMention(link) for base in bases for ends, link in sorted(kept.mentions.items()) if ends[0] == base.id]
        yield [PutTombstones(tuple(sorted(kept.tombstones)))]
        yield [PutNoteUse(base.id, kept.used[base.id]) for base in bases if base.id in kept.used]
        rest = {"state": JobState.QUEUED, "token": None}
        for job in await self.jobs(scope):
            yield [PutJob(job if job.state is not JobState.RUNNING else job.model_copy(update=rest))]

    async def answer(self, scope: Scope, key: str) -> str | None:
        return self.of(scope).answers.get(key, (None,))[0]

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        sums: dict[tuple[date, str], ModelUse] = {}
        for kept in list(self._kept.values()) if scope is None else [self.of(scope)]:
            for which, use in kept.use.items():
                sums[which] = added(use, sums.get(which))
        return [sums[which] for which in sorted(sums) if since is None or which[0] >= since]

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        for scope, some in searches.items():
            kept = self.of(scope)
            there = {x.id: x for x in some if {hit.note for hit in x.hits} <= kept.bases.keys() and kept.state.seq}
            newest = sorted((kept.searches | there).values(), key=lambda x: (x.asked_at, x.id))[-LOGGED:]
            kept.searches = {search.id: search for search in newest}

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        return self.of(scope).searches.get(id)

    async def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        for search in list(self.of(scope).searches.values()):
            yield search

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        return {search.id: search.question for search in self.of(scope).searches.values()}

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        kept = self.of(scope)
        asked = [kept.bases[id] for id in notes if id in kept.bases]
        return {base.id: kept.used.get(base.id, NoteUse(base.recorded_at)) for base in asked}

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        told = [search for search in self.of(scope).searches.values() if search.used is not None]
        found = {id: [one for one in told if id in {hit.note for hit in one.hits}] for id in notes}
        good = {id: [one for one in some if id in (one.used or ()) and one.outcome != "failure"]
                for id, some in found.items()}  # fmt: skip
        return {id: Proved(len(some), len(good[id])) for id, some in found.items() if some}

    @abstractmethod
    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        """The notes as they now are, by id."""

    async def counts(self, scope: Scope | None) -> dict[str, int]:
        kept = list(self._kept.values()) if scope is None else [self.of(scope)]
        jobs = await self.jobs(scope)
        return {
            "scopes": sum(bool(one.state.seq) for one in kept),
            "events": sum(len(one.events) for one in kept),
            "notes": sum(len(one.bases) for one in kept),
            "mentions": sum(len(one.mentions) for one in kept),
            "jobs": len(jobs),
        }

    async def check(self, repair: bool) -> list[str]:
        return []

    async def purge(self) -> bool:
        return True

    async def purge_due(self) -> bool:
        return False

    # --------------------------------------------------------------------------------------------------- vector sets

    def dim(self, space: int) -> int:
        return self._spaces[space].dim if space in self._spaces else 0

    async def spaces(self) -> list[ports.Space]:
        return list(self._spaces.values())

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> ports.Space:
        for space in self._spaces.values():
            if space[1:5] == (name, dim, fingerprint, recipe):
                return space
        number = len(self._spaces) + 1
        self._spaces[number] = ports.Space(number, name, dim, fingerprint, recipe, active=not self._spaces)
        return self._spaces[number]

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Any]:
        """The vectors of those of the notes that have one."""
        kept = self.of(scope)
        return {id: kept.vectors[space, id] for id in notes if (space, id) in kept.vectors}

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        lacking: list[tuple[Scope, Note]] = []
        for scope, kept in self._kept.items():
            now = await self.notes(scope, [id for id in kept.bases if (space, id) not in kept.vectors])
            lacking += [(scope, note) for note in now.values() if not note.archived]
        return lacking[:limit]

    async def activate(self, space: int) -> bool:
        if await self.without_vector(space, 1):
            return False
        self._spaces = {space: self._spaces[space]._replace(active=True)}
        for scope, kept in self._kept.items():
            self._kept[scope] = kept.copied()
            self._kept[scope].vectors = {key: x for key, x in kept.vectors.items() if key[0] == space}
        return True

    # ---------------------------------------------------------------------------------------------------------- jobs

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        now, moment = time.monotonic(), datetime.now(timezone.utc)

        def due(job: Job) -> bool:
            if job.scope in busy and job.kind not in SIDE_BY_SIDE:
                return False
            if job.state is JobState.RUNNING:
                return self._leased[job.id] < now
            return job.state is JobState.QUEUED and job.run_at <= moment

        waiting = [job for job in self._jobs.values() if job.kind in kinds and scope in (None, job.scope) and due(job)]
        waiting.sort(key=lambda job: (-job.priority, job.run_at))
        taken = [job for job in waiting if (job.scope, job.kind) == (waiting[0].scope, waiting[0].kind)][:limit]
        for job in taken:
            update = {"state": JobState.RUNNING, "token": secrets.token_hex(8), "attempts": job.attempts + 1}
            self._jobs[job.id] = job.model_copy(update=update)
            self._leased[job.id] = now + lease
        return [self._jobs[job.id] for job in taken]

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        for job in jobs:
            if job.id in self._jobs and self._jobs[job.id].token == job.token:
                self._leased[job.id] = time.monotonic() + lease

    async def fail(self, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True) -> None:
        for job in jobs:
            if job.id in self._jobs and self._jobs[job.id].token == job.token:
                state = JobState.QUEUED if retry_at else JobState.FAILED
                attempts = self._jobs[job.id].attempts - (not counts)
                update = {"state": state, "error": error, "token": None, "run_at": in_utc(retry_at or job.run_at)}
                self._jobs[job.id] = self._jobs[job.id].model_copy(update={**update, "attempts": attempts})

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]:
        return [job for job in self._jobs.values() if scope in (None, job.scope) and state in (None, job.state)]

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        asked = [job for job in await self.jobs(scope) if kinds is None or job.kind in kinds]
        queued = [job for job in asked if job.state is JobState.QUEUED and (due_by is None or job.run_at <= due_by)]
        return len(queued) + sum(job.state is JobState.RUNNING for job in asked)

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        failed = [one for one in await self.jobs(scope, JobState.FAILED) if job in (None, one.id)]
        again = {"state": JobState.QUEUED, "run_at": datetime.now(timezone.utc), "attempts": 0}
        self._jobs.update({job.id: job.model_copy(update=again) for job in failed})
        return len(failed)

    async def cancel(self, scope: Scope, job: str) -> bool:
        found = self._jobs.get(job)
        if found is None or found.scope != scope:
            return False
        if found.state is JobState.RUNNING and self._leased[job] > time.monotonic():
            return False
        del self._jobs[job]
        return True


def added(use: ModelUse, before: ModelUse | None) -> ModelUse:
    counted = set(ModelUse.model_fields) - {"day", "model"}
    sums = {name: getattr(use, name) + getattr(before, name) for name in counted} if before else {}
    return use.model_copy(update=sums)


def same_work(job: Job) -> tuple[Scope, JobKind, str | None, int]:
    return job.scope, job.kind, job.note, job.version
