"""Doing jobs for a memory that is open in another process: what a ``Runner`` calls there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

from zettel.engine import Engine, assemble
from zettel.memory import Bridge
from zettel.model import Evolved, Job
from zettel.opening import Opening

_lock = threading.Lock()
_open: dict[str, Bridge] = {}


def do(opening: Opening, jobs: Sequence[Job]) -> Evolved:
    """Do jobs of one scope and kind, claimed by the memory that was opened so; how many notes that changed.

    What went wrong with a job is kept with it. The store stays open for the next batch of the same memory; that of
    another takes its place. Raises what opening a store raises.
    """
    with _lock:
        if opening.key not in _open:
            _close()
            _open[opening.key] = Bridge(partial(assemble, opening), Engine.close)
        bridge = _open[opening.key]
    done: Evolved = bridge.call(partial(bridge.inner.here.do, jobs))
    return done


def close() -> None:
    """Close the store that is open here, if one is: for a process that goes on with something else."""
    with _lock:
        _close()


def _close() -> None:
    while _open:
        _open.popitem()[1].close()
