"""Long work that lets other tasks run."""

from __future__ import annotations

import time

import anyio
import anyio.lowlevel
import pytest

from zettel.core.pacing import PAUSE, SLICE_SECONDS, paced

pytestmark = pytest.mark.anyio


async def turns_of_others(steps: int) -> tuple[int, float]:
    """Return how often another task runs during so many slices of work, and the seconds of the whole."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    began = time.monotonic()
    async with anyio.create_task_group() as group:
        group.start_soon(other)
        async for _ in paced(range(steps)):
            time.sleep(SLICE_SECONDS)  # noqa: ASYNC251 - work that blocks the event loop
        took = time.monotonic() - began
        group.cancel_scope.cancel()
    return turns, took


async def test_other_tasks_run_after_each_slice() -> None:
    turns, _ = await turns_of_others(5)
    assert turns >= 4


async def test_work_pauses_in_proportion() -> None:
    token = PAUSE.set(lambda: 3.0)
    try:
        _, took = await turns_of_others(5)
    finally:
        PAUSE.reset(token)
    assert took >= 4 * 4 * SLICE_SECONDS


async def test_items_are_unchanged() -> None:
    assert [item async for item in paced("abc")] == ["a", "b", "c"]
