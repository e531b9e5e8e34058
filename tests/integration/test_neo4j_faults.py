"""Neo4j that is unreachable, disconnects, is locked or has unfinished indexes: a one-line error or the right answer.

No batch is lost, stored in part or stored twice.
"""

from __future__ import annotations

import logging
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import neo4j_servers
from tests.integration.proxy import COMMIT, Lost, Proxy
from tests.neo4j_servers import DATABASE, Server
from zettel import Memory, Scope
from zettel.errors import StoreBusy, StoreDenied, StoreError, StoreTooOld, StoreUnreachable
from zettel.graph.neo4j import connection, scope_cache, spaces
from zettel.graph.neo4j.connection import Transaction, statement

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
IMPATIENT = 0.3
"""Seconds after which a write gives up, in tests that wait for it."""
Session = Any
"""A session of Neo4j's own driver."""


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.url) as running:
        yield running


@pytest.fixture
def memory(server: Server, proxy: Proxy) -> Iterator[Memory]:
    """A memory that reaches its server through the proxy."""
    with Memory(proxy.url, auth=server.auth) as instance:
        yield instance


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    """Return a session of another client of the same database."""
    import neo4j

    with (
        neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver,
        driver.session(database=DATABASE) as instance,
    ):
        yield instance


@pytest.fixture
def server_with_broken_indexes(server: Server) -> Iterator[Server]:
    """Return a server whose indexes this test may break, and clear it afterwards."""
    yield server
    neo4j_servers.wipe(server)


def contents(memory: Memory) -> list[str]:
    """Return the content of every event, in order."""
    return [event.content for event, _ in memory.dump()]


def session_events(name: str, ships: int = 5) -> list[dict[str, Any]]:
    """Return events of one session with distinct ids."""
    return [
        {
            "id": f"{name}{ship}",
            "session": name,
            "title": f"Ship {name}{ship}",
            "content": f"Kestrel the dog saw ship {name}{ship} behind Ship {name}{max(0, ship - 1)}.",
            "occurred_at": f"2024-01-01T10:{ship:02}:00Z",
        }
        for ship in range(ships)
    ]


# ---------------------------------------------------------------------------------------------------- unreachable


def opening_error(error: type[StoreError], url: str, **options: Any) -> str:
    """Return the one-line error of opening a memory."""
    with pytest.raises(error) as error_info:
        Memory(url, **options)
    assert "\n" not in str(error_info.value)
    return str(error_info.value)


@pytest.mark.parametrize("agent", ["Neo4j/5.25.9", "Neo4j/4.4.42", "Neo4j/v5.11", "Memgraph/3.1"])
def test_opening_an_old_server_fails_with_its_version(server: Server, proxy: Proxy, agent: str) -> None:
    """The proxy changes only the version in the real server's answers."""
    proxy.rewrite = lambda data: re.sub(rb"Neo4j/[0-9.]+", lambda real: agent.encode().ljust(len(real[0]), b"0"), data)
    line = opening_error(StoreTooOld, proxy.url, auth=server.auth)
    assert line.startswith(f"{proxy.url} is {agent}")
    assert line.endswith(": zettel needs Neo4j 5.26 or newer")


def test_opening_a_server_without_a_common_protocol_version_fails(server: Server, proxy: Proxy) -> None:
    """The server supports none of the driver's protocol versions."""
    answers: list[bytes] = []

    def refuse_versions(data: bytes) -> bytes:
        answers.append(data)
        return b"\0\0\0\0" if len(answers) == 1 else data

    proxy.rewrite = refuse_versions
    assert "zettel needs Neo4j 5.26" in opening_error(StoreTooOld, proxy.url, auth=server.auth)


