"""Cached scopes equal the database after writes of other processes, and the cache respects its limit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.neo4j_servers import Server
from tests.waiting import until
from zettel import AsyncMemory, Event, Memory, Scope
from zettel.core import retention
from zettel.graph import open_store
from zettel.graph.neo4j import scope_cache
from zettel.graph.neo4j.connection import Neo4jConnection
from zettel.model import to_micros

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SOON = datetime.now(timezone.utc) + timedelta(hours=1)
QUESTIONS = ("Where does Ann live now?", "What did Bob say of the harbour tower?", "Who plays the piano in Oslo?")
TEXTS = (
    "Ann lives in Bergen, near the harbour.",
    "Bob painted the harbour of Bergen in grey.",
    "Ann plays the piano when Bob is in Oslo.",
    "The Harbour tower was closed, and Bob went to Oslo by train.",
)


@pytest.fixture
def statement_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the reads of each statement."""
    counts: Counter[str] = Counter()
    read = Neo4jConnection.read

    async def counting_read(self: Neo4jConnection, name: str, *flags: str, **values: Any) -> Any:
        counts[name] += 1
        return await read(self, name, *flags, **values)

    monkeypatch.setattr(Neo4jConnection, "read", counting_read)
    return counts


def search_scores(memory: Memory) -> list[dict[str, Any]]:
    """Return ids and scores of the hits; the database's half precision changes scores by up to 0.0005."""
    return [
        {hit.note.id: pytest.approx(hit.score, abs=1e-3) for hit in memory.search(question, log=False)}
        for question in QUESTIONS
    ]


def add_events(memory: Memory) -> list[str]:
    events = [
        Event(content=text, speaker="Ann", session="s", occurred_at=f"2024-05-01T09:0{place}:00Z", id=str(place))
        for place, text in enumerate(TEXTS)
    ]
    return memory.add_many(events)


CHANGES: tuple[Callable[[Memory, list[str]], object], ...] = (
    lambda memory, ids: memory.add("Harbour tower", title="Harbour tower", speaker="Bob"),
    lambda memory, ids: memory.add("Bob said that the Harbour tower fell.", session="s"),
    lambda memory, ids: memory.update(ids[1], content="Bob painted Oslo in the Harbour tower."),
    lambda memory, ids: memory.update(ids[2], keywords=["piano", "harbour tower"]),
    lambda memory, ids: memory.add("Ann has moved: Ann lives in Oslo now.", occurred_at="2024-06-01T09:00:00Z"),
    lambda memory, ids: memory.update(ids[0], valid_from="2024-04-01T09:00:00Z"),
    lambda memory, ids: memory.revert(ids[1], 1),
    lambda memory, ids: memory.delete(ids[3]),
    lambda memory, ids: (memory.delete_scope(), add_events(memory)),
)


