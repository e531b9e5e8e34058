"""Opening a memory, closing it, and what every call begins with: the engine, the scope and the scorer that it means."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from zettel.arguments import require_id
from zettel.errors import InvalidInput, MemoryClosed
from zettel.model import Scope
from zettel.opening import Opening
from zettel.ports import Annotator, Embedder, GraphStore, Reranker, Scorer

if TYPE_CHECKING:
    from zettel.engine import Engine
    from zettel.evolve.decay import Decay
    from zettel.jobs.runners import RunnerSpec
    from zettel.llm.budget import Budget
    from zettel.llm.ports import LLM, ModelAnnotator
    from zettel.scoring import Effort, ScorerSpec


Whole = TypeVar("Whole", bound="Opened")


class Opened:
    """A memory that can be opened and closed: what each part of the public face stands on."""

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        llm: LLM | None = None,
        annotator: Annotator | ModelAnnotator | None = None,
        budget: Budget | None = None,
        asks: bool = True,
        decay: Decay | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: ScorerSpec = None,
        scope: Scope | None = None,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        runner: RunnerSpec = None,
        key: str | None = None,
    ) -> None:
        require_scope(scope)
        if key is not None:
            raise InvalidInput("key= is for a zettel server, https://HOST:PORT: a store is opened without one")
        self.scope = scope or Scope()
        self._how = Opening(
            url, auth=auth, database=database, embedder=embedder, annotator=annotator, llm=llm, budget=budget,
            asks=asks, decay=decay,
        )  # fmt: skip
        self._runner = runner
        self._scorer = scorer
        self._loaded: dict[str, tuple[Scorer, tuple[Reranker, ...]]] = {}
        self._pid = os.getpid()
        self._engine: Engine | None = None
        self._closed = False
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self: Whole) -> Whole:
        """Open the store and begin to work off its jobs. Raises what the store's ``open`` raises."""
        async with self._opening:
            self._require_usable()
            if self._engine is None:
                stages: tuple[Reranker, ...] = ()
                if self._scorer is not None:
                    _, stages = await self._scorers()  # what cannot be loaded is told now, not by the first search
                from zettel.engine import start  # brings in numpy and the rooms: not before they are needed
                from zettel.jobs.runners import load_runner
                from zettel.search.slots import bank_of

                self._engine = await start(self._how, load_runner(self._runner))
                self._engine.slots.bank = bank_of(stages)
                self._loop = asyncio.get_running_loop()
        return self

    async def close(self) -> None:
        """Stop working and close the store. Jobs that are not done stay in it, for whoever opens it next."""
        if self._engine is not None and not self._closed:
            self._closed = True
            if self._loop is asyncio.get_running_loop():
                await self._engine.close()
            else:  # what worked in the other loop ended with it
                await self._engine.store.close()
        self._closed = True

    async def __aenter__(self: Whole) -> Whole:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _require_usable(self) -> None:
        if self._pid != os.getpid():
            raise MemoryClosed("this memory was opened before a fork: open another one in this process")
        if self._closed:
            raise MemoryClosed("this memory was closed: open another one")
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise MemoryClosed("this memory was opened in another event loop: open one in this loop, or use Memory")

    async def _use(self, scope: Scope | None, *ids: str) -> tuple[Engine, Scope]:
        """The engine, and the scope that a call means, which may hold the ``ids`` that it names."""
        self._require_usable()
        require_scope(scope)
        if self._engine is None:
            await self.open()
        assert self._engine is not None
        scope = scope or self.scope
        for id in ids:
            require_id(scope, id)
        return self._engine, scope

    async def _scorers(
        self, asked: ScorerSpec = None, effort: Effort | None = None
    ) -> tuple[Scorer, tuple[Reranker, ...]]:
        """The first stage and the rerankers of a search; what a name stands for is loaded once."""
        from zettel.scoring import load_scorer

        if effort is not None and asked is not None:
            raise InvalidInput("effort= chooses a scorer: do without scorer=")
        spec = f"effort:{effort}" if effort is not None else self._scorer if asked is None else asked
        spec = "fusion" if spec is None else spec
        if not isinstance(spec, str):
            return load_scorer(spec)
        if spec not in self._loaded:
            self._loaded[spec] = await anyio.to_thread.run_sync(load_scorer, spec)
        return self._loaded[spec]


def require_scope(scope: Scope | None) -> None:
    """Raise ``InvalidInput`` for what is no scope."""
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInput(f"scope={scope!r} is not a Scope: use Scope(user=...)")
