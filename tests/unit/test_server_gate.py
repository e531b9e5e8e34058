"""The server's gate and routes, without a socket and a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from zettel import Scope
from zettel.errors import BudgetSpent, NotFound, ServerBusy, StoreBusy, TooManyRequests, ZettelError
from zettel.server.access import Access
from zettel.server.app import application
from zettel.server.gate import Gate, error_headers
from zettel.server.keys import Key, Keys
from zettel.server.limits import Limits
from zettel.server.logs import Metrics
from zettel.server.public_paths import is_guarded, page_files
from zettel.server.routes_maintenance import LONGEST_WAIT
from zettel.server.routes_search import scorers

pytestmark = pytest.mark.anyio

ANN = Scope(user="ann")


class Stub:
    """A minimal memory that records its calls."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def get(self, id: str) -> None:
        self.asked.append(id)
        raise NotFound(ANN, [id])

    async def stats(self, *, scope: Scope | None) -> dict[str, Any]:
        return {"notes": 1, "budget": {"usd": 3.0}}

    async def flush(self, timeout: float | None, *, scope: Scope | None) -> None:
        self.asked.append(timeout)

    async def evolve(self, timeout: float | None, *, scope: Scope | None) -> Any:
        self.asked.append(timeout)
        raise StoreBusy


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Keys]:
    made = Keys(tmp_path / "a.keys", create=True)
    yield made
    made.close()


async def ask(app: Any, method: str, path: str, key: str | None = None, body: Any = None) -> tuple[int, Any]:
    """Send a request; return the status and JSON of the response."""
    sent: list[Any] = []
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    headers += [] if key is None else [(b"authorization", f"Bearer {key}".encode())]

    async def send(message: Any) -> None:
        sent.append(message)

    await app(http_scope(method, path, headers), arriving(b"" if body is None else json.dumps(body).encode()), send)
    content = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(content) if content else None


def http_scope(method: str, path: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": headers, "scheme": "http", "server": ("localhost", 80), "root_path": "", "http_version": "1.1",
    }  # fmt: skip


def arriving(body: bytes) -> Any:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for message in messages:
            return message
        await anyio.sleep_forever()

    return receive


async def status_of_headers(app: Any, path: str, *headers: tuple[bytes, bytes]) -> int:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await app(http_scope("GET", path, [(b"host", b"localhost"), *headers]), arriving(b""), send)
    status: int = sent[0]["status"]
    return status


async def test_without_keys_requests_of_other_sites_are_refused() -> None:
    app = application(Stub(), None)  # type: ignore[arg-type]
    sites = {"cross-site": 403, "same-site": 403, "Cross-Site": 403, "same-origin": 200, "none": 200}
    for site, status in sites.items():
        assert await status_of_headers(app, "/v1/stats", (b"sec-fetch-site", site.encode())) == status, site
    assert await status_of_headers(app, "/v1/stats") == 200  # a program
    assert await status_of_headers(app, "/health", (b"sec-fetch-site", b"cross-site")) == 200  # a link


async def test_ambiguous_headers_are_refused(keys: Keys) -> None:
    app = application(Stub(), keys)  # type: ignore[arg-type]
    key = f"Bearer {keys.create('ann', 'read', [ANN])[1]}".encode()
    assert await status_of_headers(app, "/v1/stats", (b"authorization", key)) == 200
    assert await status_of_headers(app, "/v1/stats", (b"authorization", b"Bearer x"), (b"authorization", key)) == 400
    lengths = (b"content-length", b"0"), (b"transfer-encoding", b"chunked")
    assert await status_of_headers(app, "/v1/stats", (b"authorization", key), *lengths) == 400
    assert await status_of_headers(app, "/v1/stats", (b"authorization", key), (b"host", b"other")) == 400


def test_all_routes_but_the_listed_ones_require_a_key() -> None:
    assert not any(map(is_guarded, ("/", "/health", "/ready", "/openapi.json", "/index.html")))
    assert all(map(is_guarded, ("/v1/notes", "/metrics", "/metrics\n", "/health/", "//health", "/x", "", "*")))
    assert "index.html" in page_files()


