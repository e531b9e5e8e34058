"""Test clients and servers of the Model Context Protocol."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import mcp.client
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

CHECKOUT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "zettel", "mcp"]
NEWEST = hasattr(mcp.client, "Client")
"""True if the installed SDK supports the newest protocol; its first major version does not."""
PATIENCE = 60
"""Seconds for one step of a test, on a busy machine."""


def environment() -> dict[str, str]:
    variables = {key: value for key, value in os.environ.items() if not key.startswith("ZETTEL_")}
    return variables | {"PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))}


class Client:
    """A session that returns plain JSON values."""

    def __init__(self, session: Any, greeting: dict[str, Any]) -> None:
        self.session, self.greeting = session, greeting

    async def ask(self, method: str, *arguments: Any) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE):
            answer = await getattr(self.session, method)(*arguments)
        return dict(answer.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Return the answer of a tool, or the text of its error."""
        answer = await self.ask("call_tool", name, arguments)
        (content,) = answer["content"]
        return content["text"] if answer.get("isError") else json.loads(content["text"])


@contextlib.asynccontextmanager
async def over_stdio(store: Path, *arguments: str) -> AsyncIterator[Client]:
    """Start a server and return its client."""
    command, *rest = [*COMMAND, "--store", str(store), *arguments]
    parameters = StdioServerParameters(command=command, args=rest, env=environment(), cwd=store.parent)
    async with stdio_client(parameters) as (read, write), _session(read, write) as client:
        yield client


@contextlib.asynccontextmanager
async def over_http(url: str, newest: bool = False) -> AsyncIterator[Client]:
    """Return a client of a running server; the ``newest`` protocol opens no session first."""
    if newest:
        from mcp.client import Client as NewestClient

        async with NewestClient(url) as client:
            capabilities = {"serverInfo": client.server_info, "capabilities": client.server_capabilities}
            greeting = {
                name: value.model_dump(by_alias=True, exclude_none=True) for name, value in capabilities.items()
            }
            yield Client(client, greeting | {"instructions": client.instructions})
        return
    async with streamable_http_client(url) as (read, write, *_), _session(read, write) as client:
        yield client


@contextlib.asynccontextmanager
async def _session(read: Any, write: Any) -> AsyncIterator[Client]:
    async with ClientSession(read, write) as session:
        with anyio.fail_after(PATIENCE):
            greeting = await session.initialize()
        yield Client(session, greeting.model_dump(by_alias=True, mode="json", exclude_none=True))


class HttpServer:
    """A context manager that runs an HTTP server in its own process."""

    def __init__(self, store: Path, *arguments: str) -> None:
        self._command = [*COMMAND, "--http", "--port", "0", "--store", str(store), *arguments]

    def __enter__(self) -> HttpServer:
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True, env=environment())
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("zettel: MCP at http://"), line
        self.url = line.split()[-1]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        _, self.errors = self.process.communicate(timeout=PATIENCE)
