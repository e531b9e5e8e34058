"""Jobs on a Ray cluster of two nodes with Neo4j: the same memory as in one process, also when a node or driver dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import neo4j_servers
from tests.contract.support import picture
from tests.integration.command import Zettel
from tests.integration.test_workers import events, wait_until
from tests.integration.watched import Watched, entries
from tests.neo4j_servers import NEWEST, Server
from zettel import Memory, RayRunner, RecordedAnnotator, Scope
from zettel.errors import RunnerUnavailable
from zettel.jobs.work import Lane, Work
from zettel.local import ray_runner
from zettel.model import Evolved, JobState

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # a cluster starts slowly on a busy machine
]
ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'zettel-graph[ray]'", exc_type=ImportError)

ROOT = Path(__file__).parents[2]
SCOPES = [Scope(user="ann"), Scope(user="bob")]
EVENTS = 24
CLAIM = 8  # jobs per batch: small, for several batches
LEASE = 3.0  # seconds
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
"""Settings to detect a lost node early; the default is half a minute."""

DRIVER = """
import sys
sys.path.insert(0, ".")
from tests.integration.test_ray import small_batches
from zettel.cli.app import run
from zettel.jobs.work import Work
Work.lanes = small_batches(Work.lanes)
sys.exit(run(["worker", *sys.argv[1:]]))
"""


def small_batches(lanes: Any) -> Any:
    """Return the same lanes with small batches and short leases."""

    def small(work: Work) -> list[Lane]:
        return [lane._replace(claim=CLAIM, lease=LEASE) for lane in lanes(work)]

    return small


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20, "_system_config": SOON}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # workers import zettel and these tests
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        started = Cluster(initialize_head=True, head_node_args=head)
        started.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        yield started
        started.shutdown()


@pytest.fixture
def server() -> Server:
    return neo4j_servers.empty(NEWEST)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work, "lanes", small_batches(Work.lanes))


def recorded(folder: Path) -> RecordedAnnotator:
    """Return recorded annotations of every event."""
    lines = [
        {"id": f"t{n}", "context": f"The log says {n}.", "keywords": ["log", f"number{n % 5}"], "tags": ["remark"]}
        for n in range(EVENTS)
    ]
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RecordedAnnotator(path)


def memory_contents(memory: Memory) -> list[Any]:
    """Return the contents of each scope, with one decision of each kind per note."""
    contents = []
    for scope in SCOPES:
        for note in [note for _, notes in memory.dump(scope=scope) for note in notes]:
            causes = [revision.cause.by for revision in memory.history(note.id, scope=scope) if revision.live]
            assert len(set(causes)) == len(causes)
        contents.append((picture(memory, scope), memory.stats(scope=scope)["vectors"]))
    return contents


def fill(memory: Memory) -> None:
    for scope in SCOPES:
        memory.add_many(events(0, EVENTS), scope=scope)


def finished(memory: Memory) -> tuple[list[Any], list[Evolved]]:
    """Return the finished memory and the changes of an evolution round."""
    memory.flush()
    evolved = [memory.evolve(scope=scope) for scope in SCOPES]
    assert memory.jobs() == []
    assert memory.check() == []
    return memory_contents(memory), evolved


@pytest.mark.parametrize("name", neo4j_servers.EVERY[:1])
def test_a_cluster_makes_the_same_memory_also_when_a_node_ends(
    name: str, cluster: Any, server: Server, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with Memory(tmp_path / "one.db", embedder=Watched(log, 0.0), annotator=recorded(tmp_path)) as memory:
        fill(memory)
        expected = finished(memory)
    log.unlink()
    (doomed,) = cluster.worker_nodes
    runner = RayRunner(cluster.address)
    with Memory(
        server.url, auth=server.auth, runner=runner, embedder=Watched(log, 0.5), annotator=recorded(tmp_path)
    ) as memory:
        assert runner.at_once == 2
        fill(memory)
        assert wait_until(lambda: pids_inside(log, doomed.node_id) != set())
        victims = pids_inside(log, doomed.node_id)
        for process in doomed.all_processes["raylet"]:
            os.kill(process.process.pid, signal.SIGKILL)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        actual = finished(memory)
    assert len({entry.node for entry in entries(log)}) == 2  # both nodes have worked
    assert actual == expected
    assert server.auth[1] not in written_by_ray(cluster)


def pids_inside(log: Path, node: str) -> set[int]:
    """Return the working processes of a node."""
    inside: set[int] = set()
    for entry in entries(log):
        if entry.node == node:
            inside = inside | {entry.pid} if entry.action == "begin" else inside - {entry.pid}
    return inside


def written_by_ray(cluster: Any) -> str:
    logs = Path(cluster.head_node.get_logs_dir_path())
    return "".join(path.read_text(errors="replace") for path in sorted(logs.rglob("*")) if path.is_file())


@pytest.mark.parametrize("name", neo4j_servers.EVERY[:1])
def test_another_driver_continues_after_a_kill(
    name: str, cluster: Any, server: Server, tmp_path: Path, zettel: Zettel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(tmp_path / "one.db") as memory:
        fill(memory)
        memory.flush()
        expected = memory_contents(memory)
    monkeypatch.setenv("NEO4J_USERNAME", server.auth[0])
    monkeypatch.setenv("NEO4J_PASSWORD", server.auth[1])
    worker = ["--store", server.url, "--ray", cluster.address]

    async def none(*_: object) -> int:
        return 0

    with Memory(server.url) as memory:
        memory._bridge.inner._backend.memory.engine.loop._run_batch = none  # leaves its jobs to other processes
        fill(memory)
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *worker], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        assert wait_until(lambda: any(job.state is JobState.RUNNING for job in memory.jobs()))
        driver.kill()
        driver.communicate()
        assert memory.jobs() != []
        result = zettel("worker", "--once", *worker)
        assert (result.status, result.out) == (0, "all jobs are done\n"), result.err
        assert memory_contents(memory) == expected
        assert memory.check() == []


def test_a_missing_cluster_is_an_error(zettel: Zettel) -> None:
    result = zettel("worker", "--store", "neo4j://127.0.0.1:1", "--ray", "127.0.0.1:1")
    assert result.status == 1
    expected = "zettel: no Ray cluster answers at 127.0.0.1:1: Connection refused; `ray start --head`"
    assert result.err.startswith(expected)
    assert result.err.count("\n") == 1


def test_a_foreign_server_at_the_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_runner, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunnerUnavailable, match="no Ray cluster answers"):
            Memory("neo4j://127.0.0.1:1", runner=f"ray:127.0.0.1:{port}")
