"""Shared helpers of transfer tests: a memory with every kind of record, and its full contents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.contract.support import LIFE, decide
from zettel import AsyncMemory, LinkType, Memory, Scope
from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import new_job
from zettel.core.memory_file import LineWriter
from zettel.errors import EmbedderUnavailable
from zettel.model import JobKind, JobState
from zettel.ports import EmbedderInfo, ScopeState
from zettel.ports.operations import Op, PutJob
from zettel.ports.query import Filter

BOB = Scope(tenant="acme", user="bob")
QUESTIONS = ("Where does Ann live?", "What does Kestrel do?", "Have you seen The Glass Orchard?", "a long report")
PAYLOAD = {"broken": "\ud83d", "π": 3.5, "deep": [1, {"ä": None}], "big": 10**40}
LONG = " ".join(f"Sentence {number} of a long report." for number in range(120))


@contextmanager
def moved_to(folder: Path, memory: Memory) -> Iterator[Memory]:
    """Close a memory, and open a new one with its exported contents, which are the same."""
    before = scope_contents(memory)
    memory.export(folder / "all.zettel", "zettel")
    memory.close()
    with Memory(folder / "there.db") as moved:
        moved.import_transcript(folder / "all.zettel")
        moved.flush()
        assert scope_contents(moved) == before
        yield moved


def live(memory: Memory) -> None:
    """Add every kind of record to two scopes of a memory."""
    memory.add_many(LIFE)
    memory.add_many(
        [
            {"id": "20", "content": "A film of 1931.", "title": "The Glass Orchard", "source": "films.txt"},
            {"id": "21", "content": "Have you seen The Glass Orchard?", "speaker": "Bob", "metadata": {"mood": "fine"}},
            {"id": "22", "content": LONG, "session": "c", "occurred_at": "2024-06-01T10:00:00.000001Z"},
            {"id": "23", "payload": PAYLOAD},
            {"content": "Nobody knows when, and it has no key."},
            {"id": "24", "content": "To be deleted.", "session": "c"},
        ]
    )  # fmt: skip
    memory.add("Bob keeps bees.", scope=BOB)
    memory.flush()
    ids = {event.external_id: notes[0].id for event, notes in memory.dump()}
    memory.update(ids["1"], content="I live in Oslo.", keywords=["home"])
    memory.update(ids["2"], importance=0.9)
    memory.update(ids["2"], tags=["music"], context="Bob asks about the cello.")
    memory.revert(ids["2"], memory.history(ids["2"])[-2].version)
    decide(memory, ids["4"], ids["1"], LinkType.SUPERSEDES)
    decide(memory, ids["5"], ids["24"], LinkType.RELATES)
    memory.add("A film of 1932.", id="20", title="The Glass Orchard", source="films.txt", on_conflict="revise")
    memory.add("A short report.", id="22", session="c", on_conflict="revise")  # its other parts are archived
    memory.flush()
    memory.delete(ids["24"])
    memory.flush()
    first, second, *_ = memory.search("Where does Ann live?")
    memory.feedback(first.search_id or "", [first.note.id, second.note.id], "success")
    memory.feedback(memory.search("Where does Ann live?")[0].search_id or "", [first.note.id], "failure")


def store_of(memory: Memory) -> Any:
    inner: AsyncMemory = memory._bridge.inner
    assert inner._backend.memory.engine is not None
    return inner._backend.memory.engine.store


def leave_jobs(memory: Memory) -> None:
    """Add a failed job and a job that waits for its next attempt."""
    memory._bridge.call(partial(_leave_jobs, memory))


async def _leave_jobs(memory: Memory) -> None:
    store, later = store_of(memory), datetime.now(timezone.utc) + timedelta(days=300)

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        first, second, *_ = await store.page(Scope(), Filter(), -1, 2)
        failed = new_job(Scope(), JobKind.EMBED, clock.recorded_at, first).job
        waiting = new_job(Scope(), JobKind.LINK, later, second).job
        return [
            PutJob(failed.model_copy(update={"state": JobState.FAILED, "error": "the model said no", "attempts": 6})),
            PutJob(waiting.model_copy(update={"error": "too many requests", "attempts": 2})),
        ]

    await Commits(store).commit(Scope(), plan)


def scope_contents(memory: Memory, scope: Scope | None = None) -> dict[str, Any]:
    """Return the contents of a scope through the public API."""
    entries = list(memory.dump(scope=scope))
    ids = sorted({note.id for _, notes in entries for note in notes})
    uses = memory._bridge.call(partial(store_of(memory).note_uses, scope or memory.scope, ids))
    jobs = [job.model_dump(exclude={"id", "scope"}) for job in memory.jobs(scope=scope or memory.scope)]
    return {
        "dump": entries,
        "histories": {id: memory.history(id, scope=scope) for id in ids},
        "links": {id: memory.links(id, scope=scope) for id in ids},
        "terms": {id: memory.terms(id, scope=scope) for id in ids},
        "uses": uses,
        "jobs": [job for job in jobs if job["kind"] is not JobKind.PURGE],
    }


def search_scores(memory: Memory, scope: Scope | None = None, **search: Any) -> list[list[tuple[str, float]]]:
    return [
        [(hit.note.id, hit.score) for hit in memory.search(question, scope=scope, **search)] for question in QUESTIONS
    ]


def records(path: Path) -> bytes:
    """Return the records of a file without its header, which contains a timestamp."""
    return path.read_bytes().partition(b"\n")[2]


def unsealed(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file and its end record, without checksums."""
    lines = [json.loads(line) for line in records(path).splitlines()]
    return [{key: record[key] for key in record if key != "crc"} for record in lines]


def sealed(records: Sequence[dict[str, Any]]) -> bytes:
    """Return records with valid checksums."""
    lines = LineWriter()
    return lines.header("test") + b"".join(lines.line(json.dumps(record)) for record in records) + lines.end()


class Remote:
    """A remote embedder that may be unavailable."""

    remote = True
    down = False

    @property
    def info(self) -> EmbedderInfo:
        return EmbedderInfo("far/away", 4, "f" * 64)

    async def embed(self, texts: Sequence[str]) -> Any:
        if self.down:
            raise EmbedderUnavailable("far/away does not answer")
        rows = np.array([[len(text), text.count("e"), text.count("o"), 1] for text in texts], np.float32)
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
