"""Job queue: urgent jobs run first, single jobs can be retried or cancelled, and released jobs are never lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import BACKENDS, EVERY_STORE
from zettel import Memory, Scope
from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import new_job
from zettel.errors import InvalidInput, JobFailed, NotFound
from zettel.graph import open_store
from zettel.model import Job, JobKind, JobState
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Op, PutJob

ANN, BOB = Scope(user="ann"), Scope(user="bob")
ALL = list(JobKind)
LONG = 60.0  # seconds; does not expire during a test


@asynccontextmanager
async def opened(backend: str, folder: Path) -> AsyncIterator[GraphStore]:
    """Open a store without workers."""
    at: Any = BACKENDS[backend](folder)
    store = open_store(at, None, None) if isinstance(at, (str, Path)) else at
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def put(store: GraphStore, scope: Scope, *kinds: JobKind, later: float = 0.0) -> list[Job]:
    """Queue a job of each kind, in this order."""
    operations: list[PutJob] = []

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        run_at = clock.recorded_at + timedelta(seconds=later)
        operations[:] = [new_job(scope, kind, run_at, version=clock.next()) for kind in kinds]
        return [*operations]

    await Commits(store).commit(scope, plan)
    return [op.job for op in operations]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_busy_scopes_release_only_unordered_jobs(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            await put(store, ANN, JobKind.LINK, JobKind.EMBED)
            await put(store, BOB, JobKind.LINK)
            taken = []
            while batch := await store.claim(ALL, 9, LONG, None, [ANN]):
                taken += [(job.scope, job.kind) for job in batch]
            assert sorted(taken, key=str) == sorted([(ANN, JobKind.EMBED), (BOB, JobKind.LINK)], key=str)
            assert await store.claim(ALL, 9, LONG, ANN, [ANN, Scope(user="nobody")]) == []
            assert [job.kind for job in await store.claim(ALL, 9, LONG, None, [BOB])] == [JobKind.LINK]

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_jobs_of_single_notes_precede_bulk_jobs(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            mass = [JobKind.REEMBED, JobKind.REFLECT, JobKind.EVOLVE, JobKind.MERGE, JobKind.PURGE]
            await put(store, ANN, *mass)
            await put(store, BOB, JobKind.LINK)
            await put(store, ANN, JobKind.EMBED, JobKind.ANNOTATE)
            claimed: list[Job] = []
            while batch := await store.claim(ALL, 9, LONG, None):
                claimed += batch
            kinds = [job.kind for job in claimed]
            assert set(kinds[:3]) == {JobKind.LINK, JobKind.EMBED, JobKind.ANNOTATE}
            assert kinds[3:] == [JobKind.PURGE, JobKind.REFLECT, JobKind.EVOLVE, JobKind.MERGE, JobKind.REEMBED]
            assert [job.priority for job in claimed] == [kind.priority for kind in kinds]

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_a_single_failed_job_can_be_retried(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            retried, other = await put(store, ANN, JobKind.LINK, JobKind.LINK)
            await store.fail(await store.claim(ALL, 9, LONG, None), "it cannot be done", None)
            assert await store.retry(ANN, "j_nothing") == 0
            assert await store.retry(BOB, retried.id) == 0
            assert await store.retry(ANN, retried.id) == 1
            states = {job.id: job.state for job in await store.jobs(ANN)}
            assert states == {retried.id: JobState.QUEUED, other.id: JobState.FAILED}

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_released_jobs_can_be_claimed_at_once(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            await put(store, ANN, JobKind.LINK, JobKind.LINK, JobKind.LINK)
            claimed = await store.claim(ALL, 9, LONG, None)
            assert await store.claim(ALL, 9, LONG, None) == []
            await store.fail(claimed[:2], "stopped", datetime.now(timezone.utc))
            reclaimed = await store.claim(ALL, 9, LONG, None)
            assert [job.id for job in reclaimed] == [job.id for job in claimed[:2]]
            await store.fail(claimed, "too late to say", None)  # two of the three have a new owner
            states = {job.id: job.state for job in await store.jobs(ANN)}
            assert [states[job.id] for job in claimed] == [JobState.RUNNING, JobState.RUNNING, JobState.FAILED]

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_an_unused_claim_does_not_count_as_an_attempt(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            await put(store, ANN, JobKind.LINK)
            for counts, attempts in ((True, 1), (False, 1), (False, 1), (True, 2)):
                claimed = await store.claim(ALL, 9, LONG, None)
                await store.fail(claimed, "stopped", datetime.now(timezone.utc), counts)
                assert [job.attempts for job in await store.jobs(ANN)] == [attempts]

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_a_job_can_be_cancelled_unless_it_runs(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            running, failed = await put(store, ANN, JobKind.LINK, JobKind.EMBED)
            (waits,) = await put(store, ANN, JobKind.LINK, later=3600)
            await store.claim([JobKind.LINK], 9, LONG, None)
            await store.fail(await store.claim([JobKind.EMBED], 9, LONG, None), "it cannot be done", None)
            assert not await store.cancel(ANN, running.id)
            assert not await store.cancel(ANN, "j_nothing")
            assert not await store.cancel(BOB, waits.id)
            assert await store.cancel(ANN, waits.id)
            assert await store.cancel(ANN, failed.id)
            assert [job.id for job in await store.jobs(None)] == [running.id]

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_an_expired_lease_does_not_block_cancelling(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            (job,) = await put(store, ANN, JobKind.LINK)
            await store.claim(ALL, 9, 0.0, None)
            await asyncio.sleep(0.01)
            assert await store.cancel(ANN, job.id)

    run(work())


@pytest.mark.parametrize("backend", EVERY_STORE)
def test_only_the_owner_renews_a_lease(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(backend, tmp_path) as store:
            await put(store, ANN, JobKind.LINK)
            late = await store.claim(ALL, 9, 0.0, None)
            await asyncio.sleep(0.01)
            owned = await store.claim(ALL, 9, 0.5, None)  # claimed by another worker
            await store.renew(late, 0.0)
            await store.renew(owned, LONG)
            await asyncio.sleep(0.6)
            assert await store.claim(ALL, 9, LONG, None) == []
            await store.fail(owned, "stopped", datetime.now(timezone.utc))
            await store.renew(owned, LONG)  # already released
            assert [job.id for job in await store.claim(ALL, 9, LONG, None)] == [job.id for job in owned]

    run(work())


def test_a_long_round_stays_with_its_worker(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = memory._bridge.inner._backend.memory.engine
    (lane, *_) = engine.loop._lanes
    monkeypatch.setattr(lane, "lane", lane.lane._replace(lease=0.3))
    handler = engine.loop._work._handlers[JobKind.REFLECT]
    reflect = handler.do
    taken: list[int] = []

    async def slowly(scope: Scope, jobs: Any) -> Any:
        await asyncio.sleep(1.0)
        taken.append(len(await engine.store.claim([JobKind.REFLECT], 9, LONG, None)))
        return await reflect(scope, jobs)

    monkeypatch.setattr(handler, "do", slowly)
    memory.add("Snow fell.")
    memory.evolve()
    assert taken == [0]


def test_cancel_errors_state_the_reason(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory._bridge.inner._backend.memory.engine.store
    monkeypatch.setattr(memory._bridge.inner._backend.memory.engine.loop, "_run_batch", lambda _: _none())
    memory.add("Snow fell.")
    (job,) = memory.jobs()
    for call in (memory.cancel_job, memory.retry_jobs):
        with pytest.raises(NotFound, match="j_nothing"):
            call("j_nothing")
    assert memory.retry_jobs(job.id) == 0  # it has not failed
    memory._bridge.call(lambda: store.claim([job.kind], 1, LONG, None))
    with pytest.raises(InvalidInput, match=f"{job.id} is running"):
        memory.cancel_job(job.id)
    memory.delete(memory.list().notes[0].id)
    (purge,) = memory.jobs()
    with pytest.raises(InvalidInput, match="completes a delete"):
        memory.cancel_job(purge.id)
    memory.add("Rain fell.")
    (waits,) = [job for job in memory.jobs() if job.kind is JobKind.LINK]
    assert memory.cancel_job(waits.id) == waits
    assert memory.jobs() == [purge]


async def _none() -> int:
    return 0


def test_evolve_later_queues_a_round_after_changes(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory.evolve_later() is False  # the memory is empty
    memory.add("The ferry to Bergen leaves at nine.")
    memory.flush()
    with monkeypatch.context() as patch:
        patch.setattr(memory._bridge.inner._backend.memory.engine.loop, "_run_batch", lambda _: _none())
        assert memory.evolve_later() is True
        queued = {job.kind for job in memory.jobs()}
        assert JobKind.MERGE in queued
        assert memory.evolve_later() is False
    memory.flush()
    assert memory.jobs() == []
    assert memory.evolve_later() is False
    memory.add("It leaves from the northern pier.")
    assert memory.evolve_later() is True
    memory.flush()


def test_earlier_failures_do_not_block_a_round(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = memory._bridge.inner._backend.memory.engine.loop
    with monkeypatch.context() as patch:
        patch.setattr(loop._work._handlers[JobKind.LINK], "do", _broken)
        for hour in (9, 10):
            memory.add("The ferry leaves at nine.", speaker="Ida", session="s", occurred_at=f"2024-05-01T{hour:02}:00Z")
        with pytest.raises(JobFailed, match="2 jobs failed"):
            memory.flush()
    loop._reported.clear()  # as in another process
    with pytest.raises(JobFailed, match="2 jobs failed"):
        memory.evolve()
    assert len(memory.list().notes) == 1
    assert memory.evolve() == (0, 0, 0, 0)


async def _broken(scope: Scope, jobs: Any) -> Any:
    raise ValueError("it cannot be done")


def test_a_new_round_replaces_failed_rounds(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.add("The ferry to Bergen leaves at nine.")
    memory.flush()
    with monkeypatch.context() as patch:
        patch.setattr(memory._bridge.inner._backend.memory.engine.loop._work._handlers[JobKind.REFLECT], "do", _broken)
        for _ in range(3):
            with pytest.raises(JobFailed, match="1 jobs failed"):
                memory.evolve()
            assert [job.kind for job in memory.jobs()] == [JobKind.REFLECT]
        assert memory.evolve_later() is True
        with pytest.raises(JobFailed, match="1 jobs failed"):
            memory.flush()
        assert [job.kind for job in memory.jobs()] == [JobKind.REFLECT]
    memory.evolve()
    assert memory.jobs() == []
