"""Gathering in rounds: what is searched for next, when it ends, and what is kept as evidence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.test_insights import note
from zettel.errors import BudgetSpent, ModelUnavailable
from zettel.llm.lines import line, short_ids
from zettel.llm.ports import Answer, Ask, Request
from zettel.model import Hit, Note, Why
from zettel.prompts import load_prompt
from zettel.search.gather import NEEDS, SCHEMA, SHOWN, Gathered, gather

LET, KEEPER, TOWN = (
    note("Ann", 1, "My brother keeps the light now."),
    note("Ann", 2, "Jonas, my brother, has a cat."),
    note("Bob", 3, "Jonas moved to Utsira."),
)
FOUND = {"Where does the keeper live?": [LET, KEEPER], "Where does Jonas live?": [TOWN, LET]}
SHORT = short_ids(one.id for one in (LET, KEEPER, TOWN))


def need(cards: Sequence[Note], search: str, told: str = "where Jonas lives") -> dict[str, Any]:
    return {"need": told, "cards": [SHORT[one.id] for one in cards], "search": search}


def run(*answers: Any, rounds: int = 3, model: bool = True, cached: bool = False) -> tuple[Gathered, list[Request]]:
    """Gather with a model that gives these answers; one that is an exception is raised."""
    left, requests = list(answers), []

    async def find(questions: Sequence[str]) -> list[list[Hit]]:
        return [
            [Hit(note=one, score=0.9 - place / 10, why=Why(scorer="x")) for place, one in enumerate(FOUND.get(q, ()))]
            for q in questions
        ]

    def asker(shown: Sequence[Note]) -> Ask:
        async def ask(request: Request, notes: Sequence[str]) -> Answer:
            assert list(notes) == [one.id for one in shown]
            requests.append(request)
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return Answer(answer if isinstance(answer, str) else json.dumps({"needs": answer}), "m", cached=cached)

        return ask

    def packed(hits: Sequence[Hit]) -> str:
        return "|".join(hit.note.content for hit in hits)

    said = asyncio.run(gather("Where does the keeper live?", rounds, find, asker if model else None, packed))
    return said, requests


def test_what_is_missing_is_searched_for_until_nothing_is() -> None:
    said, requests = run([need([LET, KEEPER], "", "who the keeper is"), need([], "Where does Jonas live?")],
                         [need([KEEPER], "", "who the keeper is"), need([TOWN], "")])  # fmt: skip
    assert (said.rounds, said.calls, said.missing, said.ended) == (2, 2, (), "nothing is missing")
    assert [(one.hit.note, one.round, one.search, one.needed) for one in said.evidence] == [
        (TOWN, 2, "Where does Jonas live?", True),
        (KEEPER, 1, "Where does the keeper live?", True),
        (LET, 1, "Where does the keeper live?", False),
    ]
    assert said.text == "Jonas moved to Utsira.|Jonas, my brother, has a cat.|My brother keeps the light now."
    first, second = requests
    assert first.user.splitlines()[:4] == [
        "to answer:", '{"question":"Where does the keeper live?"}', "searched:", '["Where does the keeper live?"]',
    ]  # fmt: skip
    assert second.user.splitlines()[3] == '["Where does the keeper live?","Where does Jonas live?"]'
    # What the model took as evidence stands first.
    assert [json.loads(one)["note"] for one in second.user.splitlines()[5:]] == [
        LET.content, KEEPER.content, TOWN.content,
    ]  # fmt: skip


def test_without_a_model_it_is_one_search() -> None:
    said, _ = run(model=False)
    assert (said.rounds, said.calls, said.missing) == (1, 0, ())
    assert said.text == "My brother keeps the light now.|Jonas, my brother, has a cat."
    assert "no language model" in said.ended


def test_no_more_rounds_than_were_asked_for() -> None:
    said, requests = run([need([], "Where does Jonas live?")], rounds=1)
    assert (said.rounds, said.missing, len(requests)) == (1, ("where Jonas lives",), 1)
    assert said.ended == "something is missing after 1 rounds"


def test_nothing_is_searched_for_twice() -> None:
    said, requests = run([need([], "where does THE keeper live?"), need([], "")])
    assert (said.rounds, len(requests), len(said.missing)) == (1, 1, 2)
    assert said.ended == "something is missing, and nothing else to search for"
    said, requests = run([need([], "Who is it?"), need([], "who is it?")], [need([], "Who is it?")])
    assert (said.rounds, len(requests)) == (2, 2)
    assert requests[1].user.splitlines()[3] == '["Where does the keeper live?","Who is it?"]'


def test_what_was_answered_from_before_costs_nothing() -> None:
    assert run([need([LET], "")], cached=True)[0].calls == 0


@pytest.mark.parametrize(
    "answer", ["I would rather not.", "{{{", '{"needs":[7]}', '{"needs":[{"need":" ","cards":[],"search":"x"}]}']
)
def test_rubbish_ends_it_with_what_was_found(answer: str) -> None:
    said, _ = run([need([KEEPER], "Where does Jonas live?")], answer)
    assert (said.rounds, said.calls) == (2, 2)
    assert said.ended.startswith("the language model could not say what is missing: the answer ")
    assert {one.hit.note.id for one in said.evidence} == {LET.id, KEEPER.id, TOWN.id}
    assert said.evidence[0].hit.note == KEEPER
    assert said.missing == ("where Jonas lives",)


@pytest.mark.parametrize("error", [BudgetSpent("the budget is spent"), ModelUnavailable("m did not answer")])
def test_a_model_that_fails_ends_it(error: Exception) -> None:
    said, _ = run(error)
    assert (said.rounds, said.calls) == (1, 0)
    assert said.ended == f"the language model could not say what is missing: {error}"
    assert len(said.evidence) == 2


def test_cards_that_were_not_shown_are_nothing() -> None:
    said, _ = run([{"need": "it", "cards": ["zzz", 7, None, SHORT[TOWN.id]], "search": ["x"]}])
    assert said.missing == ("it",)
    assert not any(one.needed for one in said.evidence)


def test_no_more_needs_than_a_plan_has() -> None:
    said, _ = run([need([], f"Number {n}?", f"number {n}") for n in range(20)], [])
    assert said.rounds == 2
    assert said.missing == ()


def test_what_is_shown_is_bounded() -> None:
    many = [note("Ann", 1 + n % 28, f"Number {n}.") for n in range(60)]
    FOUND.update({"Where does the keeper live?": many[:40], "Q?": many[20:60]})
    try:
        _, requests = run([need([], "Q?")] * NEEDS, [])
    finally:
        FOUND.update({"Where does the keeper live?": [LET, KEEPER]})
        del FOUND["Q?"]
    assert all(len(one.user.splitlines()) - 5 <= SHOWN for one in requests)


def test_worked_examples_are_answers_that_would_be_taken() -> None:
    prompt = load_prompt("gather")
    assert prompt.name == "gather/1"
    assert len(prompt.examples) == 3
    for asked, answered in prompt.examples:
        lines = asked.splitlines()
        assert (lines[0], lines[2], lines[4]) == ("to answer:", "searched:", "cards:")
        assert lines[1] == line(**json.loads(lines[1]))
        cards = [json.loads(one) for one in lines[5:]]
        assert [line(**one) for one in cards] == lines[5:]
        needs = json.loads(answered)["needs"]
        assert 0 < len(needs) <= NEEDS
        for one in needs:
            assert one.keys() == SCHEMA["properties"]["needs"]["items"]["properties"].keys()
            assert set(one["cards"]) <= {card["id"] for card in cards}
            assert one["search"] not in json.loads(lines[3])
            assert len(one["need"].split()) <= 12
