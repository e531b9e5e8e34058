"""What searches hold in memory is what the database says, whoever wrote to it meanwhile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.neo4j_servers import Server
from zettel import Event, Memory
from zettel.graph import open_store
from zettel.graph.neo4j import held
from zettel.query import Candidates, Query

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

QUESTIONS = ("Where does Ann live now?", "What did Bob say of the harbour tower?", "Who plays the piano in Oslo?")
SAID = (
    "Ann lives in Bergen, near the harbour.",
    "Bob painted the harbour of Bergen in grey.",
    "Ann plays the piano when Bob is in Oslo.",
    "The Harbour tower was closed, and Bob went to Oslo by train.",
)


class Watching:
    """A store whose answers are kept."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.answers: list[Candidates] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def candidates(self, query: Query) -> Candidates:
        answer: Candidates = await self._inner.candidates(query)
        self.answers.append(answer)
        return answer

    def forget(self) -> None:
        """Let it hold nothing."""
        self._inner._found.forget()


def told(candidates: Candidates) -> dict[str, Any]:
    """All columns as plain values."""
    columns = {field.name: getattr(candidates, field.name) for field in dataclasses.fields(candidates)}
    columns["stats"] = dataclasses.asdict(candidates.stats)
    columns["stats"]["df"] = candidates.stats.df.tolist()
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in columns.items()}


def remembered(memory: Memory) -> list[str]:
    events = [
        Event(content=text, role="Ann", session="s", occurred_at=f"2024-05-01T09:0{place}:00Z", id=str(place))
        for place, text in enumerate(SAID)
    ]
    return memory.add_many(events)


CHANGES: tuple[Callable[[Memory, list[str]], object], ...] = (
    lambda memory, ids: memory.add("Harbour tower", title="Harbour tower", role="Bob"),
    lambda memory, ids: memory.add("Bob said that the Harbour tower fell.", session="s"),
    lambda memory, ids: memory.update(ids[1], content="Bob painted Oslo in the Harbour tower."),
    lambda memory, ids: memory.update(ids[2], keywords=["piano", "harbour tower"]),
    lambda memory, ids: memory.add("Ann has moved: Ann lives in Oslo now.", occurred_at="2024-06-01T09:00:00Z"),
    lambda memory, ids: memory.update(ids[0], valid_from="2024-04-01T09:00:00Z"),
    lambda memory, ids: memory.revert(ids[1], 1),
    lambda memory, ids: memory.delete(ids[3]),
    lambda memory, ids: (memory.delete_scope(), remembered(memory)),
)


def test_every_change_of_another_process_is_seen(neo4j_server: Server) -> None:
    watching = Watching(open_store(neo4j_server.url, auth=neo4j_server.auth))
    with Memory(neo4j_server.url, auth=neo4j_server.auth) as writer, Memory(watching) as reader:
        ids = remembered(writer)
        for change in CHANGES:
            for question in (*QUESTIONS, *QUESTIONS):  # what was written last is held from the second time on
                reader.search(question, log=False)
            change(writer, ids)
            writer.flush()
            watching.answers.clear()
            for question in QUESTIONS:
                reader.search(question, log=False)
            watching.forget()
            for question in QUESTIONS:
                reader.search(question, log=False)
            answers = [told(answer) for answer in watching.answers]
            assert answers[: len(QUESTIONS)] == answers[len(QUESTIONS) :]


def test_no_more_is_held_than_that(neo4j_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_NOTES", 2)
    store = open_store(neo4j_server.url, auth=neo4j_server.auth)
    with Memory(store) as memory:
        remembered(memory)
        memory.flush()
        first, again = ([hit.note.id for hit in memory.search(QUESTIONS[0])] for _ in range(2))
        assert first == again
        kept = store._found._held.values()  # type: ignore[attr-defined]
        assert [len(scope.notes) for scope in kept] == [2]
