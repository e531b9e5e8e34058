"""Python's collector of cyclic garbage, and when it has nothing to find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def all_alive() -> Iterator[None]:
    """Seek no cyclic garbage while much is made that lives until the end: a batch, a scope on its way into memory.

    To look through it again and again takes a sixth of an import.
    """
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()
