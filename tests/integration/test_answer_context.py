"""Searching in rounds with a model behind HTTP: what it finds that one search does not, what it costs, how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import Zettel
from tests.model_server import Fault, ModelServer, first
from zettel import Budget, Memory
from zettel.errors import InvalidInput, InvalidQuestion

pytestmark = pytest.mark.integration

QUESTION = "Who looks after the lighthouse of Ann's brother in winter?"
HOPS = [
    "The lighthouse is let to Torvald this winter, says Ann's brother.",
    "Torvald is away a lot; he pays somebody called Sunniva.",
    "Sunniva counts seabirds on weekdays.",
    *(f"Ann's brother painted boat number {n} of the lighthouse harbour this winter." for n in range(12)),
]
LLM = "openai/gpt-4o-mini"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with Memory(path) as memory:
        memory.add_many([{"content": text} for text in HOPS], wait=True)
    return path


def opened(store: Path, **how: Any) -> Memory:
    return Memory(store, llm=LLM, run_llm_jobs=False, **how)


def test_each_round_follows_what_the_one_before_named(store: Path, openai: ModelServer) -> None:
    with opened(store) as memory:
        once = [hit.note.content for hit in memory.search(QUESTION, k=5)]
        assert HOPS[2] not in once
        said = memory.answer_context(QUESTION, 3, k=5)
        assert (said.calls, said.rounds, openai.asked) == (3, 3, 3)
        by_note = {one.hit.note.content: one for one in said.evidence}
        assert (by_note[HOPS[0]].round, by_note[HOPS[0]].needed) == (1, True)
        assert by_note[HOPS[2]].round in (2, 3)
        assert by_note[HOPS[2]].search.startswith("What is said of ")
        assert HOPS[2] in said.text
        again = memory.answer_context(QUESTION, 3, k=5)
        assert (again.calls, openai.asked) == (0, 3)  # the model's answers were kept
        assert again.text == said.text
        assert memory.stats()["llm_calls"] == 3
        memory.delete(by_note[HOPS[2]].hit.note.id)
        assert HOPS[2] not in memory.answer_context(QUESTION, 3, k=5).text


def test_without_a_model_it_is_what_context_gives(store: Path) -> None:
    with Memory(store) as memory:
        said = memory.answer_context(QUESTION, max_tokens=100)
        assert said.text == memory.context(QUESTION, 100)
        assert (said.rounds, said.calls, said.missing) == (1, 0, ())
        for wrong in ({"rounds": 0}, {"rounds": "2"}, {"max_tokens": 0}):
            with pytest.raises(InvalidInput):
                memory.answer_context(QUESTION, **wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidQuestion):
            memory.answer_context(" ")


@pytest.mark.parametrize("fault", [Fault.RUBBISH, Fault.EMPTY, Fault.REFUSAL, Fault.UNAUTHORIZED, Fault.ECHO])
def test_a_model_that_gives_no_answer(store: Path, openai: ModelServer, fault: Fault) -> None:
    openai.plan = first([None, fault])
    with opened(store) as memory:
        said = memory.answer_context(QUESTION, 3, k=5)
    assert said.rounds == 2
    assert said.ended.startswith("the language model failed: ")
    assert "lighthouse" not in said.ended
    assert HOPS[0] in said.text


def test_a_budget_bounds_it(store: Path, openai: ModelServer) -> None:
    with opened(store, budget=Budget(calls=1)) as memory:
        said = memory.answer_context(QUESTION, 3, k=5)
    assert (said.calls, openai.asked, said.rounds) == (1, 1, 2)
    assert "the budget of the day is spent" in said.ended
    assert said.missing


def test_on_the_command_line(zettel: Zettel, store: Path, openai: ModelServer) -> None:
    common = ("--store", str(store), "--llm", LLM)
    ran = zettel("context", QUESTION, "--rounds", "2", *common)
    assert (ran.status, "seabirds" in ran.out or "Sunniva" in ran.out) == (0, True)
    assert ran.err.startswith("zettel: 2 rounds of searches: ")
    nothing = zettel("context", QUESTION, "--rounds", "2", "--store", str(store), "--user", "nobody")
    assert nothing.err == "zettel: 1 round of searches: no language model to check what is missing\n"
    told = zettel("context", QUESTION, "--rounds", "2", "--json", *common).json()
    assert told["rounds"] == 2
    assert {"round", "search", "needed", "hit"} == told["evidence"][0].keys()
    ran = zettel("context", QUESTION, "--rounds", "2", "--profile", *common)
    assert (ran.status, ran.err) == (1, "zettel: --profile cannot be combined with --rounds: leave one of them out\n")
