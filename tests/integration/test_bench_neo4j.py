"""The benchmark of a Neo4j server on a few notes: its table, its clean-up, and its bare statements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import neo4j_servers
from tests.integration.command import Zettel
from tests.integration.test_bench import CHECKOUT, TALK
from tests.neo4j_servers import DATABASE, Server
from zettel import Memory, Scope
from zettel.bench import neo4j, neo4j_writes
from zettel.bench.bare_cypher import ScopeGraph
from zettel.bench.server_use import ServerUse
from zettel.graph.neo4j.store import Neo4jStore

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ANN = Scope(user="ann")


@pytest.fixture(params=neo4j_servers.EVERY[:1])  # both release lines run the same statements
def running(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server without nodes, and set its user and password in the environment."""
    server: Server = neo4j_servers.server(request.param)
    neo4j_servers.forget_all(server)
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), server.auth, strict=True):
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def small_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower all counts, and let child processes import this checkout."""
    monkeypatch.setattr(neo4j_writes, "BATCH", 80)
    monkeypatch.setattr(neo4j_writes, "BATCHES", 2)
    monkeypatch.setattr(neo4j_writes, "WARM_UPS", 0)
    monkeypatch.setattr(neo4j_writes, "ROUNDS", 1)
    monkeypatch.setattr(neo4j, "QUESTIONS", 10)
    monkeypatch.setattr(neo4j, "UNCACHED_QUESTIONS", 3)
    monkeypatch.setattr(neo4j, "PROCESSES", 1)
    monkeypatch.setattr(neo4j, "SEARCHES_BEFORE", 3)
    monkeypatch.setattr(neo4j, "ROUNDS", 1)
    monkeypatch.setattr(neo4j, "ADDED_TO", 20)
    monkeypatch.setattr(neo4j, "ADDS_BEFORE", 3)
    monkeypatch.setattr(neo4j, "ADDING", 1.0)
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def rows_of(result: dict[str, Any]) -> dict[str, list[Any]]:
    return {row[0]: row[1:] for row in result["rows"]}


@pytest.mark.usefixtures("small_benchmark")
def test_a_server_is_compared_with_bare_cypher_and_the_embedded_store(zettel: Zettel, running: Server) -> None:
    result = zettel("bench", "neo4j", "--store", running.url, "--notes", "90,30", "--json", "-").json()
    rows = rows_of(result)
    assert rows["insert, batches of 80"][-2:] == ["notes/s", "bare UNWIND"]
    for name, (measured, baseline, ratio, unit, system) in rows.items():
        assert measured > 0, name
        if "overlap" in name:
            assert (measured, unit, system) == (1.0, "of 1", "embedded")
        else:
            assert ratio == pytest.approx(measured / baseline, rel=0.1, abs=0.02), name
    for size in (30, 90):
        assert {f"search p50, {size}", f"search p95, {size}", f"- candidates p50, {size}"} <= rows.keys()
        for search in ("new process", "warm"):
            assert rows[f"first search, {search}, {size}"][1] == rows[f"search p50, {size}"][0]
            assert rows[f"first search, {search}, {size}"][-2:] == ["ms", "cached"]
    for where in ("one scope", "a scope each"):
        assert rows[f"add p50, 2 writers, {where}"][0] <= rows[f"add p95, 2 writers, {where}"][0]
    assert rows["search p50, 90 ÷ 30"][-2] == "times"
    assert result["ran_on"]["server"].startswith("neo4j ")
    with Memory(running.url) as memory:
        assert memory.scopes() == [], "the benchmark deletes its scopes"
    assert not [name for name in rows if "of the server" in name], "it is measured with --server only"


@pytest.mark.usefixtures("small_benchmark")
def test_processor_time_and_disk_of_a_server_on_this_machine(
    zettel: Zettel, running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    if running.home is None:
        pytest.skip("the server of NEO4J_URI was not started by `zettel neo4j up`")
    monkeypatch.setattr(neo4j, "_adds", lambda *_: [])
    sizes = iter((1_000, 41_000))  # a restart would end the server of the other tests
    monkeypatch.setattr(ServerUse, "disk_bytes", lambda _: next(sizes))
    options = ("--store", running.url, "--notes", "40", "--server", running.home, "--json", "-")
    rows = rows_of(zettel("bench", "neo4j", *map(str, options)).json())
    assert 0 < rows["- import: CPU of the client, 40"][0] < 1000
    assert 0 < rows["- import: CPU of the server, 40"][0] < 10_000
    assert rows["- CPU of the server, 40"][1:] == [None, None, "ms a search", None]
    assert rows["- CPU of the server, warm, 40"][0] >= 0
    assert rows["disk of the server, all scopes"][-2:] == ["bytes a note", None]
    assert rows["disk of the server, all scopes"][0] == 1000.0


def test_the_folder_of_another_server(zettel: Zettel, running: Server, tmp_path: Path) -> None:
    none = zettel("bench", "neo4j", "--store", running.url, "--server", str(tmp_path))
    assert none.status == 1
    assert "start one with zettel neo4j up" in none.err
    if running.home is not None:
        other = zettel("bench", "neo4j", "--store", "neo4j://127.0.0.1:1", "--server", str(running.home))
        assert (other.status, f"is {running.url}: name the same server" in other.err) == (2, True)


@pytest.mark.usefixtures("small_benchmark")
@pytest.mark.soak_only
def test_a_second_run_with_keep_uses_the_same_notes(
    zettel: Zettel, running: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(neo4j, "_adds", lambda *_: [])
    options = ("--store", running.url, "--notes", "30", "--keep", "made", "--json", "-")
    first, second = (rows_of(zettel("bench", "neo4j", *options).json())["import until flush, 30"] for _ in range(2))
    assert first[0] > 0
    assert (second[0], second[1]) == (None, first[1])
    assert (tmp_path / "made" / "made-up-30").is_dir()
    with Memory(running.url) as memory:
        (scope,) = memory.scopes()
        assert memory.stats(scope=scope)["events"] == 30


def test_bare_statements_write_a_sound_scope(running: Server) -> None:
    """The store deletes a scope, bare statements write it again, and the store reads the same memory."""
    with Memory(running.url, scope=ANN) as memory:
        memory.add("The heron came back to the pond.", title="Heron", session="s", occurred_at="2024-05-01T09:00:00Z")
        note = memory.add("The heron came back to the pond again.", session="s")
        memory.update(note, content="The Heron came to the pond twice.")
        memory.flush()
        before = _memory_contents(memory, note)

    async def rewrite() -> None:
        store = Neo4jStore(running.url)
        await store.open()
        graph = ScopeGraph(store.driver, DATABASE, ANN.key)
        statements = await graph.statements(dict.fromkeys(await graph.ids(), 0), 1)
        counts = await graph.counts()
        await store.drop_scope(ANN)
        assert not await graph.counts()
        await graph.write(statements[0])
        assert await graph.counts() == counts
        await store.close()

    anyio.run(rewrite)
    with Memory(running.url, scope=ANN) as memory:
        assert _memory_contents(memory, note) == before
        assert memory.check() == []
        assert memory.revert(note, 1).content == "The heron came back to the pond again."


def _memory_contents(memory: Memory, note: str) -> list[Any]:
    hits = memory.search("Where is the heron?")
    return [memory.stats(scope=ANN), memory.get(note), memory.history(note), memory.links(note), [
        (hit.note.id, round(hit.score, 6)) for hit in hits
    ]]  # fmt: skip


def test_overlap_with_a_server_is_complete(zettel: Zettel, running: Server, tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    stores = ("--store", running.url, "--against", "other.db", "--notes", "40")
    result = zettel("bench", "overlap", "talk.json", *stores, "--json", "-").json()
    assert [row[3:5] for row in result["rows"]] == [[1.0, 1.0]] * 3
    assert result["settings"]["store"].startswith("neo4j ")
    with Memory(running.url) as memory:
        assert memory.scopes() == []
