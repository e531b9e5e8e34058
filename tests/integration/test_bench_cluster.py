"""``zettel bench cluster`` on a few events: its work, its table, and its refusals."""

from __future__ import annotations

import re

import pytest

from tests import neo4j_servers
from tests.integration.command import Zettel
from tests.integration.test_bench import CHECKOUT
from tests.neo4j_servers import NEWEST, Server
from zettel import Memory, Scope
from zettel.bench import cluster

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # a cluster starts slowly on a busy machine
]
pytest.importorskip("ray", reason="Ray is not installed: pip install 'zettel-graph[ray]'", exc_type=ImportError)

ANN = Scope(user="ann")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server without memories, and set its user and password in the environment."""
    running = neo4j_servers.empty(NEWEST)
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), running.auth, strict=True):
        monkeypatch.setenv(name, value)
    return running


@pytest.mark.parametrize("name", neo4j_servers.EVERY[:1])
def test_the_same_work_runs_on_one_and_on_two_workers(
    name: str, server: Server, zettel: Zettel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))  # workers import this checkout
    monkeypatch.setattr(cluster, "SCOPES", 2)
    monkeypatch.setattr(cluster, "WARM_UPS", 2)
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.1)
    works = {name: work._replace(events=5) for name, work in cluster.WORKS.items()}
    monkeypatch.setattr(cluster, "WORKS", works)
    with Memory(server.url, scope=ANN) as memory:
        memory.add("The heron came back to the pond.", wait=True)
    options = ("--store", server.url, "--workers", "2,1", "--rounds", "1")
    result = zettel("bench", "cluster", *options, "--json", "-").json()
    assert result["columns"] == ["measured", "1 worker", "2 workers", "unit"]
    names = [row[0] for row in result["rows"]]
    for name, one, two, _ in result["rows"][: names.index("Ray starts")]:
        assert min(one, two) > 0 or name == "- calls at once", name  # the answers come too soon to count
    assert {"computing", "waiting", "- calls an event", "- CPU time an event"} <= {*names}
    starts = {row[0]: row[1:] for row in result["rows"][names.index("Ray starts") :]}
    assert list(starts) == ["Ray starts", "workers start, computing", "workers start, waiting"]
    assert all(one is None and two > 0 for one, two, _ in starts.values())
    with Memory(server.url) as memory:
        assert memory.scopes() == [ANN], "the benchmark deletes its own scopes only"


@pytest.mark.parametrize("name", neo4j_servers.EVERY[:1])
def test_waiting_jobs_would_be_measured_too(name: str, server: Server, zettel: Zettel) -> None:
    assert zettel("add", "The heron came back.", "--store", server.url, "--llm", "openai/none").status == 0
    refused = zettel("bench", "cluster", "--store", server.url)
    assert refused.status == 2
    assert re.match(r"zettel: (1 job waits|\d+ jobs wait) in \S+: run `zettel worker --once` first", refused.err)


def test_ratios_are_those_of_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SCOPES", 1)
    monkeypatch.setattr(cluster, "WORKS", {"waiting": cluster.WORKS["waiting"]._replace(events=12)})
    one = [cluster.Run(6.0, 1.2, 0.6, 4), cluster.Run(12.0, 1.2, 0.6, 4)]
    two = [cluster.Run(2.0, 2.4, 0.6, 4), cluster.Run(6.0, 2.4, 0.6, 4)]
    assert cluster._rows("waiting", {1: one, 2: two}) == [
        ["waiting", 1.5, 4.0, "events/s"],
        ["- least", 1.0, 2.0, "events/s"],
        ["- most", 2.0, 6.0, "events/s"],
        ["- ÷ 1 worker", 1.0, 2.5, "times"],
        ["- calls at once", 1.5, 4.0, "calls"],
        ["- calls an event", 0.333, 0.333, "calls"],
        ["- CPU time an event", 100.0, 200.0, "ms"],
        ["- CPU time of the server an event", 50.0, 50.0, "ms"],
    ]


def test_wrong_options(zettel: Zettel) -> None:
    for options, message in (
        ((), "pass the server to measure"),
        (("--store", "neo4j://127.0.0.1:1", "--workers", "0,2"), "--workers: name numbers of workers from 1"),
        (("--store", "neo4j://127.0.0.1:1", "--workers", "two"), "--workers 'two': expected whole numbers"),
    ):
        result = zettel("bench", "cluster", *options)
        assert result.status == 2
        assert message in result.err
