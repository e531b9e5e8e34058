"""Telegram's JSON: one chat and a whole account."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from zettel.errors import BadRecord
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import telegram

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
UTC = timezone.utc


def read(path: Path) -> list[Event]:
    records = list(telegram.read(path))
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def export(tmp_path: Path, *messages: Any) -> Path:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"name": "A", "type": "personal_chat", "id": 1, "messages": messages}), encoding="utf-8")
    return path


def test_a_control_character_in_a_message_does_not_end_the_file(tmp_path: Path) -> None:
    messages = [{"id": nth, "date_unixtime": "1700000000", "from": "Ann", "text": "One\x0btwo."} for nth in (1, 2)]
    path = export(tmp_path, *messages)
    path.write_text(path.read_text("utf-8").replace(r"\u000b", r"\x0B"), "utf-8")  # as Telegram Desktop writes it
    assert [event.content for event in read(path)] == ["One\x0btwo."] * 2


def test_an_answer_to_another_chat_has_no_topic(tmp_path: Path) -> None:
    created = {"id": 1, "type": "service", "action": "topic_created", "title": "Tides"}
    reply = {"id": 2, "date_unixtime": "1700000000", "from": "Ann", "text": "Hm.", "reply_to_message_id": 1}
    same_chat, other_chat = read(export(tmp_path, created, reply, {**reply, "id": 3, "reply_to_peer_id": "channel101"}))
    assert (same_chat.session, same_chat.metadata["reply_to"]) == ("1/Tides", "1/1")
    assert (other_chat.session, other_chat.metadata["reply_to"]) == (None, "101/1")


def test_poll_texts_may_be_lists_of_fragments(tmp_path: Path) -> None:
    pieces = ["At ", {"type": "custom_emoji", "text": "9️⃣", "document_id": "1"}]
    poll = {"question": ["When", {"type": "bold", "text": "?"}], "answers": [{"text": pieces}, {"text": "Later"}]}
    (event,) = read(export(tmp_path, {"id": 1, "date_unixtime": "1700000000", "from": "Ann", "text": "", "poll": poll}))
    assert event.content == "[poll: When? At 9️⃣ / Later]"


def test_topics_with_equal_names_are_separate_sessions(tmp_path: Path) -> None:
    created = [{"id": nth, "type": "service", "action": "topic_created", "title": "Tides"} for nth in (1, 2)]
    messages = [
        {"id": nth + 2, "date_unixtime": "1700000000", "from": "Ann", "text": "Hm.", "reply_to_message_id": nth}
        for nth in (1, 2)
    ]
    events = read(export(tmp_path, *created, *messages))
    assert [(event.session, event.metadata["topic"]) for event in events] == [
        ("1/Tides", "Tides"), ("1/Tides (2)", "Tides (2)"),
    ]  # fmt: skip


def test_one_chat_is_read() -> None:
    events = read(SAMPLES / "telegram-chat.json")
    assert [(event.external_id, event.speaker, event.content) for event in events] == [
        ("4242/2", "Oda Lind", "Who paddles on Sunday? 🛶\nTide turns at noon."),
        ("4242/3", "Bo", "Me! See the map (https://maps.example.org/) or https://tides.example.org @oda!"),
        ("4242/4", "Oda Lind", "[photo]"),
        ("4242/5", "Bo", "[sticker: 👍]"),
        ("4242/6", "Bo", "The form\n[file: form.pdf]"),
        ("4242/7", "user103", "I left Telegram."),
        ("4242/8", "Bo", "[poll: Start at? 9:00 / 10:00]"),
        ("4242/9", "Oda Lind", "[place: Pier 4, Harbour Road, 59.9, 10.7]"),
        ("4242/10", "Oda Lind", "[voice message]"),
        ("4242/11", "Oda Lind", "[contact: Per +4755500100]"),
        ("4242/13", "Bo", "\u200fשלום\u200f"),
    ]
    assert events[0].occurred_at == datetime(2024, 2, 1, 10, 1, tzinfo=UTC)
    assert events[-1].occurred_at == datetime(2024, 3, 31, 1, 30, tzinfo=UTC), "the seconds count, not the clock"
    assert events[1].metadata == {"channel": "Kayaks", "reply_to": "4242/2", "edited": True}
    assert events[2].metadata["attachments"] == ["photo_1@01-02-2024_10-03-00.jpg"]
    assert events[4].metadata == {
        "channel": "Kayaks", "attachments": ["form.pdf"], "forwarded_from": "Harbour office",
    }  # fmt: skip


def test_all_chats_of_an_account_are_read() -> None:
    events = read(SAMPLES / "telegram")
    assert [(event.external_id, event.speaker, event.session, event.metadata["channel"]) for event in events] == [
        ("101/1", "Oda Lind", None, "Saved messages"),
        ("77/2", "Bo", "77/Boats", "Club"),
        ("77/3", "Oda Lind", "77/Boats", "Club"),
        ("103/9", "Gone", None, "Deleted account 103"),
        ("88/5", "News", None, "News"),
    ]
    assert events[3].metadata == {"channel": "Deleted account 103"}, "the year 1970 means no edit"


def test_times_without_a_timestamp_are_in_the_zone_of_the_import(tmp_path: Path) -> None:
    path = export(tmp_path, {"id": 1, "type": "message", "date": "2019-07-01T12:00:00", "from": "Bo", "text": "hi"})
    (event,) = telegram.read(path, ZoneInfo("Europe/Oslo"))
    assert isinstance(event, Event)
    assert event.occurred_at == datetime(2019, 7, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "message",
    [7, {"id": 1, "text": "hi"}, {"id": 1, "date": "soon", "text": "hi"}, {"date_unixtime": "1e99", "text": "x"}],
)
def test_a_bad_message_is_rejected_with_its_position(tmp_path: Path, message: Any) -> None:
    (rejected,) = telegram.read(export(tmp_path, message))
    assert isinstance(rejected, Rejected)
    assert rejected.position == "A[1]"


def test_a_truncated_file_yields_the_messages_before_the_cut(tmp_path: Path) -> None:
    text = (SAMPLES / "telegram-chat.json").read_text(encoding="utf-8")
    path = tmp_path / "result.json"
    path.write_text(text[: text.index("the map")], encoding="utf-8")
    records = telegram.read(path)
    assert isinstance(next(records), Event)
    with pytest.raises(BadRecord, match="truncated"):
        next(records)


def test_an_invalid_chat_name_is_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    chat = {
        "name": "A\0\ud800",
        "type": "personal_chat",
        "id": 1,
        "messages": [{"id": 1, "date_unixtime": "1", "text": "x"}],
    }
    path.write_text(json.dumps(chat), encoding="utf-8")
    (event,) = read(path)
    assert event.metadata == {"channel": "A\ufffd\ufffd"}
