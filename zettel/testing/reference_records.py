"""Records of the reference store: scopes, jobs and vector sets in dictionaries."""

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
from zettel.core.feedback import LOGGED, count_search
from zettel.core.fold import fold
from zettel.model import (
    TIME_MAX,
    TIME_MIN,
    EventRecord,
    Job,
    JobKind,
    JobState,
    Link,
    LoggedSearch,
    ModelUse,
    Note,
    NoteIndex,
    NoteUse,
    Proved,
    Revision,
    Scope,
    in_utc,
    to_micros,
)
from zettel.ports import Written
from zettel.ports.operations import (
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
    Op,
    PutAnswer,
    PutEvent,
    PutFeedback,
    PutJob,
    PutMention,
    PutNote,
    PutNoteUse,
    PutRetention,
    PutRevision,
    PutTombstones,
    PutUse,
    PutVector,
    Restore,
    RestoreLinks,
    RestoreNote,
    StaleLease,
)

V = TypeVar("V")


@dataclass
class ScopeTables:
    """All data of one scope. A batch changes a copy, which replaces the original if every operation succeeds."""

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
    views: dict[type, Any] = field(default_factory=dict)  # cached by class

    def copy(self) -> ScopeTables:
        copies: dict[str, Any] = {f.name: dict(getattr(self, f.name)) for f in fields(self)[1:-1]}
        return replace(self, **copies, views={})

    def view(self, view_class: type[V]) -> V:
        if view_class not in self.views:
            self.views[view_class] = view_class(self)  # type: ignore[call-arg]
        view: V = self.views[view_class]
        return view


def new_tables(secret: bytes) -> ScopeTables:
    return ScopeTables(ports.ScopeState(0, secret, TIME_MIN, TIME_MIN, TIME_MAX))


