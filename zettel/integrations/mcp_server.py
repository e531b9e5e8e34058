"""A server of the Model Context Protocol for one scope of a memory, over stdio or streamable HTTP, by the official SDK.

The SDK's second major version and the last releases of its first are both served: which of them is there is often up
to an agent framework in the same environment. They differ in how handlers are registered and errors raised, which is
all that ``_register_1`` and ``_register_2`` know of.
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

from zettel import __version__
from zettel.errors import InvalidInput, MissingExtra, ZettelError
from zettel.integrations.either import Either, require_memory
from zettel.integrations.mcp_content import Content
from zettel.model import Scope
from zettel.server import sockets
from zettel.server.sockets import in_url, is_loopback

PATH = "/mcp"
"""Where the protocol is spoken over HTTP."""
DEFAULT_PORT = 8765
INVALID_PARAMS = -32602
"""JSON-RPC's code for what cannot be asked."""
READ_BYTES = 65_536
"""Read from stdin at once, at most."""
STOP_SECONDS = 5
"""For requests under way when a server over HTTP is asked to stop."""

KINDS = {
    "tools/list": ("ListTools", "PaginatedRequestParams"),
    "tools/call": ("CallTool", "CallToolRequestParams"),
    "resources/list": ("ListResources", "PaginatedRequestParams"),
    "resources/templates/list": ("ListResourceTemplates", "PaginatedRequestParams"),
    "resources/read": ("ReadResource", "ReadResourceRequestParams"),
    "prompts/list": ("ListPrompts", "PaginatedRequestParams"),
    "prompts/get": ("GetPrompt", "GetPromptRequestParams"),
}
"""What the SDK calls the requests, results and parameters of the methods."""


def require_mcp() -> None:
    """Raise ``MissingExtra`` where the SDK is not installed."""
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the MCP server", "mcp") from error


def mcp_server(memory: Either, *, scope: Scope | None = None, read_only: bool = False) -> Any:
    """The SDK's low-level ``Server`` for a scope of a memory, which no request can change.

    ``read_only`` offers nothing that changes it. Raises ``MissingExtra``, ``InvalidInput``.
    """
    require_memory(memory)
    require_mcp()
    from mcp.server.lowlevel import Server

    content = Content(memory, scope, read_only)
    made: Any = Server("zettel", version=__version__, instructions=content.instructions)
    register = _register_2 if hasattr(made, "add_request_handler") else _register_1
    for method, answer in content.methods.items():
        register(made, method, answer)
    return made


def _register_2(made: Any, method: str, answer: Callable[[Any], Any]) -> None:
    from mcp import types
    from mcp.shared.exceptions import MCPError

    name, params = KINDS[method]
    result: Any = getattr(types, f"{name}Result")

    async def handle(context: Any, asked: Any) -> Any:
        try:
            return result.model_validate(await answer(asked.model_dump(by_alias=True, mode="json", exclude_none=True)))
        except ZettelError as error:
            raise MCPError(INVALID_PARAMS, " ".join(str(error).split())) from None

    made.add_request_handler(method, getattr(types, params), handle)


def _register_1(made: Any, method: str, answer: Callable[[Any], Any]) -> None:
    from mcp import types
    from mcp.shared import exceptions

    kinds: Any = types
    name, _ = KINDS[method]
    request, result = getattr(kinds, f"{name}Request"), getattr(kinds, f"{name}Result")
    errors: Any = exceptions

    async def handle(asked: Any) -> Any:
        told = {} if asked.params is None else asked.params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            return kinds.ServerResult(result.model_validate(await answer(told)))
        except ZettelError as error:
            told = kinds.ErrorData(code=INVALID_PARAMS, message=" ".join(str(error).split()))
            raise errors.McpError(told) from None

    made.request_handlers[request] = handle


# --------------------------------------------------------------------------------------------------------------- stdio


@contextmanager
def claimed_stdout() -> Iterator[TextIO]:
    """Stdout for the protocol alone: whatever else prints there meanwhile, here or in a child, goes to stderr.

    To be entered before anything that might print, as the opening of a memory might.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n") as wire:
        os.dup2(2, 1)
        try:
            yield wire
        finally:
            os.dup2(wire.fileno(), 1)


async def serve_stdio(made: Any, wire: TextIO) -> None:
    """Speak the protocol on stdin and ``wire`` (see ``claimed_stdout``) until stdin ends."""
    from mcp.server.stdio import stdio_server

    stdin: Any = _Lines(0)
    async with stdio_server(stdin, anyio.wrap_file(wire)) as (received, sent):
        await made.run(received, sent, made.create_initialization_options())


class _Lines:
    """The lines of a file descriptor. A thread of its own reads them, so that whoever waits for one can be stopped."""

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
                except (anyio.BrokenResourceError, CancelledError, RuntimeError):  # nobody waits for lines any more
                    sending.close()
                    return
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(send.close)

        threading.Thread(target=read, name="zettel-mcp-stdin", daemon=True).start()
        with receive:
            async for line in receive:
                yield line

    def _read(self) -> Iterator[str]:
        # By the descriptor, for a buffered file that is being read cannot be closed when the interpreter ends.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        begun: list[str] = []
        while block := os.read(self._descriptor, READ_BYTES):
            first, *more = decode(block).split("\n")
            begun.append(first)
            for following in more:
                yield "".join(begun)
                begun = [following]
        if last := "".join(begun):
            yield last


# ---------------------------------------------------------------------------------------------------------------- HTTP


def require_loopback(host: str) -> None:
    """Raise ``InvalidInput`` for an address that other machines reach: this server knows no keys."""
    if not is_loopback(host):
        raise InvalidInput(
            f"{host!r} may be reached by other machines, and this server asks for no key: use 127.0.0.1"
        )


def http_app(made: Any, host: str = "127.0.0.1") -> Any:
    """An ASGI application that speaks the protocol at ``PATH``, to programs on this machine alone.

    Requests are independent of each other, so a client does not notice a new start of the server. One that names
    another host than this machine by itself or as ``host``, or comes from a page of another origin, is refused.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route

    names = sorted({"127.0.0.1", "localhost", "[::1]", in_url(host)})
    manager = StreamableHTTPSessionManager(
        made,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(
            allowed_hosts=[f"{name}:*" for name in names], allowed_origins=[f"http://{name}:*" for name in names]
        ),
    )

    class Endpoint:  # an object, for Starlette takes a function for one of its own kind
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Route(PATH, Endpoint())], lifespan=lifespan)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at an address of this machine; ``port`` 0 takes a free one.

    Raises ``InvalidInput`` for a host that other machines reach, ``OSError`` for a port that is taken.
    """
    require_loopback(host)
    with sockets.listening(host, port) as at:
        yield at


def address_of(at: socket.socket) -> str:
    """Where the protocol is spoken through a socket."""
    return f"{sockets.address_of(at)}{PATH}"


async def serve_http(made: Any, at: socket.socket) -> None:
    """Speak the protocol over streamable HTTP until SIGINT or SIGTERM."""
    import uvicorn

    config = uvicorn.Config(
        http_app(made, at.getsockname()[0]), log_config=None, access_log=False, timeout_graceful_shutdown=STOP_SECONDS
    )
    await uvicorn.Server(config).serve(sockets=[at])
