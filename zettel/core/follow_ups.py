"""Jobs that follow a write, and the retry times of failed jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from zettel.core.commit import Clock, Plan
from zettel.core.entity_notes import decided_names
from zettel.core.identity import new_id
from zettel.errors import (
    BudgetSpent,
    EmbedderMismatch,
    EmbedderUnavailable,
    InvalidModelItem,
    InvalidModelOutput,
    ModelUnavailable,
    RunnerUnavailable,
    StoreBusy,
    StoreFull,
    StoreUnreachable,
)
from zettel.model import Job, JobKind, Kind, Note, Scope, from_micros, to_micros
from zettel.ports import ScopeState
from zettel.ports.operations import EraseAnswers, FinishJob, Op, PutJob
from zettel.text.filler import is_filler

PASSING = (
    EmbedderMismatch, EmbedderUnavailable, ModelUnavailable, InvalidModelOutput, RunnerUnavailable, StoreBusy,
    StoreFull, StoreUnreachable,
)  # fmt: skip
"""Errors that a retry may avoid; any other error fails the job at once."""
MAX_ATTEMPTS = 6
"""Attempts in all: with doubling pauses from 2 s they span about a minute."""
FIRST_PAUSE = timedelta(seconds=2)
SHARED_ATTEMPTS = 3
"""Attempts in a request with other notes; later ones have a request per note, because the others may be the cause."""
SHARED_ATTEMPTS_UNAVAILABLE = MAX_ATTEMPTS - 1
"""Shared attempts while the model is unavailable: only for the last one may the request be too large."""


SWEEP_EVERY = timedelta(minutes=1)
"""Expired notes are swept at most this much later, together: a purge after each single note would take longer."""


def new_job(scope: Scope, kind: JobKind, run_at: datetime, note: Note | None = None, version: int = 0) -> PutJob:
    """Return a job about the current version of a note, or about the scope at ``version``."""
    return PutJob(
        Job(
            id=new_id("j"),
            scope=scope,
            kind=kind,
            note=note.id if note else None,
            version=note.version if note else version,
            priority=kind.priority,
            run_at=run_at,
        )
    )


def expiry_jobs(scope: Scope, notes: Iterable[Note]) -> Iterator[PutJob]:
    """Yield the jobs that sweep a scope when these notes expire, one for all notes of the same minute."""
    slots = {slot_after(note.expires_at, SWEEP_EVERY) for note in notes if note.expires_at is not None}
    for run_at in sorted(slots):
        yield sweep_job(scope, run_at)


def sweep_job(scope: Scope, run_at: datetime) -> PutJob:
    """Return a job that sweeps a scope at this time; for the same time there is one."""
    return new_job(scope, JobKind.EXPIRE, run_at, version=to_micros(run_at))


def purge_job(scope: Scope, clock: Clock) -> PutJob:
    """Return a job that removes what this batch deletes from the store's files."""
    return new_job(scope, JobKind.PURGE, clock.now, version=clock.next())


def slot_after(moment: datetime, length: timedelta) -> datetime:
    """Return the first multiple of ``length`` (since 1970, UTC) that is not before a moment.

    Example: 09:00:12 and one minute give 09:01:00.
    """
    step = length // timedelta(microseconds=1)
    micros = -(-to_micros(moment) // step) * step
    return from_micros(min(micros, to_micros(datetime.max.replace(tzinfo=timezone.utc))))


def finish(jobs: Iterable[Job]) -> list[Op]:
    """Return the operations that finish jobs. Jobs of deleted notes are deleted too, and must not be passed."""
    return [FinishJob(job.id, job.token or "") for job in jobs]


def newest_jobs(jobs: Iterable[Job]) -> tuple[dict[str, Job], list[Job]]:
    """Return by note the job for its newest version, and the superseded jobs for older versions."""
    by_note: dict[str, Job] = {}
    superseded: list[Job] = []
    for job in sorted(jobs, key=lambda job: job.version):
        if job.note is not None:
            superseded += [by_note[job.note]] if job.note in by_note else []
            by_note[job.note] = job
    return by_note, superseded


def finish_plan(jobs: Sequence[Job]) -> Plan:
    """Return the plan that only finishes jobs."""

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        return finish(jobs)

    return plan


def erase_answers_plan(notes: Iterable[str]) -> Plan:
    """Return the plan that erases cached answers about notes, so that a retry does not reuse an invalid answer."""
    shown = tuple(notes)

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        return [EraseAnswers(shown)]

    return plan


def needs_own_request(job: Job) -> bool:
    """Return whether this job's note needs a request of its own.

    It does if the last answer was valid only for other notes, or after several shared attempts.
    """
    error = job.error or ""
    if error.startswith(InvalidModelItem.__name__):
        return True
    unavailable = error.startswith(ModelUnavailable.__name__)
    return job.attempts > (SHARED_ATTEMPTS_UNAVAILABLE if unavailable else SHARED_ATTEMPTS)


class UnfinishedJobs(NamedTuple):
    """Jobs that were not done, and the error that prevented them."""

    jobs: list[Job]
    error: BaseException


@dataclass(frozen=True, slots=True)
class FollowUps:
    """The jobs that follow a written note. ``annotates``: a model annotates the note.

    ``embeds``, see ``Vectors.defers``: a job computes the vector, and near links follow; otherwise a link job follows
    at once.
    """

    annotates: bool

    def of(self, scope: Scope, note: Note, run_at: datetime, embeds: bool) -> list[PutJob]:
        """Return the jobs of a note with new wording. A model annotates no filler, derived notes or decisions."""
        jobs = self.of_index(scope, note, run_at, embeds)
        is_statement = note.kind is Kind.EPISODIC and decided_names(note) is None
        if self.annotates and is_statement and not is_filler(note.content, note.role):
            jobs.append(new_job(scope, JobKind.ANNOTATE, run_at, note))
        return jobs

    def of_index(self, scope: Scope, note: Note, run_at: datetime, embeds: bool) -> list[PutJob]:
        """Return the jobs of a note with a new index only. Insights and decisions about names get no near links."""
        if (note.kind is Kind.INSIGHT or decided_names(note)) and not embeds:
            return []
        return [new_job(scope, JobKind.EMBED if embeds else JobKind.LINK, run_at, note)]


def next_attempt(error: BaseException, attempts: int, now: datetime) -> datetime | None:
    """Return the next run of a job that failed ``attempts`` times; None: it is not retried."""
    if isinstance(error, BudgetSpent):
        return error.until
    if not isinstance(error, PASSING) or attempts >= MAX_ATTEMPTS:
        return None
    pause = FIRST_PAUSE * float(2 ** (attempts - 1))
    retry_after = error.retry_after if isinstance(error, ModelUnavailable) else None
    return now + max(pause, timedelta(seconds=retry_after or 0))
