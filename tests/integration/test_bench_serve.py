"""``zettel bench serve``: its clients and threads, run in this process."""

from __future__ import annotations

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


def test_the_table_compares_http_with_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers = {"run_threads": {"seconds": 2.0, "cpu": 2.0}, "run_clients": {"seconds": 2.5, "cpu": 0.0}}
    monkeypatch.setattr(http_server, "run_in_child", lambda function, **_: dict(answers[function.__name__]))
    monkeypatch.setattr(http_server.sizes, "prepare", lambda *_: {})

    class Server:
        def __enter__(self) -> tuple[str, str, Any]:
            cpu = iter((1.0, 4.0))
            return "http://127.0.0.1:1", "zk_", lambda: next(cpu)

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(http_server, "_server", lambda *_: Server())
    table = http_server.run(50, 16, lambda *_: None, tmp_path)
    assert table.rows == [
        ["over HTTP, 16 clients", 240.0, 240.0, 240.0],
        ["in the process, 16 threads", 300.0, 300.0, 300.0],
        ["HTTP ÷ in the process, of each round", 0.8, 0.8, 0.8],
        ["CPU of the server, ms a search", 5.0, 5.0, 5.0],
        ["CPU of the process, ms a search", 3.33, 3.33, 3.33],
    ]
