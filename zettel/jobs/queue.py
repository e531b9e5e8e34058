"""Which jobs follow a write, and when one that failed is tried again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from zettel.annotate.filler import is_filler
from zettel.batch import EraseAnswers, FinishJob, Op, PutJob
from zettel.commit import Clock, Plan
from zettel.errors import (
    BudgetSpent,
    EmbedderMismatch,
    EmbedderUnavailable,
    ItemUnusable,
    ModelUnavailable,
    ModelUnusable,
    RunnerUnavailable,
    StoreBusy,
    StoreFull,
    StoreUnreachable,
)
from zettel.identity import new_id
from zettel.model import Job, JobKind, Kind, Note, Scope
from zettel.ports import ScopeState

PASSING = (
    EmbedderMismatch, EmbedderUnavailable, ModelUnavailable, ModelUnusable, RunnerUnavailable, StoreBusy, StoreFull,
    StoreUnreachable,
)  # fmt: skip
"""Errors that may be gone by the next attempt; any other leaves the job failed at once."""
MAX_ATTEMPTS = 6
"""Attempts in all: with doubling pauses from 2 s they span about a minute."""
FIRST_PAUSE = timedelta(seconds=2)
TOGETHER = 3
"""Attempts at which a model is asked in company; then about each note alone, for the company may be what is wrong."""
TOGETHER_AWAY = MAX_ATTEMPTS - 1
"""The same where a model did not answer: it was away for all, but for the last time they may be too much for it."""

PRIORITIES: Mapping[JobKind, int] = {
    JobKind.PURGE: -1,
    JobKind.MERGE: -2,
    JobKind.EVOLVE: -2,
    JobKind.REFLECT: -2,
    JobKind.DECAY: -2,
    JobKind.REEMBED: -3,
}
"""What comes later than the jobs of single notes, which have 0, for somebody may be waiting for these: first the end of
a delete, then what concerns a whole scope, then a whole store."""


def new_job(scope: Scope, kind: JobKind, run_at: datetime, note: Note | None = None, version: int = 0) -> PutJob:
    """A job about a note as it now stands, or about the scope at ``version``."""
    return PutJob(
        Job(
            id=new_id("j"),
            scope=scope,
            kind=kind,
            note=note.id if note else None,
            version=note.version if note else version,
            priority=PRIORITIES.get(kind, 0),
            run_at=run_at,
        )
    )


def finish(jobs: Iterable[Job]) -> list[Op]:
    """The ends of jobs. Those of a deleted note went with it, and must not be among them."""
    return [FinishJob(job.id, job.token or "") for job in jobs]


def newest(jobs: Iterable[Job]) -> tuple[dict[str, Job], list[Job]]:
    """Of each note the job for its newest version, and the jobs for older ones, which that makes needless."""
    found: dict[str, Job] = {}
    needless: list[Job] = []
    for job in sorted(jobs, key=lambda job: job.version):
        if job.note is not None:
            needless += [found[job.note]] if job.note in found else []
            found[job.note] = job
    return found, needless


def ending(jobs: Sequence[Job]) -> Plan:
    """The plan that ends jobs, and does nothing else."""

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        return finish(jobs)

    return plan


def forgetting(notes: Iterable[str]) -> Plan:
    """The plan that lets go of a model's answers about notes: one that cannot be used would be given again."""
    shown = tuple(notes)

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        return [EraseAnswers(shown)]

    return plan


def goes_alone(job: Job) -> bool:
    """Whether a model is to be asked about this job's note alone: its last answer had nothing valid for it, but for
    others that it was asked about, or it was asked in company often enough.
    """
    error = job.error or ""
    if error.startswith(ItemUnusable.__name__):
        return True
    return job.attempts > (TOGETHER_AWAY if error.startswith(ModelUnavailable.__name__) else TOGETHER)


class Left(NamedTuple):
    """Jobs that were not done, and what was in the way."""

    jobs: list[Job]
    error: BaseException


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Which jobs a written note waits for.

    ``embeds``: a remote embedder makes its vector, and near links follow that; else they come at once. ``annotates``:
    a model is to read it.
    """

    embeds: bool
    annotates: bool

    def of(self, scope: Scope, note: Note, run_at: datetime) -> list[PutJob]:
        """The jobs of a note whose wording is new. What says nothing is not sent to a model, nor is what one wrote."""
        jobs = self.of_index(scope, note, run_at)
        if self.annotates and note.kind is Kind.EPISODIC and not is_filler(note.content, note.role):
            jobs.append(new_job(scope, JobKind.ANNOTATE, run_at, note))
        return jobs

    def of_index(self, scope: Scope, note: Note, run_at: datetime) -> list[PutJob]:
        """The jobs of a note of which only what it is found by is new."""
        return [new_job(scope, JobKind.EMBED if self.embeds else JobKind.LINK, run_at, note)]


def next_attempt(error: BaseException, attempts: int, now: datetime) -> datetime | None:
    """When a job that failed ``attempts`` times runs again; None: not by itself."""
    if isinstance(error, BudgetSpent):
        return error.until
    if not isinstance(error, PASSING) or attempts >= MAX_ATTEMPTS:
        return None
    pause = FIRST_PAUSE * float(2 ** (attempts - 1))
    asked = getattr(error, "retry_after", None)
    return now + max(pause, timedelta(seconds=asked or 0))
