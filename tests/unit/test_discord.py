"""Discord: files of DiscordChatExporter, and the data package."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from zettel import Memory
from zettel.errors import BadRecord
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import discord

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
UTC = timezone.utc


def read(path: Path) -> list[Event]:
    records = list(discord.read(path))
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def test_each_channel_is_a_session() -> None:
    events = [*read(SAMPLES / "discord-workshop.json"), *read(SAMPLES / "discord-thread.json")]
    assert [(event.external_id, event.speaker, event.content) for event in events] == [
        ("900200000000000002", "Ann K.", "Who has the steam box? 🔨\nI need it for ribs."),
        ("900200000000000003", "bob", "@Ann K. in the shed :plank: see #900000000000000003"),
        ("900200000000000004", "Ann K.", "[file: ribs.jpg]"),
        ("900200000000000005", "TideBot", "Low water\n04:10, 0.4 m"),
        ("900200000000000006", "bob", "[sticker: Ahoy]"),
        ("900200000000000009", "bob", "Wood is in."),
        ("900200000000000010", "Ann K.", "Oak or ash?"),
    ]
    assert events[0].occurred_at == datetime(2024, 3, 9, 23, 59, 1, 500_000, tzinfo=UTC)
    assert events[1].occurred_at == datetime(2024, 3, 10, 1, 1, tzinfo=UTC)
    where = {"channel": "Boat Builders/workshop"}
    assert events[0].metadata == where
    assert events[1].metadata == {**where, "reply_to": "900200000000000002", "edited": True}
    assert events[2].metadata == {**where, "attachments": ["ribs.jpg"]}
    assert events[5].metadata == {**where, "forwarded_from": "900200000000000999"}
    assert [event.session for event in events] == [None] * 6 + ["900000000000000003"], "a thread is a session"


def test_a_single_file_is_read() -> None:
    (event,) = read(SAMPLES / "discord.json")
    assert event.metadata == {"channel": "Direct Messages/bob"}


def test_the_data_package_is_read(tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "package"), "zip", SAMPLES / "discord-package"))
    assert discord.sniff(archive, archive.read_bytes())
    events = read(archive)
    assert [(event.external_id, event.speaker, event.content) for event in events] == [
        ("900200000000000016", "Ann K.", "[file: ribs dry.jpg]\n[file: b.png]"),
        ("900200000000000012", "Ann K.", "Found a second box @900100000000000002"),
        ("900200000000000014", "Ann K.", "hei"),
        ("900200000000000015", "Ann K.", 'two\nlines, "quoted"'),
    ]
    assert events[1].occurred_at == datetime(2024, 3, 13, 7, 30, tzinfo=UTC)
    assert events[1].metadata == {"channel": "Boat Builders/workshop"}
    assert events[2].metadata == {"channel": "Direct Message with bob#0"}


@pytest.mark.parametrize(
    "message", [7, {"id": "1", "timestamp": "soon", "content": "hi"}, {"id": "1", "content": "\0"}]
)
def test_a_bad_message_is_rejected_with_its_position(tmp_path: Path, message: Any) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"guild": {}, "channel": {}, "messages": [message]}), encoding="utf-8")
    assert discord.sniff(path, path.read_bytes())
    (rejected,) = discord.read(path)
    assert isinstance(rejected, Rejected)
    assert rejected.position == "1"


def test_a_newest_first_package_is_read_oldest_first(tmp_path: Path) -> None:
    folder = tmp_path / "p" / "messages" / "c1"
    folder.mkdir(parents=True)
    (folder / "channel.json").write_text('{"id": "1", "name": "yard"}')
    entries = [{"ID": 9 - nth, "Timestamp": f"2024-05-{day}:00", "Contents": day}
            for nth, day in enumerate(("02 00:30", "01 23:30", "01 22:10", "01 22:10"))]  # fmt: skip
    (folder / "messages.json").write_text(json.dumps(entries))
    with Memory(":memory:") as memory:
        memory.import_transcript(tmp_path / "p")
        events = memory.events("yard 2024-05-01")
    assert [(event.external_id, event.content) for event in events] == [
        ("6", "01 22:10"), ("7", "01 22:10"), ("8", "01 23:30"), ("9", "02 00:30"),
    ]  # fmt: skip


def test_a_truncated_package_is_read_up_to_its_end(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "discord-package", tmp_path / "p")
    path = tmp_path / "p" / "messages" / "c900000000000000002" / "messages.json"
    path.write_bytes(path.read_bytes()[:-40])
    records = discord.read(tmp_path / "p")
    assert [next(records).model_dump()["external_id"] for _ in range(2)] == ["900200000000000016", "900200000000000012"]
    with pytest.raises(BadRecord, match="truncated"):
        next(records)


def test_a_damaged_table_is_reported_with_its_line(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "discord-package", tmp_path / "p")
    table = tmp_path / "p" / "messages" / "c900000000000000005" / "messages.csv"
    table.write_bytes(b"ID,Timestamp,Contents\r\n1,2021-05-01 10:00:00,\xff\r\n")
    with pytest.raises(BadRecord, match=r"messages\.csv:\d+: "):
        list(discord.read(tmp_path / "p"))
