"""Ranking by a model: one request per search, charged to the budget, cached and erased like other answers.
Without an answer the previous order stays, and the hits report why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.support import LIFE
from tests.contract.test_annotation import model
from tests.contract.test_erasable import traces as traces  # a fixture
from tests.model_server import Fault, ModelServer, first
from tests.scripted_model import reply
from zettel import Budget, Memory

QUESTION = "Every evening?"
EVENTS = [event for event in LIFE if "Oslo" not in event["content"]]
"""Events of which none replaces another."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Run a model server that returns the notes in reverse order."""
    with ModelServer(backwards) as started:
        yield started


def backwards(request: dict[str, Any]) -> str:
    prompt = request["messages"][-1]["content"]
    if not prompt.startswith("question:"):
        return reply(request)
    _, *notes = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    return json.dumps({"order": [note["id"] for note in notes][::-1]})


def open_filled(url: Any, server: ModelServer, timeout: float = 5.0, **settings: Any) -> Memory:
    """Open a memory whose model serves only searches, not annotation."""
    memory = Memory(url, llm=model(server, timeout=timeout), run_llm_jobs=False, **settings)
    memory.add_many(EVENTS)
    memory.flush()
    return memory


def ranking(memory: Memory, **search: Any) -> tuple[list[str], set[str]]:
    hits = memory.search(QUESTION, **search)
    return [hit.note.content for hit in hits], {hit.why.scorer for hit in hits}


def test_the_model_decides_the_order_and_each_answer_is_paid_once(url: Any, server: ModelServer) -> None:
    with open_filled(url, server) as memory:
        before, by = ranking(memory)
        assert (by, server.asked) == ({"fusion"}, 0)
        for _ in range(2):
            assert ranking(memory, scorer="llm") == (before[::-1], {"fusion+llm"})
        assert server.asked == 1
        use = memory.stats()
        assert (use["llm_calls"], use["llm_hits"]) == (1, 1)
        memory.search_many([QUESTION, "Who studies glaciers?", "Bergen or Oslo?"], scorer="llm")
        assert server.asked == 3
        assert memory.check() == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault.UNAUTHORIZED, "needs a key"),
        (Fault.BROKEN, "did not answer"),
        (Fault.HANGS, "did not answer within 2 s"),
        (Fault.BREAKS_OFF, "did not answer"),
        (Fault.EMPTY, "empty answer"),
        (Fault.REFUSAL, "refused to answer"),
        (Fault.RUBBISH, "answer"),
        (Fault.ECHO, "names none of the notes"),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
@pytest.mark.soak_only("neo4j")
def test_a_fault_keeps_the_order_and_is_reported(
    url: Any, server: ModelServer, fault: Fault, message: str
) -> None:
    server.plan = first([fault])
    server.hang = 3.0
    with open_filled(url, server, timeout=2.0, scorer="llm") as memory:
        before, _ = ranking(memory, scorer="fusion")
        after, (by,) = ranking(memory)
        assert after == before
        assert by.startswith("fusion (not llm: ")
        assert re.search(message, by)
        assert not any(event["content"] in by for event in EVENTS)
        if fault is not Fault.ECHO:  # the other requests had no cacheable answer
            assert ranking(memory) == (before[::-1], {"fusion+llm"})


def test_a_spent_budget_keeps_the_order_and_is_reported(url: Any, server: ModelServer) -> None:
    with open_filled(url, server, budget=Budget(calls=1)) as memory:
        before, _ = ranking(memory)
        assert ranking(memory, scorer="llm")[0] == before[::-1]
        hits = memory.search("Where does Ann live?", scorer="llm")
        (by,) = {hit.why.scorer for hit in hits}
        assert by.startswith("fusion (not llm: the budget of the day is spent: no calls left")
        assert [hit.note.id for hit in hits] == [hit.note.id for hit in memory.search("Where does Ann live?")]
        assert ranking(memory, scorer="llm")[0] == before[::-1]  # a cached answer costs nothing
        assert server.asked == 1


def test_cached_answers_are_deleted_with_notes(url: Any, server: ModelServer, traces: Callable[..., list[str]]) -> None:
    with open_filled(url, server) as memory:
        secret = memory.add("The quokkaberg is in the cupboard, every evening.")
        memory.search("Is the cupboard shut every evening?", scorer="llm")
        memory.delete(secret)
        memory.flush()
        memory.search("Is the cupboard shut every evening?", scorer="llm")
        assert server.asked == 2
        assert traces("quokkaberg") == []
