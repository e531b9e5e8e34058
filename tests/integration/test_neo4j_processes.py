"""Several processes at one Neo4j, and a Neo4j that is ended during an import: all is there once, or not at all."""

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


def in_batches(told: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [told[start : start + BATCH] for start in range(0, len(told), BATCH)]


def test_two_processes_import_the_same(server: Server) -> None:
    """At the same time, one from the front and one from the back, with something of their own in between."""
    shared = events("shared", 30)
    batches = [in_batches(shared + events("ann", 15)), in_batches(shared[::-1] + events("bob", 15))]
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
        for writer, told in zip(writers, batches, strict=True):
            assert writer.stdin is not None
            writer.stdin.write(json.dumps(told) + "\n")
            writer.stdin.flush()
        for writer in writers:
            out, errors = writer.communicate()
            assert writer.returncode == 0, errors
            statuses += json.loads(out)
    assert (statuses.count("added"), statuses.count("existing")) == (60, 30)
    with Memory(server.url, auth=server.auth) as memory:
        memory.flush()
        kept = list(memory.dump())
        assert sorted(str(event.external_id) for event, _ in kept) == sorted(
            event["id"] for event in shared + events("ann", 15) + events("bob", 15)
        )
        notes = [note for _, made in kept for note in made]
        taken = [event.seq for event, _ in kept] + [note.seq for note in notes]
        taken += [change.seq for note in notes for change in memory.history(note.id) if change.version > 1]
        assert sorted(taken) == list(range(1, len(taken) + 1))
        assert memory.check() == []
        assert memory.jobs() == []


# ----------------------------------------------------------------------------------------- a server that is ended


class OwnServer:
    """A server that a test may end, started again from its folder."""

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
        """Start it; its address stays what it was."""
        started = local.up(self._home, version=self._line)
        assert started.server.pid is not None
        assert self.url in ("", started.server.url)
        self.pid, self.url = started.server.pid, started.server.url
        self._password = started.password or self._password
        self._forget_watcher()
        watch = ["sh", "-c", neo4j_servers.WATCH, str(os.getpid()), str(self.pid)]
        self._watcher = subprocess.Popen(watch, start_new_session=True)

    def end(self, how: signal.Signals) -> None:
        os.kill(self.pid, how)

    def wait(self) -> None:
        """Until its process is gone."""
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
    """Servers of a test's own: what the release lines have in common is tried on the newest, in the soak on all."""
    if "own" in metafunc.fixturenames:
        names = neo4j_servers.NAMES if metafunc.config.getoption("soak") else neo4j_servers.NAMES[:1]
        marks = [pytest.mark.own_server]
        if neo4j_servers.OWN == neo4j_servers.NEWEST:  # its release is read from the server that the environment names
            marks.append(pytest.mark.neo4j(neo4j_servers.NEWEST))
        metafunc.parametrize("own", [pytest.param(name, marks=marks) for name in names], indirect=True)


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OwnServer]:
    line = line_of(request.param)
    if (missing := neo4j_servers.what_is_missing(line)) is not None:
        pytest.skip(f"no Neo4j to end in the middle of an import: {missing}")
    standing = OwnServer(tmp_path / "server", line)
    standing.up()
    try:
        yield standing
    finally:
        standing.down()


def line_of(name: str) -> str:
    """The release line of that name; of a server that the environment names, the line nearest to its own."""
    import neo4j

    if name.startswith("neo4j-"):
        return name.removeprefix("neo4j-")
    found = neo4j_servers.server(name)
    with neo4j.GraphDatabase.driver(found.url, auth=found.auth) as driver:
        agent = driver.get_server_info().agent
    return next((release.line for release in jars.RELEASES if f"/{release.line}." in agent), jars.RELEASES[0].line)


class Blow(NamedTuple):
    """When and how a server is ended: at which statement of which write, or when it is asked to commit."""

    how: signal.Signals
    write: int
    statement: int | Literal["commit"]
    delay: float
    patient: bool

    def __str__(self) -> str:
        place = "its commit" if self.statement == "commit" else f"statement {self.statement}"
        return f"{self.how.name} in write {self.write} at {place}, {'awaited' if self.patient else 'given up'}"


def blows(count: int) -> list[Blow]:
    """The same in every run. One in three hits a commit; the writer of one in three waits until the server is back."""
    chosen = random.Random(20)
    return [
        Blow(
            how=signal.SIGTERM if turn % 4 == 1 else signal.SIGKILL,
            write=chosen.randrange(1, 6),
            statement="commit" if turn % 3 == 2 else chosen.randrange(3),
            delay=chosen.choice([0, chosen.random() * 0.02]),
            patient=turn % 3 == 2,
        )
        for turn in range(count)
    ]


