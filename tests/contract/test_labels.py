"""Events with tags, importance and a pin, and messages of chat APIs, on every store."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from zettel import Memory
from zettel.errors import InvalidInput

pytestmark = pytest.mark.over_http

TIME = datetime(2024, 5, 1, 9, 1, tzinfo=timezone.utc)


def test_labels_are_set_in_the_note_once(memory: Memory) -> None:
    event: dict[str, Any] = {"id": "a", "tags": ["Home"], "importance": 0.9, "pinned": True}
    id = memory.add("Ann moved to Oslo. #move", **event)
    note = memory.get(id)
    assert {"Home", "move", "pinned"} <= set(note.tags)
    assert note.importance == 0.9
    assert memory.add("Ann moved to Oslo. #move", **event) == id
    assert memory.get(id).version == note.version, "the same labels again change nothing"
    memory.revert(id, 1)
    assert memory.get(id).importance == 0.5


@pytest.mark.parametrize("labels", [{"importance": 2}, {"tags": ["pinned"]}, {"tags": [3]}], ids=str)
def test_faulty_labels_store_nothing(memory: Memory, labels: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        memory.add("Ann moved to Oslo.", **labels)
    assert memory.list().notes == ()


def test_roles_of_other_libraries_are_stored_as_the_four_of_chats(memory: Memory) -> None:
    stored = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
    ids = memory.add_messages([{"role": role, "content": f"From {role}."} for role in stored])
    assert [memory.get(id).role for id in ids] == list(stored.values())


def test_messages_become_events_in_order(memory: Memory) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "weather"}}]}
    ids = memory.add_messages(
        [
            {"role": "user", "content": "Is it raining in Oslo?", "name": "Ann", "occurred_at": "2024-05-01T09:00Z"},
            call,
            {"role": "tool", "content": "12 degrees, rain", "tool_call_id": "c1"},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes, take an umbrella."}], "occurred_at": TIME},
        ],
        session="s",
        metadata={"app": "web"},
    )
    notes = [memory.get(id) for id in ids]
    assert [(note.speaker, note.role) for note in notes] == [
        ("Ann", "user"), ("assistant", "assistant"), ("tool", "tool"), ("assistant", "assistant"),
    ]  # fmt: skip
    assert notes[3].content == "Yes, take an umbrella."
    assert notes[3].occurred_at == TIME
    assert {note.session for note in notes} == {"s"}
    assert [note.metadata for note in notes] == [{"app": "web"}] * 4
    event = memory.get(notes[1].event_ids[0])
    assert event.payload == call  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("message", "error"),
    [("hi", r"messages\[1\] must be a dict"), ({"role": "boss", "content": "hi"}, "has the role 'boss'"),
     ({"role": "user", "content": 3}, "content of type int"), ({"role": "assistant", "content": None}, "is empty"),
     ({"role": "user", "text": "hi"}, r"messages\[1\] has the field 'text': name it content"),
     ({"role": "user", "content": "hi", "date": "2024-05-01"}, "'date': name it occurred_at"),
     ({"role": "user", "content": "hi", "ocurred_at": "2024-05-01"}, "'ocurred_at': name it occurred_at")],
)  # fmt: skip
def test_a_faulty_message_stores_nothing(memory: Memory, message: Any, error: str) -> None:
    with pytest.raises(InvalidInput, match=error):
        memory.add_messages([{"role": "user", "content": "hello"}, message])
    assert memory.list().notes == ()


def test_a_misspelt_option_of_a_context_is_named(memory: Memory) -> None:
    with pytest.raises(TypeError, match="'max_token': did you mean max_tokens"):
        memory.context("Is it raining?", max_token=100)
