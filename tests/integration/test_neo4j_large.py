"""Scopes larger than one transaction: deleted and restored in pages, with an interruption after any page.

Pages contain few nodes here, so that a small scope has many.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import cache_answer, picture, write
from tests.contract.test_reembed import Letters
from tests.contract.transfer_helpers import BOB, live, scope_contents
from tests.neo4j_servers import DATABASE, Server
from zettel import Memory
from zettel.errors import JobFailed
from zettel.graph.neo4j import committing, spaces, store, unfinished
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.model import ModelUse
from zettel.ports.operations import PutUse

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PAGE = 6
PAGES = ("leaving_page", "arriving_page")


class CutOff(Exception):
    """Simulates the end of the process."""


class Cutting:
    """Ends a process once it has used its number of pages."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.pages: int | None = None  # allowed pages; None: all
        self.cut_statement: str | None = None  # ends before this statement
        inner = Transaction.run

        async def run(transaction: Transaction, name: str, /, *flags: str, **values: Any) -> Any:
            if name == self.cut_statement:
                raise CutOff
            if name in PAGES and self.pages is not None:
                if self.pages == 0:
                    raise CutOff
                self.pages -= 1
            return await inner(transaction, name, *flags, **values)

        patch.setattr(Transaction, "run", run)


@pytest.fixture
def server(neo4j_server: Server) -> Server:
    """Return an empty server of each release line."""
    return neo4j_server


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch) -> Cutting:
    monkeypatch.setattr(unfinished, "SETTLED_AT_ONCE", PAGE)
    monkeypatch.setattr(unfinished, "ANSWERS_AT_ONCE", 2)
    monkeypatch.setattr(unfinished, "HUB", 2)
    return Cutting(monkeypatch)


@pytest.fixture
def memory(server: Server) -> Iterator[Memory]:
    """Return a memory opened before the test acts."""
    with Memory(server.url, auth=server.auth) as opened:
        yield opened


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export a scope with all kinds of data."""
    folder = tmp_path_factory.mktemp("large")
    with Memory(folder / "life.db") as source:
        live(source)
        source.export(folder / "life.zettel", "zettel")
    return folder / "life.zettel"


@pytest.fixture(scope="module")
def exported_contents(exported: Path) -> dict[str, Any]:
    """Return the contents of the exported scope."""
    with Memory(exported.parent / "life.db") as source:
        return scope_contents(source)


def nodes(server: Server) -> int:
    """Return the number of nodes of all scopes except Bob's."""
    import neo4j

    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        count = "MATCH (x) WHERE x.scope IS NOT NULL AND x.scope <> $bob RETURN count(x) AS count"
        (row,) = driver.execute_query(count, bob=BOB.key, database_=DATABASE).records
    return int(row["count"])


def reopen_until_complete(server: Server, cutting: Cutting) -> int:
    """Open the memory repeatedly, each time cut off after one page; return the number of cuts."""
    times = 0
    while True:
        cutting.pages = 1
        try:
            Memory(server.url, auth=server.auth).close()
        except CutOff:
            times += 1
        else:
            cutting.pages = None
            return times


def test_a_large_scope_is_deleted_page_by_page(
    server: Server, memory: Memory, cutting: Cutting, exported: Path
) -> None:
    memory.import_transcript(exported, format="zettel")
    memory.add("Bob keeps bees.", title="Bees", scope=BOB)
    memory.flush()
    bees = picture(memory, BOB)
    ids = [note.id for note in memory.list().notes]
    for number in range(2 * PAGE):
        cache_answer(memory, f"key {number}", "They live in Oslo.", *ids[:PAGE])
        write(memory, PutUse(ModelUse(day=date(2024, 5, 1 + number), model="small", calls=1)))
    notes, before = memory.stats()["notes"], nodes(server)
    cutting.pages = 0
    with pytest.raises(CutOff):
        memory.delete_scope()
    assert (memory.stats()["notes"], nodes(server)) == (notes, before)  # the delete has not begun
    cutting.pages = 1
    with pytest.raises(CutOff):
        memory.delete_scope()
    assert before > nodes(server) > before - 10 * PAGE
    assert memory.scopes() == [BOB]
    assert reopen_until_complete(server, cutting) > 3
    assert nodes(server) == 0
    assert picture(memory, BOB) == bees
    assert memory.check() == []
    memory.add("I live in Rome.", id="1", wait=True)
    assert [hit.note.content for hit in memory.search("Where does Ann live?")] == ["I live in Rome."]
    assert memory.check() == []


def test_delete_scope_returns_the_number_of_notes(
    server: Server, memory: Memory, cutting: Cutting, exported: Path
) -> None:
    memory.import_transcript(exported, format="zettel")
    count = memory.stats()["notes"]
    assert count > PAGE
    assert memory.delete_scope() == count
    assert nodes(server) == 0


def test_the_first_write_completes_an_interrupted_delete(
    server: Server, memory: Memory, cutting: Cutting, exported: Path
) -> None:
    memory.import_transcript(exported, format="zettel")
    cutting.pages = 1
    with pytest.raises(CutOff):
        memory.delete_scope()
    cutting.pages = None
    memory.add("I live in Rome.", id="1")  # the rest of the deleted scope contains another event with this id
    memory.flush()
    assert [event.content for event, _ in memory.dump()] == ["I live in Rome."]
    assert memory.check() == []


