"""The official client of the Model Context Protocol, and servers for it, as tests use them."""

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
"""Whether the SDK that is installed speaks the newest protocol; its first major version does not."""
PATIENCE = 60
"""Seconds for one step of a test, on a busy machine."""


def environment() -> dict[str, str]:
    named = {key: value for key, value in os.environ.items() if not key.startswith("ZETTEL_")}
    return named | {"PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))}


class Client:
    """A session in plain values of JSON."""

    def __init__(self, session: Any, hello: dict[str, Any]) -> None:
        self.session, self.hello = session, hello

    async def ask(self, method: str, *arguments: Any) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE):
            answer = await getattr(self.session, method)(*arguments)
        return dict(answer.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def call(self, name: str, **arguments: Any) -> Any:
        """What a tool answers, or the text of its error."""
        answer = await self.ask("call_tool", name, arguments)
        (content,) = answer["content"]
        return content["text"] if answer.get("isError") else json.loads(content["text"])


@contextlib.asynccontextmanager
async def over_stdio(store: Path, *arguments: str) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    command, *rest = [*COMMAND, "--store", str(store), *arguments]
    parameters = StdioServerParameters(command=command, args=rest, env=environment(), cwd=store.parent)
    async with stdio_client(parameters) as (read, write), _session(read, write) as client:
        yield client


@contextlib.asynccontextmanager
async def over_http(url: str, newest: bool = False) -> AsyncIterator[Client]:
    """A client of a server that is there; the ``newest`` protocol has no session that is opened first."""
    if newest:
        from mcp.client import Client as Newest

        async with Newest(url) as client:
            told = {"serverInfo": client.server_info, "capabilities": client.server_capabilities}
            hello = {name: one.model_dump(by_alias=True, exclude_none=True) for name, one in told.items()}
            yield Client(client, hello | {"instructions": client.instructions})
        return
    async with streamable_http_client(url) as (read, write, *_), _session(read, write) as client:
        yield client


@contextlib.asynccontextmanager
async def _session(read: Any, write: Any) -> AsyncIterator[Client]:
    async with ClientSession(read, write) as session:
        with anyio.fail_after(PATIENCE):
            hello = await session.initialize()
        yield Client(session, hello.model_dump(by_alias=True, mode="json", exclude_none=True))


class HttpServer:
    """A server over HTTP in a process of its own. A context manager."""

    def __init__(self, store: Path, *arguments: str) -> None:
        self._command = [*COMMAND, "--http", "--port", "0", "--store", str(store), *arguments]

    def __enter__(self) -> HttpServer:
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True, env=environment())
        assert self.process.stderr is not None
        told = self.process.stderr.readline()
        assert told.startswith("zettel: MCP at http://"), told
        self.url = told.split()[-1]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        _, self.remarks = self.process.communicate(timeout=PATIENCE)
