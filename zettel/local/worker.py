"""The entry point of worker processes: runs jobs for memories that are open in other processes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from zettel.local.bridge import Bridge
from zettel.local.engine import Engine, assemble
from zettel.model import Evolved, Job
from zettel.ports.settings import Settings

MAX_IDLE = 4
"""Engines that stay open without a batch, those used last: each has the memory of an open store."""


class _Engines:
    """The open engines of this process, one per ``Settings.key``, the least recently used first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Bridge] = OrderedDict()
        self._users: dict[str, int] = {}

    @contextmanager
    def engine(self, settings: Settings) -> Iterator[Bridge]:
        """Yield the engine of a memory, opened if needed. Closes only engines that do not run a batch."""
        key = settings.key
        with self._lock:
            if key not in self._open:
                self._open[key] = Bridge(partial(assemble, settings), Engine.close)
            self._open.move_to_end(key)
            self._users[key] = self._users.get(key, 0) + 1
            bridge = self._open[key]
        try:
            yield bridge
        finally:
            with self._lock:
                if key in self._users:  # else ``close`` was called meanwhile
                    self._users[key] -= 1
                idle = [other for other in self._open if not self._users.get(other)]
                for other in idle[: max(0, len(idle) - MAX_IDLE)]:
                    self._close(other)

    def close(self) -> None:
        """Close all engines."""
        with self._lock:
            for key in list(self._open):
                self._close(key)

    def _close(self, key: str) -> None:
        self._users.pop(key, None)
        self._open.pop(key).close()


_engines = _Engines()


def do(settings: Settings, jobs: Sequence[Job]) -> Evolved:
    """Run jobs of one scope and kind that a memory with these settings claimed; return how many notes changed.

    Errors of jobs are stored with them. The engine stays open for the next batch. Raises what opening a store raises.
    """
    with _engines.engine(settings) as bridge:
        done: Evolved = bridge.call(partial(bridge.inner.here.do, jobs))
    return done


def close() -> None:
    """Close the engines that are open in this process."""
    _engines.close()
