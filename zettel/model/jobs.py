"""Durable background jobs, their kinds and states."""

from __future__ import annotations

from enum import Enum

from zettel.model.base import Frozen, Moment
from zettel.model.scope import Scope


class JobKind(str, Enum):
    """A kind of job, with its place in the queue.

    ``priority``: higher runs first: 1 for expiry, 0 for jobs about single notes, -1 for purges, -2 for other jobs about
    a scope, -3 for jobs about a whole store. ``order_free``: jobs of one scope may run in any order and in parallel,
    because each reads only its own and earlier notes; other jobs build on the jobs before them. ``rewords``: a revision
    by this job changes the wording of a note; revisions by other jobs do so only if they set a caption, context,
    keywords or tags.
    ``planned``: jobs run at a planned time, and nobody waits for them before it.
    """

    priority: int
    order_free: bool
    rewords: bool
    planned: bool

    def __new__(
        cls, value: str, priority: int = 0, order_free: bool = False, rewords: bool = False, planned: bool = False
    ) -> JobKind:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.priority = priority
        kind.order_free = order_free
        kind.rewords = rewords
        kind.planned = planned
        return kind

    def __str__(self) -> str:
        return str(self.value)

    EMBED = "embed", 0, True
    ANNOTATE = "annotate", 0, True, True
    LINK = "link"
    EVOLVE = "evolve", -2
    MERGE = "merge", -2
    REFLECT = "reflect", -2, False, True
    DECAY = "decay", -2
    TUNE = "tune", -2
    REEMBED = "reembed", -3
    PURGE = "purge", -1
    EXPIRE = "expire", 1, False, False, True


class JobState(str, Enum):
    """The state of a job. A finished job has none: the store deletes it."""

    QUEUED = "queued"
    RUNNING = "running"
    FAILED = "failed"


class Job(Frozen):
    """One unit of durable background work, unique per (scope, kind, note, version).

    ``note`` is None for a job about the whole scope. ``run_at`` is the earliest time to run, ``attempts`` the number of
    runs so far, ``error`` the last error. ``token`` identifies the lease of the worker that runs the job.
    """

    id: str
    scope: Scope
    kind: JobKind
    note: str | None = None
    version: int = 0
    priority: int = 0
    run_at: Moment
    attempts: int = 0
    state: JobState = JobState.QUEUED
    token: str | None = None
    error: str | None = None
