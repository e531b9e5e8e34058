"""Concurrent calls: their order, their bound and their errors."""

from __future__ import annotations

import asyncio
from functools import partial

import anyio
import pytest

from zettel.core.bounded_gather import MAX_CONCURRENT, both, bounded_gather

pytestmark = pytest.mark.anyio


async def test_results_are_in_the_order_of_the_calls() -> None:
    async def double(number: int) -> int:
        await anyio.sleep(0.02 / (number + 1))  # the last ends first
        return 2 * number

    assert await bounded_gather([partial(double, number) for number in range(5)]) == [0, 2, 4, 6, 8]


async def test_only_so_many_calls_run_at_the_same_time() -> None:
    running, most = 0, 0

    async def run() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.001)
        running -= 1

    await bounded_gather([run] * (3 * MAX_CONCURRENT))
    assert most == MAX_CONCURRENT


async def test_an_error_of_any_kind_is_raised_as_itself_and_cancels_the_others() -> None:
    is_cancelled = False

    async def fail() -> None:
        raise LookupError("of an embedder that a user wrote")

    async def wait() -> None:
        nonlocal is_cancelled
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            is_cancelled = True
            raise

    with pytest.raises(LookupError, match="that a user wrote"), anyio.fail_after(5):
        await bounded_gather([wait, fail])
    assert is_cancelled


async def test_an_error_keeps_its_cause() -> None:
    async def fail() -> None:
        try:
            raise OSError("the connection broke")
        except OSError as error:
            raise LookupError("no answer") from error

    with pytest.raises(LookupError) as raised:
        await bounded_gather([anyio.sleep_forever, fail])
    assert isinstance(raised.value.__cause__, OSError)


async def test_a_call_that_another_task_cancels_ends_as_cancelled() -> None:
    shared = asyncio.get_running_loop().create_future()

    async def await_shared() -> None:
        shared.cancel()
        await shared

    with pytest.raises(asyncio.CancelledError):
        await bounded_gather([await_shared, anyio.sleep_forever])


async def test_a_cancelled_gather_cancels_its_calls_and_waits_for_them() -> None:
    ended = 0

    async def end_slowly() -> None:
        nonlocal ended
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
            ended += 1

    with anyio.move_on_after(0.01) as scope:
        await bounded_gather([end_slowly] * 2)
    assert scope.cancelled_caught
    assert ended == 2


async def test_two_calls_of_different_types_run_at_the_same_time() -> None:
    met = anyio.Event()

    async def first() -> int:
        await met.wait()
        return 1

    async def second() -> str:
        met.set()
        return "two"

    with anyio.fail_after(5):
        assert await both(first, second) == (1, "two")
