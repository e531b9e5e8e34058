"""Memory that was freed and that the C library keeps."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Return to the system what has been freed; nothing happens where the C library is not GNU's.

    That one keeps what lies between blocks in use, in a heap for each of several threads. Beside a scope that grows for
    hours it comes to hundreds of megabytes: the vectors and texts that batches and the finding of lists pass through.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
