"""Return of freed memory to the operating system."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Return freed memory to the operating system; without GNU's C library this does nothing.

    GNU's library caches free blocks in a heap per thread. For a scope that grows for hours, these blocks come to
    hundreds of megabytes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
