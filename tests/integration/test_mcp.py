"""The Model Context Protocol server, called by the official client over both transports."""

from __future__ import annotations

import http.client
import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from tests.integration.command import Zettel
from tests.integration.mcp_client import (
    COMMAND,
    NEWEST,
    PATIENCE,
    Client,
    HttpServer,
    environment,
    over_http,
    over_stdio,
)
from zettel import Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.mcp_server import require_loopback

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

ANN = Scope(user="ann")
MANY = 130
"""Notes, more than one page of resources contains."""
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
"""The first request of a client of any version."""
MARK = "Kestrelwood"
"""A word in every note of the other scope."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "a.db"
    with Memory(path, scope=ANN) as memory:
        memory.add_many([{"content": f"Kettle {n} stands on shelf {n}."} for n in range(MANY)])
        memory.add(f"The safe of {MARK} is green.", scope=Scope(user="bob"))
        memory.flush()
    return path


@pytest.fixture(scope="module")
def url(store: Path) -> Iterator[str]:
    with HttpServer(store, "--user", "ann") as server:
        yield server.url


@asynccontextmanager
async def client_of(transport: str, store: Path, url: str) -> AsyncIterator[Client]:
    by_http = over_http(url, newest="newest" in transport)
    async with over_stdio(store, "--user", "ann") if transport == "stdio" else by_http as client:
        yield client


@pytest.mark.parametrize("transport", ["stdio", "http", *(["http, newest"] if NEWEST else [])])
async def test_tools_resources_and_prompts_work_over_every_transport(transport: str, store: Path, url: str) -> None:
    async with client_of(transport, store, url) as client:
        assert client.greeting["serverInfo"]["name"] == "zettel"
        assert {"tools", "resources", "prompts"} <= client.greeting["capabilities"].keys()
        assert "search_memories" in client.greeting["instructions"]
        await check_tools(client, f"Ann keeps her cello in the hall, says {transport}.")
        await check_resources(client)
        await check_prompts(client)


async def check_tools(client: Client, fact: str) -> None:
    listed = (await client.ask("list_tools"))["tools"]
    assert [tool["name"] for tool in listed] == [
        "add_memory", "search_memories", "query_memories", "get_memory", "get_entity", "update_memory",
        "archive_memory", "restore_memory", "link_memories", "unlink_memories", "memory_history",
        "report_usefulness",
    ]  # fmt: skip
    for tool in listed:
        schema = tool["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert all(len(parameter["description"]) > 20 for parameter in schema["properties"].values())
        assert len(tool["description"]) > 100
        assert tool["annotations"]["readOnlyHint"] is (tool["name"] in READING)
        assert tool["annotations"]["destructiveHint"] is False
    added = await client.call("add_memory", text=fact, who="Ann", when="2024-05-01")
    hits = await client.call("search_memories", query="Where is Ann's cello?", limit=1)
    assert hits["memories"][0]["id"] == added["id"]
    other = (await client.call("add_memory", text="The hall is heated now."))["id"]
    linked = await client.call("link_memories", source=added["id"], target=other, reason="wood and heat")
    assert linked["linked"] is True
    assert (await client.call("get_memory", id=added["id"]))["links"]
    assert (await client.call("update_memory", id=other, importance=0.9, pinned=True))["version"] >= 2
    assert (await client.call("memory_history", id=other))["versions"][0]["by"] == "add"
    counted = await client.call("query_memories", words=["cello"], group_by=["month"])
    assert counted["groups"] == [{"month": "2024-05", "count": counted["count"]}]
    assert "unknown tool 'delete_memory'" in await client.call("delete_memory", id=added["id"])
    assert await client.call("archive_memory", id=added["id"]) == {"archived": True, "id": added["id"]}
    hits = await client.call("search_memories", query="Where is Ann's cello?", limit=5)
    assert added["id"] not in [hit["id"] for hit in hits["memories"]]
    assert await client.call("restore_memory", id=added["id"]) == {"restored": True, "id": added["id"]}
    assert "does not take 'user'" in await client.call("search_memories", query="safe", user="bob")
    assert "unknown tool 'cypher'" in await client.call("cypher", query="MATCH (n) RETURN n")


READING = {"search_memories", "query_memories", "get_memory", "get_entity", "memory_history"}


async def check_resources(client: Client) -> None:
    first = await client.ask("list_resources")
    assert first["resources"][0]["uri"] == "zettel://core"
    assert len(first["resources"]) == 101
    templates = (await client.ask("list_resource_templates"))["resourceTemplates"]
    assert [template["uriTemplate"] for template in templates] == ["zettel://notes/{id}", "zettel://notes/{id}/history"]
    note = first["resources"][1]
    assert note["name"].startswith("Kettle 0 stands")
    (content,) = (await client.ask("read_resource", note["uri"]))["contents"]
    assert json.loads(content["text"])["text"] == "Kettle 0 stands on shelf 0."
    (content,) = (await client.ask("read_resource", note["uri"] + "/history"))["contents"]
    assert json.loads(content["text"])["versions"][0]["by"] == "add"
    (content,) = (await client.ask("read_resource", "zettel://core"))["contents"]
    assert "\n\n## Always to be known\n- The hall is heated now." in content["text"]
    for uri in ("zettel://notes/n_0", "zettel://notes/e_0", "zettel://scopes", "file:///etc/passwd"):
        with pytest.raises(Exception, match=r"is not in user='ann'|is not the id of a mem|unknown resource"):
            await client.ask("read_resource", uri)


async def check_prompts(client: Client) -> None:
    listed = (await client.ask("list_prompts"))["prompts"]
    assert [prompt["name"] for prompt in listed] == ["recall", "core", "remember"]
    assert all(len(argument["description"]) > 20 for prompt in listed for argument in prompt["arguments"])
    (message,) = (await client.ask("get_prompt", "recall", {"question": "On which shelf is kettle 7?"}))["messages"]
    assert message["role"] == "user"
    assert "Kettle 7 stands on shelf 7." in message["content"]["text"]
    (message,) = (await client.ask("get_prompt", "core"))["messages"]
    assert "The hall is heated now." in message["content"]["text"]
    (message,) = (await client.ask("get_prompt", "remember"))["messages"]
    assert "add_memory" in message["content"]["text"]
    for name, arguments in [("forget", {}), ("recall", {}), ("recall", {"question": " "}), ("core", {"user": "bob"})]:
        with pytest.raises(Exception, match=r"unknown prompt|takes question|takes no arg|question is empty"):
            await client.ask("get_prompt", name, arguments)


async def test_pages_of_resources_list_every_note_once(store: Path, url: str) -> None:
    from mcp.types import PaginatedRequestParams

    named: list[str] = []
    async with over_http(url) as client:
        cursor = None
        while True:
            params = PaginatedRequestParams(cursor=cursor)
            answer = await client.session.list_resources(params=params)
            page = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
            named += [resource["name"] for resource in page["resources"]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
    kettles = [name for name in named if name.startswith("Kettle")]
    assert len(kettles) == len(set(kettles)) == MANY
    assert not any(MARK in name for name in named)


def test_the_http_server_ends_on_sigterm(tmp_path: Path) -> None:
    with HttpServer(tmp_path / "a.db") as server:
        status, answer = post(server.url, "tools/call", name="add_memory", arguments={"text": "Tea is here."})
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
    assert (status, server.errors) == (200, "")
    with Memory(tmp_path / "a.db") as memory:
        assert memory.get(json.loads(answer["result"]["content"][0]["text"])["id"]).content == "Tea is here."


def test_the_stdio_server_ends_on_sigterm(tmp_path: Path) -> None:
    command = [*COMMAND, "--store", str(tmp_path / "a.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment()) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
        )
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0  # while stdin is still open
        assert process.communicate() == (b"", b"")


async def test_a_read_only_server_offers_no_changes(store: Path) -> None:
    async with over_stdio(store, "--user", "ann", "--read-only") as client:
        assert {tool["name"] for tool in (await client.ask("list_tools"))["tools"]} == READING
        assert [prompt["name"] for prompt in (await client.ask("list_prompts"))["prompts"]] == ["recall", "core"]
        assert "add_memory" not in client.greeting["instructions"]
        for name in ("add_memory", "delete_memory", "archive_memory", "update_memory", "link_memories"):
            assert "unknown tool" in await client.call(name, text="x", id="n_0")
        with pytest.raises(Exception, match="unknown prompt"):
            await client.ask("get_prompt", "remember")


async def test_a_server_deletes_for_good_only_if_the_user_allows_it(store: Path) -> None:
    async with over_stdio(store, "--user", "ann", "--allow-delete") as client:
        tools = {tool["name"]: tool for tool in (await client.ask("list_tools"))["tools"]}
        assert [name for name, tool in tools.items() if tool["annotations"]["destructiveHint"]] == ["delete_memory"]
        id = (await client.call("add_memory", text="The cello is sold."))["id"]
        assert await client.call("delete_memory", id=id) == {"deleted": 1}
        answer = await client.call("get_memory", id=id)
        assert answer.startswith(f"{id!r} is not in user='ann': pass the scope of its note")


async def test_two_scopes_never_show_each_other(tmp_path: Path, soak_scale: Callable[[int], int]) -> None:
    """Two servers of one store get random calls at once; a word marks every note of each scope."""
    seed = 7
    marks = {"ann": "Kestrelwood", "bob": "Ottermere"}
    ids: dict[str, list[str]] = {user: [] for user in marks}
    store = tmp_path / "a.db"

    async def make_calls(user: str, client: Client, count: int) -> None:
        other = next(name for name in marks if name != user)
        chance = random.Random(f"{seed}{user}")
        for n in range(count):
            all_ids = [*ids[user], *ids[other]]
            id = chance.choice(all_ids) if all_ids else "n_0"
            name, arguments = chance.choice(
                [
                    ("add_memory", {"text": f"{marks[user]} has a boat number {n}.", "pinned": n % 9 == 0}),
                    ("search_memories", {"query": f"{marks[other]} boat number {n}", "limit": 20}),
                    ("search_memories", {"query": "Whose boat is it?", "archived": True}),
                    ("get_memory", {"id": id}),
                    ("memory_history", {"id": id}),
                    ("get_entity", {"name": marks[user]}),
                    ("update_memory", {"id": id, "text": f"{marks[user]} sold it, number {n}."}),
                    ("link_memories", {"source": id, "target": chance.choice(all_ids or ["n_0"]), "reason": "x"}),
                    ("archive_memory", {"id": id}),
                    ("list_resources", {}),
                    ("core", {}),
                ]
            )
            if name == "list_resources":
                output = str(await client.ask(name))
            elif name == "core":
                output = str(await client.ask("get_prompt", "core"))
            else:
                answer = await client.call(name, **arguments)
                output = str(answer)
                if name == "add_memory" and isinstance(answer, dict):
                    ids[user].append(answer["id"])
                elif id in ids[other] and "id" in arguments:
                    assert "is not in user=" in output
            assert marks[other] not in output, (name, arguments)

    count = soak_scale(2400)
    async with (
        over_stdio(store, "--user", "ann") as ann,
        over_stdio(store, "--user", "bob") as bob,
        anyio.create_task_group() as group,
    ):
        group.start_soon(make_calls, "ann", ann, count)
        group.start_soon(make_calls, "bob", bob, count)
    with Memory(store) as memory:
        for user, mark in marks.items():
            assert all(mark in note.content for note in memory.list(scope=Scope(user=user), limit=10_000).notes)
        assert memory.check() == []


def test_a_killed_server_loses_no_acknowledged_note(tmp_path: Path, soak_scale: Callable[[int], int]) -> None:
    chance = random.Random(11)
    for n in range(soak_scale(20)):
        store = tmp_path / f"{n}.db"
        acknowledged: dict[str, str] = {}
        with HttpServer(store) as server:
            killer = threading.Timer(0.3 + 0.7 * chance.random(), server.process.kill)
            while True:
                text = f"Fact {len(acknowledged)} about kettles."
                try:
                    status, answer = post(server.url, "tools/call", name="add_memory", arguments={"text": text})
                except (ConnectionError, http.client.HTTPException):
                    break
                assert status == 200
                acknowledged[json.loads(answer["result"]["content"][0]["text"])["id"]] = text
                if len(acknowledged) == 1:
                    killer.start()
            killer.join()
        with Memory(store) as memory:
            assert len(acknowledged) > 5
            for id, text in acknowledged.items():
                assert memory.get(id).content == text
            assert memory.check() == []


def test_stdout_contains_only_protocol_messages(tmp_path: Path) -> None:
    """Prints of the process and its children go elsewhere, broken input is skipped, and the end of input ends it."""
    noisy = (
        "import os, sys, logging; logging.basicConfig(stream=sys.stdout, level=0)\n"
        "from zettel.integrations.mcp_content import Content\n"
        "quiet = Content.call_tool\n"
        "async def call(self, asked):\n"
        "    print('noise', flush=True); os.system('echo noise'); os.write(1, b'noise')\n"
        "    return await quiet(self, asked)\n"
        "Content.call_tool = call\n"
        "from zettel.cli.app import run; sys.exit(run(sys.argv[1:]))\n"
    )
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "add_memory", "arguments": {"text": "Tea 🍵 is here."}}},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such/method"},
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", noisy, "mcp", "--store", str(tmp_path / "a.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for request in requests:
            process.stdin.write(b"{broken\n\xff\xfe\n" if request is requests[2] else b"")
            process.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        process.stdin.flush()
        answers: dict[Any, Any] = {}
        while not {1, 2, 3} <= answers.keys():
            answer = json.loads(process.stdout.readline())
            assert answer["jsonrpc"] == "2.0"
            answers[answer.get("id")] = answer
        rest, noise = process.communicate(timeout=PATIENCE)
    assert (process.returncode, rest) == (0, b"")
    assert noise.count(b"noise") == 3
    assert b"DEBUG" in noise
    assert json.loads(answers[2]["result"]["content"][0]["text"])["stored"] is True
    assert answers[3]["error"]["code"] in (-32601, -32602)  # the SDK's first major version returns the second code


def post(url: str, method: str, headers: dict[str, str] | None = None, **params: Any) -> tuple[int, Any]:
    """Return status and answer of a raw HTTP request."""
    address, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": params} if params else {})
    try:
        connection.request("POST", f"/{path}", json.dumps(request), plain | (headers or {}))
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if answer.status == 200 else content
    finally:
        connection.close()


def test_http_refuses_foreign_hosts_and_origins(url: str) -> None:
    assert post(url, "ping")[0] == 200
    assert post(url, "ping", {"Host": "memory.example"})[0] == 421
    assert post(url, "ping", {"Origin": "https://evil.example"})[0] == 403
    assert post(url.removesuffix("mcp"), "ping")[0] == 404


def test_huge_and_broken_bodies_are_refused(url: str) -> None:
    huge = {"text": "x" * 5_000_000}
    assert post(url, "tools/call", name="add_memory", arguments=huge)[0] == 413
    large = {"text": "x" * 2_000_000}
    assert post(url, "tools/call", name="add_memory", arguments=large)[1]["result"]["isError"] is True
    assert post(url, "tools/call")[1]["error"]["code"] == -32602
    assert post(url, "tools/call", {"Content-Length": "5"}, name="add_memory")[0] == 400
    assert post(url, "ping")[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", "", "localhost.example.org"])
def test_other_hosts_are_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"no authentication: use 127\.0\.0\.1"):
        require_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_hosts_are_accepted(host: str) -> None:
    require_loopback(host)


def test_command_line_errors_are_one_line(zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, status, error_text in [
        (["--http", "--host", "0.0.0.0"], 2, "no authentication"),
        (["--port", "8000"], 2, "require --http"),
        (["--read-only"], 1, "there is no store"),
    ]:
        result = zettel("mcp", *arguments)
        assert (result.status, result.out, result.err.count("\n")) == (status, "", 1)
        assert error_text in result.err
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    result = zettel("mcp")
    assert (result.status, result.err) == (
        1, 'zettel: the MCP server needs more packages: pip install "zettel-graph[mcp]"\n',
    )  # fmt: skip


def test_a_port_in_use_is_a_one_line_error(url: str, tmp_path: Path) -> None:
    port = url.split(":")[2].partition("/")[0]
    command = [*COMMAND, "--http", "--port", port, "--store", str(tmp_path / "a.db")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr.startswith("zettel: ")
    assert "cannot listen at 127.0.0.1" in done.stderr
    assert done.stderr.count("\n") == 1
