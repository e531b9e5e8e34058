"""MCP server for one scope of a memory, over stdio or streamable HTTP, built on the official SDK.

It supports SDK 2 and the last releases of SDK 1, because an agent framework in the same environment often decides which
one is installed. The two differ in how handlers are registered and errors raised: ``_register_1``, ``_register_2``.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TextIO

import anyio

from zettel.errors import InvalidInput, MissingExtra, ZettelError
from zettel.integrations.knowledge_graph import KnowledgeGraph
from zettel.integrations.mcp_content import Content
from zettel.integrations.sync_or_async import AnyMemory, require_memory
from zettel.model import Scope
from zettel.remote import sockets
from zettel.remote.sockets import in_url, is_loopback
from zettel.version import VERSION

PATH = "/mcp"
"""Path of the MCP endpoint over HTTP."""
DEFAULT_PORT = 8765
INVALID_PARAMS = -32602
"""JSON-RPC's code for invalid parameters."""
READ_BYTES = 65_536
"""Bytes per read from stdin."""
STOP_SECONDS = 5
"""Time that running requests get when the HTTP server stops."""

KINDS = {
    "tools/list": ("ListTools", "PaginatedRequestParams"),
    "tools/call": ("CallTool", "CallToolRequestParams"),
    "resources/list": ("ListResources", "PaginatedRequestParams"),
    "resources/templates/list": ("ListResourceTemplates", "PaginatedRequestParams"),
    "resources/read": ("ReadResource", "ReadResourceRequestParams"),
    "prompts/list": ("ListPrompts", "PaginatedRequestParams"),
    "prompts/get": ("GetPrompt", "GetPromptRequestParams"),
}
"""The SDK's names of the requests, results and parameters of each method."""


def require_mcp() -> None:
    """Raise ``MissingExtra`` where the SDK is not installed."""
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the MCP server", "mcp") from error


def mcp_server(
    memory: AnyMemory,
    *,
    scope: Scope | None = None,
    read_only: bool = False,
    allow_delete: bool = False,
    trust: float = 1.0,
) -> Any:
    """Return the SDK's low-level ``Server`` for one scope of a memory.

    No request can change the scope. ``read_only`` leaves out every operation that changes the memory. Clients can
    archive memories, and with ``allow_delete`` delete them for good. ``trust`` (0 to 1) is the highest trust in what
    they write. Raises ``MissingExtra``, ``InvalidInput``.
    """
    require_memory(memory)
    require_mcp()
    return _server(Content(memory, scope, read_only, allow_delete, trust))


def knowledge_graph_server(
    memory: AnyMemory, *, scope: Scope | None = None, read_only: bool = False, trust: float = 1.0
) -> Any:
    """Return a ``Server`` with the tools of the reference server ``server-memory``, for one scope of a memory.

    ``read_only`` and ``trust`` as for ``mcp_server``. Its tools delete for good, like those of the reference. Raises
    ``MissingExtra``, ``InvalidInput``.
    """
    require_memory(memory)
    require_mcp()
    return _server(KnowledgeGraph(memory, scope, read_only, trust))


def _server(content: Content | KnowledgeGraph) -> Any:
    from mcp.server.lowlevel import Server

    server: Any = Server("zettel", version=VERSION, instructions=content.instructions)
    register = _register_2 if hasattr(server, "add_request_handler") else _register_1
    for method, answer in content.methods.items():
        register(server, method, answer)
    return server


def _register_2(server: Any, method: str, answer: Callable[[Any], Any]) -> None:
    from mcp import types
    from mcp.shared.exceptions import MCPError

    name, params = KINDS[method]
    result: Any = getattr(types, f"{name}Result")

    async def handle(context: Any, request: Any) -> Any:
        try:
            return result.model_validate(
                await answer(request.model_dump(by_alias=True, mode="json", exclude_none=True))
            )
        except ZettelError as error:
            raise MCPError(INVALID_PARAMS, " ".join(str(error).split())) from None

    server.add_request_handler(method, getattr(types, params), handle)


