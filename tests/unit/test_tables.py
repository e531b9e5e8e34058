"""CSV and Parquet: recognised and given columns, dialects, times, ids, and damaged rows."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest

from zettel.errors import BadRecord, InvalidInput, MissingExtra
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import csv_table, parquet_table
from zettel.transcripts.parsing.written_times import moment

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
CET = timezone(timedelta(hours=1))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type, misc]


def table(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def split_records(path: Path, zone: tzinfo = timezone.utc, **columns: str) -> tuple[list[Event], dict[str, str]]:
    records = list(csv_table.read(path, zone, columns or None))
    rejected = {record.position: record.reason for record in records if isinstance(record, Rejected)}
    return [record for record in records if isinstance(record, Event)], rejected


class TestSamples:
    def test_a_chat_with_quoted_line_breaks_is_read(self) -> None:
        events, rejected = split_records(SAMPLES / "csv-chat.csv")
        assert [event.content for event in events] == [
            'Who has the "long" ladder?', "Behind the mill,\r\nunder the tarp.", "+1", "+1",
        ]  # fmt: skip
        assert events[0].occurred_at == utc(2024, 3, 2, 18, 15, 0, 123000)
        assert (events[0].speaker, events[0].external_id, events[0].session) == ("pelle#0", None, None)
        assert events[0].metadata == {"AuthorID": "90210", "Reactions": "👍 (2)"}
        assert str(events[2].source).endswith(":6"), "lines are counted, not rows"
        assert rejected == {"5": "the row has no content"}

    def test_tab_separated_tickets_are_read(self) -> None:
        events, rejected = split_records(SAMPLES / "csv-tickets.tsv", CET)
        assert rejected == {}
        assert [event.session for event in events] == ["T-7", "T-7", "T-8"]
        assert [event.occurred_at for event in events] == [
            utc(2024, 3, 2, 8), utc(2024, 3, 2, 9, 30), utc(2024, 3, 4, 10),
        ]  # fmt: skip
        assert events[0].content == "The lock on shed 4 sticks.\nEvery morning."
        assert events[0].metadata["priority"] == "high"

    @pytest.mark.parametrize("end", ["", "\n"])
    def test_an_unclosed_quotation_mark_is_reported_with_the_lost_lines(self, tmp_path: Path, end: str) -> None:
        rows = ["author,text", "Ann,One.", 'Ann,"Two.', "Ann,Three.", "Ann,Four."]
        read, rejected = split_records(table(tmp_path, "\n".join(rows) + end))
        assert [event.content for event in read] == ["One."]
        assert rejected == {"3": "a quotation mark is opened here and never closed: 3 lines are lost"}

    @pytest.mark.parametrize("clock", ["9:05 PM", "09:05:00\u202fpm", "21:05"])
    def test_a_separate_clock_column_may_have_twelve_hours(self, tmp_path: Path, clock: str) -> None:
        (event,), _ = split_records(table(tmp_path, f"date,time,author,text\n2024-05-01,{clock},Ann,Hm.\n"))
        assert (event.occurred_at, event.metadata) == (utc(2024, 5, 1, 21, 5), {})

    def test_semicolons_and_separate_day_and_clock_columns_are_read(self) -> None:
        events, rejected = split_records(SAMPLES / "csv-protokoll.csv", CET)
        assert [event.content for event in events] == [
            "Der Steg ist frei; wer streicht?", "Ich.", "Ohne Zeit", "Unklar",
        ]  # fmt: skip
        assert [event.occurred_at for event in events] == [
            utc(2024, 3, 2, 8), utc(2024, 3, 2, 8, 5), None, utc(2024, 3, 2, 23),
        ]  # fmt: skip
        assert [event.external_id is None for event in events] == [True, True, False, True]
        assert list(rejected) == ["7"]
        assert "'bald' is not a time" in rejected["7"]

    def test_parquet_is_read(self) -> None:
        pytest.importorskip("pyarrow")
        records = list(parquet_table.read(SAMPLES / "parquet-dock.parquet"))
        first, second, third, fourth = records
        assert isinstance(first, Event)
        assert isinstance(second, Event)
        assert isinstance(third, Rejected)
        assert isinstance(fourth, Event)
        assert (first.content, first.speaker, first.session) == ("The crane is stuck.", "Yrsa", "dock")
        assert first.occurred_at == utc(2024, 3, 2, 18, 55)
        assert first.metadata == {"score": 0.5, "day": "2024-03-02"}
        assert first.payload == {
            "reactions": ["+1", "eyes"], "meta": {"client": "phone", "thread": None}, "blob": "(2 bytes)",
        }  # fmt: skip
        assert second.metadata == {"day": "2024-03-02"}, "NaN is an empty cell"
        assert (third.position, third.reason) == ("row 3", "the row has no content")
        assert [event.external_id for event in (first, second, fourth)] == [
            "m-000000000000000001",
            "m-000000000000000002",
            None,
        ]


class TestCsv:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_csv_dialects_are_detected(self, tmp_path: Path, delimiter: str, encoding: str, end: str) -> None:
        rows = [["Author", "Created At", "Message"], ["Ärna", "2024-03-02T09:00Z", '"a ""b"" c"']]
        path = table(tmp_path, (end.join(map(delimiter.join, rows)) + end).encode(encoding))
        assert csv_table.sniff(path, path.read_bytes())
        (event,), rejected = split_records(path)
        assert (event.speaker, event.occurred_at, event.content) == ("Ärna", utc(2024, 3, 2, 9), 'a "b" c')
        assert rejected == {}

    @pytest.mark.parametrize(
        "head",
        ["content\nhi", "a,b\n1,2", "content,metadata\n", '{"content": "a", "speaker": "b"}',
         "Ann: text, message, author", "", "\0content,role", "Dear author, the text, and the time,"],
    )  # fmt: skip
    def test_other_files_are_not_recognised(self, tmp_path: Path, head: str) -> None:
        assert not csv_table.sniff(tmp_path / "x.csv", head.encode())

    def test_columns_can_be_given(self, tmp_path: Path) -> None:
        path = table(tmp_path, "Nachricht;Von;Wann;text\nHallo;Bo;1.2.2024;x\n")
        (event,), _ = split_records(path, content="Nachricht", speaker="Von", occurred_at="Wann")
        assert (event.content, event.speaker, event.occurred_at) == ("Hallo", "Bo", utc(2024, 2, 1))
        assert event.metadata == {"text": "x"}

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"content": "Nothing"}, "unknown column 'Nothing' for content: use one of a, b"),
            ({"mood": "a"}, "unknown field 'mood': use one of content, speaker"),
            ({}, "no column contains the content"),
        ],
    )
    def test_missing_columns_raise(self, tmp_path: Path, columns: dict[str, str], message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            split_records(table(tmp_path, "a,b\n1,2\n"), **columns)

    def test_ids_come_from_the_id_column_or_the_content(self, tmp_path: Path) -> None:
        text = "id,time,thread,content\n1,2024-03-02,t,a\n1,2024-03-03,t,b\n2,,t,c\n3,,,d\n0123456789abcdef,,,e\n"
        events, _ = split_records(table(tmp_path, text))
        assert [event.external_id for event in events] == [
            "1@2024-03-02T00:00:00+00:00", "1@2024-03-03T00:00:00+00:00", "t/2", "table/3", "0123456789abcdef",
        ]  # fmt: skip

    def test_damaged_rows_are_rejected_and_the_next_is_read(self, tmp_path: Path) -> None:
        lines = [
            b"speaker,content,time", b"a,one,2024-03-02", b'a,"two" or so,', b"a,three,2024-03-02,more", b"a,\xff,",
            b"a,nul\0,", b"a,five,,,,", b"", b",,", b"a," + b"x" * 1_100_000 + b",", b"a,six,", b'a,"never closed,',
        ]  # fmt: skip
        events, rejected = split_records(table(tmp_path, b"\n".join(lines) + b"\n"))
        assert [event.content for event in events] == ["one", "five", "six"]
        assert list(rejected) == ["3", "4", "5", "6", "10", "12"]
        assert rejected["5"] == "the row is not UTF-8"
        assert "longer than" in rejected["10"]

    def test_truncated_utf16_is_rejected(self, tmp_path: Path) -> None:
        data = "speaker,content\na,b\n".encode("utf-16")
        with pytest.raises(BadRecord, match=r"table\.csv:\d: the text is not valid UTF-16"):
            split_records(table(tmp_path, data + b"x"))

    def test_values_outside_the_limits_of_a_field_are_rejected(self, tmp_path: Path) -> None:
        (event,), _ = split_records(table(tmp_path, f"content,speaker,a,b,a\nx,y,1,{'z' * 301},2\n"))
        assert (event.metadata, event.payload) == ({"a": "1"}, {"b": "z" * 301})


class TestParquet:
    def test_without_pyarrow_the_error_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtra, match=r'pip install "zettel-graph\[parquet\]"'):
            list(parquet_table.read(SAMPLES / "parquet-dock.parquet"))

    def test_a_truncated_file_raises(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow")
        data = (SAMPLES / "parquet-dock.parquet").read_bytes()
        with pytest.raises(BadRecord, match=r"table\.parquet"):
            list(parquet_table.read(table(tmp_path, data[:-9], "table.parquet")))

    def test_a_row_outside_the_calendar_is_rejected(self, tmp_path: Path) -> None:
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        times = arrow.array([2**62, 1_709_405_700_000_000], arrow.timestamp("us"))
        path = tmp_path / "table.parquet"
        parquet.write_table(arrow.table({"time": times, "text": ["a", "b"], "__index_level_0__": [0, 1]}), path)
        rejected, event = parquet_table.read(path)
        assert isinstance(rejected, Rejected)
        assert "cannot be read" in rejected.reason
        assert isinstance(event, Event)
        assert (event.occurred_at, event.metadata) == (utc(2024, 3, 2, 18, 55), {})


NINE = utc(2024, 5, 1, 9)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-05-01T09:00:00Z", NINE), ("2024-05-01T11:00:00+0200", NINE), ("2024-05-01 11:00:00 +0200", NINE),
        ("2024-05-01 09:00:00 UTC", NINE), ("2024-05-01 09:00:00+00", NINE), ("2024/05/01 10:00", NINE),
        ("2024-05-01T11:00:00.1234567+02:00", NINE.replace(microsecond=123456)), ("202405011000", NINE),
        (202405011000, NINE), ("20240501100000", NINE), ("1.5.2024 10:00", NINE), ("01.05.2024, 10:00:00", NINE),
        ("Wed, 01 May 2024 11:00:00 +0200", NINE), ("1714554000", NINE), (1714554000.0, NINE),
        ("1714554000.5", NINE.replace(microsecond=500000)), (1714554000123, NINE.replace(microsecond=123000)),
        (1714554000123456, NINE.replace(microsecond=123456)), (1714554000123456789, NINE.replace(microsecond=123456)),
        (datetime(2024, 5, 1, 10), NINE), ("2024-05-01", utc(2024, 4, 30, 23)), (NINE.date(), utc(2024, 4, 30, 23)),
        ("May 1, 2024 10:00 AM", NINE), ("2024-05-01 10:00\u202fa.m.", NINE), ("1.5.2024 9:00 PM", utc(2024, 5, 1, 20)),
        ("1 May 2024 12:30 AM", utc(2024, 4, 30, 23, 30)), ("1 May 2024 12:30 pm", utc(2024, 5, 1, 11, 30)),
        ("1 May 2024 13:00 PM", utc(2024, 5, 1, 12)), ("2024-05-01 9:05", utc(2024, 5, 1, 8, 5)),
        ("Wed May 01 2024 11:00:00 GMT+0200 (Central European Summer Time)", NINE),
        ("Wed, 01 May 2024 09:00:00 -0000 (UTC)", NINE), ("Wed May 01 2024 09:00:00 GMT-0000 (UTC)", NINE),
        ("Wed, 01 May 2024 11:00:00 CEST", None), ("Wed May  1 05:00:00 EDT 2024", NINE),
        ("1/5/2024 9:00 PM", None),
        ("1/5/2024", None), ("31.02.2024", None), ("2024-13-01", None), ("20241301", None), ("0", None), (12, None),
        ("soon", None), ("", None), (None, None), (True, None), (-1, None), (10**30, None), (float("nan"), None),
        (float("inf"), None), ("9999-12-31T23:59-05:00", None), ("٢٠٢٤-٠٥-٠١", None), ("9" * 5000, None), ([], None),
    ],
)  # fmt: skip
def test_written_times_are_parsed(written: Any, expected: datetime | None) -> None:
    assert moment(written, CET) == expected