class Watched:
    """Strikes while statements are run, once."""

    def __init__(self, own: OwnServer, blow: Blow, patch: pytest.MonkeyPatch) -> None:
        self._own, self._blow = own, blow
        self._writes, self._statements = 0, 0
        self._timer: threading.Timer | None = None
        self._inside = False
        self.struck = threading.Event()
        self.hit = False
        run, write = Transaction.run, Neo4jConnection.write

        async def watched(transaction: Transaction, name: str, /, *flags: str, **given: Any) -> Any:
            if name == "batch_begin":
                self._writes, self._statements, self._inside = self._writes + 1, 0, True
            elif self._inside:
                self._statements += 1
            if self._inside and self._due(self._statements):
                self._strike()
            return await run(transaction, name, *flags, **given)

        async def wrote(
            held: Neo4jConnection, name: str, /, *flags: str, check: Callable[[Any], None], **given: Any
        ) -> None:
            """What Transaction does not see: a write that is one statement, wherever in a write the blow falls."""
            self._writes += 1
            if self._blow.statement != "commit" and self._due(self._blow.statement):
                self._strike()

            def checked(row: Any) -> None:
                check(row)
                if self._due("commit"):
                    self._strike()

            await write(held, name, *flags, check=checked, **given)

        async def applied(*given: Any, **named: Any) -> bool:
            told = await committing.apply(*given, **named)
            if self._due("commit"):
                self._strike()
            self._inside = False
            return told

        patch.setattr(Transaction, "run", watched)
        patch.setattr(Neo4jConnection, "write", wrote)
        patch.setattr(store, "apply", applied)

    def _due(self, place: int | str) -> bool:
        return not self.hit and (self._writes, place) == (self._blow.write, self._blow.statement)

    def _strike(self) -> None:
        self.hit = True
        if self._blow.delay:
            self._timer = threading.Timer(self._blow.delay, self._now)
            self._timer.start()
        else:
            self._now()

    def _now(self) -> None:
        self._own.end(self._blow.how)
        self.struck.set()

    def done(self) -> None:
        """Strike at last if there was no such place."""
        if self._timer is not None:
            self._timer.join()
        if not self.struck.is_set():
            self._now()


EVENTS = 20


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.soak_only
def test_a_server_is_ended_during_an_import(
    own: OwnServer,
    monkeypatch: pytest.MonkeyPatch,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """Nothing acknowledged is lost, nothing is there by half, and a repeated import completes what is missing."""
    lanes = Work.lanes
    monkeypatch.setattr(  # so that nobody waits long for jobs of the dead
        Work, "lanes", lambda work: [lane._replace(lease=2.0) for lane in lanes(work)]
    )
    told = events("e", EVENTS)
    with Memory(":memory:") as memory:
        memory.add_many(told)
        memory.flush()
        undisturbed = picture(memory)
    kills, inside, acknowledged_in_all = soak_scale(20), 0, 0
    scopes = [Scope(user=f"kill {number}") for number in range(kills)]
    for scope, blow in zip(scopes, blows(kills), strict=True):
        hit, acknowledged, errors = import_until_struck(own, blow, scope, told)
        assert [error for error in errors if "\n" in str(error)] == []
        assert len(acknowledged) == EVENTS or not blow.patient
        inside += hit
        acknowledged_in_all += len(acknowledged)
        with Memory(own.url, auth=own.auth) as memory:
            kept = {event.external_id: (event.content, len(notes)) for event, notes in memory.dump(scope=scope)}
            assert acknowledged <= kept.keys(), str(blow)
            for batch in in_batches(told):
                assert sum(event["id"] in kept for event in batch) in (0, len(batch)), str(blow)
            assert kept == {event["id"]: (event["content"], 1) for event in told if event["id"] in kept}, str(blow)
            assert memory.check() == [], str(blow)
            outcomes = [one.status for batch in in_batches(told) for one in memory.add_many_report(batch, scope=scope)]
            assert outcomes.count("existing") == len(kept)
            assert outcomes.count("added") == EVENTS - len(kept)
    with Memory(own.url, auth=own.auth) as memory:
        for scope, blow in zip(scopes, blows(kills), strict=True):
            memory.flush(timeout=120, scope=scope)
            assert picture(memory, scope) == undisturbed, str(blow)
        assert memory.check() == []
        assert memory.jobs() == []
    record_property("kills", kills)
    record_property("kills_inside_a_write", inside)
    record_property("acknowledged", acknowledged_in_all)
    assert inside * 2 >= kills


def import_until_struck(
    own: OwnServer, blow: Blow, scope: Scope, told: list[dict[str, Any]]
) -> tuple[bool, set[str], list[Exception]]:
    """Import, with the server ended on the way and started again: whether it was inside a write, what was acknowledged,
    and with what error the import ended."""
    acknowledged: set[str] = set()
    errors: list[Exception] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "RETRY_SECONDS", 300.0 if blow.patient else 0.5)
        with Memory(own.url, auth=own.auth) as memory:
            watched = Watched(own, blow, patch)

            def bring_back() -> None:
                watched.struck.wait()
                own.wait()
                if blow.patient:
                    own.up()

            reviver = threading.Thread(target=bring_back)
            reviver.start()
            try:
                for batch in in_batches(told):
                    memory.add_many(batch, scope=scope)
                    acknowledged |= {event["id"] for event in batch}
            except (StoreUnreachable, StoreBusy) as error:
                errors.append(error)
            finally:
                watched.done()
                reviver.join()
    if not blow.patient:
        own.up()
    return watched.hit, acknowledged, errors
