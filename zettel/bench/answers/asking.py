"""Calls of a language model within a budget, with cached answers and pauses while the model is unavailable."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio

from zettel import AsyncMemory
from zettel.core.commit import Commits
from zettel.errors import InvalidInput, InvalidModelOutput, ModelUnavailable
from zettel.graph import open_store
from zettel.llm.budget import Budget
from zettel.llm.cached_client import CachedLLM
from zettel.llm.lite import LiteLLM
from zettel.llm.litellm_module import import_litellm
from zettel.llm.output_modes import known_as
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.ports.language_model import Answer, Request

TIMEOUT = 300.0
"""Seconds of one request; a full text of 100,000 tokens takes a while to read."""
TRIES = 3
"""Requests for one answer or verdict until it is usable."""
PAUSES = (1.0, 4.0, 15.0, 60.0)
"""Seconds between requests to an unavailable model, unless the provider names a time."""
LONGEST_PAUSE = 300.0
"""Seconds; a longer wait ends the run, which can be continued."""
REMINDER = "\nAnswer with the JSON object alone."
"""The end of a request after a useless answer."""
SCOPE = Scope(user="bench answers")

T = TypeVar("T")


def load_model_with_key(name: str) -> LiteLLM:
    """Return the LiteLLM model of a name. Raises ``InvalidInput`` for one that cannot work, ``MissingExtra``."""
    model = LiteLLM(name, timeout=TIMEOUT)
    for complaint in model.complaints():
        raise InvalidInput(complaint)
    return model


def context_window(name: str) -> int | None:
    """Return the tokens that a model reads at most, by LiteLLM's table; None if the table lacks the model."""
    window = (known_as(import_litellm(), name) or {}).get("max_input_tokens")
    return window if isinstance(window, int) else None


@asynccontextmanager
async def opened_cache(path: Path) -> AsyncIterator[GraphStore]:
    """Open the store with the cached answers and the use of models."""
    async with AsyncMemory(str(path), embedder="static") as memory:
        # A scope exists from its first event, and only an existing scope has a cache.
        await memory.add("Cached answers of language models.", id="cache", scope=SCOPE)
        await memory.flush(scope=SCOPE)
    store = open_store(path)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class Asker:
    """Asks one model. ``calls``, ``tokens`` and ``usd`` count the cost of this run, ``hits`` the cached answers."""

    def __init__(self, store: GraphStore, model: LiteLLM, budget: Budget | None) -> None:
        self._client = CachedLLM(store, Commits(store), model, budget)
        self._limiter = anyio.CapacityLimiter(model.concurrency)
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self.calls = self.hits = self.tokens = 0
        self.usd = 0.0

    async def ask(self, request: Request, parse: Callable[[Answer], T]) -> tuple[T | None, float | None]:
        """Return the parsed answer, None if none is usable, and the seconds of its call, None if unknown.

        Raises ``BudgetSpent``, ``ModelDenied``, and ``ModelUnavailable`` after the last pause.
        """
        lock = self._locks.setdefault(f"{request.prompt}\n{request.user}", anyio.Lock())
        async with lock, self._limiter:  # the second of two equal requests gets the cached answer of the first
            for _ in range(TRIES):
                try:
                    answer, seconds = await self._available(request)
                    return parse(answer), seconds
                except InvalidModelOutput as error:
                    if error.spent is not None:
                        self._count(error.spent)
                    # Another text, because the useless answer may be cached by now.
                    request = replace(request, user=request.user + REMINDER)
        return None, None

    async def _available(self, request: Request) -> tuple[Answer, float | None]:
        """Return an answer and the seconds of its call, after pauses while the model is unavailable.

        Calls before the first answer have no seconds, because they load LiteLLM.
        """
        for pause in (*PAUSES, None):
            is_warm, began = self.calls > 0, time.perf_counter()
            try:
                answer = await self._client.ask(SCOPE, request, ())
            except ModelUnavailable as error:
                wait = pause if error.retry_after is None else max(error.retry_after, pause or 0.0)
                if pause is None or wait is None or wait > LONGEST_PAUSE:
                    raise
                await anyio.sleep(wait)
            else:
                self._count(answer)
                return answer, time.perf_counter() - began if is_warm and not answer.cached else None
        raise AssertionError("the last pause raises")

    def _count(self, answer: Answer) -> None:
        self.hits += answer.cached
        self.calls += not answer.cached
        self.tokens += answer.prompt_tokens + answer.completion_tokens
        self.usd += answer.usd or 0.0

    async def budget_left(self, budget: Budget) -> Budget:
        """Return the rest of a budget for the next model of this run."""
        if budget.per == "day":  # the store counts all models together
            return budget
        left = await self._client.budget_left()
        calls, tokens = (int(left[name]) if name in left else None for name in ("calls", "tokens"))
        return Budget(calls, tokens, left.get("usd"), "import")
