"""Search in rounds: next searches, ends and evidence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.test_insights import note
from zettel.errors import BudgetSpent, ModelUnavailable
from zettel.llm.prompt_lines import line, short_ids
from zettel.model import Hit, Note, Why
from zettel.ports.language_model import Answer, Ask, Request
from zettel.prompts import load_prompt
from zettel.search.gather import NEEDS, SCHEMA, SHOWN, Gathered, gather

LET, KEEPER, TOWN = (
    note("Ann", 1, "My brother keeps the light now."),
    note("Ann", 2, "Jonas, my brother, has a cat."),
    note("Bob", 3, "Jonas moved to Utsira."),
)
FOUND = {"Where does the keeper live?": [LET, KEEPER], "Where does Jonas live?": [TOWN, LET]}
SHORT = short_ids(item.id for item in (LET, KEEPER, TOWN))


asked_about: list[list[str]] = []
"""The ids of the notes behind each request of the last run."""


def need(cards: Sequence[Note], search: str, text: str = "where Jonas lives") -> dict[str, Any]:
    return {"need": text, "cards": [SHORT[item.id] for item in cards], "search": search}


def run(*answers: Any, rounds: int = 3, model: bool = True, cached: bool = False) -> tuple[Gathered, list[Request]]:
    """Run gather with a model that returns these answers; an exception among them is raised."""
    remaining, requests = list(answers), []
    asked_about.clear()

    async def find(questions: Sequence[str]) -> list[list[Hit]]:
        return [
            [Hit(note=item, score=0.9 - place / 10, why=Why(scorer="x")) for place, item in enumerate(FOUND.get(q, ()))]
            for q in questions
        ]

    def asker(shown: Sequence[Note]) -> Ask:
        async def ask(request: Request, notes: Sequence[str]) -> Answer:
            assert list(notes) == [item.id for item in shown]
            requests.append(request)
            asked_about.append([*notes])
            answer = remaining.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return Answer(answer if isinstance(answer, str) else json.dumps({"needs": answer}), "m", cached=cached)

        return ask

    def packed(hits: Sequence[Hit]) -> str:
        return "|".join(hit.note.content for hit in hits)

    gathered = asyncio.run(gather("Where does the keeper live?", rounds, find, asker if model else None, packed))
    return gathered, requests


def test_a_request_depends_on_the_notes_of_all_earlier_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in the model's words may quote a note that later requests do not show."""
    monkeypatch.setattr("zettel.search.gather.SHOWN", 1)
    run([need([], "Where does Jonas live?")], [need([TOWN], "")])
    assert asked_about == [[LET.id], [LET.id, TOWN.id]]


def test_missing_facts_are_searched_until_none_is_left() -> None:
    gathered, requests = run([need([LET, KEEPER], "", "who the keeper is"), need([], "Where does Jonas live?")],
                         [need([KEEPER], "", "who the keeper is"), need([TOWN], "")])  # fmt: skip
    assert (gathered.rounds, gathered.calls, gathered.missing, gathered.ended) == (2, 2, (), "nothing is missing")
    assert [(item.hit.note, item.round, item.search, item.needed) for item in gathered.evidence] == [
        (TOWN, 2, "Where does Jonas live?", True),
        (KEEPER, 1, "Where does the keeper live?", True),
        (LET, 1, "Where does the keeper live?", False),
    ]
    assert gathered.text == "Jonas moved to Utsira.|Jonas, my brother, has a cat.|My brother keeps the light now."
    first, second = requests
    assert first.user.splitlines()[:4] == [
        "to answer:", '{"question":"Where does the keeper live?"}', "searched:", '["Where does the keeper live?"]',
    ]  # fmt: skip
    assert second.user.splitlines()[3] == '["Where does the keeper live?","Where does Jonas live?"]'
    # The evidence that the model selected comes first.
    assert [json.loads(item)["note"] for item in second.user.splitlines()[5:]] == [
        LET.content, KEEPER.content, TOWN.content,
    ]  # fmt: skip


def test_without_a_model_it_is_one_search() -> None:
    gathered, _ = run(model=False)
    assert (gathered.rounds, gathered.calls, gathered.missing) == (1, 0, ())
    assert gathered.text == "My brother keeps the light now.|Jonas, my brother, has a cat."
    assert "no language model" in gathered.ended


