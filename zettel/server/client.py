"""A memory that another machine keeps: the methods of ``AsyncMemory``, over HTTP.

``AsyncMemory("https://…", key=…)`` makes one. Each method is that of ``AsyncMemory``: its arguments are bound by the
same signature, sent under the same names, and what comes back is the same value.
"""

from __future__ import annotations

import asyncio
import builtins
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

from pydantic import BaseModel

from zettel.arguments import checked, require_id, require_one, require_path, several
from zettel.async_memory import AsyncMemory
from zettel.errors import InvalidInput, NotFound, StoreError
from zettel.exports import format_for, require_replaceable
from zettel.face.opened import require_scope
from zettel.identity import Ordinals
from zettel.model import Event, EventRecord, Note, OnConflict, Remembered, Scope
from zettel.server import wire
from zettel.server.connection import Connection
from zettel.server.uploading import in_query, keep, lines, sendable
from zettel.server.wire import Answer

if TYPE_CHECKING:
    from zettel.exports.report import ExportReport
    from zettel.llm.estimate import Estimate
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport, OnRejected

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])
_IN_PATH = re.compile(r"{(\w+)}")
_ID = re.compile(r"[A-Za-z0-9_-]+")


class Route(NamedTuple):
    """Where a method is asked for, and what its answer is: None says that it has none."""

    verb: str
    path: str
    answer: Answer[Any] | None


