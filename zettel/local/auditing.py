"""Records each operation of a memory in its audit log."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from anyio.to_thread import run_sync

from zettel.core.changes import touched_ids
from zettel.core.principals import acting
from zettel.core.privacy import SecretGuard
from zettel.errors import AuditError, PermissionDenied, SecretRefused
from zettel.local.audit_log import AuditLog
from zettel.model import (
    Conflict,
    EventRecord,
    Example,
    Graph,
    Hit,
    Job,
    Link,
    Neighbor,
    Note,
    Page,
    QueryResult,
    Remembered,
    Scope,
)

READS = frozenset({
    "get", "list", "review", "events", "query", "links", "neighbors", "graph", "conflicts", "terms", "history",
    "search", "context", "answer_context", "session_context", "examples", "searches",
    "estimate_import", "export", "dump", "scopes", "jobs", "stats", "usage", "cypher", "entities", "entity",
    "retention",
})  # fmt: skip
"""Operations that only read. All others are recorded before and after they are carried out."""
STREAMED = frozenset({"export", "dump"})
"""Reads that hand out data before they end. They are recorded before, too."""
EVERY_SCOPE = frozenset({"flush", "jobs", "retry_jobs", "cancel_job", "stats", "scopes", "reembed", "check", "cypher"})
"""Operations that concern all scopes if none is named."""
NAMES = ("id", "source", "target", "keep", "over", "session", "principal", "around", "path", "to", "search_id")
"""Arguments that name what an operation concerns. No other argument is recorded."""
MISSING_ID = "n_0"
"""No note has this id. A readiness check of a server looks it up every second, which is not recorded."""
MOST_IDS = 1_000
"""Ids in one record; ``count`` counts all."""


class Auditor:
    """Carries out operations and records them. An operation that cannot be recorded fails with ``AuditError``."""

    def __init__(self, log: AuditLog, default: Scope, guard: SecretGuard) -> None:
        self._log = log
        self._default = default
        self._guard = guard

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    async def call(
        self, operation: str, arguments: Mapping[str, Any], scope: Scope | None, run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Record and run an operation, and return its result."""
        if operation == "get" and arguments["id"] == MISSING_ID:
            return await run()
        record = self._record(operation, arguments, scope)
        is_recorded_first = operation not in READS or operation in STREAMED
        if is_recorded_first:
            await self._before(record)
        with touched_ids() as ids:
            try:
                result = await run()
            except BaseException as error:
                self._log.append(record | _outcome(error) | _named(ids))
                raise
            ids.update(dict.fromkeys(_ids_in(result)))
        count = {"count": result} if type(result) is int else {}
        try:
            self._log.append(record | {"result": "ok"} | _named(ids) | count)
        except AuditError as error:
            if is_recorded_first:
                raise AuditError(f"{operation} was carried out, but its end is not recorded: {error}") from None
            raise
        return result

    async def stream(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        scope: Scope | None,
        run: Callable[[], AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        """Record an operation, and yield its results."""
        record = self._record(operation, arguments, scope)
        await self._before(record)
        count = 0
        try:
            async for item in run():
                count += 1
                yield item
        except GeneratorExit:  # the caller needs no more
            self._log.append(record | {"result": "ok", "count": count})
            raise
        except BaseException as error:
            self._log.append(record | _outcome(error) | {"count": count})
            raise
        self._log.append(record | {"result": "ok", "count": count})

    async def _before(self, record: dict[str, Any]) -> None:
        record["call"] = secrets.token_hex(4)
        self._log.append(record | {"result": "begun"})
        await run_sync(self._log.sync)

    def _record(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> dict[str, Any]:
        record: dict[str, Any] = {"op": operation} | actor()
        scopes = arguments.get("scopes") or arguments.get("search", {}).get("scopes")
        if isinstance(scopes, (list, tuple)):
            record["scopes"] = [self._parts(each) for each in scopes if isinstance(each, Scope)]
        elif arguments.get("all_scopes"):
            record["scopes"] = "all"
        elif scope is not None or operation not in EVERY_SCOPE:
            record["scope"] = self._parts(scope or self._default)
        named = {name: self._guard.cleaned(value) for name in NAMES if isinstance(value := arguments.get(name), str)}
        return record | ({"of": named} if named else {})

    def _parts(self, scope: Scope) -> dict[str, str]:
        return {name: self._guard.cleaned(value) for name, value in scope.model_dump(exclude_none=True).items()}


def actor() -> dict[str, Any]:
    """Return the fields of a record that name who acts: the principal, and the name of its key."""
    principal = acting()
    return {"who": principal.name or None} | ({"name": principal.label} if principal.label else {})


def _outcome(error: BaseException) -> dict[str, str]:
    """Return the result of an operation that failed; the text of an error may quote content."""
    refused = isinstance(error, (PermissionDenied, SecretRefused))
    return {"result": "refused" if refused else "failed", "error": type(error).__name__}


def _named(ids: Mapping[str, None]) -> dict[str, Any]:
    return {"ids": list(ids)[:MOST_IDS], "count": len(ids)}


def _ids_in(result: Any) -> Iterator[str]:
    """Yield the ids of the notes, events and jobs in a result."""
    if isinstance(result, (Note, Job)):
        yield result.id
    elif isinstance(result, EventRecord):
        yield result.event_id
    elif isinstance(result, Remembered):
        yield from () if result.id is None else (result.id,)
    elif isinstance(result, Link):
        yield from (result.source, result.target)
    elif isinstance(result, (Hit, Neighbor)):
        yield result.note.id
    elif isinstance(result, Conflict):
        yield from (result.note.id, result.other.id)
    elif isinstance(result, (Page, Graph)):
        yield from _ids_in_all(result.notes)
    elif isinstance(result, QueryResult):
        yield from _ids_in_all((*result.notes, *result.events))
    elif isinstance(result, Example):
        yield result.note
    elif isinstance(result, (list, tuple)):
        yield from _ids_in_all(result)


def _ids_in_all(results: Iterable[Any]) -> Iterator[str]:
    for result in results:
        yield from _ids_in(result)
