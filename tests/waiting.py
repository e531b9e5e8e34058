"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0
"""Seconds for one step of a test, on a busy machine."""


def until(condition: Callable[[], Any], seen: Callable[[], Any] = lambda: None) -> Any:
    """Return the first true result of a condition; a test that waits in vain shows what was ``seen``."""
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < deadline, seen()
        time.sleep(0.02)
    return result
