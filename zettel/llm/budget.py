"""Budgets for language models, and a meter that enforces them."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Literal, NamedTuple, get_args

import anyio

from zettel.errors import BudgetSpent, InvalidInput
from zettel.model import ModelUse
from zettel.ports.settings import SpendingLimit

Period = Literal["day", "import"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the cost of language models.

    The budget is checked before each call, so the last call may exceed it.

    Args:
        calls: The greatest number of calls.
        tokens: The greatest number of tokens, of requests and answers together.
        usd: The greatest cost, in US dollars.
        per: ``day``: per day (UTC), for all scopes and processes of a store together. ``import``: since the memory
            was opened, which for ``zettel import`` is the import.

    Raises:
        InvalidInput: No limit is set, or one is not a number of at least 0.

    Examples:
        >>> from zettel import Budget
        >>> budget = Budget(usd=2.0, per="day")
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    per: Period = "day"

    def __post_init__(self) -> None:
        limits: dict[str, object] = {"calls": self.calls, "tokens": self.tokens, "usd": self.usd}
        if all(limit is None for limit in limits.values()):
            raise InvalidInput("a budget needs a limit: set calls=, tokens= or usd=")
        for name, limit in limits.items():
            numbers = (int, float) if name == "usd" else (int,)
            if limit is not None and not (type(limit) in numbers and 0 <= limit < math.inf):  # type: ignore[operator]
                raise InvalidInput(f"{name} must be a number of at least 0, got {limit!r}")
        if self.per not in get_args(Period):
            raise InvalidInput(f"per must be {' or '.join(get_args(Period))}, got {self.per!r}")


class Cost(NamedTuple):
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: Cost, sign: int = 1) -> Cost:
        """Return the sum, or with ``sign`` -1 the difference."""
        return Cost(self.calls + sign * other.calls, self.tokens + sign * other.tokens, self.usd + sign * other.usd)


class Meter:
    """Enforces a budget on the calls of one memory. ``used`` returns the use that a store has recorded since a day."""

    def __init__(self, budget: SpendingLimit, used: Callable[[date], Awaitable[Sequence[ModelUse]]]) -> None:
        self._budget = budget
        self._used = used
        self._since_opening = Cost()
        self._reserved = Cost()
        self._changed = anyio.Condition()

    async def reserve(self, expected: Cost) -> None:
        """Reserve the cost of a call. If the rest is reserved for other calls, wait for their real cost.

        Raises ``BudgetSpent``.
        """
        async with self._changed:
            while True:
                spent = await self.spent()
                if self._reached(spent):
                    raise self._error(spent)
                if not self._reached(spent.plus(self._reserved)):
                    break
                await self._changed.wait()
            self._reserved = self._reserved.plus(expected)

    async def settle(self, expected: Cost, cost: Cost, record: Callable[[], Awaitable[object]]) -> None:
        """Record the cost of a call in place of its reservation."""
        async with self._changed:
            self._since_opening = self._since_opening.plus(cost)
            try:
                await record()
            finally:
                self._reserved = self._reserved.plus(expected, -1)
                self._changed.notify_all()

    async def left(self) -> dict[str, float]:
        spent = await self.spent()
        return {name: max(0, limit - used) for name, used, limit in self._limits(spent)}

    async def spent(self) -> Cost:
        """Return the cost that counts against the budget."""
        if self._budget.per == "import":
            return self._since_opening
        uses = await self._used(datetime.now(timezone.utc).date())
        return Cost(
            sum(use.calls for use in uses),
            sum(use.prompt_tokens + use.completion_tokens for use in uses),
            sum(use.usd for use in uses),
        )

    def _limits(self, spent: Cost) -> list[tuple[str, float, float]]:
        """The name, use and value of each limit."""
        limits = (self._budget.calls, self._budget.tokens, self._budget.usd)
        named = zip(Cost._fields, spent, limits, strict=True)
        return [(name, used, limit) for name, used, limit in named if limit is not None]

    def _reached(self, spent: Cost) -> bool:
        return any(used >= limit for _, used, limit in self._limits(spent))

    def _error(self, spent: Cost) -> BudgetSpent:
        # Without numbers: hits and jobs show this message to users, who may not see the spending of others.
        missing = " and ".join(f"no {name}" for name, used, limit in self._limits(spent) if used >= limit)
        if self._budget.per == "import":
            return BudgetSpent(f"the budget is spent: {missing} left since the memory was opened")
        until = next_midnight()
        message = f"the budget of the day is spent: {missing} left; the next begins at {until:%Y-%m-%dT%H:%MZ}"
        return BudgetSpent(message, until)


def next_midnight() -> datetime:
    """The start of the next day (UTC)."""
    tomorrow = datetime.now(timezone.utc).date() + timedelta(days=1)
    return datetime.combine(tomorrow, datetime.min.time(), timezone.utc)
