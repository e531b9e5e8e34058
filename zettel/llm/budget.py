"""What language models may cost, and whether there is any left of it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Literal, NamedTuple, get_args

import anyio

from zettel.errors import BudgetSpent, InvalidInput
from zettel.model import ModelUse

Period = Literal["day", "import"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What language models may cost: at most so many ``calls``, ``tokens`` (of questions and answers) and ``usd``.

    ``per="day"``: on each day (UTC), all scopes and processes of a store together. ``per="import"``: from the opening
    of a memory on, which for ``zettel import`` is the import. It is looked at before each call, so the last one may go
    over it. Raises ``InvalidInput``.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    per: Period = "day"

    def __post_init__(self) -> None:
        limits: dict[str, object] = {"calls": self.calls, "tokens": self.tokens, "usd": self.usd}
        if all(limit is None for limit in limits.values()):
            raise InvalidInput("a budget says calls=, tokens= or usd=, or more than one of them")
        for name, limit in limits.items():
            numbers = (int, float) if name == "usd" else (int,)
            if limit is not None and not (type(limit) in numbers and 0 <= limit < math.inf):  # type: ignore[operator]
                raise InvalidInput(f"{name}={limit!r} is no limit of a budget: it is a number from 0 on")
        if self.per not in get_args(Period):
            raise InvalidInput(f"per={self.per!r}: a budget is per {' or '.join(get_args(Period))}")


class Cost(NamedTuple):
    """What some calls cost."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: Cost, sign: int = 1) -> Cost:
        """The sum, or with ``sign`` -1 the difference."""
        return Cost(self.calls + sign * other.calls, self.tokens + sign * other.tokens, self.usd + sign * other.usd)


class Meter:
    """Holds the calls of one memory to a budget. ``used`` gives what a store has recorded from a day on."""

    def __init__(self, budget: Budget, used: Callable[[date], Awaitable[Sequence[ModelUse]]]) -> None:
        self._budget = budget
        self._used = used
        self._since_opening = Cost()
        self._under_way = Cost()
        self._changed = anyio.Condition()

    async def reserve(self, expected: Cost) -> None:
        """Set aside what a call may cost. When the rest is set aside for others, wait for what they really cost.

        Raises ``BudgetSpent``.
        """
        async with self._changed:
            while True:
                spent = await self.spent()
                if self._reached(spent):
                    raise self._error(spent)
                if not self._reached(spent.plus(self._under_way)):
                    break
                await self._changed.wait()
            self._under_way = self._under_way.plus(expected)

    async def settle(self, expected: Cost, cost: Cost, record: Callable[[], Awaitable[object]]) -> None:
        """Record what the call cost, in place of what was set aside for it."""
        async with self._changed:
            self._since_opening = self._since_opening.plus(cost)
            try:
                await record()
            finally:
                self._under_way = self._under_way.plus(expected, -1)
                self._changed.notify_all()

    async def left(self) -> dict[str, float]:
        """What is left of each limit."""
        spent = await self.spent()
        return {name: max(0, limit - used) for name, used, limit in self._limits(spent)}

    async def spent(self) -> Cost:
        """What counts against the budget by now."""
        if self._budget.per == "import":
            return self._since_opening
        uses = await self._used(datetime.now(timezone.utc).date())
        return Cost(
            sum(use.calls for use in uses),
            sum(use.prompt_tokens + use.completion_tokens for use in uses),
            sum(use.usd for use in uses),
        )

    def _limits(self, spent: Cost) -> list[tuple[str, float, float]]:
        """Each limit with its name and what was spent of it."""
        limits = (self._budget.calls, self._budget.tokens, self._budget.usd)
        named = zip(Cost._fields, spent, limits, strict=True)
        return [(name, used, limit) for name, used, limit in named if limit is not None]

    def _reached(self, spent: Cost) -> bool:
        return any(used >= limit for _, used, limit in self._limits(spent))

    def _error(self, spent: Cost) -> BudgetSpent:
        # Without numbers: hits and jobs repeat it to whoever asks, and what others spent is not for all of them.
        none = " and ".join(f"no {name}" for name, used, limit in self._limits(spent) if used >= limit)
        if self._budget.per == "import":
            return BudgetSpent(f"the budget is spent: {none} left since the memory was opened")
        until = next_midnight()
        told = f"the budget of the day is spent: {none} left; the next begins at {until:%Y-%m-%dT%H:%MZ}"
        return BudgetSpent(told, until)


def next_midnight() -> datetime:
    """When the next day begins (UTC)."""
    tomorrow = datetime.now(timezone.utc).date() + timedelta(days=1)
    return datetime.combine(tomorrow, datetime.min.time(), timezone.utc)
