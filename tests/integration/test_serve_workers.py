"""``zettel serve --workers``: several processes that serve one store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.http_server import PATIENCE, Asker
from tests.integration.command import Zettel
from tests.integration.mcp_client import environment
from tests.integration.test_serve import end_server, four_writers, require_stored, serving
from tests.waiting import until
from zettel import Memory, Scope

pytestmark = pytest.mark.integration

TWO = ("--workers", "2")


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the server processes; multiprocessing also starts a tracker of its resources."""
    ids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(id) for id in ids if b"spawn_main" in Path(f"/proc/{id}/cmdline").read_bytes()]


def sockets_of(id: int) -> int:
    """Return how many sockets a process has open."""
    found = 0
    for file in Path(f"/proc/{id}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            found += os.readlink(file).startswith("socket:")
    return found


def answers(port: int, key: str | None = None) -> Asker | None:
    """Return a client whose first request was answered."""
    client = Asker(port, key)
    try:
        client("GET", "/health")
    except OSError:
        client.close()
        return None
    return client


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Asker]]:
    """Connections to one server with two processes, which takes seconds to start."""
    with serving(tmp_path_factory.mktemp("workers") / "a.db", *TWO) as (process, url):
        assert len(children(process)) == 2
        connections = [Asker(port_of(url)) for _ in range(12)]
        yield connections
        for client in connections:
            client.close()
        end_server(process, signal.SIGTERM)


def test_all_processes_serve_one_memory(clients: list[Asker]) -> None:
    for number, client in enumerate(clients):
        assert client("POST", "/v1/events", {"content": f"Ann planted pear tree number {number}."}).status == 200
    for client in clients:
        found = client("POST", "/v1/search", {"question": "Which tree did Ann plant?", "k": 50}).body["hits"]
        assert len(found) == len(clients)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections over processes")
def test_connections_are_spread_over_the_processes(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", *TWO) as (process, url):
        before = {id: sockets_of(id) for id in children(process)}
        clients = [until(lambda: answers(port_of(url))) for _ in range(40)]
        received = [sockets_of(id) - before[id] for id in children(process)]
        for client in clients:
            client.close()
        end_server(process, signal.SIGTERM)
    assert sum(received) == len(clients)
    assert min(received) >= 6  # fewer have a chance of one in a million


def test_a_second_server_at_the_address_is_refused(zettel: Zettel, tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", *TWO) as (process, url):
        for workers in ("1", "2"):
            result = zettel("serve", "--store", "b.db", "--port", str(port_of(url)), "--workers", workers)
            assert result.status == 1
            assert "cannot listen" in result.err
        end_server(process, signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_all_processes_and_loses_nothing(tmp_path: Path, number: int) -> None:
    with serving(tmp_path / "a.db", *TWO) as (process, url), four_writers(url) as acknowledged:
        started = children(process)
        end_server(process, number)
    assert not any(Path(f"/proc/{id}").exists() for id in started)
    require_stored(tmp_path / "a.db", acknowledged)


def test_a_killed_process_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", *TWO) as (process, url):
        first = children(process)
        os.kill(first[0], signal.SIGKILL)
        (second,) = until(lambda: set(children(process)) - set(first))
        os.kill(second, signal.SIGKILL)  # before it answers
        until(lambda: len(children(process)) == 2 and second not in children(process))
        connected = [until(lambda: answers(port_of(url))) for _ in range(6)]
        for client in connected:
            assert client("POST", "/v1/events", {"content": "Ann moved to Oslo."}).status == 200
            client.close()
        log = end_server(process, signal.SIGTERM)
    assert [entry["code"] for entry in log if entry.get("event")] == [-signal.SIGKILL] * 2


def test_the_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    with serving(tmp_path / "a.db", *TWO) as (process, _):
        started = children(process)
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(Path(f"/proc/{id}").exists() for id in started))


def test_the_processes_share_the_rate_of_a_key(zettel: Zettel, tmp_path: Path) -> None:
    key = zettel("keys", "create", "laptop", "--user", "ann", "--store", "a.db").out.strip()
    with serving(tmp_path / "a.db", *TWO, "--rate", "0.01") as (process, url):
        clients = [Asker(port_of(url), key) for _ in range(8)]
        statuses = [client("GET", "/v1/notes").status for client in clients]
        for client in clients:
            client.close()
        end_server(process, signal.SIGTERM)
    assert statuses == [200, *[429] * 7]


def test_metrics_count_the_requests_of_all_processes(clients: list[Asker]) -> None:
    for client in clients:
        assert client("GET", "/v1/stats").status == 200
    page = clients[0]("GET", "/metrics").body.decode()
    assert 'zettel_http_requests_total{method="GET",route="/v1/stats",status="200"} 12.0' in page


def test_feedback_reaches_a_search_of_another_process(clients: list[Asker]) -> None:
    clients[0]("POST", "/v1/events", {"content": "Ben found a quartz."})
    hits = clients[0]("POST", "/v1/search", {"question": "What did Ben find?"}).body["hits"]
    body = {"search_id": hits[0]["search_id"], "used": [hits[0]["note"]["id"]]}
    assert {client("POST", "/v1/feedback", body).status for client in clients} <= {200, 204}


def test_a_store_that_cannot_be_opened_is_one_line(zettel: Zettel, tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("not a memory, but a text that is long enough to be read " * 20)
    result = zettel("serve", "--store", "a.db", "--port", "0", *TWO)
    assert result.status == 1
    assert "a.db" in result.err
    assert len(result.err.splitlines()) == 1


def test_an_audit_log_needs_one_process(zettel: Zettel) -> None:
    result = zettel("serve", "--store", "a.db", "--audit", "audit.jsonl", *TWO)
    assert result.status == 2
    assert result.err == "zettel: --audit, --webhooks and --proxy need a single process: omit --workers\n"


def test_a_server_with_a_scope_passes_it_to_all_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "zettel", "add", "Ann lives in Oslo.", "--user", "ann", "--store", "a.db"]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment(), capture_output=True)
    with serving(tmp_path / "a.db", *TWO, "--user", "ann") as (process, url):
        clients = [Asker(port_of(url)) for _ in range(4)]
        assert [len(client("GET", "/v1/notes").body["notes"]) for client in clients] == [1] * 4
        for client in clients:
            client.close()
        end_server(process, signal.SIGTERM)
    with Memory(tmp_path / "a.db", scope=Scope(user="ann")) as memory:
        assert len(memory.list().notes) == 1
