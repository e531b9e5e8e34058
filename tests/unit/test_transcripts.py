"""Transcript formats: dates, speakers, sessions, ids, positions, and rejected records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel import transcripts
from zettel.errors import BadRecord, InvalidInput, UnknownFormat
from zettel.model import Event
from zettel.transcripts import Record, Rejected, all_formats, choose, detect
from zettel.transcripts.formats import events_jsonl, locomo, plain
from zettel.transcripts.records import ContentKeys


def talk(name: str = "pond") -> dict[str, Any]:
    return {
        "sample_id": name,
        "qa": [{"question": "Who fell in?", "evidence": ["D2:1"], "category": 4}],
        "conversation": {
            "speaker_a": "Wim",
            "speaker_b": "Odd",
            "session_10": [{"speaker": "Odd", "dia_id": "D10:1", "text": "Dry again."}],
            "session_10_date_time": "12:05 am on 1 March, 2024",
            "session_2_date_time": "1:56 pm on 29 February, 2024",
            "session_2": [
                {"speaker": "Wim", "dia_id": "D2:1", "text": "I fell into the pond!"},
                {
                    "speaker": "Odd",
                    "dia_id": "D2:2",
                    "text": "Look at this.",
                    "blip_caption": "a photo of a wet dog",
                    "img_url": ["pond.jpg"],
                },
            ],
        },
    }


def write(path: Path, content: Any) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def events(records: Sequence[Record]) -> list[Event]:
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def split_records(records: Sequence[Record]) -> tuple[list[Event], list[Rejected]]:
    accepted = [record for record in records if isinstance(record, Event)]
    return accepted, [record for record in records if isinstance(record, Rejected)]


class TestLocomo:
    def test_one_conversation_is_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "talk.json", talk())
        first, second, third = events(list(locomo.read(path)))
        assert first.content == "I fell into the pond!"
        assert (first.external_id, first.speaker, first.session) == ("D2:1", "Wim", "session_2")
        assert first.occurred_at == datetime(2024, 2, 29, 13, 56, tzinfo=timezone.utc)
        assert second.occurred_at == first.occurred_at, "no minute is made up for a turn"
        assert third.occurred_at == datetime(2024, 3, 1, 0, 5, tzinfo=timezone.utc)
        assert (first.metadata, first.payload) == ({}, None)
        assert first.source is not None
        assert str(first.source) == f"{path}:session_2[1]"

    def test_a_picture_is_represented_by_its_caption(self, tmp_path: Path) -> None:
        second = events(list(locomo.read(write(tmp_path / "talk.json", talk()))))[1]
        assert second.content == "Look at this. [shares a photo of a wet dog]"
        assert second.payload == {"blip_caption": "a photo of a wet dog", "img_url": ["pond.jpg"]}

    def test_ids_of_several_conversations_differ(self, tmp_path: Path) -> None:
        read = events(list(locomo.read(write(tmp_path / "both.json", [talk("pond"), talk("lake")]))))
        assert [event.external_id for event in read[:1] + read[3:4]] == ["pond/D2:1", "lake/D2:1"]
        assert {event.session for event in read} == {
            "pond/session_2", "pond/session_10", "lake/session_2", "lake/session_10",
        }  # fmt: skip
        assert read[3].metadata == {"conversation": "lake"}

    def test_an_unreadable_date_is_rejected_and_its_turns_are_undated(self, tmp_path: Path) -> None:
        sample = talk()
        sample["conversation"]["session_2_date_time"] = "some day in May"
        accepted, rejected = split_records(list(locomo.read(write(tmp_path / "talk.json", sample))))
        assert [event.occurred_at is None for event in accepted] == [True, True, False]
        assert [(record.position, "some day in May" in record.reason) for record in rejected] == [("session_2", True)]

    @pytest.mark.parametrize("turn", [None, "text", {"speaker": "Wim", "text": 7}, {"speaker": "Wim", "text": " "}])
    def test_a_bad_turn_is_rejected_and_the_next_is_read(self, tmp_path: Path, turn: Any) -> None:
        sample = talk()
        sample["conversation"]["session_2"][0] = turn
        accepted, rejected = split_records(list(locomo.read(write(tmp_path / "talk.json", sample))))
        assert [event.external_id for event in accepted] == ["D2:2", "D10:1"]
        assert [record.position for record in rejected] == ["session_2[1]"]

    def test_truncated_json_is_reported_with_file_and_position(self, tmp_path: Path) -> None:
        text = json.dumps(talk(), indent=1)
        path = write(tmp_path / "talk.json", text[: len(text) // 2])
        with pytest.raises(BadRecord, match=r"talk\.json:\d+:\d+: ") as caught:
            list(locomo.read(path))
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("content", ["7", '["a"]', '[{"conversation": []}]', "[" * 100_000, b'{"a": "\xff"}'])
    def test_json_of_another_type_is_one_clear_error(self, tmp_path: Path, content: Any) -> None:
        with pytest.raises(BadRecord, match=r"talk\.json"):
            list(locomo.read(write(tmp_path / "talk.json", content)))


class TestJsonLines:
    def test_fields_are_read(self, tmp_path: Path) -> None:
        line = {
            "content": "Snow.", "external_id": "7", "title": "Weather", "speaker": "Odd", "role": None, "session": "s",
            "occurred_at": "2024-05-01T09:00:00+02:00", "payload": {"deep": [1]}, "metadata": {"a": 1},
            "expires_at": None,
        }  # fmt: skip
        path = write(tmp_path / "events.jsonl", json.dumps(line) + "\n")
        (event,) = events(list(events_jsonl.read(path)))
        assert event.occurred_at == datetime(2024, 5, 1, 7, tzinfo=timezone.utc)
        assert event.model_dump(exclude={"occurred_at", "source"}) == {
            key: value for key, value in line.items() if key != "occurred_at"
        }
        assert str(event.source) == f"{path}:1"

    def test_ids_are_made_only_for_events_without_id_and_time(self, tmp_path: Path) -> None:
        lines = [
            {"content": "Hm."}, {"content": "Hm."}, {"content": "Hm.", "speaker": "Odd"},
            {"content": "Hm.", "occurred_at": "2024-05-01"}, {"content": "Hm.", "id": "mine"},
        ]  # fmt: skip
        text = "\n".join(map(json.dumps, lines))
        ids = [event.external_id for event in events(list(events_jsonl.read(write(tmp_path / "a.jsonl", text))))]
        assert len(set(ids)) == 5
        assert ids[3:] == [None, "mine"]
        later = json.dumps({"content": "Before."}) + "\n" + text
        later_ids = [event.external_id for event in events(list(events_jsonl.read(write(tmp_path / "b.jsonl", later))))]
        assert later_ids[1:] == ids, "a line put in above changes no id"

    def test_bad_lines_are_rejected_by_number_and_the_rest_is_read(self, tmp_path: Path) -> None:
        lines = [
            b'\xef\xbb\xbf{"content": "one"}', b"", b"[1]", b"{nonsense}", b'{"content": "\xff"}', b'{"text": "x"}',
            b'{"content": "x", "occurred_at": "soon"}', b'{"content": ""}', b'{"content": "a\\u0000b"}',
            b'{"payload": 0}', b'{"payload": %b}' % (b"9" * 5000), b'{"payload": NaN}', b'{"content": "cut o',
        ]  # fmt: skip
        path = write(tmp_path / "events.jsonl", b"\n".join(lines))
        accepted, rejected = split_records(list(events_jsonl.read(path)))
        assert [event.content for event in accepted] == ["one", ""]
        assert [record.position for record in rejected] == ["3", "4", "5", "6", "7", "8", "9", "11", "12", "13"]
        assert all(record.file == str(path) and record.reason and "\n" not in record.reason for record in rejected)
        assert "'text'" in rejected[3].reason
        assert "occurred_at" in rejected[4].reason
        assert "truncated" in rejected[-1].reason

    def test_export_only_fields_are_ignored(self, tmp_path: Path) -> None:
        source = {"file": "old.txt", "position": "3"}
        line = {"content": "a", "event_id": "e_1", "seq": 1, "recorded_at": "2024-05-01", "source": source, "notes": []}
        (event,) = events(list(events_jsonl.read(write(tmp_path / "a.jsonl", json.dumps(line)))))
        assert str(event.source) == "old.txt:3"

    @given(st.lists(st.binary(max_size=40), max_size=6))
    def test_any_bytes_give_records_and_no_error(self, lines: list[bytes]) -> None:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            for reader in (events_jsonl, plain):
                with suppress(BadRecord):  # text that only begins like UTF-16
                    for record in reader.read(write(Path(folder) / "x", b"\n".join(lines))):
                        assert isinstance(record, (Event, Rejected))

    def test_utf_16_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "wide.jsonl"
        path.write_text('{"content": "Brünn"}\n{"content": "🍐"}\n', encoding="utf-16")
        assert detect(path) is events_jsonl
        assert [event.content for event in events(list(events_jsonl.read(path)))] == ["Brünn", "🍐"]


class TestPlain:
    TEXT = (
        "[2024-05-01 09:00] Ann Marie: Shall we?\n"
        "\n"
        "Ben: Give me ten minutes.\n"
        "  I am still at the dentist's.\n"
        "See https://example.org/a: it is long\n"
        "[2024-05-01T09:30Z] Ben: There: now.\n"
        "Ben:\n"
        "Now.\n"
    )

    def test_speakers_stamps_and_continuations_are_read(self, tmp_path: Path) -> None:
        read = events(list(plain.read(write(tmp_path / "chat.txt", self.TEXT))))
        assert [(event.speaker, event.content) for event in read] == [
            ("Ann Marie", "Shall we?"),
            ("Ben", "Give me ten minutes.\nI am still at the dentist's.\nSee https://example.org/a: it is long"),
            ("Ben", "There: now."),
            ("Ben", "Now."),
        ]
        nine = datetime(2024, 5, 1, 9, tzinfo=timezone.utc)
        assert [event.occurred_at for event in read] == [nine, None, nine.replace(minute=30), None]
        assert [event.external_id is None for event in read] == [True, False, True, False]
        assert {event.session for event in read} == {"chat"}
        assert [event.source.position for event in read if event.source] == ["1", "3", "6", "7"]

    def test_unreadable_lines_are_rejected(self, tmp_path: Path) -> None:
        text = b"A heading\nAnn: one\n\xff\n[2024-13-01] Ann: two\nAnn: three\n"
        accepted, rejected = split_records(list(plain.read(write(tmp_path / "chat.txt", text))))
        assert [event.content for event in accepted] == ["one", "three"]
        assert [record.position for record in rejected] == ["1", "3", "4"]

    @pytest.mark.parametrize("stamp", ["31.12.23, 21:05:09", "2024-13-01", "5"])
    def test_unknown_stamps_are_not_recognised(self, tmp_path: Path, stamp: str) -> None:
        path = write(tmp_path / "chat", f"[{stamp}] Ann: one\n[{stamp}] Ben: two\n")
        assert not plain.sniff(path, path.read_bytes())

    def test_windows_line_ends_are_read(self, tmp_path: Path) -> None:
        read = events(list(plain.read(write(tmp_path / "chat.txt", "Ann: one\r\n  more\r\nBen: two\r\n"))))
        assert [event.content for event in read] == ["one\nmore", "two"]


class TestChoosing:
    @pytest.mark.parametrize(
        ("name", "content", "format"),
        [
            ("talk.json", json.dumps(talk()), "locomo"),
            ("talk.txt", json.dumps([talk()], indent=2), "locomo"),
            ("a.jsonl", '{"content": "a"}\n{"content": "b"}', "jsonl"),
            ("a.log", '{"payload": 1}\n', "jsonl"),
            ("a.jsonl", '{"conte\n{"content": "b"}', "jsonl"),
            ("chat.txt", TestPlain.TEXT, "plain"),
            ("chat.md", "Ann: one", "plain"),
            ("a.json", '{"content": "hi", "session": "session_1"}\n{"content": "ho"}', "jsonl"),
            ("a.json", '{"content": "hi", "payload": {"sample_id": 7, "conversation": "c"}}', "jsonl"),
            ("a.json", '{"messages": [{"role": "user", "content": "hi"}], "session_id": "session_1"}', "messages"),
            ("a.jsonl", '{"messages": [{"role": "user", "content": "hi"}], "sample_id": "17"}\n', "messages"),
            ("a.json", '[{"role": "user", "content": "qa", "name": "evidence"}]', "messages"),
            ("a.json", '[{"role": "user", "content": "haystack_dates"}]', "messages"),
            ("a.json", '[{"role": "user", "content": "chat_messages", "uuid": "1"}]', "messages"),
            ("a.json", '{"content": "saved_messages", "metadata": {"type": "x", "messages": 2}}', "jsonl"),
            (
                "a.jsonl",
                '{"user_id": "ann", "id": "1", "created_at": "2026-01-01", "messages": [{"role": "assistant", '
                '"content": [{"type": "tool_use", "name": "memory", "input": {"command": "view"}}]}]}\n',
                "messages",
            ),
        ],
    )
    def test_each_format_is_recognised(self, tmp_path: Path, name: str, content: str, format: str) -> None:
        assert detect(write(tmp_path / name, content)).name == format

    @pytest.mark.parametrize("content", ["", "just prose, nothing else\n", b"\x00\x01\x02", '{"a": 1}', "a,b\n1,2\n"])
    def test_an_unknown_file_names_the_formats(self, tmp_path: Path, content: Any) -> None:
        with pytest.raises(UnknownFormat, match=r"locomo, .*jsonl, .*plain"):
            detect(write(tmp_path / "file", content))

    def test_an_unknown_name_names_the_formats(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownFormat, match=r"'carrier pigeon'.*locomo, .*jsonl, .*plain"):
            choose(write(tmp_path / "a.txt", "Ann: one"), "carrier pigeon")

    def test_a_missing_file_raises(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="does not exist"):
            choose(tmp_path / "missing.json")
        with pytest.raises(InvalidInput, match="is a folder"):
            choose(tmp_path)

    def test_other_packages_add_formats(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def sniff(path: Path, head: bytes) -> bool:
            return head.startswith(b"Ann:")

        theirs = SimpleNamespace(name="theirs", sniff=sniff, read=lambda path: iter([Event(content="theirs")]))
        entry = SimpleNamespace(name="theirs", load=lambda: theirs, spec=EntryPoint)
        monkeypatch.setattr(transcripts, "entry_points", lambda group: [entry])
        assert list(all_formats()) == [*transcripts.BUILT_IN, "theirs"]
        path = write(tmp_path / "chat.txt", "Ann: one")
        assert detect(path).name == "theirs"
        assert choose(path, "theirs") is theirs
        assert choose(path, "plain").name == "plain"


def test_content_keys_depend_on_all_parts() -> None:
    keys = ContentKeys()
    turns = [(session, role, text) for session in (None, "s") for role in (None, "r") for text in ("a", "b", "a")]
    unique_keys = {keys.key(*turn) for turn in turns}
    assert len(unique_keys) == 12
    assert ContentKeys().key("s", "r", "a") in unique_keys
