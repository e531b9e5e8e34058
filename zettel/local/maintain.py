"""Operations that run jobs and maintain, inspect and check the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

from zettel.core.arguments import seconds, whole_number
from zettel.core.authority import require_full_trust
from zettel.errors import InvalidInput, NotFound, StoreError
from zettel.local.local_memory import LocalMemory
from zettel.model import Evolved, Job, JobKind, Retention, Scope, Swept, Then, Usage
from zettel.ports import CypherStore

if TYPE_CHECKING:
    from zettel.local.engine import Engine


async def scopes(memory: LocalMemory) -> list[Scope]:
    engine, _ = memory.use(None)
    return await engine.store.scopes()


async def flush(memory: LocalMemory, timeout: float | None = None, *, scope: Scope | None = None) -> None:
    engine, _ = memory.use(scope)
    deadline = _deadline(timeout)
    await engine.searcher.log.flush()
    await engine.searcher.decayed.settle()
    await engine.loop.drain(scope, deadline)


async def evolve(memory: LocalMemory, timeout: float | None = None, *, scope: Scope | None = None) -> Evolved:
    engine, scope = memory.use(scope)
    return await engine.evolution.run(scope, _deadline(timeout))


async def evolve_later(memory: LocalMemory, *, scope: Scope | None = None) -> bool:
    engine, scope = memory.use(scope)
    return await engine.evolution.later(scope)


async def jobs(memory: LocalMemory, *, scope: Scope | None = None) -> list[Job]:
    engine, _ = memory.use(scope)
    return await engine.store.jobs(scope)


async def retry_jobs(memory: LocalMemory, id: str | None = None, *, scope: Scope | None = None) -> int:
    engine, _ = memory.use(scope)
    if id is not None:
        scope = (await _job(engine, id, scope)).scope
    count = await engine.store.retry(scope, id)
    engine.loop.wake()
    return count


async def cancel_job(memory: LocalMemory, id: str, *, scope: Scope | None = None) -> Job:
    engine, _ = memory.use(scope)
    job = await _job(engine, id, scope)
    if job.kind is JobKind.PURGE:
        raise InvalidInput(f"job {id} completes a delete: it cannot be cancelled")
    if job.kind is JobKind.EXPIRE:
        raise InvalidInput(f"job {id} removes notes whose time is over: change the retention or their expiry instead")
    if not await engine.store.cancel(job.scope, id):
        raise InvalidInput(f"job {id} is running: only queued and failed jobs can be cancelled")
    return job


async def _job(engine: Engine, id: str, scope: Scope | None) -> Job:
    job = next((job for job in await engine.store.jobs(scope) if job.id == id), None)
    if job is None:
        raise NotFound(scope or "the queue", [id], "`zettel jobs`, or jobs(), lists the unfinished jobs")
    return job


async def reembed(memory: LocalMemory, *, on_progress: Callable[[int, int], None] | None = None) -> int:
    engine, scope = memory.use(None)
    engine.reembedding.on_progress = on_progress
    await engine.reembedding.queue(scope)
    await engine.loop.drain(scope, None)
    return engine.reembedding.done


async def retention(memory: LocalMemory, *, scope: Scope | None = None) -> Retention | None:
    engine, scope = memory.use(scope)
    return (await engine.store.state(scope)).retention


async def set_retention(
    memory: LocalMemory, max_age: float | None, then: Then, *, scope: Scope | None = None
) -> Retention:
    engine, scope = memory.use(scope)
    require_full_trust("sets a retention")
    if then not in get_args(Then):
        raise InvalidInput(f"then={then!r} must be one of {', '.join(get_args(Then))}")
    engine.guard.require_clean_scope(scope)
    chosen = Retention(max_age=None if max_age is None else timedelta(seconds=max_age), then=then)
    await engine.sweeper.set_retention(scope, chosen)
    engine.loop.wake()
    return chosen


async def remove_retention(memory: LocalMemory, *, scope: Scope | None = None) -> bool:
    engine, scope = memory.use(scope)
    require_full_trust("removes a retention")
    if (await engine.store.state(scope)).retention is None:
        return False
    await engine.sweeper.set_retention(scope, None)
    return True


async def sweep(memory: LocalMemory, *, dry_run: bool = False, scope: Scope | None = None) -> Swept:
    engine, scope = memory.use(scope)
    require_full_trust("sweeps a scope")
    pages = [page async for page in engine.sweeper.sweep(scope, dry_run=dry_run)]
    engine.loop.wake()
    return Swept(sum(page.deleted for page in pages), sum(page.archived for page in pages))


async def stats(memory: LocalMemory, *, scope: Scope | None = None) -> dict[str, Any]:
    engine, _ = memory.use(scope)
    active = next((space for space in await engine.store.spaces() if space.active), None)
    info = engine.vectors.embedder.info
    return {
        "store": engine.store.name,
        "annotator": engine.annotator.name,
        **await _model_stats(engine, scope),
        "embedder": active.name if active else info.name,
        "dimension": active.dim if active else info.dim,
        **await engine.store.counts(scope),
    }


async def usage(memory: LocalMemory, limit: int = 10, *, scope: Scope | None = None) -> Usage:
    from zettel.local.usage import usage_of

    engine, scope = memory.use(scope)
    await engine.searcher.log.flush()
    return await usage_of(engine.store, scope, whole_number("limit", limit))


async def _model_stats(engine: Engine, scope: Scope | None) -> dict[str, Any]:
    """Return the cost of language models in total, and the rest of the budget."""
    uses = await engine.store.model_use(scope)
    costs: dict[str, Any] = {} if engine.llm_client is None else {"llm": engine.llm_client.model.name}
    if uses:
        costs |= {
            "llm_calls": sum(use.calls for use in uses),
            "llm_hits": sum(use.hits for use in uses),
            "llm_tokens": sum(use.prompt_tokens + use.completion_tokens for use in uses),
            "llm_usd": round(sum(use.usd for use in uses), 6),
        }
    if engine.llm_client is not None and engine.llm_client.budget is not None:
        costs["budget"] = await engine.llm_client.budget_left()
    return costs


async def check(memory: LocalMemory, repair: bool = False) -> list[str]:
    engine, _ = memory.use(None)
    return await engine.store.check(repair)


async def cypher(memory: LocalMemory, query: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    engine, _ = memory.use(None)
    if not isinstance(engine.store, CypherStore):
        raise StoreError(
            f"the {engine.store.name} store does not support Cypher: store the memory in Neo4j, "
            'Memory("neo4j://localhost:7687", auth=(user, password))'
        )
    return await engine.store.cypher(query, params)


def _deadline(timeout: float | None) -> float | None:
    """Return the loop time at which ``timeout`` seconds are over."""
    limit = seconds("timeout", timeout)
    return None if limit is None else asyncio.get_running_loop().time() + limit
