"""Parsing of the items in a model answer."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import InvalidModelOutput
from zettel.llm.answer_parsing import items

ITEMS: list[dict[str, Any]] = [
    {"id": "a1", "context": "Ida keeps bees [and says so].", "keywords": ["bees", "honey"], "facts": []},
    {"id": "b2", "context": 'She says "buzz" {often}.', "keywords": ["buzz"], "facts": ["Ida has bees."]},
    {"id": "c3", "context": "Ötzi fror.", "keywords": ["Eis"], "facts": []},
]
WHOLE = json.dumps({"notes": ITEMS, "summary": "Bees."}, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        json.dumps(ITEMS),
        f"```json\n{WHOLE}\n```",
        f"Here you are:\n```\n{WHOLE}\n```\nAnything else?",
        f"Sure [1], the notes are {WHOLE} as you asked {{hopefully}}.",
        f"<think>Is it {{\"id\": 7}}? Yes.</think>\n{WHOLE}",
        "\n".join(json.dumps(item) for item in ITEMS),
        WHOLE.replace('"id"', "id").replace("}, {", "} {"),
        WHOLE.replace("]}, {", "],}, {"),
        f"```json\n{WHOLE}",
        WHOLE[:-2],
    ],
    ids=[
        "object", "list", "fence", "fence and chatter", "chatter", "thought", "lines", "bare keys", "trailing commas",
        "open fence", "open object",
    ],
)  # fmt: skip
def test_items_are_found_within_other_text(text: str) -> None:
    assert items(text) == ITEMS


def test_a_single_item_is_a_list() -> None:
    assert items(json.dumps(ITEMS[0])) == ITEMS[:1]
    assert items(json.dumps({"notes": []})) == []
    assert items(json.dumps({"notes": [], "summary": ""})) == []
    assert items("{}") == []
    assert items("[]") == []


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "text",
    ["", "  ", "null", "17", '"bees"', "I would rather not.", "[see above]", "[" * 50_000, '{"' * 9_000],
    ids=lambda text: text[:12],
)
def test_an_answer_without_json_raises(text: str) -> None:
    with pytest.raises(InvalidModelOutput) as raised:
        items(text)
    assert "bees" not in str(raised.value)


@pytest.mark.parametrize("text", ['{"notes": [', '{"notes": [{"id": "a', "[[", "[{"])
def test_an_answer_cut_before_its_first_item_raises(text: str) -> None:
    with pytest.raises(InvalidModelOutput):
        items(text, cut=True)


def test_errors_do_not_quote_unreadable_answers() -> None:
    with pytest.raises(InvalidModelOutput) as raised:
        items("the secret of the bees")
    assert "secret" not in str(raised.value)


@given(st.integers(0, len(WHOLE)))
def test_a_cut_answer_loses_only_its_end(length: int) -> None:
    try:
        parsed = items(WHOLE[:length], cut=True)
    except InvalidModelOutput:
        parsed = []
    assert parsed == ITEMS[: len(parsed)]  # never a partial item
    complete = WHOLE[:length].count("]}")  # the end of each item
    assert len(parsed) >= min(complete, len(ITEMS)) - 1


def test_an_answer_that_ends_at_its_limit_is_complete() -> None:
    assert items(WHOLE, cut=True) == ITEMS


@given(st.text(alphabet='{}[]",:ab1 \\\n', max_size=40))
def test_any_text_gives_items_or_one_clear_error(text: str) -> None:
    with suppress(InvalidModelOutput):
        assert isinstance(items(text), list)
