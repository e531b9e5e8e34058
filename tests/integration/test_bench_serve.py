"""``zettel bench serve``: its clients and threads, run in this process."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import served
from zettel import Memory
from zettel.bench import http_server
from zettel.errors import ZettelError

pytestmark = pytest.mark.integration

SEARCHES: dict[str, Any] = {"questions": ["Which kettle?", "Which shelf?"], "k": 3, "clients": 2, "count": 7}


def test_clients_and_threads_search_for_all_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEARCHES_BEFORE", 3)
    with Memory(tmp_path / "a.db") as memory:
        memory.add_many([{"content": f"Kettle {n} stands on shelf {n}."} for n in range(9)])
    measured = http_server.run_threads(store=str(tmp_path / "a.db"), embedder=None, **SEARCHES)
    assert measured["seconds"] > 0
    assert measured["cpu"] > 0
    with served(tmp_path / "a.db") as server:
        key = server.key("bench", right="read")
        assert http_server.run_clients(address=server.url, key=key, **SEARCHES)["seconds"] > 0
        page = server.asker(server.key("scrapes"))("GET", "/metrics").body.decode()
        assert 'zettel_http_requests_total{method="POST",route="/v1/search",status="200"} 7.0' in page
        with pytest.raises(ZettelError, match=r"the server answered .* 401"):
            http_server.run_clients(address=server.url, key="zk_wrong", **SEARCHES)


def test_the_table_compares_with_one_thread_times_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def measure(function: Any, clients: int, **_: Any) -> dict[str, float]:
        threads = function is http_server.run_threads
        return {"seconds": 4.0 if threads and clients == 1 else 2.5, "cpu": 3.0}

    monkeypatch.setattr(http_server, "run_in_child", measure)
    monkeypatch.setattr(http_server, "usable_cores", lambda: 2)
    monkeypatch.setattr(http_server.sizes, "prepare", lambda *_: {})
    monkeypatch.setattr(http_server, "_server", lambda *_: nullcontext(("http://127.0.0.1:1", "zk_")))
    table = http_server.run(50, 16, lambda *_: None, tmp_path)
    assert [row[:2] for row in table.rows] == [
        ["in the process, one thread", 150.0],
        ["in the process, 16 threads", 240.0],
        ["over HTTP, 16 clients, one process", 240.0],
        ["over HTTP, 16 clients, 2 processes", 240.0],
        ["16 threads ÷ one × 2 cores", 0.8],
        ["HTTP, 2 processes ÷ one thread × 2 cores", 0.8],
        ["processor time in one thread, ms a search", 5.0],
        ["processor time in 16 threads, ms a search", 5.0],
    ]


def test_the_measured_server_has_processes_and_a_key(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory:
        memory.add_many([{"content": f"Kettle {n} is on shelf {n}."} for n in range(9)])
    with http_server._server(str(tmp_path / "a.db"), None, 2) as (address, key):
        assert http_server.run_clients(address=address, key=key, **SEARCHES)["seconds"] > 0
        with pytest.raises(ZettelError, match=r"the server answered .* 401"):
            http_server.run_clients(address=address, key="zk_wrong", **SEARCHES)
