"""``LocalMemory``: the open engine, the default scope and the loaded scorers of a memory in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from zettel.core.external_ids import note_id_of
from zettel.errors import InvalidInput
from zettel.model import Scope
from zettel.ports import Reranker, Runner, Scorer
from zettel.ports.settings import Settings

if TYPE_CHECKING:
    from zettel.local.engine import Engine
    from zettel.local.runners import RunnerSpec
    from zettel.local.webhooks import Webhooks
    from zettel.scoring import ScorerSpec


class LocalMemory:
    """Opens and closes the engine, and resolves the engine, scope and scorer of each operation."""

    def __init__(
        self,
        settings: Settings,
        scope: Scope,
        runner: RunnerSpec,
        scorer: ScorerSpec,
        webhooks: str | Path | None = None,
    ) -> None:
        self.loaded_scorers: dict[str, tuple[Scorer, tuple[Reranker, ...]]] = {}
        self.engine: Engine | None = None
        self.settings = settings
        self._scope = scope
        self.runner = runner
        self.scorer = scorer
        self.webhooks_file = webhooks
        self._webhooks: Webhooks | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Open the store and start its jobs. Raises what the store's ``open`` raises."""
        if self.scorer is not None:
            await self.scorers()  # a scorer that cannot be loaded fails here, not in the first search
        from zettel.local.engine import start  # imports numpy and most of the engine
        from zettel.local.runners import load_runner

        runner = load_runner(self.runner)
        if self.webhooks_file is not None:
            self._webhooks = await self._open_webhooks(self.webhooks_file, runner)
        try:
            self.engine = await start(self.settings, runner, self._webhooks)
        except BaseException:
            self._close_webhooks()
            raise
        if self._webhooks is not None:
            self._webhooks.start(self.engine.store)
        self._loop = asyncio.get_running_loop()

    async def _open_webhooks(self, file: str | Path, runner: Runner | None) -> Webhooks:
        from zettel.local.webhooks import Webhooks

        if runner is not None:
            raise InvalidInput("webhooks= requires jobs in this process: leave runner= out")
        return await anyio.to_thread.run_sync(Webhooks, file)

    def _close_webhooks(self) -> None:
        if self._webhooks is not None:
            self._webhooks.close()

    async def close(self) -> None:
        """Stop the jobs and close the store."""
        if self.engine is None:
            return
        try:
            if self._loop is asyncio.get_running_loop():
                if self._webhooks is not None:
                    await self._webhooks.stop()
                await self.engine.close()
            else:  # the tasks of the other loop ended with it
                await self.engine.store.close()
        finally:
            self._close_webhooks()

    def use(self, scope: Scope | None) -> tuple[Engine, Scope]:
        """Return the engine and the scope of a call."""
        assert self.engine is not None
        return self.engine, scope or self._scope

    async def locate(self, scope: Scope | None, id: str) -> tuple[Engine, Scope, str]:
        """Return the engine, the scope of a call, and the id of the note that ``id`` names. Raises ``NotFound``.

        ``id`` is zettel's own, or the external id of an event.
        """
        engine, scope = self.use(scope)
        return engine, scope, await note_id_of(engine.store, scope, id)

    async def scorers(self, requested: ScorerSpec = None) -> tuple[Scorer, tuple[Reranker, ...]]:
        """Return the first stage and the rerankers of a search. Each name is loaded once."""
        from zettel.scoring import load_scorer

        spec = self.scorer if requested is None else requested
        spec = "fusion" if spec is None else spec
        if not isinstance(spec, str):
            return load_scorer(spec)
        if spec not in self.loaded_scorers:
            self.loaded_scorers[spec] = await anyio.to_thread.run_sync(load_scorer, spec)
        return self.loaded_scorers[spec]
