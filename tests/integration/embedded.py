"""Helpers for tests of the embedded store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from zettel.graph.embedded.store import EmbeddedStore
from zettel.testing.store_writer import ANN, DIM, SAME, StoreWriter, a_job, moment, vector

__all__ = ["ANN", "DIM", "SAME", "StoreWriter", "a_job", "moment", "opened", "run", "vector"]

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a new event loop."""
    return asyncio.run(work)


@asynccontextmanager
async def opened(path: Path | str, *, fast_writes: bool = False, **options: Any) -> AsyncIterator[EmbeddedStore]:
    """Open a store; with ``fast_writes``, writes do not wait for the disk, for tests with a thousand writes."""
    store = EmbeddedStore(path, **options)
    await store.open()
    assert store._connections is not None
    if fast_writes:
        with store._connections.writer() as writer:
            writer.execute("PRAGMA synchronous = OFF")
    try:
        yield store
    finally:
        await store.close()


