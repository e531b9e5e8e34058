"""Python imports: sessions by gaps, import options, and the report."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel import AsyncMemory, Memory
from zettel.errors import BadRecord
from zettel.model import Event
from zettel.transcripts.options import ImportOptions, import_options
from zettel.transcripts.sessions import SessionSplitter
from zettel.transcripts.sources import TranscriptPart

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def event_at(hours: float, text: str = "Hm.", **fields: Any) -> Event:
    return Event(content=text, speaker="Ann", occurred_at=NOON + timedelta(hours=hours), **fields)


def gaps(gap: float = 6, zone: timezone = timezone.utc) -> SessionSplitter:
    return SessionSplitter(timedelta(hours=gap), "chat", zone)


def placed(events: list[Event], gap: float = 6) -> list[Event]:
    into = gaps(gap)
    return [into.assign(event) for event in events]


class TestGaps:
    def test_a_gap_ends_a_session_and_the_day_names_it(self) -> None:
        hours = [0, 6, 12.5, 14, 40]
        assert [event.session for event in placed([event_at(at) for at in hours])] == [
            "chat 2024-05-01", "chat 2024-05-01", "chat 2024-05-02", "chat 2024-05-02", "chat 2024-05-03",
        ]  # fmt: skip

    def test_several_sessions_of_a_day_are_numbered(self) -> None:
        events = placed([event_at(0), event_at(3), event_at(6)], gap=2)
        assert [event.session for event in events] == ["chat 2024-05-01", "chat 2024-05-01/2", "chat 2024-05-01/3"]

    def test_the_day_is_in_the_given_time_zone(self) -> None:
        assert gaps(zone=timezone(timedelta(hours=13))).assign(event_at(0)).session == "chat 2024-05-02"

    def test_channels_have_separate_sessions(self) -> None:
        yard, shed = ({"server": "Boats", "channel": name} for name in ("yard", "shed"))
        events = placed([event_at(0, metadata=yard), event_at(1, metadata=shed), event_at(2, metadata=yard)])
        assert [event.session for event in events] == [
            "Boats/yard 2024-05-01", "Boats/shed 2024-05-01", "Boats/yard 2024-05-01",
        ]  # fmt: skip

    def test_events_with_a_session_or_without_a_time_are_unchanged(self) -> None:
        own, undated = event_at(0, session="thread"), Event(content="Once.")
        assert placed([own, undated]) == [own, undated]

    def test_the_ends_of_the_calendar_are_accepted(self) -> None:
        for moment in (datetime.min, datetime.max):
            event = Event(content="Hm.", occurred_at=moment.replace(tzinfo=timezone.utc))
            for hours in (-13, 13):
                assert gaps(zone=timezone(timedelta(hours=hours))).assign(event).session is not None

    def test_an_invalid_channel_name_is_replaced_or_shortened(self) -> None:
        assert gaps().assign(event_at(0, metadata={"channel": "a\0b"})).session == "chat 2024-05-01"
        long = gaps().assign(event_at(0, metadata={"channel": "x" * 5_000})).session
        assert long is not None
        assert len(long) < 1_000

    @given(st.lists(st.integers(0, 60), min_size=2, max_size=12).map(sorted), st.data())
    def test_overlapping_exports_have_equal_ids(self, hours: list[int], data: st.DataObject) -> None:
        events = [event_at(at, str(at)) for at in dict.fromkeys(hours)]
        start = data.draw(st.integers(0, len(events) - 1))
        first, later = placed(events), placed(events[start:])
        assert [event.external_id for event in later] == [event.external_id for event in first[start:]]

    def test_overlapping_exports_have_equal_sessions(self) -> None:
        events = [event_at(at, str(at)) for at in (0, 1, 30, 31, 80)]
        first, later = placed(events), placed(events[1:])
        assert [event.session for event in later] == [event.session for event in first[1:]]

    def test_a_gap_of_zero_keeps_ids_and_adds_no_sessions(self) -> None:
        (with_gap,), (without,) = placed([event_at(0)]), placed([event_at(0)], gap=0)
        assert (without.session, without.external_id) == (None, with_gap.external_id)

    def test_equal_events_at_the_same_time_have_different_ids(self) -> None:
        first, second = placed([event_at(0), event_at(0)])
        assert first.external_id != second.external_id

    def test_a_second_download_of_a_chat_has_equal_ids(self) -> None:
        ids = {
            placed([event_at(0, metadata={"channel": name})])[0].external_id
            for name in ("Rowers", "Rowers (1)", "Rowers 2")
        }
        assert len(ids) == 1
        assert placed([event_at(0, metadata={"channel": "Sailors"})])[0].external_id not in ids

    def test_chat_formats_split_by_gaps_unless_set_otherwise(self) -> None:
        chat = SimpleNamespace(name="chat", gaps=True)
        log = SimpleNamespace(name="log")
        for format, gap, has in ((chat, None, True), (log, None, False), (log, timedelta(hours=1), True)):
            part = TranscriptPart("a.txt", format, Path("a.txt"))
            assert (SessionSplitter.for_part(part, gap, timezone.utc) is not None) is has


class TestOptions:
    def test_no_arguments_give_the_default_options(self) -> None:
        assert import_options() == ImportOptions()

    @pytest.mark.parametrize(
        ("value", "hour"),
        [("2024-05-01T12:00", 10), ("2024-05-01 12:00Z", 12), ("2024-05-01T12:00-05:00", 17), (NOON, 12),
         (NOON.replace(tzinfo=None), 10)],
    )  # fmt: skip
    def test_a_time_without_a_zone_is_in_the_zone_of_the_import(self, value: Any, hour: int) -> None:
        assert import_options(tz="Europe/Oslo", since=value).since == NOON.replace(hour=hour)


def test_events_before_an_error_in_a_file_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> Any:
        yield Event(content="Hm.", id="1")
        raise BadRecord(f"{path}:2: it breaks off")

    format = SimpleNamespace(name="broken", sniff=lambda path, head: True, read=broken)
    monkeypatch.setattr("zettel.transcripts.sources.choose", lambda path, name, called: format)
    (tmp_path / "a").write_text("")
    with Memory(":memory:") as memory:
        progress: list[tuple[int, int]] = []
        with pytest.raises(BadRecord, match="a:2: it breaks off"):
            memory.import_transcript(tmp_path / "a", on_progress=lambda *counts: progress.append(counts))
        assert memory.stats()["events"] == 1
        assert progress == [(0, 1), (1, 1)]


def test_progress_counts_skipped_events_too(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("Ann: One.\nBen: Two.\nAnn: Three.\n")
    progress: list[tuple[int, int]] = []
    with Memory(":memory:") as memory:
        report = memory.import_transcript(
            tmp_path / "chat.txt", speakers=["Ben"], on_progress=lambda *counts: progress.append(counts)
        )
    assert (report.added, report.skipped, report.speakers, report.sessions) == (1, 2, {"Ben": 1}, 1)
    assert progress == [(0, 3), (3, 3)]


def test_a_report_lists_the_first_rejected_records_and_counts_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zettel.transcripts.report.MAX_REJECTED_RECORDS", 2)
    monkeypatch.setattr("zettel.transcripts.importing.BATCH", 3)
    (tmp_path / "log.jsonl").write_text('{"content": "Snow."}\n' + '{"contents": "?"}\n' * 7)
    positions: list[str] = []
    with Memory(":memory:") as memory:
        report = memory.import_transcript(
            tmp_path / "log.jsonl", on_rejected=lambda batch: positions.extend(record.position for record in batch)
        )
    assert [record.position for record in report.rejected_records] == ["2", "3"]
    assert (report.rejected, report.files[0].rejected, report.records) == (7, 7, 8)
    assert positions == ["2", "3", "4", "5", "6", "7", "8"]


def test_async_import_matches_its_dry_run(tmp_path: Path) -> None:
    async def run() -> tuple[Any, Any]:
        async with AsyncMemory(":memory:") as memory:
            dry = await memory.import_transcript(tmp_path, dry_run=True, session_gap=1)
            return dry, await memory.import_transcript(tmp_path, session_gap=1)

    (tmp_path / "log.jsonl").write_text('{"content": "Snow.", "occurred_at": "2024-05-01T06:00Z"}\n')
    dry, done = asyncio.run(run())
    assert (dry.added, dry.sessions, dry.dry_run) == (done.added, done.sessions, True) == (1, 1, True)
    assert dry.first == dry.last == datetime(2024, 5, 1, 6, tzinfo=timezone.utc)
