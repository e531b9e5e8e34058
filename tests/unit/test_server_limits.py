"""Limits of one client of a server."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import InvalidInput, RequestTimeout, ServerBusy, TooLarge
from zettel.remote.sockets import is_loopback
from zettel.server.limits import (
    ACTIVE_SECONDS,
    BURST_SECONDS,
    LONGEST_DEBT,
    PAUSE_OF_SHARED,
    RUNNING,
    SLOWEST,
    ClientDisconnected,
    ConcurrencyLimit,
    RateLimiter,
    RequestBody,
)
from zettel.server.routes_files import file_name
from zettel.server.serving import MOST_CONNECTIONS, Safety, most_connections, require_safe
from zettel.server.uvicorn_protocol import BufferedTransport

pytestmark = pytest.mark.anyio


@given(st.floats(0.5, 100), st.lists(st.floats(0, 3), min_size=1, max_size=200))
def test_a_bucket_allows_its_burst_and_then_its_rate(rate: float, pauses: list[float]) -> None:
    buckets = RateLimiter(rate)
    now = taken = 0.0
    for pause in pauses:
        now += pause
        wait = buckets.take("one", now)
        taken += wait == 0.0
        assert 0 <= wait <= 1 / rate + 1e-9
    assert taken <= max(1.0, BURST_SECONDS * rate) + now * rate + 1e-6


def test_a_client_that_waits_is_served_and_keys_have_separate_buckets() -> None:
    buckets = RateLimiter(1.0)
    assert [buckets.take("one", 5.0) for _ in range(3)] == [0.0, 0.0, 1.0]
    assert buckets.take("two", 5.0) == 0.0
    assert buckets.take("one", 6.0) == 0.0
    assert [RateLimiter(0.0).take("one", 0.0) for _ in range(1000)] == [0.0] * 1000


def test_a_large_body_costs_as_much_as_several_requests() -> None:
    buckets = RateLimiter(10.0)
    assert buckets.take("one", 0.0) == 0.0
    buckets.charge("one", 29.0)  # 20 - 1 - 29 = -10
    assert buckets.take("one", 0.0) == pytest.approx(1.1)
    assert buckets.take("one", 1.2) == 0.0
    buckets.charge("one", 10**9)
    assert buckets.take("one", 1.2) == pytest.approx(LONGEST_DEBT + 0.1)
    assert buckets.take("two", 1.2) == 0.0


async def test_requests_of_a_key_wait_in_its_queue_and_not_in_that_of_another() -> None:
    limit = ConcurrencyLimit(128)
    running: list[str] = []
    ended = anyio.Event()

    async def request(key: str) -> None:
        with limit.per_key(key):
            async with limit.queue(key):
                running.append(key)
                await ended.wait()

    async with anyio.create_task_group() as group:
        for key in ["busy"] * 10 + ["other"]:
            group.start_soon(request, key)
        await anyio.wait_all_tasks_blocked()
        assert sorted(running) == ["busy"] * RUNNING + ["other"]
        ended.set()
    assert len(running) == 11


def test_work_pauses_only_while_another_key_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("zettel.server.limits.time", SimpleNamespace(monotonic=lambda: now))
    limit = ConcurrencyLimit(128)
    busy = limit.begin("busy")
    limit.begin("busy")
    assert busy() == 0.0
    other = limit.begin("other")
    assert (busy(), other()) == (PAUSE_OF_SHARED, PAUSE_OF_SHARED)
    now += ACTIVE_SECONDS
    assert (busy(), other()) == (0.0, 0.0)


def arriving(messages: Iterable[Any]) -> Any:
    """Return a receive callable for these messages; a number is a pause in seconds."""
    waiting = iter([*messages, 3600])

    async def receive() -> dict[str, Any]:
        message = next(waiting)
        if isinstance(message, (int, float)):
            await anyio.sleep(message)
            message = next(waiting)
        return dict(message)

    return receive


def part(body: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_is_passed_on_unchanged() -> None:
    incoming = RequestBody(arriving([part(b"ab"), part(b"c"), part(b"", False), {"type": "http.disconnect"}]), 3, 5)
    receive = await incoming.read_all()
    assert incoming.is_complete
    assert await receive() == part(b"abc", False)
    assert (await receive())["type"] == "http.disconnect"


async def test_an_oversized_body_is_not_read_to_its_end() -> None:
    with pytest.raises(TooLarge, match="limit of 3 bytes"):
        await RequestBody(arriving([part(b"ab"), part(b"cd"), part(b"e")]), 3, 5).read_all()
    with pytest.raises(TooLarge):
        RequestBody(arriving([]), 3, 5).require(4)


async def test_a_slow_body_is_refused() -> None:
    for messages in ([], [part(b"a")], [part(b"a"), 0.04, part(b"b"), 0.04, part(b"c"), 0.04, part(b"d")]):
        with pytest.raises(RequestTimeout, match=r"in 0\.1 seconds"):
            await RequestBody(arriving(messages), 100, 0.1).read_all()
    quick = [part(b"x" * 16_384), 0.08, part(b"x" * 16_384), 0.08, part(b"", False)]  # as long as it stays fast enough
    await RequestBody(arriving(quick), 100_000, 0.1).read_all()


async def test_a_disconnect_ends_the_body() -> None:
    with pytest.raises(ClientDisconnected):
        await RequestBody(arriving([part(b"a"), {"type": "http.disconnect"}]), 100, 5).read_all()


async def test_the_rest_of_a_refused_body_is_drained_for_a_while() -> None:
    incoming = RequestBody(arriving([part(b"a" * 100), part(b"", False)]), 3, 5)
    await incoming.drain()
    assert incoming.is_complete
    with anyio.fail_after(10):
        await RequestBody(arriving([part(b"a")]), 3, 5).drain()
        await RequestBody(arriving([part(b"a"), {"type": "http.disconnect"}]), 3, 5).drain()


@pytest.mark.parametrize(
    ("name", "safe_name"),
    [("chat.txt", "chat.txt"), ("../../etc/passwd", "passwd"), ("C:\\a\\b.csv", "b.csv"), ("..", "transcript"),
     ("", "transcript"), ("a\0b", "a_b"), (".hidden", "hidden"), ("é" * 200 + ".csv", "é" * 98 + ".csv")],
)  # fmt: skip
def test_upload_names_are_validated(name: str, safe_name: str, tmp_path: Path) -> None:
    assert file_name(name) == safe_name
    (tmp_path / safe_name).touch()


def test_public_addresses_require_keys_and_encryption() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org", "")))
    require_safe("127.0.0.1", False, Safety())
    require_safe("0.0.0.0", True, Safety(Path("c"), Path("k")))
    require_safe("0.0.0.0", True, Safety(proxy="10.0.0.1"))
    with pytest.raises(InvalidInput, match="no keys exist"):
        require_safe("0.0.0.0", False, Safety(Path("c"), Path("k")))
    with pytest.raises(InvalidInput, match="unencrypted"):
        require_safe("0.0.0.0", True, Safety())
    with pytest.raises(InvalidInput, match="every client of the proxy"):
        require_safe("127.0.0.1", False, Safety(proxy="127.0.0.1"))


def test_connections_are_limited_by_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    expected = {256: 128, 1024: 824, 100_000: MOST_CONNECTIONS, resource.RLIM_INFINITY: MOST_CONNECTIONS}
    for soft, most in expected.items():
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert most_connections() == most


def test_one_key_has_a_quarter_of_the_slots() -> None:
    places = ConcurrencyLimit(8)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(places.total())
            stack.enter_context(places.per_key("one"))
        with pytest.raises(ServerBusy, match="2 requests running"), places.per_key("one"):
            pass
        for _ in range(6):
            stack.enter_context(places.total())
        with pytest.raises(ServerBusy, match="the server is busy"), places.total():
            pass
        with places.per_key("two"):
            pass
    with places.total(), places.per_key("one"):
        pass
    with ConcurrencyLimit(1).per_key("one"):  # at least one slot
        pass


async def test_an_unread_connection_is_closed_after_a_timeout() -> None:
    calls: list[tuple[float, Any]] = []
    loop = SimpleNamespace(call_later=lambda seconds, do: calls.append((seconds, do)))
    left = SimpleNamespace(
        close=lambda: None, abort=lambda: None, is_closing=lambda: False, get_write_buffer_size=lambda: SLOWEST * 2
    )  # fmt: skip
    BufferedTransport(left, loop, 7).close()  # type: ignore[arg-type]
    assert calls == [(7 + 2, left.abort)]
    left.is_closing = lambda: True  # when a TLS transport does not report its size
    left.get_write_buffer_size = None
    BufferedTransport(left, loop, 7).close()  # type: ignore[arg-type]
    assert len(calls) == 1
