"""Profiles by a model: the format of requests, and the lines of an answer that count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest

from tests.unit.test_insights import note
from zettel.errors import InvalidModelOutput
from zettel.evolve.profile import ProfileLine, Statement, statements
from zettel.evolve.profile_by_model import LiteLLMProfiler
from zettel.llm.answer_parsing import items
from zettel.ports.language_model import Answer, Request
from zettel.prompts import load_prompt


def said(person: str, day: int, text: str) -> Statement:
    when = datetime(2024, 5, day, tzinfo=timezone.utc)
    (statement,) = statements(note(person, None, text, id=f"n_{day}", event_ids=(f"e_{day}",), occurred_at=when))
    return statement


SAID = [
    said("Ann", 1, "I live in Porto."), said("Bob", 2, "I'm allergic to nuts."), said("Ann", 3, "I love rye bread."),
]  # fmt: skip


def answered(text: str, asked: list[Request] | None = None) -> list[ProfileLine]:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        assert list(notes) == ["n_1", "n_2", "n_3"]
        if asked is not None:
            asked.append(request)
        return Answer(text, "scripted")

    lines, _ = asyncio.run(LiteLLMProfiler().lines(SAID, ask))
    return lines


def ids() -> list[str]:
    asked: list[Request] = []
    answered("{}", asked)
    return [json.loads(line)["id"] for line in asked[0].user.splitlines()[1:]]


def test_the_example_has_the_format_of_requests_and_answers() -> None:
    ((question, answer),) = load_prompt("profile").examples
    assert question.startswith("statements:\n")
    shown = [json.loads(line) for line in question.splitlines()[1:]]
    assert all(set(each) == {"id", "on", "by", "text"} for each in shown)
    lines = items(answer)
    assert all(set(line) == {"head", "by", "line", "of"} for line in lines)
    assert {id for line in lines for id in line["of"]} <= {each["id"] for each in shown}


def test_valid_lines_have_a_heading_a_day_and_sources() -> None:
    porto, nuts, bread = ids()
    answer = {
        "profile": [
            {"head": "lasting", "by": "Ann", "line": "Lives in Porto, loves rye bread.", "of": [porto, bread]},
            {"head": "recent", "by": "Bob", "line": "Must not eat nuts.", "of": [nuts]},
        ]
    }
    assert answered(json.dumps(answer)) == [
        ProfileLine("Lasting", "Ann", "Lives in Porto, loves rye bread. (2024-05-03)", ("n_1", "n_3")),
        ProfileLine("Recent", "Bob", "Must not eat nuts. (2024-05-02)", ("n_2",)),
    ]


@pytest.mark.parametrize(
    "change",
    [{"by": "Bob"}, {"of": ["zz"]}, {"of": []}, {"line": "Collects stamps."}, {"line": "Porto " * 60},
     {"head": "likes"}, {"line": None}, {"line": ""}],
)  # fmt: skip
def test_a_line_without_support_is_dropped(change: dict[str, Any]) -> None:
    porto, nuts, _ = ids()
    good = {"head": "lasting", "by": "Bob", "line": "Is allergic to nuts.", "of": [nuts]}
    bad = {"head": "lasting", "by": "Ann", "line": "Lives in Porto.", "of": [porto]} | change
    (line,) = answered(json.dumps({"profile": [bad, good]}))
    assert line.text == "Is allergic to nuts. (2024-05-02)"


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "{", '{"profile": 3}', "[]"])
def test_an_unusable_answer_has_no_lines(text: str) -> None:
    assert answered(text) == []


def test_a_refused_request_is_raised() -> None:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        raise InvalidModelOutput("no model")

    with pytest.raises(InvalidModelOutput):
        asyncio.run(LiteLLMProfiler().lines(SAID, ask))
