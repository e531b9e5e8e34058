"""``RemoteBackend``: the backend of a memory on a zettel server, over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from zettel.core.arguments import require_path, require_text_id
from zettel.errors import InvalidInput, NotFound, StoreError
from zettel.exports import format_for, require_replaceable
from zettel.model import Hit, Scope
from zettel.remote import wire
from zettel.remote.connection import Connection
from zettel.remote.file_transfer import in_query, lines, save, upload_of
from zettel.remote.routes import DELETE_EVENTS, MOST_QUESTIONS, OF_PRINCIPALS, ROUTES, Route

_IN_PATH = re.compile(r"{(\w+)}")
MAX_SEGMENT_BYTES = 32_768
"""The longest encoded id in a URL. A server accepts 64 KiB of request line and headers."""


class RemoteBackend:
    """Sends each operation to a zettel server by its route.

    ``scope`` is the scope of calls that name none, also of ``flush``, ``jobs`` and ``stats``. Without it, the server
    uses the scope that the key is bound to.
    """

    def __init__(self, url: str, key: str | None, scope: Scope | None) -> None:
        self._url, self._key = url, key
        self._default = scope or Scope()
        self._named = None if scope == Scope() else scope
        self._connection = Connection(url, key)

    async def open(self) -> None:
        """Check that the server answers. Raises ``ServerUnreachable``, ``InvalidKey``."""
        try:
            wire.SCOPES.decode(await self._connection.ask("GET", "/v1/scopes", {}, None))
        except BaseException:
            await self._connection.close()
            self._connection = Connection(self._url, self._key)  # the next call tries again
            raise

    async def close(self) -> None:
        """Close the connections. The server keeps running."""
        await self._connection.close()

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> Any:
        """Request an operation and return its result."""
        route, arguments = ROUTES.get(operation), dict(arguments)
        if route is None:
            raise StoreError(f"a server does not offer {operation}: open the memory's store itself")
        if operation in ("import_transcript", "estimate_import"):
            return await self._import(route, arguments, scope)
        if operation == "export":
            return await self._export(route, arguments, scope)
        if operation == "delete" and arguments["id"] is None:
            route = DELETE_EVENTS
        elif operation in OF_PRINCIPALS and arguments["id"] is None:
            route = OF_PRINCIPALS[operation]
        elif operation == "add_many_report":
            arguments["events"] = [event.model_dump(mode="json") for event in arguments["events"]]
        elif operation == "evolve_later":
            arguments["wait"] = False
        elif operation == "search_many":
            questions = arguments["questions"] = _plain("questions", arguments["questions"])
            if isinstance(questions, list) and len(questions) > MOST_QUESTIONS:
                hits: list[list[Hit]] = []
                for at in range(0, len(questions), MOST_QUESTIONS):
                    part = {**arguments, "questions": questions[at : at + MOST_QUESTIONS]}
                    hits += await self._request(route, part, scope)
                return hits
        return await self._request(route, arguments, scope)

    async def stream(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> AsyncIterator[Any]:
        """Stream the dump of a scope."""
        route = ROUTES[operation]
        async with self._connection.stream(route.verb, route.path, self._query(scope)) as response:
            async for line in lines(response.aiter_bytes()):
                entry = wire.ENTRY.decode(line)
                yield entry.event, entry.notes

    async def _request(self, route: Route, arguments: dict[str, Any], scope: Scope | None) -> Any:
        nested = arguments.pop(route.flattened) if route.flattened else {}
        if duplicates := sorted(arguments.keys() & nested.keys()):
            raise InvalidInput(f"{duplicates[0]} is given twice: leave one out")
        arguments = {name: value for name, value in arguments.items() if value is not None} | nested
        path = _IN_PATH.sub(lambda match: self._id(arguments.pop(match[1]), scope), route.path)
        query, body = self._query(scope), None
        if route.verb in ("GET", "DELETE"):
            query |= in_query(arguments)
        else:
            body = wire.encode({name: _plain(name, value) for name, value in arguments.items()})
        answer = await self._connection.ask(route.verb, path, query, body, answered=route.answer is not None)
        return None if route.answer is None else route.answer.decode(answer)

    async def _import(self, route: Route, arguments: dict[str, Any], scope: Scope | None) -> Any:
        """Upload a transcript; a folder as a zip. The callbacks are called once, at the end."""
        on_progress, on_rejected = arguments.pop("on_progress", None), arguments.pop("on_rejected", None)
        assert route.answer is not None
        async with upload_of(require_path("path", arguments.pop("path"))) as (name, chunks):
            query = self._query(scope) | in_query({"name": name, **arguments})
            result = route.answer.decode(await self._connection.ask(route.verb, route.path, query, chunks))
        if on_rejected is not None and result.rejected_records:
            on_rejected(result.rejected_records)
        if on_progress is not None:
            on_progress(result.records, result.records)
        return result

    async def _export(self, route: Route, arguments: dict[str, Any], scope: Scope | None) -> Any:
        """Download an export into a file; ``markdown`` is not available. ``on_progress`` is not called."""
        to = arguments.pop("to")
        arguments["format"] = format_for(to, arguments["format"])
        query = self._query(scope) | in_query(arguments)
        if isinstance(to, str | Path):
            require_replaceable(Path(to))
        async with self._connection.stream(route.verb, route.path, query) as response:
            report = wire.EXPORTED.decode(response.headers.get(wire.EXPORT_HEADER, "").encode())
            await save(response.aiter_bytes(), to)
        return report.model_copy(update={"to": str(to)}) if isinstance(to, str | Path) else report

    def _query(self, scope: Scope | None) -> dict[str, Any]:
        """Return the query parameters that name the scope."""
        named = self._named if scope is None or scope == self._default else scope
        if named == Scope():
            raise InvalidInput("a server cannot be asked for the default scope: open a memory without scope= for it")
        return {} if named is None else named.model_dump(exclude_none=True)

    def _id(self, id: str, scope: Scope | None) -> str:
        """Return an id as one segment of a path. Raises ``NotFound`` for an id that no event can have."""
        scope = scope or self._default
        require_text_id(scope, id)
        try:
            segment = quote(id, safe="").replace(".", "%2E")  # "." and ".." would name folders
        except UnicodeEncodeError:
            segment = ""
        if not segment:
            raise NotFound(scope, [id])
        if len(segment) > MAX_SEGMENT_BYTES:
            raise InvalidInput(f"an id of {len(segment):,} bytes does not fit into a URL: use the id of the note")
        return segment


def _plain(name: str, value: Any) -> Any:
    """Return an argument as JSON. Raises ``InvalidInput`` for an object that cannot be sent."""
    if name == "scorer" and not isinstance(value, str | None):
        raise InvalidInput("a server ranks with its own scorers: pass a name such as 'fusion' or 'decoder'")
    if callable(value):
        raise InvalidInput(f"{name}= cannot be sent to a server: leave it out")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping | BaseModel):
        return [*value]
    return value
