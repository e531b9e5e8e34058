"""The job handlers of one memory, by kind and lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import NamedTuple, TypeVar

from zettel.core.follow_ups import UnfinishedJobs, next_attempt
from zettel.errors import BudgetSpent, ZettelError
from zettel.jobs import spec
from zettel.jobs.spec import CLAIM, JobContext, JobHandler, JobSpec, Pause
from zettel.model import Job, JobKind
from zettel.ports.operations import StaleLease

LOG = logging.getLogger("zettel.jobs")
DROPPED = "another job of its batch was taken over or deleted meanwhile; it will run again"
"""The error of a job that was dropped because of another job in its batch."""
AT_EXIT = "after interpreter shutdown"
"""End of Python's error when a program exits with its memory open. The next one runs the job again."""
H = TypeVar("H", bound=JobHandler)


class Lane(NamedTuple):
    """Job kinds whose batches run one after another, beside the batches of other lanes."""

    kinds: tuple[JobKind, ...]
    claim: int = CLAIM
    """Jobs claimed at once."""
    lease: float = spec.LEASE_SECONDS
    linger: float = spec.LINGER_SECONDS
    """Seconds that a batch waits for more jobs while no caller waits for it."""


class Work:
    """The handlers of the jobs that this memory can run. Other workers run jobs of other kinds."""

    def __init__(self, context: JobContext, jobs: Iterable[JobSpec]) -> None:
        self._store = context.store
        self._guard = context.guard
        self._model_claim = context.model_claim
        self._specs: dict[JobKind, JobSpec] = {}
        self._handlers: dict[JobKind, JobHandler] = {}
        self._warned: set[tuple[JobKind, type[BaseException]]] = set()
        for job in jobs:
            handler = job.make(context)
            if handler is not None:
                self._specs[job.kind], self._handlers[job.kind] = job, handler

    @property
    def round(self) -> list[JobKind]:
        """The kinds of an evolution round that this memory can run, in order."""
        positions = {kind: job.round for kind, job in self._specs.items() if job.round is not None}
        return sorted(positions, key=positions.__getitem__)

    def handler(self, type_: type[H]) -> H:
        """Return the handler of this class."""
        return next(handler for handler in self._handlers.values() if isinstance(handler, type_))

    def is_store_wide(self, kind: JobKind) -> bool:
        """Return whether jobs of this kind concern the whole store."""
        return kind in self._specs and self._specs[kind].store_wide

    def lanes(self) -> list[Lane]:
        """Return the lanes, which run side by side; without a model annotator a single lane."""
        kinds = [kind for kind in JobKind if kind in self._specs]
        if self._model_claim is None:
            return [Lane(tuple(kinds))]
        lanes: list[Lane] = []
        for lane in spec.JobLane:
            members = [kind for kind in kinds if self._specs[kind].round is None and self._specs[kind].lane is lane]
            if lane is spec.JobLane.ROUND:
                members = self.round
            if members:
                claim = self._model_claim if lane.calls_model else CLAIM
                lanes.append(Lane(tuple(members), claim, lane.lease, lane.linger))
        return lanes

    async def kinds(self) -> list[JobKind]:
        """Return the kinds of jobs that this memory can run now."""
        return [kind for kind in JobKind if kind in self._handlers and await self._handlers[kind].is_ready()]

    async def do(self, jobs: Sequence[Job]) -> list[UnfinishedJobs] | Pause:
        """Run jobs of one scope and kind; return the jobs that failed, or a pause after which to try all again."""
        return await self._handlers[jobs[0].kind].do(jobs[0].scope, jobs)

    async def fail(self, jobs: Sequence[Job], error: BaseException) -> None:
        """Store the error with jobs of one kind, and the time of their next attempt."""
        if isinstance(error, asyncio.CancelledError):
            raise error
        now = datetime.now(timezone.utc)
        if isinstance(error, StaleLease):  # another worker took one of the jobs, or it was deleted
            await self._store.fail(jobs, DROPPED, now, counts=False)
            return
        # Errors from other libraries may quote notes, and a stored quotation would survive the deletion of its note.
        declared = self._specs.get(jobs[0].kind)
        is_secret = (declared is None or declared.quotes_texts) and not isinstance(error, ZettelError)
        message = type(error).__name__ + ("" if is_secret else f": {self._guard.cleaned(str(error))}")
        self._warn(jobs[0].kind, error, message)
        for attempts in sorted({job.attempts for job in jobs}):
            same = [job for job in jobs if job.attempts == attempts]
            counts = not isinstance(error, BudgetSpent)
            await self._store.fail(same, message, next_attempt(error, attempts, now), counts=counts)

    def _warn(self, kind: JobKind, error: BaseException, message: str) -> None:
        """Log the first failure of each kind of job by each type of error: nobody waits for jobs in the background."""
        if (kind, type(error)) not in self._warned and not str(error).endswith(AT_EXIT):
            self._warned.add((kind, type(error)))
            LOG.warning("a background job failed (%s): %s; `zettel jobs` shows all", kind.value, message)
