"""Many keys of many scopes ask one server at random, over HTTP and MCP: no answer shows another scope's data."""

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
] + [Scope(tenant="t0")]  # one that is a part of others
"""The first is the default scope, which nobody can name: it is whose key opens nothing else."""
MARKS = [f"Zq{chr(97 + n)}{chr(110 + n % 13)}orwick" for n in range(len(SCOPES))]
"""Stands in every text of a scope, and in no other's."""
NAMES = [f"Vy{chr(97 + n)}{chr(110 + n % 13)}elmond" for n in range(len(SCOPES))]
"""The same; these others ask for."""
KEYS, ASKERS = 50, 8
OPERATIONS = 100_000
THINGS = "kettle lantern ferry orchard violin ledger harbour bicycle".split()
_MARK = re.compile("|".join(MARKS), re.IGNORECASE)
_ID = re.compile(r"[nes]_[0-9a-f]{16,}")
SEED = 10


@asynccontextmanager
async def with_mcp(memory: AsyncMemory, app: Any) -> AsyncIterator[Any]:
    """The application, and beside it an MCP server for each scope, at ``/mcp-N/mcp``."""
    async with AsyncExitStack() as stack:
        made = [http_app(mcp_server(memory, scope=scope)) for scope in SCOPES]
        for one in made:
            await stack.enter_async_context(one.router.lifespan_context(one))

        async def both(scope: Any, receive: Any, send: Any) -> None:
            number = re.fullmatch(r"/mcp-(\d+)/mcp", scope["path"])
            if number is None:
                await app(scope, receive, send)
            else:
                await made[int(number[1])](scope | {"path": "/mcp"}, receive, send)

        yield both


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("scopes") / "a.db", beside=with_mcp) as running:
        yield running


class Known:
    """What the tests know of the scopes: ids and whose they are."""

    def __init__(self) -> None:
        self.notes: list[list[str]] = [[] for _ in SCOPES]
        self.searches: list[list[str]] = [[] for _ in SCOPES]
        self.owner: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        self.shown: list[str] = []
        self.lock = threading.Lock()

    def look(self, scope: int, what: str, sent: str, answer: Answer) -> None:
        """Count an answer, and keep what it shows of another scope than its own."""
        told = answer.body.decode() if isinstance(answer.body, bytes) else json.dumps(answer.body)
        marks = {mark for mark in _MARK.findall(told) if mark.lower() != MARKS[scope].lower()}
        named = set(_ID.findall(told))
        with self.lock:
            self.done[f"{what}: {answer.status}"] += 1
            if answer.status >= 500:
                self.shown.append(f"{what} failed: {told[:200]}")
            ids = [id for id in named if id not in sent and self.owner.setdefault(id, scope) != scope]
            if marks or ids:
                self.shown.append(f"{what} in {scope} shows {marks} {ids}: {told[:300]}")


