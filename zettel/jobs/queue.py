"""Which jobs follow a write, and when one that failed is tried again."""

from __future__ import annotations

from datetime import datetime, timedelta

from zettel.batch import PutJob
from zettel.errors import EmbedderUnavailable, StoreBusy, StoreUnreachable
from zettel.identity import new_id
from zettel.model import Job, JobKind, Note, Scope

PASSING = (EmbedderUnavailable, StoreBusy, StoreUnreachable)
"""Errors that may be gone by the next attempt; any other leaves the job failed at once."""
MAX_ATTEMPTS = 6
"""Attempts in all: with doubling pauses from 2 s they span about a minute."""
FIRST_PAUSE = timedelta(seconds=2)


def new_job(scope: Scope, kind: JobKind, run_at: datetime, note: Note | None = None, version: int = 0) -> PutJob:
    """A job about a note as it now stands, or about the scope at ``version``."""
    return PutJob(
        Job(
            id=new_id("j"),
            scope=scope,
            kind=kind,
            note=note.id if note else None,
            version=note.version if note else version,
            run_at=run_at,
        )
    )


def follow_up(scope: Scope, note: Note, remote: bool, run_at: datetime) -> PutJob:
    """What a written note waits for: its vector if a remote embedder makes it, else its near links."""
    return new_job(scope, JobKind.EMBED if remote else JobKind.LINK, run_at, note)


def next_attempt(error: BaseException, attempts: int, now: datetime) -> datetime | None:
    """When a job that failed ``attempts`` times runs again; None: not by itself."""
    if not isinstance(error, PASSING) or attempts >= MAX_ATTEMPTS:
        return None
    return now + FIRST_PAUSE * float(2 ** (attempts - 1))
