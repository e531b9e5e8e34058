from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from zettel.core.gc_frequency import ALLOCATIONS, gc_rarely


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_the_collector_stays_enabled_and_its_threshold_is_restored(usual: tuple[int, int, int]) -> None:
    with gc_rarely():
        assert gc.isenabled()
        assert gc.get_threshold()[0] == ALLOCATIONS
        with gc_rarely():
            pass
        assert gc.get_threshold()[0] == ALLOCATIONS
    assert gc.get_threshold() == usual


def test_overlapping_blocks_restore_the_usual_threshold_last(usual: tuple[int, int, int]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with gc_rarely():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with gc_rarely():
        thread.start()
        assert entered.wait(10)
    assert gc.get_threshold()[0] == ALLOCATIONS
    leave.set()
    thread.join(10)
    assert gc.get_threshold() == usual


def test_a_disabled_collector_stays_disabled() -> None:
    gc.set_threshold(0)
    with gc_rarely():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0
