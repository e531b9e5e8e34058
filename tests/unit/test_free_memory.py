"""Freed memory that the C library keeps goes back to the system."""

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


def test_what_lies_below_a_block_in_use_is_given_back() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only the GNU C library keeps what is freed")
    blocks = [bytes(BLOCK) for _ in range(BLOCKS)]
    kept = blocks[-1]  # at the heap's end, so that it cannot shrink by itself
    del blocks
    before = resident()
    trim_heap()
    assert before - resident() > BLOCK * BLOCKS // 2
    assert kept == bytes(BLOCK)