def test_expired_and_wrong_passwords_fail_with_the_reason(server: Server) -> None:
    import neo4j

    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        driver.execute_query(
            "CREATE OR REPLACE USER zettel_test SET PASSWORD 'first-of-all' CHANGE REQUIRED", database_="system"
        )
        try:
            line = opening_error(StoreDenied, server.url, auth=("zettel_test", "first-of-all"))
            assert "the password has expired" in line
            for _ in range(3):
                line = opening_error(StoreDenied, server.url, auth=("zettel_test", "not that one"))
                assert "refused that user or password" in line
            assert "too many wrong passwords" in opening_error(
                StoreDenied, server.url, auth=("zettel_test", "nor that one")
            )
        finally:
            driver.execute_query("DROP USER zettel_test", database_="system")


def test_opening_the_http_port_or_an_unknown_host_fails_with_the_reason(server: Server) -> None:
    if server.http is None:
        pytest.skip("the HTTP address of this server is unknown")
    address = server.http.partition("//")[2]
    for scheme in ("bolt", "neo4j"):
        line = opening_error(StoreUnreachable, f"{scheme}://{address}", auth=server.auth)
        assert "its HTTP port" in line
    line = opening_error(StoreUnreachable, "neo4j://nowhere.invalid", auth=server.auth)
    assert "neo4j://nowhere.invalid cannot be reached" in line


def test_the_command_line_reports_an_unreachable_server_in_one_line(server: Server, proxy: Proxy) -> None:
    """The driver's own log stays out of the output."""

    def stats(url: str, *options: str) -> tuple[int, str]:
        process = subprocess.run(
            [sys.executable, "-m", "zettel", "--store", url, *options, "stats"], cwd=ROOT, text=True,
            capture_output=True, check=False,
            env=os.environ | {"NEO4J_USERNAME": server.auth[0], "NEO4J_PASSWORD": server.auth[1]},
        )  # fmt: skip
        return process.returncode, process.stderr

    proxy.cut(lambda contents: COMMIT in contents, lost="answer")
    assert stats(proxy.url) == (0, "")
    assert proxy.cuts == 1
    proxy.down()
    status, errors = stats(proxy.url)
    assert status == 1
    assert errors.count("\n") == 1
    assert "cannot be reached: Connection refused; is the server running?" in errors


# -------------------------------------------------------------------------------------------------------- cut off


