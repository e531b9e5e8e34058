"""Message lists in the formats of OpenAI and Anthropic, as JSON and as JSON lines."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.unit.test_formats import SAMPLES
from tests.unit.test_transcripts import events, split_records, write
from zettel.errors import BadRecord
from zettel.model import Event
from zettel.transcripts import detect
from zettel.transcripts.formats import messages


def sample(name: str) -> list[Event]:
    return events(list(messages.read(SAMPLES / name)))


def test_fine_tuning_lines_are_read() -> None:
    asked, called, tide, answer, thanks, _, again, _, bird, refused, dunlin, batch = sample("messages-openai.jsonl")
    assert (asked.role, asked.content, asked.occurred_at) == ("user", "When is high water in Husum?", None)
    assert (called.content, called.role) == ("", "assistant")
    assert called.payload == {"calls": [{"tool": "tide", "input": {"harbour": "Husum"}, "id": "call_1"}]}
    assert (tide.role, tide.content, tide.metadata) == ("tool", '{"high": "14:10"}', {"call": "call_1"})
    assert answer.content == "At ten past two 🌊."
    assert {turn.session for turn in (asked, called, tide, answer)} == {asked.session}
    assert len({asked.session, thanks.session, again.session}) == 3, "conversations that begin alike stay apart"
    assert (bird.speaker, bird.role) == ("Ebba", "user")
    assert bird.content == "What bird is this?\n\u200fמה זה\n\n[image]"
    assert refused.content == "I cannot name it."
    assert dunlin.payload == {"calls": [{"tool": "note_bird", "input": "{broken"}]}
    assert (batch.session, batch.metadata) == ("request-7", {"model": "gpt-4o-mini"})
    read = sample("messages-openai.jsonl")
    assert len({event.external_id for event in read}) == len(read), "ids are unique"


@pytest.mark.parametrize("key", ["conversation_id", "thread_id", "session_id"])
def test_message_lines_are_grouped_by_conversation_id(tmp_path: Path, key: str) -> None:
    texts = [("a", "One."), ("b", "Two."), ("a", "Three."), (None, "Four."), (0, "Five."), (7, "Six.")]
    lines = [json.dumps({"role": "user", "content": text, key: id}) for id, text in texts]
    read = events(list(messages.read(write(tmp_path / "log.jsonl", "\n".join(lines)))))
    assert [event.session for event in read] == ["a", "b", "a", "log", "log/0", "log/7"]


@pytest.mark.parametrize(
    "stamp", ["2024-07-01 09:00", "2024-07-01T07:00:00Z", 1719817200, 1719817200000, 1719817200000.0, 1719817200000000]
)
def test_a_time_without_a_zone_is_in_the_zone_of_the_import(tmp_path: Path, stamp: Any) -> None:
    path = write(tmp_path / "log.jsonl", {"role": "user", "content": "Hm.", "timestamp": stamp})
    (event,) = events(list(messages.read(path, zone=ZoneInfo("Europe/Oslo"))))
    assert event.occurred_at == datetime(2024, 7, 1, 7, tzinfo=timezone.utc)


def test_items_of_openai_responses_are_read(tmp_path: Path) -> None:
    items = [
        {"role": "user", "content": "Any boats?"},
        {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "boats"}},
        {"type": "mcp_call", "id": "m", "name": "tide", "arguments": '{"at": "Husum"}', "output": "14:10"},
        {"type": "custom_tool_call", "call_id": "c", "name": "note", "input": "a sloop"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "Noted."},
        {"type": "computer_call", "call_id": "d", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "d", "output": {"type": "x", "image_url": "data:image/png,"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
    ]
    read = events(list(messages.read(write(tmp_path / "items.json", items))))
    assert [(event.speaker, event.content, (event.payload or {"calls": [None]})["calls"][0]) for event in read] == [
        ("user", "Any boats?", None),
        ("assistant", "", {"tool": "web_search", "input": {"type": "search", "query": "boats"}, "id": "ws"}),
        ("assistant", "", {"tool": "tide", "input": {"at": "Husum"}, "id": "m", "output": "14:10"}),
        ("assistant", "", {"tool": "note", "input": "a sloop", "id": "c"}),
        ("tool", "Noted.", None),
        ("assistant", "", {"tool": "computer", "input": {"type": "screenshot"}, "id": "d"}),
        ("tool", "[image]", None),
        ("assistant", "One.", None),
    ]


def test_anthropic_blocks_are_read() -> None:
    slips, looks, manual, measured, due, bought = sample("messages-anthropic.json")
    assert (slips.role, slips.metadata) == ("user", {"model": "claude-sonnet-4-5"})
    assert looks.content == "Let me look up the wear limit."
    assert looks.payload == {"calls": [{"tool": "manual", "input": {"part": "chain"}, "id": "toolu_01"}]}
    assert (manual.role, manual.content) == ("tool", "Replace at 0.75 % stretch.\n\n[image]")
    assert (measured.role, measured.content, due.role) == ("user", "I measured 0.9 %.", "assistant")
    assert bought.content == "[file: receipt.txt]\nChain 28.00\n\nBought one."


def test_a_thread_keeps_its_ids_and_times() -> None:
    plan, beans = sample("messages-thread.jsonl")
    assert (plan.external_id, plan.session) == ("thread_k9/msg_a1", "thread_k9")
    assert (plan.content, beans.role) == ("Plan my garden.", "assistant")
    assert beans.occurred_at == datetime(2024, 5, 1, 8, 0, 7, tzinfo=timezone.utc)


def test_one_message_per_line_is_read() -> None:
    read = sample("messages-lines.jsonl")
    assert [(event.speaker, event.content) for event in read] == [
        ("user", "Good morning"), ("assistant", ""), ("tool", "07:12"), ("assistant", "Good morning! It is 07:12."),
        ("user", "Good morning"),
    ]  # fmt: skip
    assert {event.session for event in read} == {"messages-lines"}
    assert read[0].external_id != read[4].external_id


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": "Hm."}],
        [[{"role": "user", "content": "Hm."}]],
        [{"messages": [{"role": "user", "content": "Hm."}]}],
        {"messages": [{"role": "user", "content": "Hm."}]},
        [{"type": "human", "data": {"content": "Hm."}}],
    ],
)
def test_arrays_and_objects_are_read(tmp_path: Path, value: Any) -> None:
    path = write(tmp_path / "talk.json", value)
    assert messages.sniff(path, path.read_bytes()) or "type" in value[0]
    (event,) = events(list(messages.read(path)))
    assert (event.speaker, event.content) == ("user", "Hm.")


@pytest.mark.parametrize(
    "line",
    [
        {"content": "An event.", "speaker": "Ann"},
        {"content": "An event.", "role": "user", "occurred_at": "2024-05-01"},
        {"id": "e", "role": "user", "content": "An event."},
        {"event_id": "e_1", "role": "user", "content": "An event.", "metadata": {}},
    ],
)
def test_exported_events_are_not_message_lists(tmp_path: Path, line: dict[str, Any]) -> None:
    assert detect(write(tmp_path / "events.jsonl", json.dumps(line) + "\n")).name == "jsonl"


def test_a_conversation_longer_than_the_head_is_recognised(tmp_path: Path) -> None:
    long = [{"role": "user", "content": "word " * 30_000}]
    assert detect(write(tmp_path / "a.jsonl", json.dumps({"messages": long}) + "\n")).name == "messages"
    assert detect(write(tmp_path / "b.json", json.dumps(long, indent=1))).name == "messages"


def test_a_longer_conversation_adds_only_its_new_messages(tmp_path: Path) -> None:
    path = SAMPLES / "messages-openai.jsonl"
    lines = path.read_text("utf-8").splitlines()
    first = json.loads(lines[0])
    first["messages"].append({"role": "user", "content": "And low water?"})
    later = write(tmp_path / path.name, "\n".join([lines[4], json.dumps(first), *lines[1:4]]))
    known = {event.external_id for event in sample(path.name)}
    assert [event.content for event in events(list(messages.read(later))) if event.external_id not in known] == [
        "And low water?"
    ]


def test_invalid_lines_and_messages_are_rejected(tmp_path: Path) -> None:
    bad = [
        "{nonsense}",
        "7",
        '{"messages": 7}',
        '{"messages": [8, {"role": "user", "content": "Hm.", "created_at": "soon"}]}',
        '{"messages": [{"role": "user", "content": "x\\u0000"}]}',
        "[" * 100_000,
    ]
    good = '{"messages": [{"role": "user", "content": "Well."}]}'
    accepted, rejected = split_records(list(messages.read(write(tmp_path / "a.jsonl", "\n".join([*bad, good])))))
    assert [event.content for event in accepted] == ["Well."]
    assert [record.position for record in rejected] == ["1", "2", "3", "4[1]", "4[2]", "5[1]", "6"]


def test_lists_in_place_of_strings_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '[{"role": "user", "type": ["text"], "content": "Well."}]')
    assert [event.content for event in events(list(messages.read(path)))] == ["Well."]
    for data in ('{"messages": [{"role": ["user"], "content": "Well."}]}', '[{"role": {}, "content": "Well."}]'):
        path = write(tmp_path / "b.json", data)
        assert not messages.sniff(path, data.encode())


def test_a_truncated_array_raises(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.json", '[{"role": "user", "content": "One."}, {"role": "us')
    records = messages.read(path)
    assert next(records).model_dump()["content"] == "One."
    with pytest.raises(BadRecord, match=r"talk\.json:1:\d+: the JSON is truncated here"):
        next(records)