class Client:
    """One key, what may be asked with it, and chances."""

    def __init__(self, server: Served, number: int, known: Known) -> None:
        self.chance = random.Random(SEED * 1000 + number)
        own = [number % len(SCOPES)] if number % 5 else sorted(self.chance.sample(range(1, len(SCOPES)), 2))
        everything = number % 17 == 3
        right = "read" if number % 7 == 6 else "write" if number % 3 else "admin"
        opened = () if everything else tuple(SCOPES[one] for one in own)
        self.own = list(range(1, len(SCOPES))) if everything else own
        self.ask = server.asker(server.key(f"k{number}", *opened, right=right))
        self.open = server.asker()  # for MCP, which knows no keys
        self.known = known

    def step(self) -> None:
        scope = self.chance.choice(self.own)
        kinds, weights = zip(*ACTIONS.items(), strict=True)
        self.chance.choices(kinds, weights)[0](self, scope)

    def http(self, scope: int, method: str, path: str, body: Any = None, **query: Any) -> Answer:
        parts = {name: part for name, part in SCOPES[scope].model_dump().items() if part is not None}
        whole = f"{path}?{urlencode(parts | query)}"
        answer = self.ask(method, whole, body)
        self.known.look(scope, f"{method} {_ID.sub('ID', path)}", whole + json.dumps(body), answer)
        return answer

    def mcp(self, scope: int, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.open(
            "POST", f"/mcp-{scope}/mcp", json.dumps(body).encode(), content_type="application/json",
            accept="application/json, text/event-stream", host=f"127.0.0.1:{self.open.port}",
        )  # fmt: skip
        self.known.look(scope, f"MCP {params.get('name', method)}", json.dumps(params), answer)
        return answer.body

    def text(self, scope: int) -> str:
        thing, number = self.chance.choice(THINGS), self.chance.randrange(10**9)
        return f"{MARKS[scope]} of {NAMES[scope]} keeps the {thing} number {number}."

    def question(self, scope: int) -> str:
        """About what all scopes have, or what another has alone."""
        name = self.chance.choice(NAMES) if self.chance.random() < 0.3 else "them"
        return f"Who keeps the {self.chance.choice(THINGS)} of {name}?"

    def id(self, scope: int) -> str:
        """A note's, mostly of this scope."""
        where = self.chance.randrange(len(SCOPES)) if self.chance.random() < 0.3 else scope
        return self.chance.choice(self.known.notes[where] or ["n_0123456789abcdef0123"])


def add(one: Client, scope: int) -> None:
    session = one.chance.choice(["s1", "s2", None])
    if one.chance.random() < 0.7:
        answer = one.http(scope, "POST", "/v1/events", {"content": one.text(scope), "session": session})
        ids = [answer.body["id"]] if answer.status == 200 else []
    else:
        events = [{"content": one.text(scope), "session": session} for _ in range(3)]
        answer = one.http(scope, "POST", "/v1/events/batch", {"events": events})
        ids = answer.body["ids"] if answer.status == 200 else []
    one.known.notes[scope] += ids


def search(one: Client, scope: int) -> None:
    asked = {"k": one.chance.choice([1, 5, 30]), "explain": one.chance.random() < 0.2}
    if one.chance.random() < 0.2:
        one.http(scope, "POST", "/v1/search/batch", {"questions": [one.question(scope)] * 2, **asked})
        return
    hits = one.http(scope, "POST", "/v1/search", {"question": one.question(scope), **asked}).body["hits"]
    one.known.searches[scope] += [hit["search_id"] for hit in hits[:1]]


def pack(one: Client, scope: int) -> None:
    one.http(scope, "POST", one.chance.choice(["/v1/context", "/v1/answer-context"]), {"question": one.question(scope)})


def look(one: Client, scope: int) -> None:
    end = one.chance.choice(["", "/history", "/links", "/neighbors", "/terms"])
    one.http(scope, "GET", f"/v1/notes/{one.id(scope)}{end}")


def look_at_all(one: Client, scope: int) -> None:
    path = one.chance.choice(["notes", "searches", "jobs", "stats", "graph", "events"])
    query: dict[str, Any] = {"limit": 20} if path in ("notes", "graph", "events") else {}
    if path == "events":
        query["session"] = "s1"
    if path == "notes":
        cursor = one.chance.randrange(1000)
        query |= one.chance.choice([{}, {"cursor": cursor}, {"session": "s2"}, {"archived": "true"}])
    one.http(scope, "GET", f"/v1/{path}", **query)


def take_all(one: Client, scope: int) -> None:
    """What tells of the whole scope: megabytes, after a while."""
    one.http(scope, "GET", f"/v1/{one.chance.choice(['conflicts', 'export', 'dump'])}")


def change(one: Client, scope: int) -> None:
    id, what = one.id(scope), one.chance.randrange(5)
    if what == 0:
        one.http(scope, "PATCH", f"/v1/notes/{id}", {"title": one.text(scope)})
    elif what == 1:
        one.http(scope, "POST", "/v1/links", {"source": id, "target": one.id(scope), "reason": MARKS[scope]})
    elif what == 2:
        one.http(scope, "POST", f"/v1/notes/{id}/revert", {"version": 1})
    else:
        ends = ["archive", "unarchive", "quarantine", "release", "revert-effects"]
        one.http(scope, "POST", f"/v1/notes/{id}/{one.chance.choice(ends)}")


def tell(one: Client, scope: int) -> None:
    where = one.chance.choice([scope, one.chance.randrange(len(SCOPES))])
    search = one.chance.choice(one.known.searches[where] or ["s_0123456789abcdef"])
    one.http(scope, "POST", "/v1/feedback", {"search_id": search, "used": [one.id(scope)]})


def delete(one: Client, scope: int) -> None:
    if one.chance.random() < 0.9:
        one.http(scope, "DELETE", f"/v1/notes/{one.id(scope)}")
    else:
        one.http(scope, "DELETE", "/v1/events", session="s2")


def evolve(one: Client, scope: int) -> None:
    one.http(scope, "POST", "/v1/evolve", {"wait": False})


def trespass(one: Client, scope: int) -> None:
    """Name another scope than any that the key opens."""
    others = [other for other in range(1, len(SCOPES)) if other not in one.own]
    if others:
        other = one.chance.choice(others)
        answer = one.http(other, "POST", "/v1/search", {"question": "kettle"})
        assert answer.status == 403
    found = one.http(scope, "GET", "/v1/scopes").body["scopes"]
    assert {Scope(**part) for part in found} <= {SCOPES[own] for own in (one.own if others else range(len(SCOPES)))}


def by_tools(one: Client, scope: int) -> None:
    id, other, text = one.id(scope), one.id(scope), one.text(scope)
    name, arguments = one.chance.choice([
        ("add_memory", {"text": text}), ("search_memories", {"query": one.question(scope)}), ("get_memory", {"id": id}),
        ("memory_history", {"id": id}), ("delete_memory", {"id": id}), ("update_memory", {"id": id, "title": text}),
        ("link_memories", {"source": id, "target": other}),
    ])  # fmt: skip
    one.mcp(scope, "tools/call", name=name, arguments=arguments)


def by_resources(one: Client, scope: int) -> None:
    what = one.chance.randrange(4)
    if what == 0:
        one.mcp(scope, "resources/list")
    elif what == 1:
        one.mcp(scope, "prompts/get", name="recall", arguments={"question": one.question(scope)})
    else:
        end = one.chance.choice(["", "/history"])
        one.mcp(scope, "resources/read", uri=f"zettel://notes/{one.id(scope)}{end}")


ACTIONS: dict[Callable[[Client, int], None], int] = {
    add: 20, search: 20, pack: 6, look: 12, look_at_all: 11, take_all: 1, change: 8, tell: 4, delete: 3, evolve: 1,
    trespass: 4, by_tools: 14, by_resources: 6,
}  # fmt: skip
"""What is done, and how often of 110 times."""


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
        operations //= 10  # the whole takes twenty minutes
    known = Known()
    clients = [Client(server, number, known) for number in range(KEYS)]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        mine = clients[number::ASKERS]
        order = random.Random(number)
        try:
            for _ in range(operations // ASKERS):
                order.choice(mine).step()
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(ASKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    counts = Counter[str]()
    for told, count in known.done.items():
        counts[told.rpartition(" ")[2]] += count
    record_property("answers", sum(known.done.values()))
    record_property("by status", dict(sorted(counts.items())))
    record_property("over MCP", sum(count for told, count in known.done.items() if told.startswith("MCP")))
    record_property("showing another scope's data", len(known.shown))
    assert known.shown == []
    assert counts["200"] > operations / 2
    assert counts["403"] > 0
    assert counts["404"] > 0
