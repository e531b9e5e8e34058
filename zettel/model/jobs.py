"""Durable jobs, their kinds and states."""

from __future__ import annotations

from enum import Enum

from zettel.model.base import Frozen, Moment
from zettel.model.scope import Scope


class JobKind(str, Enum):
    """A kind of job, with how the queue orders jobs of that kind.

    ``priority``: larger numbers run first. Jobs about single notes have 0; the end of a delete, a whole scope and a
    whole store come later. ``order_free``: jobs of one scope may run in any order and at the same time, because each
    reads only its own notes and earlier ones. Other jobs build on the jobs before them. ``rewords``: a revision by this
    job changes what a note says; revisions by the others do so only if they set its context.
    """

    priority: int
    order_free: bool
    rewords: bool

    def __new__(cls, value: str, priority: int = 0, order_free: bool = False, rewords: bool = False) -> JobKind:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.priority = priority
        kind.order_free = order_free
        kind.rewords = rewords
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
    REEMBED = "reembed", -3
    PURGE = "purge", -1


class JobState(str, Enum):
    """The state of a job; finished jobs are deleted."""

    QUEUED = "queued"
    RUNNING = "running"
    FAILED = "failed"


class Job(Frozen):
    """Durable work, unique per (scope, kind, note, version). ``token`` identifies the worker that leases it."""

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
