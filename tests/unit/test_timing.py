"""Timing wrappers of a store, a scorer and an embedder, which do not change results."""

from __future__ import annotations

import time
from typing import Any, cast

import anyio
import pytest

from zettel.bench.timing import STAGES, StageTimer, percentiles

pytestmark = pytest.mark.anyio


class Slow:
    name = "slow"

    async def candidates(self, query: str) -> str:
        await anyio.sleep(0.02)
        return f"candidates of {query}"

    async def notes(self) -> list[str]:
        return []

    async def histories(self) -> None:
        raise LookupError("no such note")

    def score(self) -> int:
        time.sleep(0.01)
        return 7


async def test_stage_times_add_up_to_the_search_time() -> None:
    watch, slow = StageTimer(), cast("Any", Slow())
    store, scorer = cast("Any", watch.store(slow)), cast("Any", watch.scorer(slow))
    watch.begin()
    assert await store.candidates("bees") == "candidates of bees"
    assert scorer.score() == 7
    await anyio.sleep(0.01)
    seconds = watch.end()
    assert set(seconds) == {"search", *STAGES}
    assert seconds["candidates"] >= 0.02
    assert seconds["score"] >= 0.01
    assert seconds["rest"] >= 0.009
    assert seconds["embed"] == 0
    assert sum(seconds[stage] for stage in STAGES) == pytest.approx(seconds["search"])
    watch.begin()
    assert watch.end()["candidates"] == 0, "each search has its own times"


async def test_timing_does_not_change_results() -> None:
    watch, slow = StageTimer(), cast("Any", Slow())
    store = cast("Any", watch.store(slow))
    assert store.name == "slow"
    assert await store.notes() == []
    with pytest.raises(LookupError, match="no such note"):
        await store.histories()
    with pytest.raises(AttributeError):
        store.nothing  # noqa: B018


def test_percentiles_are_milliseconds() -> None:
    assert percentiles([0.001 * n for n in range(101)]) == [50.0, 90.0, 99.0]
    assert percentiles([0.5]) == [500.0] * 3
