"""Connections of the Neo4j driver that a cancelled or closing task does not leave open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from zettel.errors import MemoryClosed

if TYPE_CHECKING:
    from neo4j import AsyncDriver

CLOSE_SECONDS = 1.0
"""Time limit for connections that are being opened while their driver closes; later ones are broken off."""


class Opener:
    """Opens the connections of one driver, each in a task of its own.

    The driver forgets a socket without closing it if its task is cancelled while the socket connects (6.4.1), and
    keeps a connection that is opened while the driver closes. Here the opening ends undisturbed, and then closes a
    connection that nothing waits for.
    """

    def __init__(self, driver: AsyncDriver, url: str) -> None:
        self._driver, self._url, self._is_closed = driver, url, False
        self._opening: set[asyncio.Task[Any]] = set()
        pool: Any = driver._pool  # the driver has no public hook
        self._open: Callable[..., Awaitable[Any]] = pool.opener
        pool.opener = self._open_undisturbed

    async def close_driver(self) -> None:
        """Close all connections, and refuse new ones with ``MemoryClosed``."""
        self._is_closed = True
        if self._opening:
            await asyncio.wait(self._opening, timeout=CLOSE_SECONDS)
        for task in self._opening:
            task.cancel()
        await self._driver.close()

    async def _open_undisturbed(self, *arguments: Any) -> Any:
        self._require_open()
        task = asyncio.ensure_future(self._open(*arguments))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        try:
            connection = await asyncio.shield(task)
            self._require_open()
        except (asyncio.CancelledError, MemoryClosed):
            task.add_done_callback(_kill)
            raise
        return connection

    def _require_open(self) -> None:
        if self._is_closed:
            raise MemoryClosed(f"{self._url} is not open")


def _kill(opened: asyncio.Task[Any]) -> None:
    """Close the connection of a finished task, if it has opened one."""
    if not opened.cancelled() and opened.exception() is None:
        opened.result().kill()
