"""Reads of Neo4j that are cancelled, or interrupted by ``close``, leave no socket open."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from tests.neo4j_servers import DATABASE, Server
from zettel.errors import MemoryClosed, StoreUnreachable
from zettel.graph.neo4j.connection import Neo4jConnection

pytestmark = pytest.mark.integration

READS = 3
"""Concurrent reads. All except one require a new connection."""
STEPS = 12
"""Turns of the event loop in which a read reaches the server: an interruption after each of them."""


@contextmanager
def no_open_sockets() -> Iterator[None]:
    """Fail if the body, or what it leaves to the garbage collector, warns of an open socket, transport or driver."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []


async def opened(server: Server, scheme: str) -> Neo4jConnection:
    connection = Neo4jConnection(f"{scheme}://{server.url.partition('://')[2]}", server.auth, DATABASE)
    await connection.open()
    return connection


async def start_reads(connection: Neo4jConnection, steps: int) -> list[asyncio.Task[list[Any]]]:
    reads = [asyncio.create_task(connection.read("scopes")) for _ in range(READS)]
    for _ in range(steps):
        await asyncio.sleep(0)
    return reads


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_a_cancelled_read_leaves_no_socket_open(server: Server, scheme: str) -> None:
    async def cancel_after(steps: int) -> None:
        connection = await opened(server, scheme)
        reads = await start_reads(connection, steps)
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        assert await connection.read("scopes") == []
        await connection.close()

    with no_open_sockets():
        for steps in range(STEPS):
            anyio.run(cancel_after, steps)


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_closing_during_reads_leaves_no_socket_open(server: Server, scheme: str) -> None:
    async def close_after(steps: int) -> None:
        connection = await opened(server, scheme)
        reads = await start_reads(connection, steps)
        await connection.close()
        for result in await asyncio.gather(*reads, return_exceptions=True):
            assert result == [] or isinstance(result, MemoryClosed | StoreUnreachable), repr(result)

    with no_open_sockets():
        for steps in range(STEPS):
            anyio.run(close_after, steps)
