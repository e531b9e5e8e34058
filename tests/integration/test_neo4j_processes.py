"""Several processes with one Neo4j, and a Neo4j killed during an import: every batch is stored once or not at all."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from tests import neo4j_servers
from tests.contract.support import picture
from tests.neo4j_servers import Server
from zettel import Memory, Scope
from zettel.errors import StoreBusy, StoreUnreachable
from zettel.graph.neo4j import committing, connection, store
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.graph.neo4j.local import jars
from zettel.graph.neo4j.local import server as local
from zettel.jobs.work import Work

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------------------------------------------- two processes

WRITER = """
import json, sys
from zettel import Memory
url, user, password = sys.argv[1:]
with Memory(url, auth=(user, password)) as memory:
    print("ready", flush=True)
    batches = json.loads(sys.stdin.readline())
    outcomes = [one.status for batch in batches for one in memory.add_many_report(batch)]
    print(json.dumps(outcomes))
"""
BATCH = 5


def events(name: str, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{name}{n}",
            "session": f"{name}{n // 20}",
            "speaker": ("Ann", "Bob")[n % 2],
            "title": f"Ship {n}",
            "occurred_at": f"2024-01-{1 + n // 20:02}T10:{n % 20:02}:00Z",
            "content": f"Kestrel the dog saw ship {n} in harbour {n % 7}, as after Ship {max(0, n - 3)}.",
        }
        for n in range(count)
    ]


def batches_of(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [records[start : start + BATCH] for start in range(0, len(records), BATCH)]


def test_two_processes_can_import_the_same_events(server: Server) -> None:
    """They import at the same time in opposite orders, each with additional events of its own."""
    shared = events("shared", 30)
    batches = [batches_of(shared + events("ann", 15)), batches_of(shared[::-1] + events("bob", 15))]
    statuses: list[str] = []
    with ExitStack() as running:
        writers = [
            running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, server.url, *server.auth],
                    cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )
            for _ in batches
        ]  # fmt: skip
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer, batch in zip(writers, batches, strict=True):
            assert writer.stdin is not None
            writer.stdin.write(json.dumps(batch) + "\n")
            writer.stdin.flush()
        for writer in writers:
            out, errors = writer.communicate()
            assert writer.returncode == 0, errors
            statuses += json.loads(out)
    assert (statuses.count("added"), statuses.count("existing")) == (60, 30)
    with Memory(server.url, auth=server.auth) as memory:
        memory.flush()
        stored = list(memory.dump())
        assert sorted(str(event.external_id) for event, _ in stored) == sorted(
            event["id"] for event in shared + events("ann", 15) + events("bob", 15)
        )
        notes = [note for _, event_notes in stored for note in event_notes]
        numbers = [event.seq for event, _ in stored] + [note.seq for note in notes]
        numbers += [change.seq for note in notes for change in memory.history(note.id) if change.version > 1]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
        assert memory.check() == []
        assert memory.jobs() == []


# ----------------------------------------------------------------------------------------- a killed server


class OwnServer:
    """A server that a test may kill and restart from its folder."""

    def __init__(self, home: Path, line: str) -> None:
        self._home, self._line = home, line
        self._password: str | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self.pid = 0
        self.url = ""

    @property
    def auth(self) -> tuple[str, str]:
        assert self._password is not None
        return local.USER, self._password

    def up(self) -> None:
        """Start the server; its address stays the same."""
        report = local.up(self._home, version=self._line)
        assert report.server.pid is not None
        assert self.url in ("", report.server.url)
        self.pid, self.url = report.server.pid, report.server.url
        self._password = report.password or self._password
        self._forget_watcher()
        watch = ["sh", "-c", neo4j_servers.WATCH, str(os.getpid()), str(self.pid)]
        self._watcher = subprocess.Popen(watch, start_new_session=True)

    def end(self, signal_number: signal.Signals) -> None:
        os.kill(self.pid, signal_number)

    def wait(self) -> None:
        """Wait until the process has ended."""
        os.waitpid(self.pid, 0)

    def down(self) -> None:
        local.down(self._home)
        self._forget_watcher()

    def _forget_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.wait()
            self._watcher = None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests with their own server: with the newest release, in the soak with every release line."""
    if "own" in metafunc.fixturenames:
        names = neo4j_servers.NAMES if metafunc.config.getoption("soak") else neo4j_servers.NAMES[:1]
        marks = [pytest.mark.own_server]
        if neo4j_servers.OWN == neo4j_servers.NEWEST:  # the environment's server determines the release
            marks.append(pytest.mark.neo4j(neo4j_servers.NEWEST))
        metafunc.parametrize("own", [pytest.param(name, marks=marks) for name in names], indirect=True)


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OwnServer]:
    line = line_of(request.param)
    if (missing := neo4j_servers.what_is_missing(line)) is not None:
        pytest.skip(f"no Neo4j server to kill during an import: {missing}")
    running = OwnServer(tmp_path / "server", line)
    running.up()
    try:
        yield running
    finally:
        running.down()


