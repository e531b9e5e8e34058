"""Memory that the C library caches is returned to the system."""

from __future__ import annotations

import platform

import pytest

from zettel.bench.child_process import resident_bytes
from zettel.graph.embedded.free_memory import trim_heap

BLOCK, BLOCKS = 2_000, 50_000


def resident() -> int:
    size = resident_bytes()
    assert size is not None
    return size


def test_memory_below_a_used_block_is_released() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only the GNU C library keeps what is freed")
    blocks = [bytes(BLOCK) for _ in range(BLOCKS)]
    last_block = blocks[-1]  # at the end of the heap, which prevents automatic trimming
    del blocks
    before = resident()
    trim_heap()
    assert before - resident() > BLOCK * BLOCKS // 2
    assert last_block == bytes(BLOCK)