def _register_1(server: Any, method: str, answer: Callable[[Any], Any]) -> None:
    from mcp import types
    from mcp.shared import exceptions

    kinds: Any = types
    name, _ = KINDS[method]
    request_type, result = getattr(kinds, f"{name}Request"), getattr(kinds, f"{name}Result")
    errors: Any = exceptions

    async def handle(request: Any) -> Any:
        params = (
            {} if request.params is None else request.params.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        try:
            return kinds.ServerResult(result.model_validate(await answer(params)))
        except ZettelError as error:
            data = kinds.ErrorData(code=INVALID_PARAMS, message=" ".join(str(error).split()))
            raise errors.McpError(data) from None

    server.request_handlers[request_type] = handle


# --------------------------------------------------------------------------------------------------------------- stdio


@contextmanager
def claimed_stdout() -> Iterator[TextIO]:
    """Reserve stdout for the protocol; other prints of this process and its children go to stderr.

    Enter it before anything that might print, such as opening a memory.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n") as wire:
        os.dup2(2, 1)
        try:
            yield wire
        finally:
            os.dup2(wire.fileno(), 1)


async def serve_stdio(server: Any, wire: TextIO) -> None:
    """Serve the protocol on stdin and ``wire`` (see ``claimed_stdout``) until stdin ends."""
    from mcp.server.stdio import stdio_server

    stdin: Any = _Lines(0)
    async with stdio_server(stdin, anyio.wrap_file(wire)) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


class _Lines:
    """The lines of a file descriptor, read by a separate thread so that waiting for a line can be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def __aiter__(self) -> AsyncIterator[str]:
        send, receive = anyio.create_memory_object_stream[str]()
        loop = asyncio.get_running_loop()

        def read() -> None:
            for line in self._read():
                sending = send.send(line)
                try:
                    asyncio.run_coroutine_threadsafe(sending, loop).result()
                except (anyio.BrokenResourceError, CancelledError, RuntimeError):  # the reader has stopped
                    sending.close()
                    return
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(send.close)

        threading.Thread(target=read, name="zettel-mcp-stdin", daemon=True).start()
        with receive:
            async for line in receive:
                yield line

    def _read(self) -> Iterator[str]:
        # Reads the descriptor: a buffered file with a blocked reader cannot be closed when the interpreter ends.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        line: list[str] = []
        while block := os.read(self._descriptor, READ_BYTES):
            first, *rest = decode(block).split("\n")
            line.append(first)
            for text in rest:
                yield "".join(line)
                line = [text]
        if last := "".join(line):
            yield last


# ---------------------------------------------------------------------------------------------------------------- HTTP


def require_loopback(host: str) -> None:
    """Raise ``InvalidInput`` for an address that other machines can reach: this server has no authentication."""
    if not is_loopback(host):
        raise InvalidInput(f"other machines may reach {host!r}, and this server has no authentication: use 127.0.0.1")


def http_app(server: Any, host: str = "127.0.0.1") -> Any:
    """Return an ASGI application that serves the protocol at ``PATH`` to programs on this machine.

    Requests are stateless, so a client does not notice a restart of the server. Requests with an unknown ``Host`` or
    ``Origin`` header are refused.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route

    names = sorted({"127.0.0.1", "localhost", "[::1]", in_url(host)})
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(
            allowed_hosts=[f"{name}:*" for name in names], allowed_origins=[f"http://{name}:*" for name in names]
        ),
    )

    class Endpoint:  # an object, because Starlette would call a function with a Request
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Route(PATH, Endpoint())], lifespan=lifespan)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket at a loopback address; ``port`` 0 chooses a free port.

    Raises ``InvalidInput`` for a host that other machines can reach, ``OSError`` for a port in use.
    """
    require_loopback(host)
    with sockets.listening(host, port) as at:
        yield at


def address_of(at: socket.socket) -> str:
    """Return the URL of the MCP endpoint of a socket."""
    return f"{sockets.address_of(at)}{PATH}"


async def serve_http(server: Any, at: socket.socket) -> None:
    """Serve the protocol over streamable HTTP until SIGINT or SIGTERM."""
    import uvicorn

    config = uvicorn.Config(
        http_app(server, at.getsockname()[0]), log_config=None, access_log=False, timeout_graceful_shutdown=STOP_SECONDS
    )
    await uvicorn.Server(config).serve(sockets=[at])
