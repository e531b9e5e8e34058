"""The job table: queueing, leases and results."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from zettel.model import TIME_MAX, Job, JobKind, JobState, Scope, from_micros, to_micros

_JOBS = """SELECT j.id, s.name, j.kind, j.note, j.version, j.priority, j.run_at, j.attempts, j.state, j.token, j.error
    FROM jobs j JOIN scopes s ON s.number = j.scope"""


def any_due(sql: sqlite3.Connection, kinds: Sequence[JobKind], scope: int | None, now: int) -> bool:
    """Return if any job can be claimed."""
    row = sql.execute(
        """SELECT 1 FROM jobs
        WHERE ((state = 'queued' AND run_at <= :now) OR (state = 'running' AND lease_until <= :now))
        AND kind IN (SELECT value FROM json_each(:kinds)) AND (:scope IS NULL OR scope = :scope) LIMIT 1""",
        {"now": now, "kinds": json.dumps([kind.value for kind in kinds]), "scope": scope},
    ).fetchone()
    return row is not None


def claim(
    sql: sqlite3.Connection,
    kinds: Sequence[JobKind],
    limit: int,
    lease: float,
    scope: int | None,
    busy: Sequence[int | None],
    now: int,
) -> list[Job]:
    """Lease due jobs of the first job's scope and kind, most urgent first; jobs with expired leases are due again.

    Each claim counts as an attempt. From ``busy`` scopes it takes only jobs of kinds that run in any order.
    """
    # The tokens stay: a late worker may finish until another worker has claimed the job.
    sql.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running' AND lease_until <= ?", (now,))
    values = {"now": now, "kinds": json.dumps([kind.value for kind in kinds]), "scope": scope, "limit": limit}
    any_order = sorted(kind.value for kind in JobKind if kind.order_free)
    values |= {"busy": json.dumps(busy), "any_order": json.dumps(any_order)}
    first = sql.execute(
        """SELECT scope, kind FROM jobs WHERE state = 'queued' AND run_at <= :now
        AND kind IN (SELECT value FROM json_each(:kinds)) AND (:scope IS NULL OR scope = :scope)
        AND (scope NOT IN (SELECT value FROM json_each(:busy)) OR kind IN (SELECT value FROM json_each(:any_order)))
        ORDER BY priority DESC, run_at, number LIMIT 1""",
        values,
    ).fetchone()
    if first is None:
        return []
    values |= {"scope": first[0], "kind": first[1], "claim": secrets.token_hex(8)}
    values["until"] = now + int(lease * 1_000_000)
    sql.execute(
        """UPDATE jobs SET state = 'running', attempts = attempts + 1, token = :claim || '_' || number,
            lease_until = :until
        WHERE number IN (SELECT number FROM jobs
            WHERE state = 'queued' AND run_at <= :now AND scope = :scope AND kind = :kind
            ORDER BY priority DESC, run_at, number LIMIT :limit)""",
        values,
    )
    claimed = sql.execute(
        f"""{_JOBS} WHERE j.state = 'running' AND j.token = :claim || '_' || j.number
        ORDER BY j.priority DESC, j.run_at, j.number""",
        values,
    )
    return _jobs(claimed)


def renew(sql: sqlite3.Connection, jobs: Sequence[Job], lease: float, now: int) -> None:
    """Extend the leases of jobs. Jobs that another worker has claimed are skipped."""
    until = now + int(lease * 1_000_000)
    sql.executemany(
        "UPDATE jobs SET state = 'running', lease_until = ? WHERE id = ? AND token = ?",
        [(until, job.id, job.token) for job in jobs],
    )


def fail(
    sql: sqlite3.Connection, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool
) -> None:
    """Store the error of jobs; ``retry_at`` queues them again. Jobs that another worker has claimed are skipped."""
    state = (JobState.FAILED if retry_at is None else JobState.QUEUED).value
    run_at = None if retry_at is None else to_micros(retry_at)
    sql.executemany(
        """UPDATE jobs SET state = ?, run_at = COALESCE(?, run_at), error = ?, attempts = attempts - ?, token = NULL,
            lease_until = 0
        WHERE id = ? AND token = ?""",
        [(state, run_at, error, not counts, job.id, job.token) for job in jobs],
    )


def listed(sql: sqlite3.Connection, scope: int | None, state: JobState | None) -> list[Job]:
    """Return jobs in the order of the queue."""
    rows = sql.execute(
        f"""{_JOBS} WHERE (:scope IS NULL OR j.scope = :scope) AND (:state IS NULL OR j.state = :state)
        ORDER BY j.number""",
        {"scope": scope, "state": state.value if state else None},
    )
    return _jobs(rows)


def pending(
    sql: sqlite3.Connection, scope: int | None, kinds: Sequence[JobKind] | None, due_by: datetime | None
) -> int:
    """Count jobs (of these kinds) that are running, or queued (to run by ``due_by``)."""
    values = {
        "scope": scope,
        "kinds": json.dumps([kind.value for kind in (JobKind if kinds is None else kinds)]),
        "by": TIME_MAX if due_by is None else to_micros(due_by),
    }
    (count,) = sql.execute(
        """SELECT COUNT(*) FROM jobs WHERE (state = 'running' OR (state = 'queued' AND run_at <= :by))
        AND kind IN (SELECT value FROM json_each(:kinds)) AND (:scope IS NULL OR scope = :scope)""",
        values,
    ).fetchone()
    return int(count)


def retry(sql: sqlite3.Connection, scope: int | None, job: str | None, now: int) -> int:
    """Queue failed jobs, or one of them, again without attempts. Returns how many."""
    queued = sql.execute(
        """UPDATE jobs SET state = 'queued', run_at = :now, attempts = 0
        WHERE state = 'failed' AND (:scope IS NULL OR scope = :scope) AND (:job IS NULL OR id = :job)""",
        {"scope": scope, "job": job, "now": now},
    )
    return queued.rowcount


def cancel(sql: sqlite3.Connection, scope: int | None, job: str, now: int) -> bool:
    """Remove a job from the queue unless a worker has leased it."""
    deleted = sql.execute(
        "DELETE FROM jobs WHERE scope = ? AND id = ? AND (state <> 'running' OR lease_until <= ?)",
        (scope, job, now),
    )
    return deleted.rowcount > 0


def _jobs(rows: Iterable[tuple[Any, ...]]) -> list[Job]:
    scopes: dict[str, Scope] = {}  # parsed once each: most jobs share a scope
    jobs = []
    for id, name, kind, note, version, priority, run_at, attempts, state, token, error in rows:
        if name not in scopes:
            scopes[name] = Scope.model_validate_json(name)
        jobs.append(
            Job(
                id=id,
                scope=scopes[name],
                kind=JobKind(kind),
                note=note or None,
                version=version,
                priority=priority,
                run_at=from_micros(run_at),
                attempts=attempts,
                state=JobState(state),
                token=token,
                error=error,
            )
        )
    return jobs
