"""Searching in rounds with a model behind HTTP: additional hits, model calls, and failures."""

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


def open_memory(store: Path, **options: Any) -> Memory:
    return Memory(store, llm=LLM, run_llm_jobs=False, **options)


def test_each_round_searches_names_from_the_previous_round(store: Path, openai: ModelServer) -> None:
    with open_memory(store) as memory:
        single_search = [hit.note.content for hit in memory.search(QUESTION, k=5)]
        assert HOPS[2] not in single_search
        result = memory.answer_context(QUESTION, 3, k=5)
        assert (result.calls, result.rounds, openai.asked) == (3, 3, 3)
        by_note = {evidence.hit.note.content: evidence for evidence in result.evidence}
        assert (by_note[HOPS[0]].round, by_note[HOPS[0]].needed) == (1, True)
        assert by_note[HOPS[2]].round in (2, 3)
        assert by_note[HOPS[2]].search.startswith("What is said of ")
        assert HOPS[2] in result.text
        again = memory.answer_context(QUESTION, 3, k=5)
        assert (again.calls, openai.asked) == (0, 3)  # the model's answers are cached
        assert again.text == result.text
        assert memory.stats()["llm_calls"] == 3
        memory.delete(by_note[HOPS[2]].hit.note.id)
        assert HOPS[2] not in memory.answer_context(QUESTION, 3, k=5).text


def test_without_a_model_answer_context_equals_context(store: Path) -> None:
    with Memory(store) as memory:
        result = memory.answer_context(QUESTION, max_tokens=100)
        assert result.text == memory.context(QUESTION, 100)
        assert (result.rounds, result.calls, result.missing) == (1, 0, ())
        for wrong in ({"rounds": 0}, {"rounds": "2"}, {"max_tokens": 0}):
            with pytest.raises(InvalidInput):
                memory.answer_context(QUESTION, **wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidQuestion):
            memory.answer_context(" ")


@pytest.mark.parametrize("fault", [Fault.RUBBISH, Fault.EMPTY, Fault.REFUSAL, Fault.UNAUTHORIZED, Fault.ECHO])
def test_a_failing_model_ends_the_rounds(store: Path, openai: ModelServer, fault: Fault) -> None:
    openai.plan = first([None, fault])
    with open_memory(store) as memory:
        result = memory.answer_context(QUESTION, 3, k=5)
    assert result.rounds == 2
    assert result.ended.startswith("the language model failed: ")
    assert "lighthouse" not in result.ended
    assert HOPS[0] in result.text


def test_a_budget_limits_the_calls(store: Path, openai: ModelServer) -> None:
    with open_memory(store, budget=Budget(calls=1)) as memory:
        result = memory.answer_context(QUESTION, 3, k=5)
    assert (result.calls, openai.asked, result.rounds) == (1, 1, 2)
    assert "the budget of the day is spent" in result.ended
    assert result.missing


def test_the_context_command_searches_in_rounds(zettel: Zettel, store: Path, openai: ModelServer) -> None:
    common = ("--store", str(store), "--llm", LLM)
    result = zettel("context", QUESTION, "--rounds", "2", *common)
    assert (result.status, "seabirds" in result.out or "Sunniva" in result.out) == (0, True)
    assert result.err.startswith("zettel: 2 rounds of searches: ")
    empty = zettel("context", QUESTION, "--rounds", "2", "--store", str(store), "--user", "nobody")
    assert empty.err.splitlines() == [
        "zettel: no notes in user='nobody': see zettel scopes",
        "zettel: 1 round of searches: no language model to check what is missing",
    ]
    answer = zettel("context", QUESTION, "--rounds", "2", "--json", *common).json()
    assert answer["rounds"] == 2
    assert {"round", "search", "needed", "hit"} == answer["evidence"][0].keys()
    result = zettel("context", QUESTION, "--rounds", "2", "--profile", *common)
    assert (result.status, result.err) == (
        2,
        "zettel: --profile and --omit-flagged cannot be combined with --rounds: leave one of them out\n",
    )
