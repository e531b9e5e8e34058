"""Termination of a server by a signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import anyio
import pytest

from zettel.cli.mcp import stopped_by_signals


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["as ever", "in the background of a shell"])
def ctrl_c(request: pytest.FixtureRequest) -> Iterator[object]:
    former = signal.signal(signal.SIGINT, request.param)
    yield request.param
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_at_any_point(
    signal_number: signal.Signals, ctrl_c: object, caplog: pytest.LogCaptureFixture
) -> None:
    former, ended = signal.getsignal(signal.SIGTERM), []

    async def serve() -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(asked_in_mid_work)
                await anyio.sleep_forever()
        finally:
            ended.append(serve)

    async def asked_in_mid_work() -> None:
        signal.raise_signal(signal_number)

    with stopped_by_signals():
        anyio.run(serve)
    assert ended == [serve]
    assert caplog.messages == []
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == (former, ctrl_c)
