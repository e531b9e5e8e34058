"""Conversations as text: their new turns, the question, and the place of recalled notes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zettel.integrations.conversation_turns import HEAD, MessageText, message_text, text_of, with_memory
from zettel.integrations.conversation_turns import _new_user_messages as last
from zettel.integrations.conversation_turns import _question as question

USER, SYSTEM = {"role": "user", "content": "Hello?"}, {"role": "system", "content": "Be kind."}
RECALLED = f"{HEAD}\n\n- It rains."


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([USER], [{"role": "system", "content": RECALLED}, USER]),
        ([], [{"role": "system", "content": RECALLED}]),
        ([SYSTEM, USER], [{"role": "system", "content": f"Be kind.\n\n{RECALLED}"}, USER]),
        ([SYSTEM | {"role": "developer", "name": "x"}],
         [{"role": "developer", "name": "x", "content": f"Be kind.\n\n{RECALLED}"}]),
        ([SYSTEM | {"content": [{"type": "text", "text": "A"}]}],
         [SYSTEM | {"content": [{"type": "text", "text": "A"}, {"type": "text", "text": RECALLED}]}]),
        ([SYSTEM | {"content": None}], [SYSTEM | {"content": f"\n\n{RECALLED}"}]),
    ],
)  # fmt: skip
def test_recalled_notes_form_one_system_message(before: list[Any], after: list[Any]) -> None:
    unchanged = [dict(message) for message in before]
    assert with_memory(before, "- It rains.") == after
    assert with_memory(before, "") == before == unchanged


def test_messages_become_text() -> None:
    parts = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {}}, SimpleNamespace(text="here")]
    assert message_text({"role": "user", "content": parts, "name": "Ida"}) == ("user", "Look\nhere", "Ida")
    assert message_text(SimpleNamespace(role="assistant", content=None)) == ("assistant", "", None)
    assert message_text(7) == ("", "", None)
    assert message_text({"content": "\0a\ud83d\ude00 \udc00", "name": "\0"}) == ("", "a\U0001f600 \ufffd", None)
    assert [len(message_text({"content": sign * 999_999}).text.encode()) for sign in "aé"] == [999_999, 1_000_000]
    assert [text_of(odd) for odd in (None, 7, [None, "x"], [{"text": 7}])] == [""] * 4


@pytest.mark.parametrize(
    ("roles", "new", "question_text"),
    [
        ("uu", "01", "01"),
        ("suau", "3", "3"),
        ("suauu", "34", "34"),
        ("uat", "", "0"),  # the model called a tool
        ("uuatat", "", "01"),
        ("uauat", "", "2"),
        ("usu", "02", "02"),
        ("s", "", ""),
        ("", "", ""),
    ],
)
def test_new_turns_and_the_question_are_extracted(roles: str, new: str, question_text: str) -> None:
    names = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}
    messages = [MessageText(names[role], str(place), None) for place, role in enumerate(roles)]
    assert [message.text for message in last(messages)] == list(new)
    assert question(messages).split() == list(question_text)
