"""The client of a language model that caches answers, enforces the budget and records costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from functools import partial

import anyio
from cachetools import LRUCache

from zettel.core.commit import Clock, Commits
from zettel.core.telemetry import model_call, report_tokens
from zettel.errors import InvalidInput, InvalidModelOutput, ModelError
from zettel.llm.answer_parsing import items
from zettel.llm.budget import Cost, Meter
from zettel.model import ModelUse, Note, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.ports.language_model import Answer, Ask, LanguageModel, Request
from zettel.ports.operations import Op, PutAnswer, PutUse
from zettel.ports.settings import SpendingLimit
from zettel.text.index import vector_text

MAX_COUNTED = 1_000
"""Requests whose answers are counted: a retry comes within minutes."""


class CachedLLM:
    """Calls one model for one store, within ``budget`` if there is one."""

    def __init__(
        self, store: GraphStore, commits: Commits, model: LanguageModel, budget: SpendingLimit | None = None
    ) -> None:
        self.model = model
        self.budget = budget
        self._store = store
        self._commits = commits
        self._answered: LRUCache[str, int] = LRUCache(MAX_COUNTED)  # a repeated request had a useless answer
        self._meter = None if budget is None else Meter(budget, partial(store.model_use, None))

    def ask_about(self, scope: Scope, shown: Iterable[Note] = ()) -> Ask:
        """Return the ``Ask`` for requests that contain the text of these notes."""
        return partial(self.ask, scope, shown={note.id: note for note in shown})

    async def ask(
        self, scope: Scope, request: Request, notes: Sequence[str], shown: Mapping[str, Note] | None = None
    ) -> Answer:
        """Return the answer to a request that contains the text of ``notes``, as ``shown`` has them.

        A cached answer costs nothing. An answer is cached while all of these notes exist with the same text. Raises
        ``BudgetSpent``, and what the model and the store raise.
        """
        key = question_key((await self._store.state(scope)).secret, self.model.name, request)
        cached = await self._store.answer(scope, key)
        if cached is not None:
            entry = json.loads(cached)
            await self._record(scope, ModelUse(day=today(), model=entry["model"], hits=1))
            return Answer(text=entry["text"], model=entry["model"], cut=entry["cut"], cached=True)
        expected = await self._expected(request)
        if self._meter is not None:
            await self._meter.reserve(expected)
        spent, entry_op = None, None
        try:
            answer = spent = await self._complete(replace(request, tries=self._answered.get(key, 0)))
            if is_readable(answer):
                entry_op = PutAnswer(key, cache_entry(answer), tuple(dict.fromkeys(notes)))
            return answer
        except ModelError as error:
            spent = error.spent
            raise
        finally:
            if spent is not None:
                self._count(key)
            with anyio.CancelScope(shield=True):  # record the cost and release the reservation
                await self._settle(scope, expected, spent, entry_op, shown or {})

    async def _complete(self, request: Request) -> Answer:
        spent: Answer | None = None
        with model_call("chat", self.model.name) as call:
            try:
                answer = spent = await self.model.complete(request)
            except ModelError as error:
                spent = error.spent
                raise
            finally:
                if spent is not None:
                    call.measured["gen_ai.response.model"] = spent.model
                    report_tokens(call, self.model.name, spent.prompt_tokens, spent.completion_tokens)
            return answer

    async def budget_left(self) -> dict[str, float]:
        """Return the remaining calls, tokens and usd of the budget; empty without one."""
        return {} if self._meter is None else await self._meter.left()

    def _count(self, key: str) -> None:
        self._answered[key] = self._answered.get(key, 0) + 1

    async def _expected(self, request: Request) -> Cost:
        """Return an upper estimate of the cost of a call; 0 without a budget."""
        if self.budget is None:
            return Cost()
        prompt = "".join([request.system, *(part for example in request.examples for part in example), request.user])
        # In a thread, because tokenizers and price tables may be slow to load.
        tokens = await anyio.to_thread.run_sync(self.model.count_tokens, prompt)
        usd = await anyio.to_thread.run_sync(self.model.price, tokens, request.max_tokens)
        if usd is None and self.budget.usd is not None:
            raise InvalidInput(f"the price of {self.model.name} is unknown: use Budget(calls=, tokens=)")
        return Cost(1, tokens + request.max_tokens, usd or 0.0)

    async def _settle(
        self, scope: Scope, expected: Cost, spent: Answer | None, entry: PutAnswer | None, shown: Mapping[str, Note]
    ) -> None:
        """Record a call and cache its answer, in one commit."""
        use = None if spent is None else use_of(spent)
        cost = Cost() if use is None else Cost(1, use.prompt_tokens + use.completion_tokens, use.usd)
        record = partial(self._record, scope, use, entry, shown)
        if self._meter is None:
            await record()
        else:
            await self._meter.settle(expected, cost, record)

    async def _record(
        self,
        scope: Scope,
        use: ModelUse | None,
        entry: PutAnswer | None = None,
        shown: Mapping[str, Note] | None = None,
    ) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            if use is None or not state.seq:  # the scope was deleted meanwhile: do not create it again
                return []
            is_valid = entry is not None and await self._is_unchanged(scope, entry.notes, shown or {})
            return [*([entry] if entry is not None and is_valid else []), PutUse(use)]

        if use is not None:
            await self._commits.commit(scope, plan)

    async def _is_unchanged(self, scope: Scope, ids: Sequence[str], shown: Mapping[str, Note]) -> bool:
        """Return whether all notes still exist with the text that the model was given."""
        now = await self._store.notes(scope, ids)
        return all(id in now and (id not in shown or vector_text(now[id]) == vector_text(shown[id])) for id in ids)


def question_key(secret: bytes, model: str, request: Request) -> str:
    """Return the keyed hash of a model and a request; without the secret of the scope it reveals nothing."""
    parts = [model, request.prompt, request.system, request.examples, request.user, request.schema, request.max_tokens]
    text = json.dumps(parts, sort_keys=True).encode()
    return hashlib.blake2b(text, key=secret, digest_size=20, person=b"zettel.answer").hexdigest()


def cache_entry(answer: Answer) -> str:
    return json.dumps({"text": answer.text, "model": answer.model, "cut": answer.cut})


def is_readable(answer: Answer) -> bool:
    try:
        items(answer.text, answer.cut)
    except InvalidModelOutput:
        return False
    return True


def use_of(spent: Answer) -> ModelUse:
    return ModelUse(
        day=today(),
        model=spent.model,
        calls=1,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        usd=spent.usd or 0.0,
    )


def today() -> date:
    """Return the current day (UTC)."""
    return datetime.now(timezone.utc).date()
