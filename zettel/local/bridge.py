"""Calls an asynchronous object from other threads, by an event loop in its own thread."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from zettel.errors import MemoryClosed

R = TypeVar("R")


class Bridge:
    """An object in its own event loop, where ``make`` creates it and ``end`` closes it."""

    def __init__(self, make: Callable[[], Awaitable[Any]], end: Callable[[Any], Awaitable[None]]) -> None:
        self._pid = os.getpid()
        self._open = True
        self._portal, thread = _loop()
        try:
            self.inner = self._portal.call(make)
        except BaseException:
            _stop(self._portal, thread)
            raise
        # Runs at the latest when the interpreter ends.
        self._finish = weakref.finalize(self, _finish, self._portal, thread, end, self.inner, self._pid)

    def call(self, work: Callable[[], Awaitable[R]]) -> R:
        """Run ``work`` in the loop and wait for it; Ctrl-C cancels it there."""
        future = self._start(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def reach(self, work: Callable[[], Awaitable[R]]) -> R:
        """Run ``work`` and await it in another loop; cancelling there cancels it here."""
        return await asyncio.wrap_future(self._start(work))

    def _start(self, work: Callable[[], Awaitable[R]]) -> Future[R]:
        if self._pid != os.getpid():
            raise MemoryClosed("this memory was opened before a fork: open another memory in this process")
        if not self._open:
            raise MemoryClosed("this memory is closed: open another memory")
        return self._portal.start_task_soon(work)

    def close(self) -> None:
        """Close the object and its loop. Safe to call twice; does nothing in a forked process."""
        self._open = False
        self._finish()


def _loop() -> tuple[BlockingPortal, Thread]:
    """Start an event loop in a thread; return its portal and the thread.

    Only ``_stop`` ends it. A forked process has the loop but not the thread, and would wait for ever at the end of a
    ``start_blocking_portal``.
    """
    started: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    def run() -> None:
        try:
            anyio.run(serve)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)  # no loop could be made

    thread = Thread(target=run, name="zettel", daemon=True)
    thread.start()
    return started.result(), thread


def _stop(portal: BlockingPortal, thread: Thread, *, cancel: bool = False) -> None:
    portal.call(portal.stop, cancel)
    thread.join()


def _finish(
    portal: BlockingPortal, thread: Thread, end: Callable[[Any], Awaitable[None]], inner: Any, pid: int
) -> None:
    if pid != os.getpid():
        return
    try:
        portal.call(end, inner)
    except BaseException:
        _stop(portal, thread, cancel=True)
        raise
    _stop(portal, thread)
