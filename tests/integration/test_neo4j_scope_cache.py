"""Scopes held in memory are what the database says, whoever wrote to it meanwhile, and no more is held than that."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.neo4j_servers import Server
from zettel import AsyncMemory, Event, Memory, Scope
from zettel.graph import open_store
from zettel.graph.neo4j import scope_cache
from zettel.graph.neo4j.connection import Neo4jConnection

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

QUESTIONS = ("Where does Ann live now?", "What did Bob say of the harbour tower?", "Who plays the piano in Oslo?")
SAID = (
    "Ann lives in Bergen, near the harbour.",
    "Bob painted the harbour of Bergen in grey.",
    "Ann plays the piano when Bob is in Oslo.",
    "The Harbour tower was closed, and Bob went to Oslo by train.",
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each statement was read."""
    counts: Counter[str] = Counter()
    read = Neo4jConnection.read

    async def counted(self: Neo4jConnection, name: str, *flags: str, **values: Any) -> Any:
        counts[name] += 1
        return await read(self, name, *flags, **values)

    monkeypatch.setattr(Neo4jConnection, "read", counted)
    return counts


def found(memory: Memory) -> list[dict[str, Any]]:
    """What the questions find, and how well: the database's half precision makes a difference of 0.0005."""
    return [
        {hit.note.id: pytest.approx(hit.score, abs=1e-3) for hit in memory.search(question, log=False)}
        for question in QUESTIONS
    ]


def remembered(memory: Memory) -> list[str]:
    events = [
        Event(content=text, speaker="Ann", session="s", occurred_at=f"2024-05-01T09:0{place}:00Z", id=str(place))
        for place, text in enumerate(SAID)
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
    lambda memory, ids: (memory.delete_scope(), remembered(memory)),
)


def test_every_change_of_another_process_is_seen(
    neo4j_server: Server, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who holds the scope, as by who asks the database."""
    server, auth = neo4j_server.url, neo4j_server.auth
    with Memory(server, auth=auth) as writer, Memory(server, auth=auth) as reader, Memory(server, auth=auth) as asking:
        ids = remembered(writer)
        for change in CHANGES:
            writer.flush()
            found(reader)
            change(writer, ids)
            writer.flush()
            asked.clear()
            told = found(reader)
            with monkeypatch.context() as patch:
                patch.setattr(scope_cache, "MAX_NOTES", -1)
                assert found(asking) == told
            assert found(reader) == told
            assert asked["scope_changes"] >= 2 * len(QUESTIONS)
        assert asked["candidates"] < 2 * len(QUESTIONS) + len(QUESTIONS)  # a new scope is soon held again


def test_a_held_scope_takes_one_statement(neo4j_server: Server, asked: Counter[str]) -> None:
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        remembered(memory)
        memory.flush()
        found(memory)
        asked.clear()
        found(memory)
        assert asked["scope_changes"] == len(QUESTIONS)
        assert asked["candidates"] == asked["note_fields"] == 0


def test_a_scope_is_read_piece_by_piece(
    neo4j_server: Server, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is whole the database answers; what is written meanwhile is not missed."""
    monkeypatch.setattr(scope_cache, "PAGE", 4)
    events = [{"content": f"Kettle {n} whistles in Oslo, as after Kettle {n - 1}.", "session": "s"} for n in range(10)]
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        ids = memory.add_many(events)
        memory.flush()
        question = "Which kettle whistles in Oslo?"
        told = [[hit.note.id for hit in memory.search(question, 20, log=False)] for _ in range(2)]
        assert asked["candidates"] == 2
        assert told[0] == told[1]
        memory.update(ids[0], content="Kettle 0 was sold in Bergen.")
        memory.add("Kettle 10 whistles in Oslo.", session="s")
        memory.flush()
        asked.clear()
        question = "Was Kettle 0 sold in Bergen, and does Kettle 10 whistle?"
        told = [[hit.note.content for hit in memory.search(question, 20, log=False)] for _ in range(3)]
        assert asked["candidates"] < 3
        assert {"Kettle 0 was sold in Bergen.", "Kettle 10 whistles in Oslo."} < set(told[0])
        assert set(told[0]) == set(told[1]) == set(told[2])


def test_who_is_far_behind_begins_anew(
    neo4j_server: Server, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_cache, "MAX_BEHIND", 3)
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        remembered(memory)
        memory.flush()
        found(memory)
        memory.add_many([{"content": f"Ann said in Oslo that {n} is a number."} for n in range(5)])
        memory.flush()
        asked.clear()
        told = found(memory)
        assert asked["candidates"] == 1
        assert found(memory)[0] == told[0]
        assert asked["candidates"] == 1


def test_no_more_is_held_than_that(neo4j_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_cache, "MAX_NOTES", 6)
    store = open_store(neo4j_server.url, auth=neo4j_server.auth)
    with Memory(store) as memory:
        for user in ("ann", "bob"):
            with Memory(neo4j_server.url, auth=neo4j_server.auth, scope=Scope(user=user)) as own:
                remembered(own)
                own.flush()
        for user in ("ann", "bob", "ann"):
            scope = Scope(user=user)
            first, again = ([hit.note.id for hit in memory.search(QUESTIONS[0], scope=scope)] for _ in range(2))
            assert first == again
            (kept,) = store._scopes._cached.values()  # type: ignore[attr-defined]
            assert kept.columns.rows == len(SAID)
        remembered(memory)
        memory.add_many([{"content": f"Ann said in Oslo that {n} is a number."} for n in range(5)])
        assert memory.search(QUESTIONS[0])
        assert len(store._scopes._cached) == 1  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_many_ask_at_once(neo4j_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_cache, "PAGE", 3)
    async with AsyncMemory(neo4j_server.url, auth=neo4j_server.auth) as memory:
        await memory.add_many([{"content": text} for text in SAID])
        await memory.flush()
        for _ in range(3):
            answers = await asyncio.gather(*(memory.search(QUESTIONS[0], log=False) for _ in range(8)))
            assert len({tuple(hit.note.id for hit in hits) for hits in answers}) == 1