def test_an_open_memory_survives_a_server_outage(
    memory: Memory, proxy: Proxy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open memory reconnects without being opened again."""
    memory.add("Kestrel howls before.", id="1", wait=True)
    monkeypatch.setattr(connection, "RETRY_SECONDS", IMPATIENT)
    with Memory(proxy.url, auth=server.auth) as impatient:
        proxy.down()
        for attempt in (
            lambda: impatient.add("Kestrel howls meanwhile.", id="2"),
            lambda: impatient.search("Who howls?"),
            impatient.stats,
        ):
            with pytest.raises(StoreUnreachable, match="cannot be reached: Connection refused") as error_info:
                attempt()
            assert "\n" not in str(error_info.value)
        proxy.up()
        impatient.add("Kestrel howls meanwhile.", id="2")
        impatient.flush()
        assert len(impatient.search("Who howls?")) == 2
    memory.add("Kestrel howls after.", id="3")
    memory.flush()
    assert contents(memory) == ["Kestrel howls before.", "Kestrel howls meanwhile.", "Kestrel howls after."]
    assert memory.check() == []
    assert memory.jobs() == []


def test_a_memory_can_be_closed_while_its_server_is_down(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RETRY_SECONDS", IMPATIENT)
    with Proxy(server.url) as proxy:
        memory = Memory(proxy.url, auth=server.auth)
        memory.add_many(session_events("a"))
        proxy.down()
        started = time.monotonic()
        memory.close()
        assert time.monotonic() - started < 20
    with Memory(server.url, auth=server.auth) as memory:
        assert len(contents(memory)) == 5
        assert memory.check() == []


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_lost_commit_is_written_once(memory: Memory, proxy: Proxy, lost: Lost) -> None:
    """The batch is stored once and the call succeeds, whether the server applied the commit or not."""
    for name in ("a", "b"):  # the first batch of a scope creates the scope
        proxy.cut(lambda contents: b"Kestrel" in contents and contents.endswith(COMMIT), lost=lost)
        ids = memory.add_many(session_events(name))
        assert proxy.cuts == 1
        assert len(set(ids)) == 5
        assert [memory.get(id).session for id in ids] == [name] * 5
    unnamed = memory.add("Neither an id nor a time, so this is always new.")
    proxy.cut(lambda contents: b"always new" in contents and contents.endswith(COMMIT), lost=lost)
    assert memory.add("Neither an id nor a time, so this is always new.") != unnamed
    assert proxy.cuts == 1
    memory.flush()
    proxy.cut(lambda contents: b"Kestrel the cat" in contents and contents.endswith(COMMIT), lost=lost)
    assert memory.update(ids[0], content="Kestrel the cat saw nothing.").version == memory.get(ids[0]).version
    assert proxy.cuts == 1
    memory.flush()
    assert len(contents(memory)) == 12
    versions = [revision.change["content"] for revision in memory.history(ids[0]) if "content" in revision.change]
    assert versions == [session_events("b")[0]["content"], "Kestrel the cat saw nothing."]
    assert memory.check() == []


def test_a_lost_commit_is_written_once_among_concurrent_commits(memory: Memory, proxy: Proxy, server: Server) -> None:
    """A later commit of another writer does not hide that the lost one was applied."""
    with Memory(server.url, auth=server.auth) as other:
        events = iter(range(10))

        def meanwhile() -> None:
            other.add(f"Another one, {next(events)}.")

        for turn in range(3):
            proxy.cut(
                lambda contents: b"howls" in contents and contents.endswith(COMMIT), lost="answer", meanwhile=meanwhile
            )
            id = memory.add(f"Kestrel howls {turn}.")
            assert proxy.cuts == 1
            assert memory.get(id).content == f"Kestrel howls {turn}."
        memory.flush()
        stored = contents(memory)
        assert sorted(stored) == sorted(
            text for turn in range(3) for text in (f"Kestrel howls {turn}.", f"Another one, {turn}.")
        )
        assert memory.check() == []


def test_adding_again_after_an_unconfirmed_commit_finds_the_stored_events(
    memory: Memory, proxy: Proxy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stays down: the call fails, and adding the events again reports them as existing."""
    monkeypatch.setattr(connection, "RETRY_SECONDS", IMPATIENT)
    with Memory(proxy.url, auth=server.auth) as impatient:
        cut_reached = threading.Event()

        def go_down() -> None:
            cut_reached.wait()
            proxy.down()

        down = threading.Thread(target=go_down)
        down.start()

        def meanwhile() -> None:
            cut_reached.set()
            time.sleep(0.1)  # so that no new connection is accepted

        proxy.cut(
            lambda contents: b"Kestrel" in contents and contents.endswith(COMMIT), lost="answer", meanwhile=meanwhile
        )
        with pytest.raises(StoreUnreachable):
            impatient.add_many(session_events("a"))
        down.join()
        proxy.up()
        assert len(contents(impatient)) == 5
        assert {outcome.status for outcome in impatient.add_many_report(session_events("a"))} == {"existing"}
        impatient.flush()
        assert len(contents(impatient)) == 5
        assert impatient.check() == []


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_an_import_survives_cuts_at_any_request(
    memory: Memory,
    proxy: Proxy,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """The connection breaks at any request of an import and its jobs: `add_many` stores every event once."""
    chosen = random.Random(11)
    cuts, expected = 0, []
    for turn in range(soak_scale(200)):
        until = iter(range(chosen.randrange(40)))
        lost: Lost = chosen.choice(["request", "answer"])
        proxy.cut(lambda contents, until=until: next(until, None) is None, lost=lost)
        events = session_events(f"{turn}-")
        memory.add_many(events)
        expected += [event["content"] for event in events]
        if turn % 2:
            memory.flush()
        cuts += proxy.cuts
    proxy.cut(lambda contents: False, lost="request")
    record_property("cuts", cuts)
    assert cuts > 0
    memory.flush()
    assert contents(memory) == expected
    assert memory.check() == []
    assert memory.jobs() == []


# ---------------------------------------------------------------------------------------------------------- locks


@contextmanager
def paused(monkeypatch: pytest.MonkeyPatch, content: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Pause the next write once it has locked its scope; yield the events ``locked`` and ``go_on``."""
    locked, go_on = threading.Event(), threading.Event()
    run = Transaction.run

    async def pausing(self: Transaction, name: str, /, *flags: str, **values: Any) -> Any:
        result = await run(self, name, *flags, **values)
        if name == "batch_begin" and not locked.is_set():
            locked.set()
            await anyio.to_thread.run_sync(go_on.wait)
        return result

    monkeypatch.setattr(Transaction, "run", pausing)
    try:
        yield locked, go_on
    finally:
        go_on.set()


def test_a_deadlocked_write_is_retried(
    server: Server, session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another client locks the terms and waits for the scope; the store locks the scope and waits for the terms."""
    session.run("UNWIND range(1, 500) AS n CREATE (:Stranger {n: n})").consume()
    caplog.set_level(logging.WARNING, "neo4j")
    with Memory(server.url, auth=server.auth) as memory:
        memory.add("Kestrel the dog howls.", title="Kestrel", id="1", wait=True)
        before = memory.stats()["notes"]
        with paused(monkeypatch, "sleeps") as (locked, go_on):
            other = session.begin_transaction()
            other.run(
                "MATCH (x:Stranger) SET x.locked = true"
            ).consume()  # Neo4j aborts the transaction with fewer locks
            assert other.run("MATCH (t:Term) SET t.locked = true RETURN count(t)").single()[0] > 0
            adding = threading.Thread(target=memory.add, args=("Kestrel the dog sleeps.",), kwargs={"id": "2"})
            adding.start()
            assert locked.wait(60)
            threading.Timer(0.5, go_on.set).start()
            other.run(
                "MATCH (s:Scope) SET s.locked = true"
            ).consume()  # succeeds only after the store's transaction is aborted
            other.rollback()
            adding.join()
        assert "DeadlockDetected" in caplog.text
        assert memory.stats()["notes"] == before + 1
        assert contents(memory) == ["Kestrel the dog howls.", "Kestrel the dog sleeps."]
        session.run("MATCH (x:Stranger) DELETE x").consume()
        memory.flush()
        assert memory.check() == []


def test_a_write_times_out_on_a_lock_while_reads_continue(
    server: Server, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write waits for a lock for a limited time; reads continue."""
    with Memory(server.url, auth=server.auth) as memory:
        memory.add("Kestrel howls.", wait=True)
        monkeypatch.setattr(connection, "LOCK_SECONDS", 1.0)
        other = session.begin_transaction()
        other.run("MATCH (s:Scope) SET s.locked = true").consume()
        started = time.monotonic()
        with pytest.raises(StoreBusy, match="was writing there for 1 s; nothing was written, try again") as error_info:
            memory.add("Kestrel sleeps.")
        assert 0.9 < time.monotonic() - started < 20
        assert "\n" not in str(error_info.value)
        assert [hit.note.content for hit in memory.search("Kestrel")] == ["Kestrel howls."]
        monkeypatch.setattr(connection, "LOCK_SECONDS", 60.0)
        release = threading.Timer(1.0, other.rollback)
        release.start()
        memory.add("Kestrel wakes.")
        release.join()
        memory.add("Kestrel yawns.", scope=Scope(user="bob"))
        memory.flush()
        assert contents(memory) == ["Kestrel howls.", "Kestrel wakes."]
        assert memory.check() == []
        blocked = session.run("SHOW TRANSACTIONS YIELD currentQuery, status WHERE status STARTS WITH 'Blocked'")
        assert list(blocked) == []


# --------------------------------------------------------------------------------------------------------- indexes

NOTES = 150
OTHERS = """
UNWIND range(1, 8000) AS n
CREATE (:Index {scope: 'others', id: toString(n), seq: n, words: 'w' + toString(n) + ' w' + toString(n % 100)})
WITH n WHERE n % 10 = 0
CREATE (v:Vector {scope: 'others', id: toString(n), seq: n, shown: true, archived: false})
SET v:Vector384, v.embedding = [i IN range(1, 384) | rand() - 0.5]
"""
"""Notes of other scopes: enough for an index to take seconds to populate."""


def recreate_indexes(memory: Memory, session: Session) -> None:
    """Drop and create the indexes that searches use; Neo4j populates them in the background."""
    statements: dict[str, str] = dict(
        session.run(
            "SHOW INDEXES YIELD name, type, createStatement WHERE type IN ['FULLTEXT', 'VECTOR'] "
            "RETURN type, createStatement"
        ).values()
    )
    statements["VECTOR"] = statement("space_index", release=release_of(memory), dim=384)
    for (name,) in session.run("SHOW INDEXES YIELD name, type WHERE type IN $types", types=list(statements)).values(
        "name"
    ):
        session.run(f"DROP INDEX `{name}`").consume()
    for text in statements.values():
        session.run(text).consume()


def release_of(memory: Memory) -> int:
    store_of: Any = memory._bridge.inner._backend.memory.engine.store
    return int(store_of.connection.release)


def test_searches_during_index_population_are_complete_or_fail(
    server_with_broken_indexes: Server,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Opening a memory waits for the index; an open memory answers completely or reports a missing index."""
    monkeypatch.setattr(scope_cache, "MAX_NOTES", -1)  # searches query the server,
    monkeypatch.setattr(spaces, "EXACT_NOTES", 100)  # with its vector index
    monkeypatch.setattr(spaces, "PENDING", 1)
    with Memory(server_with_broken_indexes.url, auth=server_with_broken_indexes.auth) as memory:
        memory.add_many([{"id": str(n), "content": f"Ann saw ship {n} in harbour {n % 7}."} for n in range(NOTES)])
        memory.flush()
        session.run(OTHERS).consume()
        memory.search("harbour 3")  # caches the size of the scope
        questions = ["Where was ship 77?", "Ann in harbour 3", "a dog at sea"]
        recreate_indexes(memory, session)
        refusals, answered = list[str](), list[tuple[str, list[str]]]()
        for question in 5 * questions:
            try:
                answered.append((question, [hit.note.id for hit in memory.search(question)]))
            except StoreError as error:
                refusals.append(str(error))
        recreate_indexes(memory, session)
        with Memory(server_with_broken_indexes.url, auth=server_with_broken_indexes.auth) as opened:
            at_once = [[hit.note.id for hit in opened.search(question)] for question in questions]
        states = session.run("SHOW INDEXES YIELD state RETURN DISTINCT state").values()
        expected = dict(zip(questions, at_once, strict=True))
        assert states == [["ONLINE"]]
        assert all(len(note_ids) == 10 for note_ids in at_once)
        assert [[hit.note.id for hit in memory.search(question)] for question in questions] == at_once
        assert [note_ids for question, note_ids in answered if note_ids != expected[question]] == []
        assert [line for line in refusals if "\n" in line] == []
        record_property("answered", len(answered))


def test_a_search_without_its_index_fails_with_the_index_name(
    server_with_broken_indexes: Server, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_cache, "MAX_NOTES", -1)
    with Memory(server_with_broken_indexes.url, auth=server_with_broken_indexes.auth) as memory:
        memory.add("Ann is in the harbour.")
        session.run("DROP INDEX zettel_words").consume()
        with pytest.raises(StoreError, match="zettel_words") as error_info:
            memory.search("harbour")
        assert "\n" not in str(error_info.value)