def test_rounds_are_limited() -> None:
    gathered, requests = run([need([], "Where does Jonas live?")], rounds=1)
    assert (gathered.rounds, gathered.missing, len(requests)) == (1, ("where Jonas lives",), 1)
    assert gathered.ended == "something is missing after 1 rounds"


def test_no_search_is_repeated() -> None:
    gathered, requests = run([need([], "where does THE keeper live?"), need([], "")])
    assert (gathered.rounds, len(requests), len(gathered.missing)) == (1, 1, 2)
    assert gathered.ended == "something is missing, and there is no new search"
    gathered, requests = run([need([], "Who is it?"), need([], "who is it?")], [need([], "Who is it?")])
    assert (gathered.rounds, len(requests)) == (2, 2)
    assert requests[1].user.splitlines()[3] == '["Where does the keeper live?","Who is it?"]'


def test_cached_answers_are_not_counted() -> None:
    assert run([need([LET], "")], cached=True)[0].calls == 0


@pytest.mark.parametrize(
    "answer", ["I would rather not.", "{{{", '{"needs":[7]}', '{"needs":[{"need":" ","cards":[],"search":"x"}]}']
)
def test_invalid_answers_end_the_search_with_its_evidence(answer: str) -> None:
    gathered, _ = run([need([KEEPER], "Where does Jonas live?")], answer)
    assert (gathered.rounds, gathered.calls) == (2, 2)
    assert gathered.ended.startswith("the language model failed: the answer ")
    assert {item.hit.note.id for item in gathered.evidence} == {LET.id, KEEPER.id, TOWN.id}
    assert gathered.evidence[0].hit.note == KEEPER
    assert gathered.missing == ("where Jonas lives",)


@pytest.mark.parametrize("error", [BudgetSpent("the budget is spent"), ModelUnavailable("m did not answer")])
def test_a_failing_model_ends_the_search(error: Exception) -> None:
    gathered, _ = run(error)
    assert (gathered.rounds, gathered.calls) == (1, 0)
    assert gathered.ended == f"the language model failed: {error}"
    assert len(gathered.evidence) == 2


def test_unknown_cards_are_ignored() -> None:
    gathered, _ = run([{"need": "it", "cards": ["zzz", 7, None, SHORT[TOWN.id]], "search": ["x"]}])
    assert gathered.missing == ("it",)
    assert not any(item.needed for item in gathered.evidence)


def test_needs_are_limited() -> None:
    gathered, _ = run([need([], f"Number {n}?", f"number {n}") for n in range(20)], [])
    assert gathered.rounds == 2
    assert gathered.missing == ()


def test_the_prompt_is_bounded() -> None:
    many = [note("Ann", 1 + n % 28, f"Number {n}.") for n in range(60)]
    FOUND.update({"Where does the keeper live?": many[:40], "Q?": many[20:60]})
    try:
        _, requests = run([need([], "Q?")] * NEEDS, [])
    finally:
        FOUND.update({"Where does the keeper live?": [LET, KEEPER]})
        del FOUND["Q?"]
    assert all(len(item.user.splitlines()) - 5 <= SHOWN for item in requests)


def test_worked_examples_are_valid_answers() -> None:
    prompt = load_prompt("gather")
    assert prompt.name == "gather/1"
    assert len(prompt.examples) == 3
    for example_request, example_answer in prompt.examples:
        lines = example_request.splitlines()
        assert (lines[0], lines[2], lines[4]) == ("to answer:", "searched:", "cards:")
        assert lines[1] == line(**json.loads(lines[1]))
        cards = [json.loads(item) for item in lines[5:]]
        assert [line(**item) for item in cards] == lines[5:]
        needs = json.loads(example_answer)["needs"]
        assert 0 < len(needs) <= NEEDS
        for item in needs:
            assert item.keys() == SCHEMA["properties"]["needs"]["items"]["properties"].keys()
            assert set(item["cards"]) <= {card["id"] for card in cards}
            assert item["search"] not in json.loads(lines[3])
            assert len(item["need"].split()) <= 12
