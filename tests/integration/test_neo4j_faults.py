"""A Neo4j that cannot be had, that is cut off in the middle, that others hold locks in, or whose indexes are not ready:
one clear line or the right answer, and nothing lost, halved or doubled.
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
    with Proxy(server.url) as standing:
        yield standing


@pytest.fixture
def memory(server: Server, proxy: Proxy) -> Iterator[Memory]:
    """A memory that reaches its server through the proxy."""
    with Memory(proxy.url, auth=server.auth) as opened:
        yield opened


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    """Somebody else at the same database."""
    import neo4j

    with (
        neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver,
        driver.session(database=DATABASE) as opened,
    ):
        yield opened


@pytest.fixture
def spoiled(server: Server) -> Iterator[Server]:
    """A server whose indexes this test breaks: no other test finds anything of them."""
    yield server
    neo4j_servers.wipe(server)


def said(memory: Memory) -> list[str]:
    """What every event says, in order."""
    return [event.content for event, _ in memory.dump()]


def a_watch(name: str, ships: int = 5) -> list[dict[str, Any]]:
    """Events of one session, told by their ids."""
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


# ---------------------------------------------------------------------------------------------------- not to be had


def refused(error: type[StoreError], url: str, **options: Any) -> str:
    """What opening it says, which is one line."""
    with pytest.raises(error) as told:
        Memory(url, **options)
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("agent", ["Neo4j/5.25.9", "Neo4j/4.4.42", "Neo4j/v5.11", "Memgraph/3.1"])
def test_an_old_server_is_told_so(server: Server, proxy: Proxy, agent: str) -> None:
    """The real one's answers, but for the release that it says it is."""
    proxy.rewrite = lambda data: re.sub(rb"Neo4j/[0-9.]+", lambda real: agent.encode().ljust(len(real[0]), b"0"), data)
    line = refused(StoreTooOld, proxy.url, auth=server.auth)
    assert line.startswith(f"{proxy.url} is {agent}")
    assert line.endswith(": zettel needs Neo4j 5.26 or newer")


def test_a_server_of_another_age(server: Server, proxy: Proxy) -> None:
    """It knows no version of the protocol that the driver knows."""
    answers: list[bytes] = []

    def none_in_common(data: bytes) -> bytes:
        answers.append(data)
        return b"\0\0\0\0" if len(answers) == 1 else data

    proxy.rewrite = none_in_common
    assert "zettel needs Neo4j 5.26" in refused(StoreTooOld, proxy.url, auth=server.auth)


def test_a_password_that_must_be_changed_or_was_guessed_at(server: Server) -> None:
    import neo4j

    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        driver.execute_query(
            "CREATE OR REPLACE USER zettel_test SET PASSWORD 'first-of-all' CHANGE REQUIRED", database_="system"
        )
        try:
            line = refused(StoreDenied, server.url, auth=("zettel_test", "first-of-all"))
            assert "the password has expired" in line
            for _ in range(3):
                line = refused(StoreDenied, server.url, auth=("zettel_test", "not that one"))
                assert "refused that user or password" in line
            assert "too many wrong passwords" in refused(StoreDenied, server.url, auth=("zettel_test", "nor that one"))
        finally:
            driver.execute_query("DROP USER zettel_test", database_="system")


def test_a_port_that_is_not_the_drivers(server: Server) -> None:
    if server.http is None:
        pytest.skip("where the HTTP of this server is, is not known")
    address = server.http.partition("//")[2]
    for scheme in ("bolt", "neo4j"):
        line = refused(StoreUnreachable, f"{scheme}://{address}", auth=server.auth)
        assert "its HTTP port" in line
    line = refused(StoreUnreachable, "neo4j://nowhere.invalid", auth=server.auth)
    assert "neo4j://nowhere.invalid cannot be reached" in line


def test_the_command_line_says_one_line(server: Server, proxy: Proxy) -> None:
    """Also when the driver would have something to say: what it logs is for those who want it."""

    def stats(url: str, *options: str) -> tuple[int, str]:
        ran = subprocess.run(
            [sys.executable, "-m", "zettel", "--store", url, *options, "stats"], cwd=ROOT, text=True,
            capture_output=True, check=False,
            env=os.environ | {"NEO4J_USERNAME": server.auth[0], "NEO4J_PASSWORD": server.auth[1]},
        )  # fmt: skip
        return ran.returncode, ran.stderr

    proxy.cut(lambda said: COMMIT in said, lost="answer")
    assert stats(proxy.url) == (0, "")
    assert proxy.cuts == 1
    proxy.down()
    status, errors = stats(proxy.url)
    assert status == 1
    assert errors.count("\n") == 1
    assert "cannot be reached: Connection refused; is the server running?" in errors


