"""Memory that the C library caches is returned to the system."""

from __future__ import annotations

import platform

import pytest

from zettel.bench.child_process import resident_bytes
from zettel.graph.embedded.free_memory import trim_heap

BLOCK, BLOCKS = 2_000, 50_000


def resident() -> int:
    found = resident_bytes()
    assert found is not None
    return found


def test_memory_below_a_used_block_is_released() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only the GNU C library keeps what is freed")
    blocks = [bytes(BLOCK) for _ in range(BLOCKS)]
    kept = blocks[-1]  # at the end of the heap, which prevents automatic trimming
    del blocks
    before = resident()
    trim_heap()
    assert before - resident() > BLOCK * BLOCKS // 2
    assert kept == bytes(BLOCK)
