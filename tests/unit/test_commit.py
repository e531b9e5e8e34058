from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from zettel.core.commit import Clock, Commits
from zettel.core.rows import Rows
from zettel.errors import StoreError
from zettel.graph.embedded.store import EmbeddedStore
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import EraseNotes, Op, PutJob
from zettel.testing.store_writer import ANN, StoreWriter, a_job


def run(folder: Path, test: Callable[[GraphStore], Awaitable[None]]) -> None:
    async def opened() -> None:
        store = EmbeddedStore(folder / "zettel.db")
        await store.open()
        try:
            await test(store)
        finally:
            await store.close()

    asyncio.run(opened())


def test_a_plan_that_misses_a_deleted_note_is_made_again(tmp_path: Path) -> None:
    async def test(store: GraphStore) -> None:
        id = await (writer := await StoreWriter(store).begin()).add("The harbour.")
        plans = 0

        async def erase(state: ScopeState, clock: Clock) -> list[Op]:
            clock.next()
            return [EraseNotes((id,))]

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal plans
            plans += 1
            listed = list(await store.notes(ANN, [id]))
            if plans == 1:
                await writer.write(erase)
            histories = Rows(await store.histories(ANN, listed))
            return [PutJob(a_job(f"j_{histories[listed].base.id}")) for listed in listed]

        assert await Commits(store).commit(ANN, plan) is False
        assert plans == 2

    run(tmp_path, test)


def test_an_unknown_note_id_in_a_plan_raises_and_names_the_doctor(tmp_path: Path) -> None:
    async def test(store: GraphStore) -> None:
        await (await StoreWriter(store).begin()).add("The harbour.")

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return [PutJob(a_job(Rows(await store.histories(ANN, ["n_9"]))["n_9"].base.id))]

        with pytest.raises(StoreError, match="note n_9 is missing: run `zettel doctor --repair`"):
            await Commits(store).commit(ANN, plan)

    run(tmp_path, test)


def test_a_key_error_in_a_plan_is_raised_despite_concurrent_writes(tmp_path: Path) -> None:
    async def test(store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            await writer.add("The ferry.")
            raise KeyError("a bug")

        with pytest.raises(KeyError, match="a bug"):
            await Commits(store).commit(ANN, plan)

    run(tmp_path, test)


def test_garbage_collection_stays_enabled_while_a_plan_waits(tmp_path: Path) -> None:
    import gc

    async def test(store: GraphStore) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            await asyncio.sleep(0)
            assert gc.isenabled()
            return []

        await Commits(store).commit(ANN, plan)

    run(tmp_path, test)


def test_pauses_after_conflicts_leave_the_programs_random_numbers_alone(tmp_path: Path) -> None:
    async def test(store: GraphStore) -> None:
        writer, plans = await StoreWriter(store).begin(), 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal plans
            plans += 1
            clock.next()
            if plans == 1:
                await writer.add("The ferry.")
            return [PutJob(a_job("j_1"))]

        before = random.getstate()
        assert await Commits(store).commit(ANN, plan) is True
        assert plans == 2
        assert random.getstate() == before

    run(tmp_path, test)
