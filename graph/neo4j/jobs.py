"""The job queue: queueing, leases and results.

A scope's jobs change only under the scope's lock, so a claim and a batch never interleave.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from zettel.graph.neo4j import rows, unfinished
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.model import TIME_MAX, Job, JobKind, JobState, Scope, to_micros

if TYPE_CHECKING:
    from neo4j import Record


class Neo4jJobQueue:
    """The queue of ``zettel.ports.store.JobQueue``."""

    connection: Neo4jConnection

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        """Lease due jobs of the scope and kind of the first one, most urgent first; those with an expired lease too.

        Each claim counts as an attempt. From ``busy`` scopes it takes only jobs that may run side by side.
        """
        now = _now()
        first = await self.connection.read(
            "jobs_due",
            *[name for name, is_set in (("scoped", scope is not None), ("busy", busy)) if is_set],
            kinds=[kind.value for kind in kinds],
            now=now,
            scope=scope.key if scope else None,
            busy=[other.key for other in busy],
            any_order=sorted(kind.value for kind in JobKind if kind.order_free),
        )
        if not first:
            return []
        ((key, kind),) = first
        tokens = [secrets.token_hex(8) for _ in range(limit)]
        values = {"kind": kind, "now": now, "until": _lease_end(now, lease), "limit": limit, "tokens": tokens}
        claimed = await self._locked("jobs_claim", key, **values)
        if not claimed:  # the scope may be half deleted: its jobs would stay first in line
            await unfinished.settle(self.connection, key)
        return [rows.read_job(row["job"]) for row in claimed]

    async def renew(self, leased: Sequence[Job], lease: float) -> None:
        await self._locked(
            "jobs_renew", leased[0].scope.key, jobs=_leases(leased), until=_lease_end(_now(), lease)
        )

    async def fail(
        self, failed: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True
    ) -> None:
        await self._locked(
            "jobs_fail",
            failed[0].scope.key,
            jobs=_leases(failed),
            state=(JobState.FAILED if retry_at is None else JobState.QUEUED).value,
            run_at=None if retry_at is None else to_micros(retry_at),
            error=error,
            uncounted=int(not counts),
        )

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]:
        return await list_jobs(self.connection, scope, state)

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        values = [kind.value for kind in (JobKind if kinds is None else kinds)]
        by = TIME_MAX if due_by is None else to_micros(due_by)
        ((count,),) = await self.connection.read_scoped("jobs_pending", scope, kinds=values, by=by)
        return int(count)

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        flags = [name for name, value in (("scoped", scope), ("single", job)) if value is not None]
        values: dict[str, Any] = {"scope": scope.key if scope else None, "job": job, "now": _now()}
        ((count,),) = await self.connection.writing(lambda tx: tx.run("jobs_retry", *flags, **values))
        return int(count)

    async def cancel(self, scope: Scope, job: str) -> bool:
        ((count,),) = await self._locked("job_cancel", scope.key, job=job, now=_now())
        return bool(count)

    async def _locked(self, name: str, scope: str, **values: Any) -> list[Record]:
        """Return the rows of a statement that runs under the scope's lock."""

        async def work(transaction: Transaction) -> list[Record]:
            await transaction.run("scope_lock", scope=scope, token=secrets.token_hex(8))
            return await transaction.run(name, scope=scope, **values)

        return await self.connection.writing(work)


async def list_jobs(connection: Neo4jConnection, scope: Scope | None, state: JobState | None = None) -> list[Job]:
    """Return jobs in the order they were queued."""
    states = [state.value] if state else [state.value for state in JobState]
    return [rows.read_job(row["job"]) for row in await connection.read_scoped("jobs", scope, states=states)]


def _leases(jobs: Sequence[Job]) -> list[dict[str, str | None]]:
    return [{"id": job.id, "token": job.token} for job in jobs]


def _lease_end(now: int, seconds: float) -> int:
    return now + int(seconds * 1_000_000)


def _now() -> int:
    return time.time_ns() // 1000
