"""Budgets, also with concurrent calls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from zettel import Budget
from zettel.errors import BudgetSpent, InvalidInput
from zettel.llm.budget import Cost, Meter, next_midnight
from zettel.model import ModelUse

pytestmark = pytest.mark.anyio


class Ledger:
    """The usage counters of a store."""

    def __init__(self, *uses: ModelUse) -> None:
        self.uses = list(uses)

    async def used(self, since: date) -> Sequence[ModelUse]:
        return [use for use in self.uses if use.day >= since]

    async def add(self, cost: Cost) -> None:
        await anyio.lowlevel.checkpoint()
        self.uses.append(use(calls=cost.calls, prompt_tokens=cost.tokens, usd=cost.usd))


def use(**values: Any) -> ModelUse:
    return ModelUse(**{"day": datetime.now(timezone.utc).date(), "model": "m", **values})


@pytest.mark.parametrize(
    "values",
    [
        {}, {"calls": -1}, {"tokens": -5}, {"usd": float("nan")}, {"usd": float("inf")}, {"calls": 1.5},
        {"calls": True}, {"tokens": "many"}, {"calls": 1, "per": "week"},
    ],
    ids=str,
)  # fmt: skip
async def test_invalid_budgets_raise(values: Any) -> None:
    with pytest.raises(InvalidInput):
        Budget(**values)


async def test_a_daily_budget_counts_the_use_in_the_store() -> None:
    yesterday = use().day - timedelta(days=1)
    ledger = Ledger(use(day=yesterday, calls=90), use(calls=2), use(model="n", calls=1))
    meter = Meter(Budget(calls=4), ledger.used)
    await meter.reserve(Cost(1))
    ledger.uses.append(use(calls=1))
    with pytest.raises(BudgetSpent, match="is spent: no calls left; the next") as raised:
        await meter.reserve(Cost(1))
    assert raised.value.until == next_midnight()
    assert next_midnight() - datetime.now(timezone.utc) <= timedelta(days=1)
    assert await meter.left() == {"calls": 0}


async def test_an_import_budget_counts_from_the_opening() -> None:
    ledger = Ledger(use(calls=90, prompt_tokens=9000))
    meter = Meter(Budget(tokens=100, usd=2.0, per="import"), ledger.used)
    await meter.reserve(Cost(1, 60, 0.1))
    await meter.settle(Cost(1, 60, 0.1), Cost(1, 70, 0.25), lambda: ledger.add(Cost()))
    assert await meter.left() == {"tokens": 30, "usd": 1.75}
    await meter.reserve(Cost(1, 60, 0.1))
    await meter.settle(Cost(1, 60, 0.1), Cost(1, 40, 0.25), lambda: ledger.add(Cost()))
    with pytest.raises(BudgetSpent, match="is spent: no tokens left since") as raised:
        await meter.reserve(Cost(1))
    assert raised.value.until is None


@pytest.mark.parametrize("per", ["day", "import"])
@pytest.mark.parametrize("real", [3, 10, 14])
async def test_concurrent_calls_exceed_the_budget_by_at_most_one(per: Any, real: int) -> None:
    """Each call reserves 10 tokens; its actual cost may be lower or higher."""
    ledger = Ledger()
    meter = Meter(Budget(tokens=50, per=per), ledger.used)
    spent = refused = 0

    async def call() -> None:
        nonlocal spent, refused
        try:
            await meter.reserve(Cost(1, 10))
        except BudgetSpent:
            refused += 1
            return
        await anyio.sleep(0.001)
        spent += real
        await meter.settle(Cost(1, 10), Cost(1, real), lambda: ledger.add(Cost(1, real)))

    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(call)
    assert refused
    assert 50 <= spent < 50 + 5 * max(real - 10, 0) + real  # at most five concurrent calls


async def test_a_failed_call_releases_its_reservation() -> None:
    ledger = Ledger()
    meter = Meter(Budget(calls=1), ledger.used)

    async def lost() -> None:
        raise OSError

    await meter.reserve(Cost(1))
    with pytest.raises(OSError):  # noqa: PT011  # whatever the store raises
        await meter.settle(Cost(1), Cost(), lost)
    with anyio.fail_after(1):
        await meter.reserve(Cost(1))