async def test_the_health_of_the_store_is_cached_for_a_second() -> None:
    memory = Stub()
    app = application(memory, None)  # type: ignore[arg-type]
    assert [await ask(app, "GET", "/ready") for _ in range(20)] == [(200, {"status": "ok"})] * 20
    assert memory.asked == ["n_0"]


async def test_waits_are_ten_minutes_at_most() -> None:
    memory = Stub()
    app = application(memory, None)  # type: ignore[arg-type]
    for body in (None, {"timeout": 1e9}, {"timeout": 5}):
        await ask(app, "POST", "/v1/flush", body=body)
        await ask(app, "POST", "/v1/evolve", body=body)
    assert memory.asked == [LONGEST_WAIT] * 4 + [5.0] * 2


async def test_only_keys_for_all_scopes_see_the_budget(keys: Keys) -> None:
    app = application(Stub(), keys)  # type: ignore[arg-type]
    bound, every = keys.create("bound", "admin", [ANN])[1], keys.create("every", "read", None)[1]
    assert await ask(app, "GET", "/v1/stats", bound) == (200, {"notes": 1})
    assert (await ask(app, "GET", "/v1/stats", every))[1]["budget"] == {"usd": 3.0}


async def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 10, "more_body": True})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        if len(sent) == 5:
            await anyio.sleep_forever()
        sent.append(message)

    gate = Gate(app, None, Limits(at_once=1, send_seconds=0.02), Metrics())
    for _ in range(2):  # its slot is free again
        sent.clear()
        with anyio.fail_after(10):
            await gate(http_scope("GET", "/v1/dump", [(b"host", b"localhost")]), arriving(b""), send)
        assert len(sent) == 5


async def test_one_key_cannot_take_all_slots_and_unauthorized_clients_take_none(keys: Keys) -> None:
    going, ended = anyio.Event(), anyio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["zettel.key"] is not None and scope["zettel.key"].name == "one":
            going.set()
            await ended.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    gate = Gate(app, keys, Limits(at_once=4), Metrics())
    first_key, other = (keys.create(name, "read", [ANN])[1] for name in ("one", "other"))
    async with anyio.create_task_group() as group:
        group.start_soon(ask, gate, "GET", "/v1/notes", first_key)
        await going.wait()
        status, answer = await ask(gate, "GET", "/v1/notes", first_key)
        assert (status, answer["error"]["type"]) == (503, "ServerBusy")
        assert (await ask(gate, "GET", "/v1/notes", other))[0] == 204
        assert (await ask(gate, "GET", "/health"))[0] == 204
        ended.set()
    assert (await ask(gate, "GET", "/v1/notes", first_key))[0] == 204


async def test_routes_without_a_key_are_rate_limited_too() -> None:
    going, ended = anyio.Event(), anyio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        going.set()
        await ended.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    gate = Gate(app, None, Limits(at_once=1), Metrics())
    async with anyio.create_task_group() as group:
        group.start_soon(ask, gate, "GET", "/ready")
        await going.wait()
        assert (await ask(gate, "GET", "/openapi.json"))[0] == 503
        ended.set()


def test_retry_after_is_reported_for_temporary_errors() -> None:
    def has_retry_after(error: ZettelError) -> bool:
        return b"retry-after" in dict(error_headers(error))

    assert all(map(has_retry_after, (ServerBusy(), TooManyRequests(), StoreBusy())))
    assert not any(map(has_retry_after, (BudgetSpent(), NotFound(ANN, ["n_0"]))))


def test_scorers_are_cached_per_scope() -> None:
    folder = Path("kept")
    bound, every = (Key("0" * 12, "a", "admin", scopes, "tail", None) for scopes in ((ANN,), None))  # type: ignore[arg-type]
    memory: Any = None
    assert scorers(Access(memory, ANN, bound, folder)) == Path("kept", ANN.key)
    assert scorers(Access(memory, ANN, every, folder)) == Path("kept")
    assert scorers(Access(memory, ANN, None, folder)) == Path("kept")