def line_of(name: str) -> str:
    """Return the release line of a name, or the one nearest to the version of the environment's server."""
    import neo4j

    if name.startswith("neo4j-"):
        return name.removeprefix("neo4j-")
    instance = neo4j_servers.server(name)
    with neo4j.GraphDatabase.driver(instance.url, auth=instance.auth) as driver:
        agent = driver.get_server_info().agent
    return next((release.line for release in jars.RELEASES if f"/{release.line}." in agent), jars.RELEASES[0].line)


class Kill(NamedTuple):
    """When and how a server is killed: at a statement of a write, or at its commit."""

    signal_number: signal.Signals
    write: int
    statement: int | Literal["commit"]
    delay: float
    waits_for_server: bool

    def __str__(self) -> str:
        place = "its commit" if self.statement == "commit" else f"statement {self.statement}"
        writer = "the writer waits" if self.waits_for_server else "the writer gives up"
        return f"{self.signal_number.name} in write {self.write} at {place}, {writer}"


def planned_kills(count: int) -> list[Kill]:
    """Return the same kills in every run: one in three hits a commit, one in three has a writer that waits."""
    rng = random.Random(20)
    return [
        Kill(
            signal_number=signal.SIGTERM if turn % 4 == 1 else signal.SIGKILL,
            write=rng.randrange(1, 6),
            statement="commit" if turn % 3 == 2 else rng.randrange(3),
            delay=rng.choice([0, rng.random() * 0.02]),
            waits_for_server=turn % 3 == 2,
        )
        for turn in range(count)
    ]


class KillInjector:
    """Kills the server once while statements run."""

    def __init__(self, own: OwnServer, kill: Kill, patch: pytest.MonkeyPatch) -> None:
        self._own, self._kill = own, kill
        self._writes, self._statements = 0, 0
        self._timer: threading.Timer | None = None
        self._inside = False
        self.killed = threading.Event()
        self.hit = False
        run, write = Transaction.run, Neo4jConnection.write

        async def run_statement(transaction: Transaction, name: str, /, *flags: str, **arguments: Any) -> Any:
            if name == "batch_begin":
                self._writes, self._statements, self._inside = self._writes + 1, 0, True
            elif self._inside:
                self._statements += 1
            if self._inside and self._due(self._statements):
                self._kill_server()
            return await run(transaction, name, *flags, **arguments)

        async def write_statement(
            connection: Neo4jConnection, name: str, /, *flags: str, check: Callable[[Any], None], **arguments: Any
        ) -> None:
            """Count writes of a single statement, which bypass Transaction; any statement number matches them."""
            self._writes += 1
            if self._kill.statement != "commit" and self._due(self._kill.statement):
                self._kill_server()

            def checked(row: Any) -> None:
                check(row)
                if self._due("commit"):
                    self._kill_server()

            await write(connection, name, *flags, check=checked, **arguments)

        async def apply_batch(*arguments: Any, **options: Any) -> bool:
            result = await committing.apply(*arguments, **options)
            if self._due("commit"):
                self._kill_server()
            self._inside = False
            return result

        patch.setattr(Transaction, "run", run_statement)
        patch.setattr(Neo4jConnection, "write", write_statement)
        patch.setattr(store, "apply", apply_batch)

    def _due(self, place: int | str) -> bool:
        return not self.hit and (self._writes, place) == (self._kill.write, self._kill.statement)

    def _kill_server(self) -> None:
        self.hit = True
        if self._kill.delay:
            self._timer = threading.Timer(self._kill.delay, self._kill_now)
            self._timer.start()
        else:
            self._kill_now()

    def _kill_now(self) -> None:
        self._own.end(self._kill.signal_number)
        self.killed.set()

    def finish(self) -> None:
        """Kill the server if the planned statement never ran."""
        if self._timer is not None:
            self._timer.join()
        if not self.killed.is_set():
            self._kill_now()


