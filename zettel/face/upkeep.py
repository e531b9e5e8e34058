"""Looking after a memory: its jobs, its vectors, its counts, and questions in Cypher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zettel.arguments import seconds
from zettel.errors import InvalidInput, NotFound, StoreError
from zettel.face.opened import Opened
from zettel.model import Evolved, Job, JobKind, Scope
from zettel.ports import CypherStore

if TYPE_CHECKING:
    from zettel.engine import Engine


class Upkeep(Opened):
    """What keeps a memory in order and tells how it is."""

    async def scopes(self) -> list[Scope]:
        """The scopes that hold something."""
        engine, _ = await self._use(None)
        return await engine.store.scopes()

    async def flush(self, timeout: float | None = None, *, scope: Scope | None = None) -> None:
        """Run, or wait for, all pending jobs of the store (of one scope, if given).

        Raises ``FlushTimeout`` after ``timeout`` seconds, ``JobFailed`` if one ended in an error.
        """
        engine, _ = await self._use(scope)
        deadline = _deadline(timeout)
        await engine.finding.log.flush()
        await engine.finding.faded.settle()
        await engine.loop.drain(scope, deadline)

    async def evolve(self, timeout: float | None = None, *, scope: Scope | None = None) -> Evolved:
        """Have the notes of a scope learn from each other, after its pending jobs; what that changed.

        Words that bind a note's neighbours join its keywords, its importance follows its links, notes that say the same
        become one, what belongs together gets an insight, what lasts of people a profile (see ``context``), and what
        came of acting a lesson. Each change is a revision that ``history`` shows and ``revert`` takes back. To run it
        again changes nothing until something new arrives. Raises what ``flush`` raises.
        """
        engine, scope = await self._use(scope)
        return await engine.evolution.run(scope, _deadline(timeout))

    async def evolve_later(self, *, scope: Scope | None = None) -> bool:
        """Queue what ``evolve`` does, for any process that works off jobs, after all that single notes wait for.

        False if nothing was written in the scope since this memory queued it last: then nothing is queued.
        """
        engine, scope = await self._use(scope)
        return await engine.evolution.later(scope)

    async def jobs(self, *, scope: Scope | None = None) -> list[Job]:
        """Jobs that are not done: queued, running, or failed with their error."""
        engine, _ = await self._use(scope)
        return await engine.store.jobs(scope)

    async def retry_jobs(self, id: str | None = None, *, scope: Scope | None = None) -> int:
        """Queue failed jobs again, or only the one of this id; how many. Raises ``NotFound``."""
        engine, _ = await self._use(scope)
        if id is not None:
            scope = (await self._job(engine, id, scope)).scope
        count = await engine.store.retry(scope, id)
        engine.loop.wake()
        return count

    async def cancel_job(self, id: str, *, scope: Scope | None = None) -> Job:
        """Take a job that waits or failed off the queue; what it was to do is not done.

        Raises ``NotFound``, and ``InvalidInput`` for one that is running, and for a purge, which ends a delete.
        """
        engine, _ = await self._use(scope)
        job = await self._job(engine, id, scope)
        if job.kind is JobKind.PURGE:
            raise InvalidInput(f"job {id} is the end of a delete: a purge cannot be cancelled")
        if not await engine.store.cancel(job.scope, id):
            raise InvalidInput(f"job {id} is running: only what waits or failed can be cancelled")
        return job

    async def _job(self, engine: Engine, id: str, scope: Scope | None) -> Job:
        job = next((job for job in await engine.store.jobs(scope) if job.id == id), None)
        if job is None:
            raise NotFound(scope or "the queue", [id], "`zettel jobs`, or jobs(), shows those that are")
        return job

    async def reembed(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every note with this memory's embedder and change over to it; how many notes were embedded.

        Can be stopped and run again, or left to the next ``Memory`` with this embedder; searches use the old vectors
        until the change. ``on_progress`` is told how many are embedded, of how many. Raises ``JobFailed``.
        """
        engine, scope = await self._use(None)
        engine.reembedding.on_progress = on_progress
        await engine.reembedding.queue(scope)
        await engine.loop.drain(scope, None)
        return engine.reembedding.done

    async def stats(self, *, scope: Scope | None = None) -> dict[str, Any]:
        """Counts of a scope (None: of all), and by which store, embedder and annotator they came about."""
        engine, _ = await self._use(scope)
        active = next((space for space in await engine.store.spaces() if space.active), None)
        info = engine.vectors.embedder.info
        return {
            "store": engine.store.name,
            "annotator": engine.annotator.name,
            **await self._model_stats(engine, scope),
            "embedder": active.name if active else info.name,
            "dimension": active.dim if active else info.dim,
            **await engine.store.counts(scope),
        }

    async def _model_stats(self, engine: Engine, scope: Scope | None) -> dict[str, Any]:
        """What language models have cost, in all, and what is left of the budget."""
        uses = await engine.store.model_use(scope)
        told: dict[str, Any] = {} if engine.desk is None else {"llm": engine.desk.model.name}
        if uses:
            told |= {
                "llm_calls": sum(use.calls for use in uses),
                "llm_hits": sum(use.hits for use in uses),
                "llm_tokens": sum(use.prompt_tokens + use.completion_tokens for use in uses),
                "llm_usd": round(sum(use.usd for use in uses), 6),
            }
        if engine.desk is not None and engine.desk.budget is not None:
            told["budget"] = await engine.desk.budget_left()
        return told

    async def check(self, repair: bool = False) -> list[str]:
        """What is wrong in the store, one line each; with ``repair`` what is derived is made anew."""
        engine, _ = await self._use(None)
        return await engine.store.check(repair)

    async def cypher(self, query: str, /, **params: Any) -> list[dict[str, Any]]:
        """The rows of a query in Cypher, each a dict by column: only for a memory that is kept in Neo4j.

        ``params`` are the query's parameters. It sees the whole database, past every scope: say ``{scope: $scope}``
        with ``scope=memory.scope.key`` to stay in one, and never put words of strangers into the query's text. Nodes
        come as dicts of their properties, relationships too, with their ``type``. It can only read, for at most 30
        seconds and 10,000 rows, without LOAD CSV and without procedures but those that ask indexes and labels.

        Raises ``InvalidQuestion`` for any other query, ``StoreError`` if the memory is not in Neo4j.
        """
        engine, _ = await self._use(None)
        if not isinstance(engine.store, CypherStore):
            raise StoreError(
                f"the {engine.store.name} store answers no Cypher: keep the memory in Neo4j, "
                'Memory("neo4j://localhost:7687", auth=(user, password))'
            )
        return await engine.store.cypher(query, params)


def _deadline(timeout: float | None) -> float | None:
    """The loop's time at which ``timeout`` seconds are over."""
    limit = seconds("timeout", timeout)
    return None if limit is None else asyncio.get_running_loop().time() + limit