# -------------------------------------------------------------------------------------------------------- cut off


def test_a_server_goes_and_comes_back(
    memory: Memory, proxy: Proxy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the memory open need not open it again."""
    memory.add("Kestrel howls before.", id="1", wait=True)
    monkeypatch.setattr(connection, "RETRY_SECONDS", IMPATIENT)
    with Memory(proxy.url, auth=server.auth) as impatient:
        proxy.down()
        for attempt in (
            lambda: impatient.add("Kestrel howls meanwhile.", id="2"),
            lambda: impatient.search("Who howls?"),
            impatient.stats,
        ):
            with pytest.raises(StoreUnreachable, match="cannot be reached: Connection refused") as told:
                attempt()
            assert "\n" not in str(told.value)
        proxy.up()
        impatient.add("Kestrel howls meanwhile.", id="2")
        impatient.flush()
        assert len(impatient.search("Who howls?")) == 2
    memory.add("Kestrel howls after.", id="3")
    memory.flush()
    assert said(memory) == ["Kestrel howls before.", "Kestrel howls meanwhile.", "Kestrel howls after."]
    assert memory.check() == []
    assert memory.jobs() == []


def test_a_memory_can_be_closed_when_its_server_is_gone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RETRY_SECONDS", IMPATIENT)
    with Proxy(server.url) as proxy:
        memory = Memory(proxy.url, auth=server.auth)
        memory.add_many(a_watch("a"))
        proxy.down()
        began = time.monotonic()
        memory.close()
        assert time.monotonic() - began < 20
    with Memory(server.url, auth=server.auth) as memory:
        assert len(said(memory)) == 5
        assert memory.check() == []


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_commit_is_lost(memory: Memory, proxy: Proxy, lost: Lost) -> None:
    """It happened or it did not, and nobody can tell: the batch is there once, and the caller hears of success."""
    for name in ("a", "b"):  # the first batch of a scope makes the scope
        proxy.cut(lambda said: b"Kestrel" in said and said.endswith(COMMIT), lost=lost)
        ids = memory.add_many(a_watch(name))
        assert proxy.cuts == 1
        assert len(set(ids)) == 5
        assert [memory.get(id).session for id in ids] == [name] * 5
    unnamed = memory.add("Neither an id nor a time, so this is always new.")
    proxy.cut(lambda said: b"always new" in said and said.endswith(COMMIT), lost=lost)
    assert memory.add("Neither an id nor a time, so this is always new.") != unnamed
    assert proxy.cuts == 1
    memory.flush()
    proxy.cut(lambda said: b"Kestrel the cat" in said and said.endswith(COMMIT), lost=lost)
    assert memory.update(ids[0], content="Kestrel the cat saw nothing.").version == memory.get(ids[0]).version
    assert proxy.cuts == 1
    memory.flush()
    assert len(said(memory)) == 12
    worded = [revision.change["content"] for revision in memory.history(ids[0]) if "content" in revision.change]
    assert worded == [a_watch("b")[0]["content"], "Kestrel the cat saw nothing."]
    assert memory.check() == []


def test_a_commit_is_lost_and_others_were_quicker(memory: Memory, proxy: Proxy, server: Server) -> None:
    """What was committed is no longer the last that the scope knows of, and still it is not done twice."""
    with Memory(server.url, auth=server.auth) as other:
        events = iter(range(10))

        def meanwhile() -> None:
            other.add(f"Another one, {next(events)}.")

        for turn in range(3):
            proxy.cut(lambda said: b"howls" in said and said.endswith(COMMIT), lost="answer", meanwhile=meanwhile)
            id = memory.add(f"Kestrel howls {turn}.")
            assert proxy.cuts == 1
            assert memory.get(id).content == f"Kestrel howls {turn}."
        memory.flush()
        told = said(memory)
        assert sorted(told) == sorted(
            text for turn in range(3) for text in (f"Kestrel howls {turn}.", f"Another one, {turn}.")
        )
        assert memory.check() == []


def test_an_answer_is_lost_for_good(
    memory: Memory, proxy: Proxy, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stays away: an error, and whoever adds it again later finds that it is there."""
    monkeypatch.setattr(connection, "RETRY_SECONDS", IMPATIENT)
    with Memory(proxy.url, auth=server.auth) as impatient:
        gone = threading.Event()

        def go_down() -> None:
            gone.wait()
            proxy.down()

        down = threading.Thread(target=go_down)
        down.start()

        def meanwhile() -> None:
            gone.set()
            time.sleep(0.1)  # so that nobody is let in any more

        proxy.cut(lambda said: b"Kestrel" in said and said.endswith(COMMIT), lost="answer", meanwhile=meanwhile)
        with pytest.raises(StoreUnreachable):
            impatient.add_many(a_watch("a"))
        down.join()
        proxy.up()
        assert len(said(impatient)) == 5
        assert {outcome.status for outcome in impatient.add_many_report(a_watch("a"))} == {"existing"}
        impatient.flush()
        assert len(said(impatient)) == 5
        assert impatient.check() == []


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_cuts_anywhere(
    memory: Memory,
    proxy: Proxy,
    soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """At any request of an import and of the jobs that follow: what `add_many` returned for is there, once."""
    chosen = random.Random(11)
    cuts, expected = 0, []
    for turn in range(soak_scale(200)):
        until = iter(range(chosen.randrange(40)))
        lost: Lost = chosen.choice(["request", "answer"])
        proxy.cut(lambda said, until=until: next(until, None) is None, lost=lost)
        events = a_watch(f"{turn}-")
        memory.add_many(events)
        expected += [event["content"] for event in events]
        if turn % 2:
            memory.flush()
        cuts += proxy.cuts
    proxy.cut(lambda said: False, lost="request")
    record_property("cuts", cuts)
    assert cuts > 0
    memory.flush()
    assert said(memory) == expected
    assert memory.check() == []
    assert memory.jobs() == []


# ---------------------------------------------------------------------------------------------------------- locks


@contextmanager
def paused(monkeypatch: pytest.MonkeyPatch, content: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The next write of that text stops once it holds its scope; set when it does, and to be set for it to go on."""
    holding, go_on = threading.Event(), threading.Event()
    run = Transaction.run

    async def pausing(self: Transaction, name: str, /, *flags: str, **given: Any) -> Any:
        told = await run(self, name, *flags, **given)
        if name == "batch_begin" and not holding.is_set():
            holding.set()
            await anyio.to_thread.run_sync(go_on.wait)
        return told

    monkeypatch.setattr(Transaction, "run", pausing)
    try:
        yield holding, go_on
    finally:
        go_on.set()


def test_a_deadlock_is_tried_again(
    server: Server, session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody holds the Terms and wants the scope, while the store holds the scope and wants the Terms."""
    session.run("UNWIND range(1, 500) AS n CREATE (:Stranger {n: n})").consume()
    caplog.set_level(logging.WARNING, "neo4j")
    with Memory(server.url, auth=server.auth) as memory:
        memory.add("Kestrel the dog howls.", title="Kestrel", id="1", wait=True)
        before = memory.stats()["notes"]
        with paused(monkeypatch, "sleeps") as (holding, go_on):
            other = session.begin_transaction()
            other.run("MATCH (x:Stranger) SET x.held = true").consume()  # who holds more is not the one to give way
            assert other.run("MATCH (t:Term) SET t.held = true RETURN count(t)").single()[0] > 0
            adding = threading.Thread(target=memory.add, args=("Kestrel the dog sleeps.",), kwargs={"id": "2"})
            adding.start()
            assert holding.wait(60)
            threading.Timer(0.5, go_on.set).start()
            other.run("MATCH (s:Scope) SET s.held = true").consume()  # had only when the store has given way
            other.rollback()
            adding.join()
        assert "DeadlockDetected" in caplog.text
        assert memory.stats()["notes"] == before + 1
        assert said(memory) == ["Kestrel the dog howls.", "Kestrel the dog sleeps."]
        session.run("MATCH (x:Stranger) DELETE x").consume()
        memory.flush()
        assert memory.check() == []


def test_a_lock_that_is_kept(server: Server, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write waits for it, not for ever; reading goes on."""
    with Memory(server.url, auth=server.auth) as memory:
        memory.add("Kestrel howls.", wait=True)
        monkeypatch.setattr(connection, "LOCK_SECONDS", 1.0)
        other = session.begin_transaction()
        other.run("MATCH (s:Scope) SET s.held = true").consume()
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="was writing there for 1 s; nothing was written, try again") as told:
            memory.add("Kestrel sleeps.")
        assert 0.9 < time.monotonic() - began < 20
        assert "\n" not in str(told.value)
        assert [hit.note.content for hit in memory.search("Kestrel")] == ["Kestrel howls."]
        monkeypatch.setattr(connection, "LOCK_SECONDS", 60.0)
        release = threading.Timer(1.0, other.rollback)
        release.start()
        memory.add("Kestrel wakes.")
        release.join()
        memory.add("Kestrel yawns.", scope=Scope(user="bob"))
        memory.flush()
        assert said(memory) == ["Kestrel howls.", "Kestrel wakes."]
        assert memory.check() == []
        left = session.run("SHOW TRANSACTIONS YIELD currentQuery, status WHERE status STARTS WITH 'Blocked'")
        assert list(left) == []


# --------------------------------------------------------------------------------------------------------- indexes

NOTES = 150
OTHERS = """
UNWIND range(1, 8000) AS n
CREATE (:Index {scope: 'others', id: toString(n), seq: n, words: 'w' + toString(n) + ' w' + toString(n % 100)})
WITH n WHERE n % 10 = 0
CREATE (v:Vector {scope: 'others', id: toString(n), seq: n, shown: true, archived: false})
SET v:Vector256, v.embedding = [i IN range(1, 256) | rand() - 0.5]
"""
"""What other scopes hold: enough for an index to take seconds."""


def made_anew(memory: Memory, session: Session) -> None:
    """Drop the indexes that searches use and make them again: what they are to hold is read while others go on."""
    told: dict[str, str] = dict(
        session.run(
            "SHOW INDEXES YIELD name, type, createStatement WHERE type IN ['FULLTEXT', 'VECTOR'] "
            "RETURN type, createStatement"
        ).values()
    )
    told["VECTOR"] = statement("space_index", release=release_of(memory), dim=256)
    for (name,) in session.run("SHOW INDEXES YIELD name, type WHERE type IN $types", types=list(told)).values("name"):
        session.run(f"DROP INDEX `{name}`").consume()
    for text in told.values():
        session.run(text).consume()


def release_of(memory: Memory) -> int:
    opened: Any = memory._bridge.inner._backend.memory.engine.store
    return int(opened.connection.release)


def test_an_index_that_is_still_populating(
    spoiled: Server, session: Session, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Whoever opens the memory waits for it; whoever has it open is answered in full or hears that it is not ready."""
    monkeypatch.setattr(scope_cache, "MAX_NOTES", -1)  # so that the server is asked,
    monkeypatch.setattr(spaces, "EXACT_NOTES", 100)  # and its vector index
    monkeypatch.setattr(spaces, "PENDING", 1)
    with Memory(spoiled.url, auth=spoiled.auth) as memory:
        memory.add_many([{"id": str(n), "content": f"Ann saw ship {n} in harbour {n % 7}."} for n in range(NOTES)])
        memory.flush()
        session.run(OTHERS).consume()
        memory.search("harbour 3")  # from then on the scope's size is known
        questions = ["Where was ship 77?", "Ann in harbour 3", "a dog at sea"]
        made_anew(memory, session)
        refusals, answered = list[str](), list[tuple[str, list[str]]]()
        for question in 5 * questions:
            try:
                answered.append((question, [hit.note.id for hit in memory.search(question)]))
            except StoreError as error:
                refusals.append(str(error))
        made_anew(memory, session)
        with Memory(spoiled.url, auth=spoiled.auth) as opened:
            at_once = [[hit.note.id for hit in opened.search(question)] for question in questions]
        states = session.run("SHOW INDEXES YIELD state RETURN DISTINCT state").values()
        expected = dict(zip(questions, at_once, strict=True))
        assert states == [["ONLINE"]]
        assert all(len(found) == 10 for found in at_once)
        assert [[hit.note.id for hit in memory.search(question)] for question in questions] == at_once
        assert [found for question, found in answered if found != expected[question]] == []
        assert [line for line in refusals if "\n" in line] == []
        record_property("answered", len(answered))


def test_an_index_that_is_gone(spoiled: Server, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_cache, "MAX_NOTES", -1)
    with Memory(spoiled.url, auth=spoiled.auth) as memory:
        memory.add("Ann is in the harbour.")
        session.run("DROP INDEX zettel_words").consume()
        with pytest.raises(StoreError, match="zettel_words") as told:
            memory.search("harbour")
        assert "\n" not in str(told.value)