class ReferenceRecords(ABC):
    """The part of the reference store that writes, and reads without search."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, ScopeTables] = {}
        self._spaces: dict[int, ports.VectorSet] = {}
        self._jobs: dict[str, Job] = {}
        self._lease_ends: dict[str, float] = {}  # end of the lease, by job
        self._restored: dict[tuple[Scope, str], ScopeTables] = {}  # unfinished restores, by scope and token

    def tables(self, scope: Scope) -> ScopeTables:
        """The data of a scope; a new scope has only a secret."""
        if scope not in self._scopes:
            self._scopes[scope] = new_tables(secrets.token_bytes(32))
        return self._scopes[scope]

    async def state(self, scope: Scope) -> ports.ScopeState:
        return self.tables(scope).state

    async def scopes(self) -> list[Scope]:
        return [scope for scope, tables in self._scopes.items() if tables.state.seq]

    async def drop_scope(self, scope: Scope) -> int:
        await self.abandon_restore(scope)
        self._jobs = {id: job for id, job in self._jobs.items() if job.scope != scope}
        tables = self._scopes.pop(scope, None)
        return len(tables.bases) if tables else 0

    async def apply(self, batch: Batch) -> None:
        tables, jobs = self._tables_for(batch.scope, batch.restore).copy(), dict(self._jobs)
        if tables.state.seq != batch.expects:
            raise Conflict
        for op in batch.ops:
            self._do(op, tables, jobs)
        times = [base.recorded_at for base in tables.bases.values()]
        times += [revision.recorded_at for revisions in tables.revisions.values() for revision in revisions]
        recorded_at = max([tables.state.recorded_at, *map(to_micros, times)])
        latest = max([TIME_MIN, *(to_micros(e.occurred_at) for e in tables.events.values() if e.occurred_at)])
        tables.state = tables.state._replace(seq=batch.seq, recorded_at=recorded_at, latest=latest)
        ends = [op for op in batch.ops if isinstance(op, EndRestore)]
        if batch.restore and not ends:
            self._restored[batch.scope, batch.restore.token] = tables
            return
        for end in ends:
            if batch.restore is None or self.tables(batch.scope).state.seq:
                raise Conflict
            tables.state = tables.state._replace(recorded_at=max(recorded_at, end.recorded_at))
            self._restored.pop((batch.scope, batch.restore.token), None)
        self._scopes[batch.scope], self._jobs = tables, jobs

    def _tables_for(self, scope: Scope, restore: Restore | None) -> ScopeTables:
        if restore is None:
            return self.tables(scope)
        return self._restored.get((scope, restore.token), new_tables(restore.secret))

    async def abandon_restore(self, scope: Scope) -> None:
        self._restored = {key: tables for key, tables in self._restored.items() if key[0] != scope}

    def _do(self, op: Op, tables: ScopeTables, jobs: dict[str, Job]) -> None:
        match op:
            case PutEvent(event, identity):
                tables.events[event.event_id], tables.identities[event.event_id] = event, identity
            case PutNote(note, index):
                tables.bases[note.id], tables.revisions[note.id] = note, ()
                tables.indexes[note.id, note.version] = index
            case PutRevision(revision):
                tables.revisions[revision.note] += (revision,)
            case PutVector(note_id, space, vector):
                tables.vectors[space, note_id] = np.asarray(vector, np.float32)
            case PutMention(link):
                tables.mentions[link.source, link.target] = link
            case DropMentions(ids):
                deleted = set(ids)
                tables.mentions = {ends: x for ends, x in tables.mentions.items() if not {*ends} & deleted}
            case EraseNotes(ids):
                deleted = set(ids)
                tables.bases = {id: x for id, x in tables.bases.items() if id not in deleted}
                tables.revisions = {id: x for id, x in tables.revisions.items() if id not in deleted}
                tables.vectors = {key: x for key, x in tables.vectors.items() if key[1] not in deleted}
                tables.indexes = {key: x for key, x in tables.indexes.items() if key[0] not in deleted}
                tables.mentions = {ends: x for ends, x in tables.mentions.items() if not {*ends} & deleted}
                tables.searches = {id: x for id, x in tables.searches.items() if not {h.note for h in x.hits} & deleted}
                tables.used = {id: x for id, x in tables.used.items() if id not in deleted}
                for job in [job for job in jobs.values() if job.note in deleted]:
                    del jobs[job.id]
            case EraseEvents(ids):
                for id in ids:
                    tables.tombstones[tables.identities.pop(id)] = None
                    del tables.events[id]
            case EraseRevisions(note_id, versions):
                tables.revisions[note_id] = tuple(r for r in tables.revisions[note_id] if r.version not in versions)
                tables.indexes = {key: x for key, x in tables.indexes.items() if key[0] != note_id}
            case PutJob(job):
                if job_key(job) not in map(job_key, jobs.values()):
                    jobs[job.id] = job
            case RestoreNote(base, revisions, note, index):
                tables.bases[base.id], tables.revisions[base.id] = base, revisions
                tables.indexes[note.id, note.version] = index
            case PutRetention(retention):
                tables.state = tables.state._replace(retention=retention)
            case PutTombstones(identities):
                tables.tombstones.update(dict.fromkeys(identities))
            case RestoreLinks() | EndRestore():
                pass  # views derive links from revisions
            case PutAnswer(key, text, about):
                if tables.bases.keys() >= {*about}:
                    tables.answers[key] = text, frozenset(about)
            case EraseAnswers(ids):
                tables.answers = {key: x for key, x in tables.answers.items() if x[1].isdisjoint(ids)}
            case PutUse(use):
                tables.use[use.day, use.model] = summed(use, tables.use.get((use.day, use.model)))
            case PutFeedback(search) if search.id in tables.searches:
                tables.searches[search.id] = search
            case PutNoteUse(note_id, note_use):
                tables.used.pop(note_id, None)
                if note_use.times:
                    tables.used[note_id] = note_use
            case EraseSearches(ids):
                tables.searches = {id: x for id, x in tables.searches.items() if id not in ids}
            case FinishJob(job_id, token):
                if job_id not in jobs or jobs[job_id].token != token:
                    raise StaleLease
                del jobs[job_id]

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        identities = self.tables(scope).identities
        wanted = {identities[id] for id in ids if id in identities}
        return tuple(id for id, identity in identities.items() if identity in wanted)

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        matches = (
            event.event_id
            for event in self.tables(scope).events.values()
            if (source is None or (event.source is not None and event.source.file == source))
            and (session is None or event.session == session)
        )
        return tuple(matches)[:limit]

    async def written_by(self, scope: Scope, principal: str) -> Written:
        tables = self.tables(scope)
        events = tuple(event.event_id for event in tables.events.values() if event.principal == principal)
        all_ = (revision for revisions in tables.revisions.values() for revision in revisions)
        changes = sorted((r.seq, r.note, r.version) for r in all_ if r.principal == principal)
        return Written(events, tuple((note, version) for _, note, version in changes))

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        tables, wanted = self.tables(scope), set(events)
        sources = {id: {*base.event_ids} for id, base in tables.bases.items()}
        for id, revisions in tables.revisions.items():
            for revision in revisions:
                change: Any = revision.change
                sources[id].update(change.get("event_ids", ()))
        return tuple(id for id, event_ids in sources.items() if event_ids & wanted)

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        wanted = set(notes)

        def cited(revision: Revision) -> set[str]:
            targets = (link.target for link in revision.links)
            return {*(input.note for input in revision.inputs), *targets, revision.cause.note or ""}

        all_ = (revision for revisions in self.tables(scope).revisions.values() for revision in revisions)
        return tuple(revision for revision in all_ if cited(revision) & wanted)

    async def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        tables = self.tables(scope)
        for id, event in tables.events.items():
            notes = await self.notes(scope, [base.id for base in tables.bases.values()])
            yield event, tuple(note for note in notes.values() if id in note.event_ids)

    async def whole(self, scope: Scope) -> AsyncIterator[list[Any]]:
        if not (tables := self.tables(scope)).state.seq:
            return
        yield [tables.state]
        yield [PutEvent(event, tables.identities[id]) for id, event in tables.events.items()]
        bases = sorted(tables.bases.values(), key=lambda base: base.seq)
        for base in bases:
            vectors = sorted((space, row) for (space, note), row in tables.vectors.items() if note == base.id)
            yield [ports.NoteRecord(base, tables.revisions[base.id], tuple(vectors))]
        for base in bases:
            links = [x for x in fold(base, tables.revisions[base.id])[1] if {x.source, x.target} <= tables.bases.keys()]
            if links:
                links.sort(key=lambda link: (link.source, link.type.value, link.target))
                yield [RestoreLinks(base.id, tuple(links))]
        mentions = sorted(tables.mentions.items())
        yield [PutMention(link) for base in bases for (source, _), link in mentions if source == base.id]
        yield [PutTombstones(tuple(sorted(tables.tombstones)))]
        yield [PutNoteUse(base.id, tables.used[base.id]) for base in bases if base.id in tables.used]
        queued = {"state": JobState.QUEUED, "token": None}
        for job in await self.jobs(scope):
            yield [PutJob(job if job.state is not JobState.RUNNING else job.model_copy(update=queued))]

    async def answer(self, scope: Scope, key: str) -> str | None:
        return self.tables(scope).answers.get(key, (None,))[0]

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        sums: dict[tuple[date, str], ModelUse] = {}
        for tables in list(self._scopes.values()) if scope is None else [self.tables(scope)]:
            for key, use in tables.use.items():
                sums[key] = summed(use, sums.get(key))
        return [sums[key] for key in sorted(sums) if since is None or key[0] >= since]

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        for scope, new in searches.items():
            tables = self.tables(scope)
            valid = {x.id: x for x in new if {hit.note for hit in x.hits} <= tables.bases.keys() and tables.state.seq}
            newest = sorted((tables.searches | valid).values(), key=lambda x: (x.asked_at, x.id))[-LOGGED:]
            tables.searches = {search.id: search for search in newest}

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        return self.tables(scope).searches.get(id)

    async def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        for search in list(self.tables(scope).searches.values()):
            yield search

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        return {search.id: search.question for search in self.tables(scope).searches.values()}

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        tables = self.tables(scope)
        bases = [tables.bases[id] for id in notes if id in tables.bases]
        return {base.id: tables.used.get(base.id, NoteUse(base.recorded_at)) for base in bases}

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        proved: dict[str, Proved] = {}
        for search in self.tables(scope).searches.values():
            count_search(proved, search)
        return {id: proved[id] for id in notes if id in proved and id in self.tables(scope).bases}

    @abstractmethod
    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        """The current notes, by id."""

    async def counts(self, scope: Scope | None) -> dict[str, int]:
        scopes = list(self._scopes.values()) if scope is None else [self.tables(scope)]
        jobs = await self.jobs(scope)
        return {
            "scopes": sum(bool(tables.state.seq) for tables in scopes),
            "events": sum(len(tables.events) for tables in scopes),
            "notes": sum(len(tables.bases) for tables in scopes),
            "mentions": sum(len(tables.mentions) for tables in scopes),
            "jobs": len(jobs),
        }

    async def check(self, repair: bool) -> list[str]:
        return []

    async def purge(self) -> bool:
        return True

    async def purge_due(self) -> bool:
        return False

    def dim(self, space: int) -> int:
        return self._spaces[space].dim if space in self._spaces else 0

    async def spaces(self) -> list[ports.VectorSet]:
        return list(self._spaces.values())

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> ports.VectorSet:
        for space in self._spaces.values():
            if space[1:5] == (name, dim, fingerprint, recipe):
                return space
        number = len(self._spaces) + 1
        self._spaces[number] = ports.VectorSet(number, name, dim, fingerprint, recipe, active=not self._spaces)
        return self._spaces[number]

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Any]:
        vectors = self.tables(scope).vectors
        return {id: vectors[space, id] for id in notes if (space, id) in vectors}

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        missing = []
        for scope, tables in self._scopes.items():
            notes = await self.notes(scope, [id for id in tables.bases if (space, id) not in tables.vectors])
            missing += [(scope, note) for note in notes.values() if not note.archived]
        return missing[:limit]

    async def activate(self, space: int) -> bool:
        if await self.without_vector(space, 1):
            return False
        self._spaces = {space: self._spaces[space]._replace(active=True)}
        for scope, tables in self._scopes.items():
            self._scopes[scope] = tables.copy()
            self._scopes[scope].vectors = {key: x for key, x in tables.vectors.items() if key[0] == space}
        return True

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        now, moment = time.monotonic(), datetime.now(timezone.utc)

        def due(job: Job) -> bool:
            if job.scope in busy and not job.kind.order_free:
                return False
            if job.state is JobState.RUNNING:
                return self._lease_ends[job.id] < now
            return job.state is JobState.QUEUED and job.run_at <= moment

        waiting = [job for job in self._jobs.values() if job.kind in kinds and scope in (None, job.scope) and due(job)]
        waiting.sort(key=lambda job: (-job.priority, job.run_at))
        claimed = [job for job in waiting if (job.scope, job.kind) == (waiting[0].scope, waiting[0].kind)][:limit]
        for job in claimed:
            update = {"state": JobState.RUNNING, "token": secrets.token_hex(8), "attempts": job.attempts + 1}
            self._jobs[job.id] = job.model_copy(update=update)
            self._lease_ends[job.id] = now + lease
        return [self._jobs[job.id] for job in claimed]

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        for job in self._leased(jobs):
            self._lease_ends[job.id] = time.monotonic() + lease

    async def fail(self, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True) -> None:
        state = JobState.QUEUED if retry_at else JobState.FAILED
        for job in self._leased(jobs):
            update = {"state": state, "error": error, "token": None, "run_at": in_utc(retry_at or job.run_at)}
            self._jobs[job.id] = job.model_copy(update={**update, "attempts": job.attempts - (not counts)})

    def _leased(self, jobs: Sequence[Job]) -> list[Job]:
        """The current state of the jobs whose leases are still valid."""
        return [job for x in jobs if (job := self._jobs.get(x.id)) and job.token == x.token]

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]:
        return [job for job in self._jobs.values() if scope in (None, job.scope) and state in (None, job.state)]

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        jobs = [job for job in await self.jobs(scope) if kinds is None or job.kind in kinds]
        queued = [job for job in jobs if job.state is JobState.QUEUED and (due_by is None or job.run_at <= due_by)]
        return len(queued) + sum(job.state is JobState.RUNNING for job in jobs)

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        failed = [x for x in await self.jobs(scope, JobState.FAILED) if job in (None, x.id)]
        queued = {"state": JobState.QUEUED, "run_at": datetime.now(timezone.utc), "attempts": 0}
        self._jobs.update({job.id: job.model_copy(update=queued) for job in failed})
        return len(failed)

    async def cancel(self, scope: Scope, job: str) -> bool:
        record = self._jobs.get(job)
        is_running = record and record.state is JobState.RUNNING and self._lease_ends[job] > time.monotonic()
        if record is None or record.scope != scope or is_running:
            return False
        del self._jobs[job]
        return True


def summed(use: ModelUse, before: ModelUse | None) -> ModelUse:
    names = set(ModelUse.model_fields) - {"day", "model"}
    sums = {name: getattr(use, name) + getattr(before, name) for name in names} if before else {}
    return use.model_copy(update=sums)


def job_key(job: Job) -> tuple[Scope, JobKind, str | None, int]:
    return job.scope, job.kind, job.note, job.version
