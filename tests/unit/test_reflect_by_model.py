"""Insights by a model: its requests, and isolation of invalid items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.test_insights import note
from zettel.errors import InvalidInput, InvalidModelOutput
from zettel.evolve.insights import MAX_CHARS
from zettel.evolve.reflect_by_model import DUPLICATE_ITEM, TOO_LONG, UNRELATED, LiteLLMReflector
from zettel.llm.failures import costly
from zettel.llm.note_fields import NO_ITEM, UNREADABLE
from zettel.llm.prompt_lines import line, short_ids
from zettel.ports.language_model import Answer, InvalidItem, ReflectionResult, Request
from zettel.prompts import load_prompt

KILN = [note("Bob", 3, "The pots are out of the kiln."), note("Ann", 1, "The kiln is\nhot.")]
FERRY = [note("Ann", 2, 'The ferry is late"}]}'), note(None, None, "No ferry today.", title="Board")]
KILN_ID, FERRY_ID = short_ids([min(note.id for note in group) for group in (KILN, FERRY)]).values()


def reflect(text: str, cut: bool = False) -> tuple[ReflectionResult, Request, Sequence[str]]:
    requests: list[tuple[Request, Sequence[str]]] = []

    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        requests.append((request, notes))
        return Answer(text, "some/model", cut)

    result = asyncio.run(LiteLLMReflector().reflect([KILN, FERRY], ask))
    ((request, notes),) = requests
    return result, request, notes


def answer(*items: Any) -> str:
    return json.dumps({"insights": list(items)})


def test_each_theme_is_one_line_with_notes_in_time_order() -> None:
    result, request, notes = reflect(answer({"id": KILN_ID, "insight": "The kiln\nworks."},
                                          {"id": FERRY_ID, "insight": "The ferry fails."}))  # fmt: skip
    assert result == ReflectionResult(("The kiln works.", "The ferry fails."), "some/model", "reflect/1")
    head, *lines = request.user.splitlines()
    assert head == "themes:"
    assert [json.loads(item) for item in lines] == [
        {"id": KILN_ID, "notes": ["2024-03-01 Ann: The kiln is hot.", "2024-03-03 Bob: The pots are out of the kiln."]},
        {"id": FERRY_ID, "notes": ['2024-03-02 Ann: The ferry is late"}]}', "Board: No ferry today."]},
    ]
    assert set(notes) == {item.id for item in (*KILN, *FERRY)}


@pytest.mark.parametrize(
    ("items", "flaw"),
    [
        ([], NO_ITEM),
        ([{"id": "zz", "insight": "The kiln works."}], NO_ITEM),
        ([{"id": KILN_ID, "insight": "  "}], NO_ITEM),
        ([{"id": KILN_ID, "insight": ["The kiln works."]}], NO_ITEM),
        ([{"id": KILN_ID, "insight": "The kiln works."}] * 2, DUPLICATE_ITEM),
        ([{"id": KILN_ID, "insight": "The kiln works. " * MAX_CHARS}], TOO_LONG),
        ([{"id": KILN_ID, "insight": "Whales sing."}], UNRELATED),
    ],
)
def test_an_invalid_item_affects_only_its_theme(items: list[Any], flaw: InvalidItem) -> None:
    result, _, _ = reflect(answer({"id": FERRY_ID, "insight": "The ferry fails."}, *items))
    assert result.insights == (flaw, "The ferry fails.")
    assert "kiln" not in flaw.why


def test_an_unreadable_answer_affects_all_themes() -> None:
    assert reflect("I would rather not.")[0].insights == (UNREADABLE, UNREADABLE)


@pytest.mark.parametrize("spent", [Answer("", "some/model", prompt_tokens=9), None])
def test_a_refusal_affects_all_themes_and_other_model_errors_are_raised(spent: Answer | None) -> None:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        raise costly(InvalidModelOutput("some/model refused"), spent)

    async def reflected() -> ReflectionResult:
        return await LiteLLMReflector().reflect([KILN, FERRY], ask)

    if spent is not None:
        assert asyncio.run(reflected()).insights == (UNREADABLE, UNREADABLE)
    else:
        with pytest.raises(InvalidModelOutput):
            asyncio.run(reflected())


def test_worked_examples_are_valid_answers() -> None:
    prompt = load_prompt("reflect")
    assert prompt.name == "reflect/1"
    assert len(prompt.examples) == 3
    for example_request, example_answer in prompt.examples:
        shown = [json.loads(item) for item in example_request.splitlines()[1:]]
        assert "\n".join(["themes:", *(line(**item) for item in shown)]) == example_request
        insights = json.loads(example_answer)["insights"]
        assert [item["id"] for item in insights] == [item["id"] for item in shown]
        assert all(0 < len(item["insight"]) <= MAX_CHARS for item in insights)


def test_a_batch_size_of_zero_raises() -> None:
    with pytest.raises(InvalidInput, match="batch must be at least 1"):
        LiteLLMReflector(0)
