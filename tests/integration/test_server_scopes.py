"""Random requests with many keys of many scopes over HTTP and MCP: no answer shows another scope's data."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.http_server import Answer, Served, served
from zettel import AsyncMemory, Scope
from zettel.integrations.mcp_server import http_app, mcp_server

pytestmark = pytest.mark.integration

SCOPES = [
    Scope(tenant=f"t{n % 3}" if n % 4 else None, user=f"u{n}" if n % 5 else None, agent=f"a{n}" if n % 2 else None)
    for n in range(19)
] + [Scope(tenant="t0")]  # a prefix of other scopes
"""The first is the default scope, which only a key for that scope opens."""
MARKS = [f"Zq{chr(97 + n)}{chr(110 + n % 13)}orwick" for n in range(len(SCOPES))]
"""A word in every text of a scope, and in no text of another scope."""
NAMES = [f"Vy{chr(97 + n)}{chr(110 + n % 13)}elmond" for n in range(len(SCOPES))]
"""More such words, which questions of other scopes contain."""
KEYS, THREADS = 50, 8
OPERATIONS = 100_000
THINGS = "kettle lantern ferry orchard violin ledger harbour bicycle".split()
_MARK = re.compile("|".join(MARKS), re.IGNORECASE)
_ID = re.compile(r"[nes]_[0-9a-f]{16,}")
SEED = 10


@asynccontextmanager
async def with_mcp(memory: AsyncMemory, app: Any) -> AsyncIterator[Any]:
    """Add an MCP server for each scope to the application, at ``/mcp-N/mcp``."""
    async with AsyncExitStack() as stack:
        mcp_apps = [http_app(mcp_server(memory, scope=scope)) for scope in SCOPES]
        for mcp_app in mcp_apps:
            await stack.enter_async_context(mcp_app.router.lifespan_context(mcp_app))

        async def route(scope: Any, receive: Any, send: Any) -> None:
            number = re.fullmatch(r"/mcp-(\d+)/mcp", scope["path"])
            if number is None:
                await app(scope, receive, send)
            else:
                await mcp_apps[int(number[1])](scope | {"path": "/mcp"}, receive, send)

        yield route


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("scopes") / "a.db", beside=with_mcp) as running:
        yield running


class Observations:
    """Ids and owners that the test has seen, and answers with data of another scope."""

    def __init__(self) -> None:
        self.notes: list[list[str]] = [[] for _ in SCOPES]
        self.searches: list[list[str]] = [[] for _ in SCOPES]
        self.owner: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        self.shown: list[str] = []
        self.lock = threading.Lock()

    def check(self, scope: int, what: str, sent: str, answer: Answer) -> None:
        """Count an answer, and record data of another scope in it."""
        text = answer.body.decode() if isinstance(answer.body, bytes) else json.dumps(answer.body)
        marks = {mark for mark in _MARK.findall(text) if mark.lower() != MARKS[scope].lower()}
        shown_ids = set(_ID.findall(text))
        with self.lock:
            self.done[f"{what}: {answer.status}"] += 1
            if answer.status >= 500:
                self.shown.append(f"{what} failed: {text[:200]}")
            ids = [id for id in shown_ids if id not in sent and self.owner.setdefault(id, scope) != scope]
            if marks or ids:
                self.shown.append(f"{what} in {scope} shows {marks} {ids}: {text[:300]}")


class Client:
    """A key, the scopes that it opens, and random requests with it."""

    def __init__(self, server: Served, number: int, observations: Observations) -> None:
        self.chance = random.Random(SEED * 1000 + number)
        own = [number % len(SCOPES)] if number % 5 else sorted(self.chance.sample(range(1, len(SCOPES)), 2))
        is_admin = number % 17 == 3
        right = "read" if number % 7 == 6 else "write" if number % 3 else "admin"
        opened = () if is_admin else tuple(SCOPES[index] for index in own)
        self.own = list(range(1, len(SCOPES))) if is_admin else own
        self.ask = server.asker(server.key(f"k{number}", *opened, right=right))
        self.open = server.asker()  # for MCP, which takes no keys
        self.observations = observations

    def step(self) -> None:
        scope = self.chance.choice(self.own)
        kinds, weights = zip(*ACTIONS.items(), strict=True)
        self.chance.choices(kinds, weights)[0](self, scope)

    def http(self, scope: int, method: str, path: str, body: Any = None, **query: Any) -> Answer:
        parts = {name: part for name, part in SCOPES[scope].model_dump().items() if part is not None}
        url = f"{path}?{urlencode(parts | query)}"
        answer = self.ask(method, url, body)
        self.observations.check(scope, f"{method} {_ID.sub('ID', path)}", url + json.dumps(body), answer)
        return answer

    def mcp(self, scope: int, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.open(
            "POST", f"/mcp-{scope}/mcp", json.dumps(body).encode(), content_type="application/json",
            accept="application/json, text/event-stream", host=f"127.0.0.1:{self.open.port}",
        )  # fmt: skip
        self.observations.check(scope, f"MCP {params.get('name', method)}", json.dumps(params), answer)
        return answer.body

    def text(self, scope: int) -> str:
        thing, number = self.chance.choice(THINGS), self.chance.randrange(10**9)
        return f"{MARKS[scope]} of {NAMES[scope]} keeps the {thing} number {number}."

    def question(self, scope: int) -> str:
        """Return a question about things of all scopes, or about a word of another scope."""
        name = self.chance.choice(NAMES) if self.chance.random() < 0.3 else "them"
        return f"Who keeps the {self.chance.choice(THINGS)} of {name}?"

    def id(self, scope: int) -> str:
        """Return the id of a note, mostly of this scope."""
        source_scope = self.chance.randrange(len(SCOPES)) if self.chance.random() < 0.3 else scope
        return self.chance.choice(self.observations.notes[source_scope] or ["n_0123456789abcdef0123"])


def add(client: Client, scope: int) -> None:
    session = client.chance.choice(["s1", "s2", None])
    if client.chance.random() < 0.7:
        answer = client.http(scope, "POST", "/v1/events", {"content": client.text(scope), "session": session})
        ids = [answer.body["id"]] if answer.status == 200 else []
    else:
        events = [{"content": client.text(scope), "session": session} for _ in range(3)]
        answer = client.http(scope, "POST", "/v1/events/batch", {"events": events})
        ids = answer.body["ids"] if answer.status == 200 else []
    client.observations.notes[scope] += ids


def search(client: Client, scope: int) -> None:
    options = {"k": client.chance.choice([1, 5, 30]), "explain": client.chance.random() < 0.2}
    if client.chance.random() < 0.2:
        client.http(scope, "POST", "/v1/search/batch", {"questions": [client.question(scope)] * 2, **options})
        return
    hits = client.http(scope, "POST", "/v1/search", {"question": client.question(scope), **options}).body["hits"]
    client.observations.searches[scope] += [hit["search_id"] for hit in hits[:1]]


def pack(client: Client, scope: int) -> None:
    client.http(
        scope, "POST", client.chance.choice(["/v1/context", "/v1/answer-context"]), {"question": client.question(scope)}
    )


def read_note(client: Client, scope: int) -> None:
    end = client.chance.choice(["", "/history", "/links", "/neighbors", "/terms"])
    client.http(scope, "GET", f"/v1/notes/{client.id(scope)}{end}")


def read_listing(client: Client, scope: int) -> None:
    path = client.chance.choice(["notes", "searches", "jobs", "stats", "graph", "events"])
    query: dict[str, Any] = {"limit": 20} if path in ("notes", "graph", "events") else {}
    if path == "events":
        query["session"] = "s1"
    if path == "notes":
        cursor = client.chance.randrange(1000)
        query |= client.chance.choice([{}, {"cursor": cursor}, {"session": "s2"}, {"archived": "true"}])
    client.http(scope, "GET", f"/v1/{path}", **query)


def read_scope(client: Client, scope: int) -> None:
    """Read the whole scope: megabytes, after a while."""
    client.http(scope, "GET", f"/v1/{client.chance.choice(['conflicts', 'export', 'dump'])}")


def change(client: Client, scope: int) -> None:
    id, what = client.id(scope), client.chance.randrange(5)
    if what == 0:
        client.http(scope, "PATCH", f"/v1/notes/{id}", {"title": client.text(scope)})
    elif what == 1:
        client.http(scope, "POST", "/v1/links", {"source": id, "target": client.id(scope), "reason": MARKS[scope]})
    elif what == 2:
        client.http(scope, "POST", f"/v1/notes/{id}/revert", {"version": 1})
    else:
        ends = ["archive", "unarchive", "quarantine", "release", "revert-effects"]
        client.http(scope, "POST", f"/v1/notes/{id}/{client.chance.choice(ends)}")


def give_feedback(client: Client, scope: int) -> None:
    source_scope = client.chance.choice([scope, client.chance.randrange(len(SCOPES))])
    search = client.chance.choice(client.observations.searches[source_scope] or ["s_0123456789abcdef"])
    client.http(scope, "POST", "/v1/feedback", {"search_id": search, "used": [client.id(scope)]})


def delete(client: Client, scope: int) -> None:
    if client.chance.random() < 0.9:
        client.http(scope, "DELETE", f"/v1/notes/{client.id(scope)}")
    else:
        client.http(scope, "DELETE", "/v1/events", session="s2")


def evolve(client: Client, scope: int) -> None:
    client.http(scope, "POST", "/v1/evolve", {"wait": False})


def trespass(client: Client, scope: int) -> None:
    """Request a scope that the key does not open."""
    others = [other for other in range(1, len(SCOPES)) if other not in client.own]
    if others:
        other = client.chance.choice(others)
        answer = client.http(other, "POST", "/v1/search", {"question": "kettle"})
        assert answer.status == 403
    scopes = client.http(scope, "GET", "/v1/scopes").body["scopes"]
    assert {Scope(**part) for part in scopes} <= {SCOPES[own] for own in (client.own if others else range(len(SCOPES)))}


def call_tool(client: Client, scope: int) -> None:
    id, other, text = client.id(scope), client.id(scope), client.text(scope)
    name, arguments = client.chance.choice([
        ("add_memory", {"text": text}), ("search_memories", {"query": client.question(scope)}),
        ("get_memory", {"id": id}), ("memory_history", {"id": id}), ("archive_memory", {"id": id}),
        ("get_entity", {"name": text}),
        ("restore_memory", {"id": id}), ("update_memory", {"id": id, "title": text}),
        ("link_memories", {"source": id, "target": other}),
    ])  # fmt: skip
    client.mcp(scope, "tools/call", name=name, arguments=arguments)


def read_resource(client: Client, scope: int) -> None:
    what = client.chance.randrange(4)
    if what == 0:
        client.mcp(scope, "resources/list")
    elif what == 1:
        client.mcp(scope, "prompts/get", name="recall", arguments={"question": client.question(scope)})
    else:
        end = client.chance.choice(["", "/history"])
        client.mcp(scope, "resources/read", uri=f"zettel://notes/{client.id(scope)}{end}")


ACTIONS: dict[Callable[[Client, int], None], int] = {
    add: 20, search: 20, pack: 6, read_note: 12, read_listing: 11, read_scope: 1, change: 8, give_feedback: 4,
    delete: 3, evolve: 1, trespass: 4, call_tool: 14, read_resource: 6,
}  # fmt: skip
"""Actions and their frequency per 110 requests."""


@pytest.mark.soak
def test_no_answer_shows_another_scopes_data(
    server: Served,
    soak_scale: Callable[[int], int],
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    assert len(set(SCOPES)) == len(SCOPES) == len(set(MARKS))
    operations = soak_scale(OPERATIONS)
    if not pytestconfig.getoption("soak"):
        operations //= 10  # the full test takes twenty minutes
    observations = Observations()
    clients = [Client(server, number, observations) for number in range(KEYS)]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        own_clients = clients[number::THREADS]
        order = random.Random(number)
        try:
            for _ in range(operations // THREADS):
                order.choice(own_clients).step()
        except Exception as error:  # noqa: BLE001 - raised by the test's own thread
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    counts = Counter[str]()
    for outcome, count in observations.done.items():
        counts[outcome.rpartition(" ")[2]] += count
    record_property("answers", sum(observations.done.values()))
    record_property("by status", dict(sorted(counts.items())))
    record_property("over MCP", sum(count for outcome, count in observations.done.items() if outcome.startswith("MCP")))
    record_property("showing another scope's data", len(observations.shown))
    assert observations.shown == []
    assert counts["200"] > operations / 2
    assert counts["403"] > 0
    assert counts["404"] > 0
