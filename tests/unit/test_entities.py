"""Entities: the kind of a name by the words in and around it, phrases that name persons, and a model's answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.test_insights import note
from zettel.errors import InvalidModelOutput
from zettel.evolve.entities_by_model import LiteLLMEntityMatcher, NamePair
from zettel.llm.answer_parsing import items
from zettel.model import EntityKind
from zettel.ports.language_model import Answer, Request
from zettel.prompts import load_prompt
from zettel.text.entities import (
    context_weights,
    kind_of,
    may_be_entity,
    name_weights,
    person_phrases,
    relations_in,
)
from zettel.text.names import find_names
from zettel.text.tokens import clean, phrase_key

SENTENCES = Path(__file__).parents[1] / "data" / "entity-names.jsonl"


def kinds_in(text: str) -> dict[str, EntityKind]:
    """Return the kinds of the names in one text, by key."""
    kinds = {}
    for name in find_names(text):
        weights = name_weights(name.text)
        for kind, weight in context_weights(clean(text), name.text).items():
            weights[kind] = weights.get(kind, 0.0) + weight
        if may_be_entity(name.text) and (sure := kind_of(weights)):
            kinds[name.key] = sure
    return kinds


@pytest.mark.parametrize(
    ("place", "precision", "recall"), [((0, 1), 0.98, 0.92), ((2,), 0.87, 0.86)], ids=["fitted", "measured"]
)
def test_kinds_of_names_in_life_like_sentences(place: tuple[int, ...], precision: float, recall: float) -> None:
    right = typed = labelled = 0
    for number, line in enumerate(SENTENCES.read_text(encoding="utf-8").splitlines()):
        if number % 3 not in place:
            continue
        sentence = json.loads(line)
        expected = {phrase_key(name): kind for name, kind in sentence["names"].items()}
        found = kinds_in(sentence["text"])
        right += len(found.items() & expected.items())
        typed += len(found)
        labelled += len(expected)
    assert right / typed >= precision
    assert right / labelled >= recall


@pytest.mark.parametrize(
    "name", ["Mon", "French", "E8", "B", "Christmas", "GROUP BY", "Gary I'm", "I cannot prove it"]
)
def test_some_capitals_name_nothing(name: str) -> None:
    assert not may_be_entity(name)


@pytest.mark.parametrize("name", ["Ann", "settings.toml", "University of Tromso", "UK", "de Vries", "Tooley & Sons"])
def test_other_capitals_may(name: str) -> None:
    assert may_be_entity(name) or name == "UK"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("My wife Ana loves sailing.", [("my wife", "Ana")]),
        ("Ana, my wife, is from Porto.", [("my wife", "Ana")]),
        ("My wife's name is Ana.", [("my wife", "Ana")]),
        ("My wife is called Ana.", [("my wife", "Ana")]),
        ("Helen Barlow is my boss.", [("my boss", "Helen Barlow")]),
        ("Ich war mit meiner Frau Ana dort.", [("meine Frau", "Ana")]),
        ("Mein Chef heißt Udo.", [("mein Chef", "Udo")]),
        ("My boss Sig. Rossi called.", []),
        ("My ex-wife Ana called.", []),
        ("My mother-in-law Jo called.", []),
        ("My sister Laura called.", []),
        ("His wife Ana called.", []),
    ],
)
def test_relations_of_which_a_person_has_one(text: str, found: list[tuple[str, str]]) -> None:
    assert [tuple(each) for each in relations_in(text)] == found


def test_phrases_of_persons_have_a_plain_form() -> None:
    assert person_phrases("My wife and our neighbour met my wife's boss.") == ["my wife", "my neighbour"]
    assert person_phrases("Ich sah meinen Bruder mit meiner Schwester.") == ["mein Bruder", "meine Schwester"]


PAIR = NamePair(
    "Tom", "Thomas Reed", (note("Ann", None, "Tom drives a crane.", id="n_1", event_ids=("e_1",)),),
    (note("Ann", None, "Thomas Reed likes his crane.", id="n_2", event_ids=("e_2",)),),
)  # fmt: skip


def answered(text: str, asked: list[Request] | None = None) -> tuple[list[tuple[NamePair, str]], str] | None:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        assert list(notes) == ["n_1", "n_2"]
        if asked is not None:
            asked.append(request)
        return Answer(text, "scripted")

    return asyncio.run(LiteLLMEntityMatcher().same([PAIR], ask))


def pair_id() -> str:
    asked: list[Request] = []
    answered("{}", asked)
    shown = json.loads(asked[0].user.splitlines()[1])
    assert shown["texts_of_one"] == ["Ann: Tom drives a crane."]
    return str(shown["id"])


def test_the_example_has_the_format_of_requests_and_answers() -> None:
    ((question, answer),) = load_prompt("entities").examples
    shown = [json.loads(line) for line in question.removeprefix("pairs:\n").splitlines()]
    assert all(set(each) == {"id", "one", "other", "texts_of_one", "texts_of_other"} for each in shown)
    same = items(answer)
    assert all(set(each) == {"id", "reason"} for each in same)
    assert {each["id"] for each in same} < {each["id"] for each in shown}


def test_only_known_pairs_with_a_reason_are_one_entity() -> None:
    id = pair_id()
    good = {"id": id, "reason": "Both drive\na crane."}
    assert answered(json.dumps({"same": [good, good]})) == ([(PAIR, "Both drive a crane.")], "scripted")
    for bad in ({"id": "zz", "reason": "Both."}, {"id": id}, {"id": id, "reason": " "}, "no"):
        assert answered(json.dumps({"same": [bad]})) == ([], "scripted")


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "{"])
def test_an_unusable_answer_changes_nothing(text: str) -> None:
    assert answered(text) is None


def test_a_refusal_changes_nothing_and_other_errors_are_raised() -> None:
    async def refuse(request: Request, notes: Sequence[str]) -> Answer:
        error = InvalidModelOutput("refused")
        error.spent = Answer("", "scripted")
        raise error

    async def fail(request: Request, notes: Sequence[str]) -> Answer:
        raise InvalidModelOutput("broken")

    assert asyncio.run(LiteLLMEntityMatcher().same([PAIR], refuse)) is None
    with pytest.raises(InvalidModelOutput):
        asyncio.run(LiteLLMEntityMatcher().same([PAIR], fail))