def over_http(method: Method, verb: str, path: str, answer: Answer[Any] | None) -> Method:
    """The method of ``RemoteMemory`` that does what ``method`` does."""
    signature, route = inspect.signature(method), Route(verb, path, answer)

    @wraps(method)
    async def call(self: RemoteMemory, *args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        del given["self"]
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                more = given.pop(name, {})
                if twice := sorted(given.keys() & more.keys()):
                    raise InvalidInput(f"{twice[0]} is there already: it cannot be given a second time")
                given |= more
        return await self._ask(route, given.pop("scope", None), given)

    return cast(Method, call)


class RemoteMemory(AsyncMemory):
    """A memory on a zettel server. Whatever says how it is kept, the server was told when it was started.

    Without a ``scope`` it is the scope that the key is bound to, or that the server was started with. With one it is
    this scope also for the methods that are otherwise about all: ``flush``, ``jobs``, ``stats`` and the like.
    """

    def __init__(
        self, url: str, *, key: str | None = None, scope: Scope | None = None, asks: bool = True, **kept: Any
    ) -> None:
        for name, value in kept.items():
            if value is not None:
                raise InvalidInput(f"{name}= is for whoever keeps the memory: start the server at {url} with it")
        super().__init__(url, scope=scope)
        self._named = None if scope == Scope() else scope
        self._connection = Connection(url, key)

    async def open(self) -> RemoteMemory:
        """See whether the server answers. Raises ``ServerUnreachable``, ``KeyRefused``."""
        self._require_usable()
        async with self._opening:
            if self._loop is None:
                try:
                    wire.SCOPES.decode(await self._connection.ask("GET", "/v1/scopes", {}, None))
                except BaseException:
                    await self.close()
                    raise
                self._loop = asyncio.get_running_loop()
        return self

    async def close(self) -> None:
        """Let the server go: it goes on."""
        if not self._closed:
            self._closed = True
            await self._connection.close()

    async def _ask(self, route: Route, scope: Scope | None, given: dict[str, Any]) -> Any:
        """Answer a call by its route: what the path names goes there, the rest into the query or the body."""
        await self.open()
        query, body = self._query(scope), None
        path = _IN_PATH.sub(lambda part: self._id(given.pop(part[1]), scope), route.path)
        if route.verb in ("GET", "DELETE"):
            query |= in_query(given)
        else:
            body = wire.encode({name: _plain(name, value) for name, value in given.items()})
        told = await self._connection.ask(route.verb, path, query, body, answered=route.answer is not None)
        return None if route.answer is None else route.answer.decode(told)

    def _query(self, scope: Scope | None) -> dict[str, Any]:
        """What names the scope to the server."""
        require_scope(scope)
        meant = self._named if scope is None or scope == self.scope else scope
        if meant == Scope():
            raise InvalidInput("the default scope cannot be named to a server: open a memory without scope= for it")
        return {} if meant is None else meant.model_dump(exclude_none=True)

    def _id(self, id: str, scope: Scope | None) -> str:
        """An id as a part of a path. Raises ``NotFound`` for what is none, and might lead elsewhere."""
        require_id(scope or self.scope, id)
        if not _ID.fullmatch(id):
            raise NotFound(scope or self.scope, [id])
        return id

    # -------------------------------------------------------------------------------------------- remember and forget

    async def remember(
        self,
        events: Sequence[Event],
        *,
        on_conflict: OnConflict = "error",
        ordinals: Ordinals | None = None,
        scope: Scope | None = None,
    ) -> list[Remembered]:
        """See ``AsyncMemory.remember``; ``ordinals`` are counted by the server, for each call."""
        if ordinals is not None:
            raise InvalidInput("a server counts identical events of one call itself: hand in no ordinals")
        await self.open()
        accepted = [checked(event) for event in several("events", events, "events")]
        body = {"events": [event.model_dump(mode="json") for event in accepted], "on_conflict": on_conflict}
        told = await self._connection.ask("POST", "/v1/remember", self._query(scope), wire.encode(body))
        return wire.REMEMBERED.decode(told)

    async def delete(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        session: str | None = None,
        scope: Scope | None = None,
    ) -> int:
        """See ``AsyncMemory.delete``."""
        require_one("what to delete: an id, a source or a session", id, source, session)
        given = {"source": source, "session": session} if id is None else {"id": id}
        route = Route("DELETE", "/v1/events" if id is None else "/v1/notes/{id}", wire.DELETED)
        return cast(int, await self._ask(route, scope, given))

    # ------------------------------------------------------------------------------------------------------ the routes

    search_many = over_http(AsyncMemory.search_many, "POST", "/v1/search/batch", wire.HITS_MANY)
    context = over_http(AsyncMemory.context, "POST", "/v1/context", wire.CONTEXT)
    answer_context = over_http(AsyncMemory.answer_context, "POST", "/v1/answer-context", wire.GATHERED)
    feedback = over_http(AsyncMemory.feedback, "POST", "/v1/feedback", None)
    searches = over_http(AsyncMemory.searches, "GET", "/v1/searches", wire.SEARCHES)
    tune = over_http(AsyncMemory.tune, "POST", "/v1/tune", wire.TUNED)
    write_slots = over_http(AsyncMemory.write_slots, "POST", "/v1/slots", wire.WRITTEN)

    get = over_http(AsyncMemory.get, "GET", "/v1/notes/{id}", wire.NOTE_OR_EVENT)
    list = over_http(AsyncMemory.list, "GET", "/v1/notes", wire.PAGE)
    events = over_http(AsyncMemory.events, "GET", "/v1/events", wire.EVENTS)
    links = over_http(AsyncMemory.links, "GET", "/v1/notes/{id}/links", wire.LINKS)
    neighbors = over_http(AsyncMemory.neighbors, "GET", "/v1/notes/{id}/neighbors", wire.NEIGHBORS)
    graph = over_http(AsyncMemory.graph, "GET", "/v1/graph", wire.GRAPH)
    conflicts = over_http(AsyncMemory.conflicts, "GET", "/v1/conflicts", wire.CONFLICTS)
    terms = over_http(AsyncMemory.terms, "GET", "/v1/notes/{id}/terms", wire.TERMS)
    history = over_http(AsyncMemory.history, "GET", "/v1/notes/{id}/history", wire.HISTORY)

    update = over_http(AsyncMemory.update, "PATCH", "/v1/notes/{id}", wire.NOTE)
    link = over_http(AsyncMemory.link, "POST", "/v1/links", wire.LINK)
    revert = over_http(AsyncMemory.revert, "POST", "/v1/notes/{id}/revert", wire.NOTE)
    take_back = over_http(AsyncMemory.take_back, "POST", "/v1/notes/{id}/take-back", wire.NOTES)
    archive = over_http(AsyncMemory.archive, "POST", "/v1/notes/{id}/archive", wire.NOTE)
    unarchive = over_http(AsyncMemory.unarchive, "POST", "/v1/notes/{id}/unarchive", wire.NOTE)
    quarantine = over_http(AsyncMemory.quarantine, "POST", "/v1/notes/{id}/quarantine", wire.NOTES)
    release = over_http(AsyncMemory.release, "POST", "/v1/notes/{id}/release", wire.NOTES)
    delete_scope = over_http(AsyncMemory.delete_scope, "DELETE", "/v1/scope", wire.DELETED)

    scopes = over_http(AsyncMemory.scopes, "GET", "/v1/scopes", wire.SCOPES)
    flush = over_http(AsyncMemory.flush, "POST", "/v1/flush", None)
    evolve = over_http(AsyncMemory.evolve, "POST", "/v1/evolve", wire.EVOLVED)
    jobs = over_http(AsyncMemory.jobs, "GET", "/v1/jobs", wire.JOBS)
    retry_jobs = over_http(AsyncMemory.retry_jobs, "POST", "/v1/jobs/retry", wire.RETRIED)
    cancel_job = over_http(AsyncMemory.cancel_job, "POST", "/v1/jobs/{id}/cancel", wire.JOB)
    reembed = over_http(AsyncMemory.reembed, "POST", "/v1/reembed", wire.EMBEDDED)
    stats = over_http(AsyncMemory.stats, "GET", "/v1/stats", wire.STATS)
    check = over_http(AsyncMemory.check, "POST", "/v1/check", wire.PROBLEMS)

    async def evolve_later(self, *, scope: Scope | None = None) -> bool:
        """See ``AsyncMemory.evolve_later``."""
        route = Route("POST", "/v1/evolve", wire.QUEUED)
        return cast(bool, await self._ask(route, scope, {"wait": False}))

    async def cypher(self, query: str, /, **params: Any) -> builtins.list[dict[str, Any]]:
        """Raises ``StoreError``: it is for the owner of the database, and crosses scopes."""
        raise StoreError("no server answers Cypher: open the memory where it is kept, in Neo4j")

    # ----------------------------------------------------------------------------------------------------------- files

    async def import_transcript(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        source: str | None = None,
        on_progress: Progress | None = None,
        on_rejected: OnRejected | None = None,
        scope: Scope | None = None,
        **options: Any,
    ) -> ImportReport:
        """See ``AsyncMemory.import_transcript``. A folder is sent as a zip.

        ``on_progress`` is told at the end what was read, ``on_rejected`` the first of what was not stored.
        """
        report = await self._upload("/v1/import", wire.IMPORTED, path, format, source, scope, options)
        if on_rejected is not None and report.rejected:
            on_rejected(report.rejected)
        if on_progress is not None:
            on_progress(report.records, report.records)
        return cast("ImportReport", report)

    async def estimate_import(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        source: str | None = None,
        scope: Scope | None = None,
        **options: Any,
    ) -> Estimate:
        """See ``AsyncMemory.estimate_import``."""
        told = await self._upload("/v1/import/estimate", wire.ESTIMATE, path, format, source, scope, options)
        return cast("Estimate", told)

    async def _upload(
        self,
        route: str,
        answer: Answer[Any],
        path: str | Path,
        format: str,
        source: str | None,
        scope: Scope | None,
        options: dict[str, Any],
    ) -> Any:
        await self.open()
        inspect.signature(AsyncMemory.import_transcript).bind(self, path, **options)  # a name that is none is told here
        async with sendable(require_path("path", path)) as (name, chunks):
            query = self._query(scope) | in_query({"format": format, "name": name, "source": source, **options})
            return answer.decode(await self._connection.ask("POST", route, query, chunks))

    async def export(
        self,
        to: str | Path | BinaryIO,
        format: str = "auto",
        *,
        include: Iterable[str] = (),
        all_scopes: bool = False,
        on_progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> ExportReport:
        """See ``AsyncMemory.export``; not as ``markdown``. ``on_progress`` is told nothing."""
        await self.open()
        asked = {"format": format_for(to, format), "include": include, "all_scopes": all_scopes}
        query = self._query(scope) | in_query(asked)
        if isinstance(to, str | Path):
            require_replaceable(Path(to))
        async with self._connection.stream("GET", "/v1/export", query) as response:
            report = wire.EXPORTED.decode(response.headers.get(wire.EXPORT_HEADER, "").encode())
            await keep(response.aiter_bytes(), to)
        told = report.to if not isinstance(to, str | Path) else str(to)
        return cast("ExportReport", report.model_copy(update={"to": told}))

    async def dump(self, *, scope: Scope | None = None) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """See ``AsyncMemory.dump``."""
        await self.open()
        async with self._connection.stream("GET", "/v1/dump", self._query(scope)) as response:
            async for line in lines(response.aiter_bytes()):
                entry = wire.ENTRY.decode(line)
                yield entry.event, entry.notes


def _plain(name: str, value: Any) -> Any:
    """An argument as what JSON knows. Raises ``InvalidInput`` for an object that no server could be sent."""
    if name == "scorer" and not isinstance(value, str | None):
        raise InvalidInput("a server ranks by its own scorers: name one, as 'fusion' or 'decoder'")
    if callable(value):
        raise InvalidInput(f"{name}= cannot be sent to a server: leave it out")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping | BaseModel):
        return [*value]
    return value
