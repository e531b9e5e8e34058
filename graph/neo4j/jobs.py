"""The job queue: who is at which durable work, and until when.

A scope's jobs change only under the scope's lock, so that a claim and a batch never meet half-way.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

from zettel.graph.neo4j import rows, settling
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.model import SIDE_BY_SIDE, TIME_MAX, Job, JobKind, JobState, Scope, to_micros


async def claim(
    connection: Connection,
    kinds: Sequence[JobKind],
    limit: int,
    lease: float,
    scope: Scope | None,
    busy: Sequence[Scope],
    now: int,
) -> list[Job]:
    """Take due jobs of the first one's scope and kind, most urgent first; those whose lease ran out are due again.

    Each start counts as an attempt. Of ``busy`` scopes only jobs are taken whose order does not count.
    """
    flags = tuple(name for name, given in (("scoped", scope is not None), ("busy", busy)) if given)
    first = await connection.read(
        "jobs_due",
        *flags,
        kinds=[kind.value for kind in kinds],
        now=now,
        scope=scope.key if scope else None,
        busy=[one.key for one in busy],
        any_order=sorted(kind.value for kind in SIDE_BY_SIDE),
    )
    if not first:
        return []
    ((chosen, kind),) = first
    tokens = [secrets.token_hex(8) for _ in range(limit)]

    async def work(transaction: Transaction) -> list[Job]:
        await transaction.run("scope_touch", scope=chosen, token=tokens[0])
        told = await transaction.run(
            "jobs_claim",
            scope=chosen,
            kind=kind,
            now=now,
            until=now + int(lease * 1_000_000),
            limit=limit,
            tokens=tokens,
        )
        return [rows.read_job(row["job"]) for row in told]

    claimed = await connection.writing(work)
    if not claimed:  # its scope may be going, and its jobs first in line for ever if that was cut off
        await settling.settle(connection, chosen)
    return claimed


async def renew(connection: Connection, jobs: Sequence[Job], lease: float, now: int) -> None:
    """Leave jobs of one scope to their worker for longer. Those that were taken over are left alone."""
    scope = jobs[0].scope.key

    async def work(transaction: Transaction) -> None:
        await transaction.run("scope_touch", scope=scope, token=secrets.token_hex(8))
        held = [{"id": job.id, "token": job.token} for job in jobs]
        await transaction.run("jobs_renew", scope=scope, jobs=held, until=now + int(lease * 1_000_000))

    await connection.writing(work)


async def fail(
    connection: Connection, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool
) -> None:
    """Keep why jobs of one scope failed, and queue them again if a time is given. Those that were taken over are left
    alone."""
    scope = jobs[0].scope.key

    async def work(transaction: Transaction) -> None:
        await transaction.run("scope_touch", scope=scope, token=secrets.token_hex(8))
        await transaction.run(
            "jobs_fail",
            scope=scope,
            jobs=[{"id": job.id, "token": job.token} for job in jobs],
            state=(JobState.FAILED if retry_at is None else JobState.QUEUED).value,
            run_at=None if retry_at is None else to_micros(retry_at),
            error=error,
            untried=int(not counts),
        )

    await connection.writing(work)


async def listed(connection: Connection, scope: Scope | None, state: JobState | None) -> list[Job]:
    """Jobs in the order they were queued."""
    states = [state.value] if state else [state.value for state in JobState]
    flags = () if scope is None else ("scoped",)
    told = await connection.read("jobs", *flags, states=states, scope=scope.key if scope else None)
    return [rows.read_job(row["job"]) for row in told]


async def pending(
    connection: Connection, scope: Scope | None, kinds: Sequence[JobKind] | None, due_by: datetime | None
) -> int:
    """How many jobs (of these kinds) are running, or queued (to run by then)."""
    flags = () if scope is None else ("scoped",)
    asked = [kind.value for kind in (JobKind if kinds is None else kinds)]
    by = TIME_MAX if due_by is None else to_micros(due_by)
    ((count,),) = await connection.read("jobs_pending", *flags, kinds=asked, by=by, scope=scope.key if scope else None)
    return int(count)


async def retry(connection: Connection, scope: Scope | None, job: str | None, now: int) -> int:
    """Queue failed jobs again (only the one of an id, if given), as if they had never been tried; how many."""
    flags = tuple(name for name, given in (("scoped", scope), ("single", job)) if given is not None)

    async def work(transaction: Transaction) -> int:
        ((count,),) = await transaction.run(
            "jobs_retry", *flags, scope=scope.key if scope else None, job=job, now=now
        )
        return int(count)

    return await connection.writing(work)


async def cancel(connection: Connection, scope: Scope, job: str, now: int) -> bool:
    """Take a job off the queue unless somebody holds its lease."""

    async def work(transaction: Transaction) -> bool:
        await transaction.run("scope_touch", scope=scope.key, token=secrets.token_hex(8))
        ((count,),) = await transaction.run("job_cancel", scope=scope.key, job=job, now=now)
        return bool(count)

    return await connection.writing(work)
