"""The job table: who is at which durable work, and until when."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from zettel.model import SIDE_BY_SIDE, TIME_MAX, Job, JobKind, JobState, Scope, from_micros, to_micros

_JOBS = """SELECT j.id, s.name, j.kind, j.note, j.version, j.priority, j.run_at, j.attempts, j.state, j.token, j.error
    FROM jobs j JOIN scopes s ON s.number = j.scope"""


def any_due(sql: sqlite3.Connection, kinds: Sequence[JobKind], scope: int | None, now: int) -> bool:
    """Whether there is anything to claim."""
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
    """Take due jobs of the first one's scope and kind, most urgent first; those whose lease ran out are due again.

    Each start counts as an attempt. Of ``busy`` scopes only jobs are taken whose order does not count.
    """
    # Their tokens stay: until somebody else has begun, whoever was late may still finish.
    sql.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running' AND lease_until <= ?", (now,))
    asked = {"now": now, "kinds": json.dumps([kind.value for kind in kinds]), "scope": scope, "limit": limit}
    asked |= {"busy": json.dumps(busy), "any_order": json.dumps(sorted(kind.value for kind in SIDE_BY_SIDE))}
    first = sql.execute(
        """SELECT scope, kind FROM jobs WHERE state = 'queued' AND run_at <= :now
        AND kind IN (SELECT value FROM json_each(:kinds)) AND (:scope IS NULL OR scope = :scope)
        AND (scope NOT IN (SELECT value FROM json_each(:busy)) OR kind IN (SELECT value FROM json_each(:any_order)))
        ORDER BY priority DESC, run_at, number LIMIT 1""",
        asked,
    ).fetchone()
    if first is None:
        return []
    asked |= {"scope": first[0], "kind": first[1], "claim": secrets.token_hex(8)}
    asked["until"] = now + int(lease * 1_000_000)
    sql.execute(
        """UPDATE jobs SET state = 'running', attempts = attempts + 1, token = :claim || '_' || number,
            lease_until = :until
        WHERE number IN (SELECT number FROM jobs
            WHERE state = 'queued' AND run_at <= :now AND scope = :scope AND kind = :kind
            ORDER BY priority DESC, run_at, number LIMIT :limit)""",
        asked,
    )
    claimed = sql.execute(
        f"""{_JOBS} WHERE j.state = 'running' AND j.token = :claim || '_' || j.number
        ORDER BY j.priority DESC, j.run_at, j.number""",
        asked,
    )
    return _jobs(claimed)


def renew(sql: sqlite3.Connection, jobs: Sequence[Job], lease: float, now: int) -> None:
    """Leave jobs to their worker for longer. Those that were taken over are left alone."""
    until = now + int(lease * 1_000_000)
    sql.executemany(
        "UPDATE jobs SET state = 'running', lease_until = ? WHERE id = ? AND token = ?",
        [(until, job.id, job.token) for job in jobs],
    )


def fail(
    sql: sqlite3.Connection, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool
) -> None:
    """Keep why jobs failed, and queue them again if a time is given. Those that were taken over are left alone."""
    state = (JobState.FAILED if retry_at is None else JobState.QUEUED).value
    run_at = None if retry_at is None else to_micros(retry_at)
    sql.executemany(
        """UPDATE jobs SET state = ?, run_at = COALESCE(?, run_at), error = ?, attempts = attempts - ?, token = NULL,
            lease_until = 0
        WHERE id = ? AND token = ?""",
        [(state, run_at, error, not counts, job.id, job.token) for job in jobs],
    )


def listed(sql: sqlite3.Connection, scope: int | None, state: JobState | None) -> list[Job]:
    """Jobs in the order they were queued."""
    rows = sql.execute(
        f"""{_JOBS} WHERE (:scope IS NULL OR j.scope = :scope) AND (:state IS NULL OR j.state = :state)
        ORDER BY j.number""",
        {"scope": scope, "state": state.value if state else None},
    )
    return _jobs(rows)


def pending(
    sql: sqlite3.Connection, scope: int | None, kinds: Sequence[JobKind] | None, due_by: datetime | None
) -> int:
    """How many jobs (of these kinds) are running, or queued (to run by then)."""
    asked = {
        "scope": scope,
        "kinds": json.dumps([kind.value for kind in (JobKind if kinds is None else kinds)]),
        "by": TIME_MAX if due_by is None else to_micros(due_by),
    }
    (count,) = sql.execute(
        """SELECT COUNT(*) FROM jobs WHERE (state = 'running' OR (state = 'queued' AND run_at <= :by))
        AND kind IN (SELECT value FROM json_each(:kinds)) AND (:scope IS NULL OR scope = :scope)""",
        asked,
    ).fetchone()
    return int(count)


def retry(sql: sqlite3.Connection, scope: int | None, job: str | None, now: int) -> int:
    """Queue failed jobs again (only the one of an id, if given), as if they had never been tried; how many."""
    queued = sql.execute(
        """UPDATE jobs SET state = 'queued', run_at = :now, attempts = 0
        WHERE state = 'failed' AND (:scope IS NULL OR scope = :scope) AND (:job IS NULL OR id = :job)""",
        {"scope": scope, "job": job, "now": now},
    )
    return queued.rowcount


def cancel(sql: sqlite3.Connection, scope: int | None, job: str, now: int) -> bool:
    """Take a job off the queue unless somebody holds its lease."""
    gone = sql.execute(
        "DELETE FROM jobs WHERE scope = ? AND id = ? AND (state <> 'running' OR lease_until <= ?)",
        (scope, job, now),
    )
    return gone.rowcount > 0


def _jobs(rows: Iterable[tuple[Any, ...]]) -> list[Job]:
    scopes: dict[str, Scope] = {}  # read once each: most jobs are of one
    found = []
    for id, name, kind, note, version, priority, run_at, attempts, state, token, error in rows:
        if name not in scopes:
            scopes[name] = Scope.model_validate_json(name)
        found.append(
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
    return found
