"""Where language models are asked: what was answered before is given again, what is asked is paid from the budget, and
what it cost is recorded with the answer.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from functools import partial

import anyio

from zettel.annotate.index import vector_text
from zettel.batch import Op, PutAnswer, PutUse
from zettel.commit import Clock, Commits
from zettel.errors import InvalidInput, ModelError, ModelUnusable
from zettel.llm.answers import items
from zettel.llm.budget import Budget, Cost, Meter
from zettel.llm.ports import Answer, Ask, LanguageModel, Request
from zettel.model import ModelUse, Note, Scope
from zettel.ports import GraphStore, ScopeState

LATEST = 1_000
"""Questions of which it is known how often they were answered: who asks again does so within minutes."""


class Desk:
    """Asks one model for one store. ``budget``: what bounds it, if anything does."""

    def __init__(self, store: GraphStore, commits: Commits, model: LanguageModel, budget: Budget | None = None) -> None:
        self.model = model
        self.budget = budget
        self._store = store
        self._commits = commits
        self._answered: OrderedDict[str, int] = OrderedDict()  # what is asked once more had no use of its answer
        self._meter = None if budget is None else Meter(budget, partial(store.model_use, None))

    def asker(self, scope: Scope, shown: Iterable[Note] = ()) -> Ask:
        """The ``Ask`` of whoever puts the wording of these notes into requests."""
        return partial(self.ask, scope, shown={note.id: note for note in shown})

    async def ask(
        self, scope: Scope, request: Request, notes: Sequence[str], shown: Mapping[str, Note] | None = None
    ) -> Answer:
        """The answer to a request in which the text of ``notes`` stands, as ``shown`` has them.

        A kept answer costs nothing; one is kept only while all of them are there, and those shown say the same. Raises
        ``BudgetSpent``, and what the model and the store raise.
        """
        key = question_key((await self._store.state(scope)).secret, self.model.name, request)
        kept = await self._store.answer(scope, key)
        if kept is not None:
            told = json.loads(kept)
            await self._record(scope, ModelUse(day=today(), model=told["model"], hits=1))
            return Answer(text=told["text"], model=told["model"], cut=told["cut"], cached=True)
        expected = await self._expected(request)
        if self._meter is not None:
            await self._meter.reserve(expected)
        spent, keep = None, None
        try:
            answer = spent = await self.model.complete(replace(request, tries=self._answered.get(key, 0)))
            if is_readable(answer):
                keep = PutAnswer(key, kept_form(answer), tuple(dict.fromkeys(notes)))
            return answer
        except ModelError as error:
            spent = error.spent
            raise
        finally:
            if spent is not None:
                self._count(key)
            with anyio.CancelScope(shield=True):  # what was paid is recorded, what was set aside is free again
                await self._settle(scope, expected, spent, keep, shown or {})

    async def budget_left(self) -> dict[str, float]:
        """What is left of each limit of the budget: calls, tokens, usd. Empty without a budget."""
        return {} if self._meter is None else await self._meter.left()

    def _count(self, key: str) -> None:
        self._answered[key] = self._answered.pop(key, 0) + 1
        if len(self._answered) > LATEST:
            self._answered.popitem(last=False)

    async def _expected(self, request: Request) -> Cost:
        """What a call costs at most, about. Without a budget nobody needs to know."""
        if self.budget is None:
            return Cost()
        told = "".join([request.system, *(part for example in request.examples for part in example), request.user])
        # In a thread, for what counts and prices may be heavy to load.
        tokens = await anyio.to_thread.run_sync(self.model.count_tokens, told)
        usd = await anyio.to_thread.run_sync(self.model.price, tokens, request.max_tokens)
        if usd is None and self.budget.usd is not None:
            raise InvalidInput(f"the price of {self.model.name} is not known: bound it with Budget(calls=, tokens=)")
        return Cost(1, tokens + request.max_tokens, usd or 0.0)

    async def _settle(
        self, scope: Scope, expected: Cost, spent: Answer | None, keep: PutAnswer | None, shown: Mapping[str, Note]
    ) -> None:
        """Record a call and keep its answer, in one commit."""
        use = None if spent is None else use_of(spent)
        cost = Cost() if use is None else Cost(1, use.prompt_tokens + use.completion_tokens, use.usd)
        record = partial(self._record, scope, use, keep, shown)
        if self._meter is None:
            await record()
        else:
            await self._meter.settle(expected, cost, record)

    async def _record(
        self,
        scope: Scope,
        use: ModelUse | None,
        keep: PutAnswer | None = None,
        shown: Mapping[str, Note] | None = None,
    ) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            if use is None or not state.seq:  # the scope was destroyed meanwhile: nothing is to bring it back
                return []
            holds = keep is not None and await self._still_said(scope, keep.notes, shown or {})
            return [*([keep] if keep is not None and holds else []), PutUse(use)]

        if use is not None:
            await self._commits.commit(scope, plan)

    async def _still_said(self, scope: Scope, ids: Sequence[str], shown: Mapping[str, Note]) -> bool:
        """Whether no note was deleted or lost its wording since it was shown: an answer must not outlive that."""
        now = await self._store.notes(scope, ids)
        return all(id in now and (id not in shown or vector_text(now[id]) == vector_text(shown[id])) for id in ids)


def question_key(secret: bytes, model: str, request: Request) -> str:
    """The keyed hash of a model and all it is asked; without the scope's secret it betrays nothing."""
    asked = [model, request.prompt, request.system, request.examples, request.user, request.schema, request.max_tokens]
    told = json.dumps(asked, sort_keys=True).encode()
    return hashlib.blake2b(told, key=secret, digest_size=20, person=b"zettel.answer").hexdigest()


def kept_form(answer: Answer) -> str:
    """An answer as it is kept."""
    return json.dumps({"text": answer.text, "model": answer.model, "cut": answer.cut})


def is_readable(answer: Answer) -> bool:
    """Whether there is anything in an answer that is worth keeping."""
    try:
        items(answer.text, answer.cut)
    except ModelUnusable:
        return False
    return True


def use_of(spent: Answer) -> ModelUse:
    """One call, as it is counted."""
    return ModelUse(
        day=today(),
        model=spent.model,
        calls=1,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        usd=spent.usd or 0.0,
    )


def today() -> date:
    """The day by which use is counted."""
    return datetime.now(timezone.utc).date()