EVENTS = 20


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.soak_only
def test_a_server_killed_during_an_import_loses_no_acknowledged_event(
    own: OwnServer,
    monkeypatch: pytest.MonkeyPatch,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """No acknowledged event is lost, no batch is stored in part, and a repeated import adds the missing events."""
    lanes = Work.lanes
    monkeypatch.setattr(  # so that jobs of killed processes are taken over soon
        Work, "lanes", lambda work: [lane._replace(lease=2.0) for lane in lanes(work)]
    )
    records = events("e", EVENTS)
    with Memory(":memory:") as memory:
        memory.add_many(records)
        memory.flush()
        undisturbed = picture(memory)
    kills, inside, acknowledged_total = soak_scale(20), 0, 0
    scopes = [Scope(user=f"kill {number}") for number in range(kills)]
    for scope, kill in zip(scopes, planned_kills(kills), strict=True):
        hit, acknowledged, errors = import_until_killed(own, kill, scope, records)
        assert [error for error in errors if "\n" in str(error)] == []
        assert len(acknowledged) == EVENTS or not kill.waits_for_server
        inside += hit
        acknowledged_total += len(acknowledged)
        with Memory(own.url, auth=own.auth) as memory:
            stored = {event.external_id: (event.content, len(notes)) for event, notes in memory.dump(scope=scope)}
            assert acknowledged <= stored.keys(), str(kill)
            for batch in batches_of(records):
                assert sum(event["id"] in stored for event in batch) in (0, len(batch)), str(kill)
            assert stored == {event["id"]: (event["content"], 1) for event in records if event["id"] in stored}, str(
                kill
            )
            assert memory.check() == [], str(kill)
            outcomes = [
                outcome.status
                for batch in batches_of(records)
                for outcome in memory.add_many_report(batch, scope=scope)
            ]
            assert outcomes.count("existing") == len(stored)
            assert outcomes.count("added") == EVENTS - len(stored)
    with Memory(own.url, auth=own.auth) as memory:
        for scope, kill in zip(scopes, planned_kills(kills), strict=True):
            memory.flush(timeout=120, scope=scope)
            assert picture(memory, scope) == undisturbed, str(kill)
        assert memory.check() == []
        assert memory.jobs() == []
    record_property("kills", kills)
    record_property("kills_inside_a_write", inside)
    record_property("acknowledged", acknowledged_total)
    assert inside * 2 >= kills


def import_until_killed(
    own: OwnServer, kill: Kill, scope: Scope, records: list[dict[str, Any]]
) -> tuple[bool, set[str], list[Exception]]:
    """Import while the server is killed and restarted.

    Return whether the kill was inside a write, the acknowledged ids, and the errors of the import.
    """
    acknowledged: set[str] = set()
    errors: list[Exception] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "RETRY_SECONDS", 300.0 if kill.waits_for_server else 0.5)
        with Memory(own.url, auth=own.auth) as memory:
            injector = KillInjector(own, kill, patch)

            def restart() -> None:
                injector.killed.wait()
                own.wait()
                if kill.waits_for_server:
                    own.up()

            restarter = threading.Thread(target=restart)
            restarter.start()
            try:
                for batch in batches_of(records):
                    memory.add_many(batch, scope=scope)
                    acknowledged |= {event["id"] for event in batch}
            except (StoreUnreachable, StoreBusy) as error:
                errors.append(error)
            finally:
                injector.finish()
                restarter.join()
    if not kill.waits_for_server:
        own.up()
    return injector.hit, acknowledged, errors