def test_a_cached_scope_sees_every_change_of_another_process(
    neo4j_server: Server, statement_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory with a cached scope and one that queries the database agree."""
    server, auth = neo4j_server.url, neo4j_server.auth
    with (
        Memory(server, auth=auth) as writer,
        Memory(server, auth=auth) as reader,
        Memory(server, auth=auth) as uncached,
    ):
        ids = add_events(writer)
        for change in CHANGES:
            writer.flush()
            search_scores(reader)
            change(writer, ids)
            writer.flush()
            statement_counts.clear()
            scores = search_scores(reader)
            with monkeypatch.context() as patch:
                patch.setattr(scope_cache, "MAX_NOTES", -1)
                assert search_scores(uncached) == scores
            assert search_scores(reader) == scores
            assert statement_counts["scope_changes"] >= 2 * len(QUESTIONS)
        assert statement_counts["candidates"] < 2 * len(QUESTIONS) + len(QUESTIONS)  # a new scope is soon cached again


def test_a_search_in_a_cached_scope_runs_one_statement(neo4j_server: Server, statement_counts: Counter[str]) -> None:
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        add_events(memory)
        memory.flush()
        search_scores(memory)
        statement_counts.clear()
        search_scores(memory)
        assert statement_counts["scope_changes"] == len(QUESTIONS)
        assert statement_counts["candidates"] == 0


def test_a_scope_is_cached_page_by_page(
    neo4j_server: Server, statement_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database answers until the cache is complete; writes during the load are not missed."""
    monkeypatch.setattr(scope_cache, "PAGE", 4)
    events = [{"content": f"Kettle {n} whistles in Oslo, as after Kettle {n - 1}.", "session": "s"} for n in range(10)]
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        ids = memory.add_many(events)
        memory.flush()
        question = "Which kettle whistles in Oslo?"
        results = [[hit.note.id for hit in memory.search(question, 20, log=False)] for _ in range(2)]
        assert statement_counts["candidates"] == 2
        assert results[0] == results[1]
        memory.update(ids[0], content="Kettle 0 was sold in Bergen.")
        memory.add("Kettle 10 whistles in Oslo.", session="s")
        memory.flush()
        statement_counts.clear()
        question = "Was Kettle 0 sold in Bergen, and does Kettle 10 whistle?"
        results = [[hit.note.content for hit in memory.search(question, 20, log=False)] for _ in range(3)]
        assert statement_counts["candidates"] < 3
        assert {"Kettle 0 was sold in Bergen.", "Kettle 10 whistles in Oslo."} < set(results[0])
        assert set(results[0]) == set(results[1]) == set(results[2])


def test_a_large_scope_is_cached_in_the_background(
    neo4j_server: Server, statement_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database answers the first search before any page is loaded."""
    monkeypatch.setattr(scope_cache, "AT_ONCE", 3)
    monkeypatch.setattr(scope_cache, "PAGE", 4)
    events = [{"content": f"Kettle {n} whistles in Oslo, as after Kettle {n - 1}.", "session": "s"} for n in range(10)]
    question = "Which kettle whistles in Oslo?"
    store = open_store(neo4j_server.url, auth=neo4j_server.auth)
    with Memory(store) as memory:
        memory.add_many(events)
        memory.flush()
        statement_counts.clear()
        first = [hit.note.id for hit in memory.search(question, 20, log=False)]
        statements = list(statement_counts)
        assert "scope_changes" not in statements[: statements.index("candidates")]
        until(lambda: not store.is_loading)  # type: ignore[attr-defined]
        assert statement_counts["scope_changes"] >= 3  # pages of 4, 4 and 2 notes
        statement_counts.clear()
        assert [hit.note.id for hit in memory.search(question, 20, log=False)] == first
        assert (statement_counts["candidates"], statement_counts["scope_changes"]) == (0, 1)


def test_a_cached_scope_with_expired_notes_is_searched_without_them(
    neo4j_server: Server, statement_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the job has deleted the note, searches use the cache."""
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        lasting, expiring = memory.add_many(
            [{"content": "The harbour gate is blue."}, {"content": "The harbour gate opens.", "expires_at": SOON}]
        )
        memory.flush()
        search_scores(memory)
        assert {hit.note.id for hit in memory.search("harbour gate", log=False)} == {lasting, expiring}
        monkeypatch.setattr(retention, "present_micros", lambda: to_micros(SOON))
        statement_counts.clear()
        assert [hit.note.id for hit in memory.search("harbour gate", log=False)] == [lasting]
        assert (statement_counts["candidates"], statement_counts["expired_ids"]) == (0, 1)


def test_an_outdated_cache_is_loaded_again(
    neo4j_server: Server, statement_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_cache, "MAX_BEHIND", 3)
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        add_events(memory)
        memory.flush()
        search_scores(memory)
        memory.add_many([{"content": f"Ann said in Oslo that {n} is a number."} for n in range(5)])
        memory.flush()
        statement_counts.clear()
        scores = search_scores(memory)
        assert statement_counts["candidates"] == 1
        assert search_scores(memory)[0] == scores[0]
        assert statement_counts["candidates"] == 1


def test_the_cache_respects_its_limit(neo4j_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_cache, "MAX_NOTES", 6)
    store = open_store(neo4j_server.url, auth=neo4j_server.auth)
    with Memory(store) as memory:
        for user in ("ann", "bob"):
            with Memory(neo4j_server.url, auth=neo4j_server.auth, scope=Scope(user=user)) as user_memory:
                add_events(user_memory)
                user_memory.flush()
        for user in ("ann", "bob", "ann"):
            scope = Scope(user=user)
            first, again = ([hit.note.id for hit in memory.search(QUESTIONS[0], scope=scope)] for _ in range(2))
            assert first == again
            (cached,) = store._scopes._cached.values()  # type: ignore[attr-defined]
            assert cached.columns.rows == len(TEXTS)
        add_events(memory)
        memory.add_many([{"content": f"Ann said in Oslo that {n} is a number."} for n in range(5)])
        assert memory.search(QUESTIONS[0])
        assert len(store._scopes._cached) == 1  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_concurrent_searches_agree_while_the_scope_is_loaded(
    neo4j_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_cache, "PAGE", 3)
    async with AsyncMemory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        await memory.add_many([{"content": text} for text in TEXTS])
        await memory.flush()
        for _ in range(3):
            answers = await asyncio.gather(*(memory.search(QUESTIONS[0], log=False) for _ in range(8)))
            assert len({tuple(hit.note.id for hit in hits) for hits in answers}) == 1
