"""Rarer runs of Python's cyclic garbage collector while a batch is written."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 100_000
"""New objects between two runs of the collector meanwhile; Python's default is 700 or 2,000."""

_lock = threading.Lock()
_depth = 0
_usual = gc.get_threshold()


@contextmanager
def gc_rarely() -> Iterator[None]:
    """Let the collector run rarely while many objects are built that stay alive: this saves a tenth of an import.

    The collector stays enabled, so a block may ``await``: garbage of the host program is still collected while a
    block waits for a slow store. Blocks may overlap; the last one to end restores the usual threshold.
    """
    global _depth, _usual
    with _lock:
        if _depth == 0:
            _usual = gc.get_threshold()
            gc.set_threshold(max(ALLOCATIONS, _usual[0]) if _usual[0] else 0, *_usual[1:])
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                gc.set_threshold(*_usual)
