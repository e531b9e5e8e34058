"""Await a coroutine that must finish, even if the caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import anyio


async def uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end. A cancellation of the caller is raised afterwards, in place of an error.

    A second cancellation does not wait, and the coroutine continues in its own task.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
