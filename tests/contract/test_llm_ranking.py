"""Ranked by a model: one question for each search, paid from the budget, kept and erased as others are; without an
answer the order before stands, and the hits say why."""

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

ASKED = "Every evening?"
SAID = [event for event in LIFE if "Oslo" not in event["content"]]
"""A life in which nothing is replaced."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Answers with the notes in the order in which they were not shown."""
    with ModelServer(backwards) as started:
        yield started


def backwards(request: dict[str, Any]) -> str:
    asked = request["messages"][-1]["content"]
    if not asked.startswith("question:"):
        return reply(request)
    _, *notes = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
    return json.dumps({"order": [note["id"] for note in notes][::-1]})


def lived(url: Any, server: ModelServer, timeout: float = 5.0, **settings: Any) -> Memory:
    """A life that no model has read: it is asked by searches alone."""
    memory = Memory(url, llm=model(server, timeout=timeout), run_llm_jobs=False, **settings)
    memory.add_many(SAID)
    memory.flush()
    return memory


def found(memory: Memory, **search: Any) -> tuple[list[str], set[str]]:
    hits = memory.search(ASKED, **search)
    return [hit.note.content for hit in hits], {hit.why.scorer for hit in hits}


def test_the_order_is_the_models_and_an_answer_is_paid_for_once(url: Any, server: ModelServer) -> None:
    with lived(url, server) as memory:
        before, by = found(memory)
        assert (by, server.asked) == ({"fusion"}, 0)
        for _ in range(2):
            assert found(memory, scorer="llm") == (before[::-1], {"fusion+llm"})
        assert server.asked == 1
        use = memory.stats()
        assert (use["llm_calls"], use["llm_hits"]) == (1, 1)
        memory.search_many([ASKED, "Who studies glaciers?", "Bergen or Oslo?"], scorer="llm")
        assert server.asked == 3
        assert memory.check() == []


@pytest.mark.parametrize(
    ("fault", "told"),
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
def test_what_goes_wrong_once_leaves_the_order_and_is_told(
    url: Any, server: ModelServer, fault: Fault, told: str
) -> None:
    server.plan = first([fault])
    server.hang = 3.0
    with lived(url, server, timeout=2.0, scorer="llm") as memory:
        before, _ = found(memory, scorer="fusion")
        after, (by,) = found(memory)
        assert after == before
        assert by.startswith("fusion (not llm: ")
        assert re.search(told, by)
        assert not any(event["content"] in by for event in SAID)
        if fault is not Fault.ECHO:  # the others were no answers, so nothing was kept
            assert found(memory) == (before[::-1], {"fusion+llm"})


def test_a_spent_budget_leaves_the_order_and_is_told(url: Any, server: ModelServer) -> None:
    with lived(url, server, budget=Budget(calls=1)) as memory:
        before, _ = found(memory)
        assert found(memory, scorer="llm")[0] == before[::-1]
        hits = memory.search("Where does Ann live?", scorer="llm")
        (by,) = {hit.why.scorer for hit in hits}
        assert by.startswith("fusion (not llm: the budget of the day is spent: no calls left")
        assert [hit.note.id for hit in hits] == [hit.note.id for hit in memory.search("Where does Ann live?")]
        assert found(memory, scorer="llm")[0] == before[::-1]  # a kept answer costs nothing
        assert server.asked == 1


def test_kept_answers_go_with_the_notes(url: Any, server: ModelServer, traces: Callable[..., list[str]]) -> None:
    with lived(url, server) as memory:
        secret = memory.add("The quokkaberg is in the cupboard, every evening.")
        memory.search("Is the cupboard shut every evening?", scorer="llm")
        memory.delete(secret)
        memory.flush()
        memory.search("Is the cupboard shut every evening?", scorer="llm")
        assert server.asked == 2
        assert traces("quokkaberg") == []
