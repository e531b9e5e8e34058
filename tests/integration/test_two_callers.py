"""Two users at once through wrapped clients, the memory tools and MCP servers: nobody sees an item of the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import zettel
from tests.frameworks.known import ANN, BOB
from tests.frameworks.test_two_users import requested
from tests.frameworks.two_users import CALLS, assert_apart
from tests.integration.mcp_client import HttpServer, over_http
from zettel import Memory
from zettel.integrations.tools import MemoryTools

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.anyio]

SCOPES = {"ann": ANN, "bob": BOB}
Count = Callable[[int], int]
Record = Callable[[str, object], None]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "zettel.db", embedder="static") as instance:
        yield instance


class Client:
    """A client of a language model that answers with few words and records what it reads."""

    def __init__(self) -> None:
        self.read: list[Any] = []
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    async def create(self, model: str, messages: list[Any]) -> Any:
        self.read += messages
        return SimpleNamespace(choices=[SimpleNamespace(message={"role": "assistant", "content": "Noted."})])


async def test_wrapped_clients_separate_two_users(memory: Memory, soak_scale: Count, record_property: Record) -> None:
    """Each call wraps a client for its user, as a web server does; both users have the same session."""

    async def call(user: str, text: str) -> object:
        client = Client()
        wrapped = zettel.wrap(memory, client, scope=SCOPES[user], session="s1")
        await wrapped.chat.completions.create("model", [{"role": "user", "content": text}])
        return client.read

    await assert_apart("wrap", call, soak_scale(CALLS), memory, SCOPES, record_property)


async def test_the_tools_separate_two_users(memory: Memory, soak_scale: Count, record_property: Record) -> None:
    tools = {user: MemoryTools(memory, scope=scope) for user, scope in SCOPES.items()}
    calls: list[str] = []

    async def call(user: str, text: str) -> object:
        calls.append(text)
        if len(calls) % 2:
            return await tools[user].acall(*requested(text))
        return await asyncio.to_thread(tools[user].call, *requested(text))

    await assert_apart("tools", call, soak_scale(CALLS), memory, SCOPES, record_property)


async def test_mcp_servers_separate_two_users(tmp_path: Path, soak_scale: Count, record_property: Record) -> None:
    """Each user has a server, and both servers share a store."""
    path = tmp_path / "zettel.db"
    with Memory(path, embedder="static"):
        pass
    async with AsyncExitStack() as stack:
        clients = {}
        for user in SCOPES:
            server = stack.enter_context(HttpServer(path, "--user", user))
            clients[user] = await stack.enter_async_context(over_http(server.url))

        async def call(user: str, text: str) -> object:
            name, arguments = requested(text)
            return await clients[user].call(name, **arguments)

        with Memory(path) as memory:
            await assert_apart("mcp", call, soak_scale(CALLS), memory, SCOPES, record_property)