def test_a_writer_waits_for_the_complete_delete(
    server: Server, memory: Memory, cutting: Cutting, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It plans before the delete and writes when half of the scope is deleted."""
    memory.import_transcript(exported, format="zettel")
    memory.flush()
    planned, half = threading.Event(), threading.Event()
    inner = Transaction.run
    pages: list[str] = []

    async def add_late(*arguments: Any) -> None:
        if not planned.is_set():
            planned.set()
            half.wait(60)
        await committing.add(*arguments)

    async def run(transaction: Transaction, name: str, /, *flags: str, **values: Any) -> Any:
        if name == "leaving_page":
            pages.append(threading.current_thread().name)
            if len(pages) == 3:
                half.set()
        return await inner(transaction, name, *flags, **values)

    monkeypatch.setattr(Transaction, "run", run)
    monkeypatch.setattr(store, "add", add_late)
    with Memory(server.url, auth=server.auth) as other:
        writer = threading.Thread(target=other.add, args=["I live in Rome."])
        writer.start()
        assert planned.wait(60)
        count = memory.stats()["notes"]
        assert memory.delete_scope() == count
        writer.join()
        assert half.is_set()
        other.flush()
        assert [event.content for event, _ in other.dump()] == ["I live in Rome."]
        assert other.check() == []


def test_a_large_scope_is_restored_page_by_page(
    server: Server, memory: Memory, cutting: Cutting, exported: Path, exported_contents: dict[str, Any]
) -> None:
    memory.add("Bob keeps bees.", title="Bees", scope=BOB)
    memory.flush()
    bees = picture(memory, BOB)
    cutting.pages = 1
    with pytest.raises(CutOff):
        memory.import_transcript(exported, format="zettel")
    assert memory.scopes() == [BOB]
    assert reopen_until_complete(server, cutting) > 3
    assert scope_contents(memory) == exported_contents
    assert picture(memory, BOB) == bees
    assert memory.check() == []
    assert memory.import_transcript(exported, format="zettel").existing > 0
    memory.add("I live in Rome.")
    memory.flush()
    assert memory.check() == []


def test_the_first_write_waits_for_a_restore(
    server: Server, memory: Memory, cutting: Cutting, exported: Path, exported_contents: dict[str, Any]
) -> None:
    with Memory(server.url, auth=server.auth) as other:
        cutting.pages = 1
        with pytest.raises(CutOff):
            memory.import_transcript(exported, format="zettel")
        cutting.pages = None
        other.add("I live in Rome.")
        other.flush()
        contents = [event.content for event, _ in other.dump()]
        assert contents == [*(event.content for event, _ in exported_contents["dump"]), "I live in Rome."]
        assert other.check() == []


def test_an_undecided_restore_is_deleted_page_by_page(
    server: Server, memory: Memory, cutting: Cutting, exported: Path
) -> None:
    cutting.cut_statement, cutting.pages = "restore_commit", 1
    with pytest.raises(CutOff):
        memory.import_transcript(exported, format="zettel")
    cutting.cut_statement = None
    assert memory.scopes() == []
    assert nodes(server) > 0
    assert reopen_until_complete(server, cutting) > 3
    assert nodes(server) == 0
    assert memory.check() == []


def test_check_reports_and_completes_an_interrupted_delete(
    server: Server, memory: Memory, cutting: Cutting, exported: Path
) -> None:
    memory.import_transcript(exported, format="zettel")
    cutting.pages = 1
    with pytest.raises(CutOff):
        memory.delete_scope()
    cutting.pages = None
    assert "its deletion is unfinished or was interrupted" in memory.check()[0]
    memory.check(repair=True)
    assert memory.check() == []
    assert nodes(server) == 0


def test_vectors_of_the_previous_embedder_are_deleted_after_the_switch(
    server: Server, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Separate transactions delete them; after an interruption they stay hidden and the next opening continues."""
    monkeypatch.setattr(spaces, "SWEPT_AT_ONCE", 2)
    memory.add_many([{"content": f"Ann saw ship {n} in the harbour."} for n in range(5)])
    memory.flush()

    async def cut(*arguments: Any, **options: Any) -> None:
        raise CutOff

    with monkeypatch.context() as patch, Memory(server.url, auth=server.auth, embedder=Letters()) as other:
        patch.setattr(Neo4jConnection, "in_batches", cut)
        with pytest.raises(JobFailed):
            other.reembed()
        assert vectors(server) == 10
        assert (other.stats()["embedder"], other.stats()["vectors"]) == ("letters", 5)
        assert len(other.search("ship")) == 5
        other.export(tmp_path / "whole.zettel", format="zettel")
    with Memory(tmp_path / "copy.db", embedder=Letters()) as copy:
        copy.import_transcript(tmp_path / "whole.zettel", format="zettel")
        assert copy.stats()["vectors"] == 5
    with Memory(server.url, auth=server.auth, embedder=Letters()) as other:
        assert vectors(server) == 5
        assert len(other.search("ship")) == 5
        assert other.check() == []


def vectors(server: Server) -> int:
    import neo4j

    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        (row,) = driver.execute_query("MATCH (v:Vector) RETURN count(v) AS count", database_=DATABASE).records
    return int(row["count"])
