"""WhatsApp text exports: dates in many languages, messages, and system lines."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from zettel.model import Event
from zettel.transcripts import Rejected, detect
from zettel.transcripts.formats import whatsapp
from zettel.transcripts.formats.whatsapp_dates import DateOrder, stamp

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
UTC = timezone.utc


def read(path: Path) -> list[Event]:
    records = list(whatsapp.read(path))
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def chat(tmp_path: Path, *lines: str, name: str = "chat.txt") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("written", "order"),
    [
        ("31.12.23, 21:05", "dmy"),
        ("31/12/2023, 21:05:00", "dmy"),
        ("31/12/2023 21:05", "dmy"),
        ("31-12-2023 21:05", "dmy"),
        ("12/31/23, 9:05 PM", "mdy"),
        ("12/31/23, 9:05\u202fPM", "mdy"),
        ("31/12/23, 9:05 p.\u00a0m.", "dmy"),
        ("31/12/23, 9:05 pm", "dmy"),
        ("2023-12-31, 9:05 p.m.", "ymd"),
        ("2023/12/31 下午9:05", "ymd"),
        ("2023/12/31 晚上9:05", "ymd"),
        ("2023. 12. 31. 오후 9:05", "ymd"),
        ("2023년 12월 31일 오후 9:05", "ymd"),
        ("2023年12月31日 21:05", "ymd"),
        ("31.12.2023 klo 21.05", "dmy"),
        ("31.12.23 г., 21:05 ч.", "dmy"),
        ("\u200f٣١\u200f/١٢\u200f/٢٠٢٣، ٩:٠٥ م", "dmy"),
        ("31/12/2566 21:05", "dmy"),
        ("31/12/66 21:05:00", "dmy"),
        ("31/12/23, 9:05 μ.μ.", "dmy"),
    ],
)
def test_stamps_of_many_languages_are_parsed(written: str, order: str) -> None:
    parsed = stamp(written)
    assert parsed is not None
    assert parsed.moment(order, UTC) == datetime(2023, 12, 31, 21, 5, tzinfo=UTC)
    date_order = DateOrder()
    date_order.see(parsed)
    assert date_order.best() == order


@pytest.mark.parametrize(
    ("written", "hour"), [("1/2/23, 12:10 AM", 0), ("1/2/23, 12:10 PM", 12), ("2023/1/2 中午11:10", 11)]
)
def test_midnight_and_noon_are_parsed(written: str, hour: int) -> None:
    parsed = stamp(written)
    assert parsed is not None
    assert parsed.hour == hour


@pytest.mark.parametrize(
    ("dates", "order"),
    [
        (["01/02/23, 08:00", "13/02/23, 08:00"], "dmy"),
        (["01/02/23, 08:00", "01/13/23, 08:00"], "mdy"),
        (["11/01/23, 08:00", "01/02/23, 08:00", "02/03/23, 08:00"], "dmy"),  # otherwise time runs backwards
        (["1/3/23, 08:00", "2/3/23, 08:00", "3/3/23, 08:00"], "dmy"),  # three days, or the third of three months
        (["3/1/23, 08:00", "3/2/23, 08:00", "3/3/23, 08:00"], "mdy"),
        (["1/2/23, 8:00 AM"], "mdy"),
        (["01/02/23, 8:00 am"], "dmy"),
        (["24/03/08, 08:00"], "ymd"),  # 2008 is before WhatsApp began
        (["23/12/30, 08:00", "23/12/31, 08:00", "24/01/01, 08:00"], "ymd"),
    ],
)
def test_the_whole_file_decides_whether_the_day_is_first(dates: list[str], order: str) -> None:
    date_order = DateOrder()
    for date in dates:
        parsed = stamp(date)
        assert parsed is not None
        date_order.see(parsed)
    assert date_order.best() == order


@pytest.mark.parametrize(
    ("poll", "expected"),
    [
        ("POLL:\nLunch?\nOPTION: Pie (2 votes)\nOPTION: Soup (1 vote)", "POLL:\nLunch?\nOPTION: Pie\nOPTION: Soup"),
        ("UMFRAGE:\nWann?\nOPTION: 9 (0 Stimmen)\nOPTION: 10 (2 Stimmen)\n", "UMFRAGE:\nWann?\nOPTION: 9\nOPTION: 10"),
        ("List:\nFor Ann\nApples: red (2 kilos)\nApples: green (1 kilo)", None),
        ("POLL:\nLunch?\nPie (2 votes)", None),
    ],
)
def test_a_poll_keeps_its_id_after_votes(tmp_path: Path, poll: str, expected: str | None) -> None:
    path = tmp_path / "WhatsApp Chat with Ann.txt"
    path.write_text(f"31/12/2023, 21:05 - Ann: {poll}\n", encoding="utf-8")
    assert [event.content for event in read(path)] == [expected or poll]


def test_years_of_other_calendars_are_not_converted(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat with Ann.txt"
    path.write_text("۱۴۰۲/۱۰/۱۰، ۲۱:۰۵ - Ann: Hm.\n2023/12/31, 21:05 - Ann: Yes.\n", encoding="utf-8")
    refused, event = whatsapp.read(path)
    assert isinstance(refused, Rejected)
    assert refused.reason == "the date does not exist since WhatsApp began, in the file's order ymd"
    assert isinstance(event, Event)


def test_android_exports_are_read() -> None:
    events = read(SAMPLES / "WhatsApp Chat mit Winterlager.txt")
    assert [(event.speaker, event.content) for event in events] == [
        ("Marit", "Wer hat den Schlüssel zur Halle?"),
        ("Jonas Q.", "Ich 🙋‍♂️\nAber er liegt im Auto.\n\nUnd das Auto steht in Kiel: seit Montag."),
        ("Marit", "So sieht das Segel aus.\n[file: IMG-20231231-WA0003.jpg]"),
        ("Jonas Q.", "Ich komme um 9: pünktlich!"),
        ("Jonas Q.", "ok"),
        ("Jonas Q.", "ok"),
        ("+49 170 5550123", "Frohes Neues!"),
        ("Sara", "5 < 7, <b>oder</b>?"),
    ]
    assert events[0].occurred_at == datetime(2023, 12, 31, 21, 5, tzinfo=UTC)
    assert events[0].metadata == {"channel": "Winterlager"}
    assert events[2].metadata == {"channel": "Winterlager", "attachments": ["IMG-20231231-WA0003.jpg"]}
    assert events[3].metadata == {"channel": "Winterlager", "edited": True}
    assert {(event.external_id, event.session) for event in events} == {(None, None)}
    assert [event.source.position for event in events if event.source][:3] == ["3", "4", "8"]


def test_iphone_zips_are_read() -> None:
    events = read(SAMPLES / "WhatsApp Chat - Rowing Club.zip")
    assert [(event.speaker, event.content) for event in events] == [
        ("Theo", "Are we on for Sunday?"),
        ("Ines Vale", "Yes! Bring @Theo's spare oar\nand a towel."),
        ("Ines Vale", "The plan\n[file: 00000004-plan.pdf]"),
        ("+1 (555) 010-0199", "שלום! see you at 12:00"),
        ("Theo", "Moved to ten."),
        ("Ines Vale", "POLL:\nWhich boat?\nOPTION: The red one\nOPTION: The old one"),
        ("Theo", "Location: https://maps.example.org/?q=54.3,10.1"),
    ]
    assert events[0].occurred_at == datetime(2024, 3, 1, 21, 5, 9, tzinfo=UTC)
    assert events[3].occurred_at == datetime(2024, 3, 2, tzinfo=UTC)
    assert {event.metadata["channel"] for event in events} == {"Rowing Club"}


def test_a_folder_yields_the_events_of_its_zip(tmp_path: Path) -> None:
    folder = tmp_path / "WhatsApp Chat - Ann (1)"
    folder.mkdir()
    chat(folder, "[2023-12-31, 9:05:09 PM] Ann: A quiet night", name="_chat.txt")
    assert whatsapp.sniff(folder, b"")
    (event,) = read(folder)
    assert (event.content, event.metadata["channel"]) == ("A quiet night", "Ann")


def test_a_folder_with_other_files_is_not_a_chat(tmp_path: Path) -> None:
    chat(tmp_path, "31/12/2023, 21:05 - Ann: hi", name="WhatsApp Chat with Ann.txt")
    (tmp_path / "IMG-20231231-WA0003.jpg").touch()
    assert whatsapp.sniff(tmp_path, b"")
    (tmp_path / "mail.mbox").touch()
    assert not whatsapp.sniff(tmp_path, b"")


def test_files_named_in_the_chat_are_attachments_and_others_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "WhatsApp Chat with Ann"
    folder.mkdir()
    chat(folder, "31/12/2023, 21:05 - Ann: trip.csv (file attached)", "See yard.csv", name="WhatsApp Chat with Ann.txt")
    for name in (
        "trip.csv",
        "yard.csv",
        "IMG-20231231-WA0003.jpg",
        "00000012-PHOTO-2024-01-01.jpg",
        "20240101-talk.txt",
    ):
        (folder / name).touch()
    assert whatsapp.sniff(folder, b"")
    assert [file.name for file in whatsapp.extra_files(folder)] == ["20240101-talk.txt", "yard.csv"]


def test_times_are_in_the_zone_of_the_import(tmp_path: Path) -> None:
    path = chat(tmp_path, "31/07/2023, 09:00 - Ann: hi")
    (event,) = whatsapp.read(path, ZoneInfo("Europe/Oslo"))
    assert isinstance(event, Event)
    assert event.occurred_at == datetime(2023, 7, 31, 7, tzinfo=UTC)


def test_other_line_formats_are_read(tmp_path: Path) -> None:
    korean = chat(tmp_path, "2023년 12월 31일 오후 9:05, 지우 : 안녕", name="a.txt")
    old = chat(tmp_path, "31/12/2016, 21:05:09: Ann: hi: you", name="b.txt")
    assert [(event.speaker, event.content) for path in (korean, old) for event in read(path)] == [
        ("지우", "안녕"), ("Ann", "hi: you"),
    ]  # fmt: skip


def test_a_pasted_chat_of_another_format_belongs_to_the_message(tmp_path: Path) -> None:
    path = chat(
        tmp_path,
        "31/12/2023, 21:05 - Ann: She wrote:",
        "[30/12/2023, 20:00:00] Eva: No.",
        "31/12/2023, 21:06 - Ben: Oh",
    )
    assert [event.content for event in read(path)] == ["She wrote:\n[30/12/2023, 20:00:00] Eva: No.", "Oh"]


def test_unreadable_lines_are_rejected_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_bytes(
        b"torn off\n31/12/2023, 21:05 - Ann: a\n\xff\n31/02/2023, 21:05 - Ann: b\n31/12/2023, 21:07 - Ann: \0\n"
    )
    records = list(whatsapp.read(path))
    assert [(record.position, record.reason[:21]) for record in records if isinstance(record, Rejected)] == [
        ("1", "no date: a message be"), ("3", "byte 0 of the line is"),
        ("4", "the date does not exi"), ("5", "content: contains a N"),
    ]  # fmt: skip
    assert [record.content for record in records if isinstance(record, Event)] == ["a"]


def test_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_bytes("31/12/2023, 21:05 - Ann: ä\r\nö\r\n".encode("utf-16"))
    assert whatsapp.sniff(path, path.read_bytes())
    assert [event.content for event in read(path)] == ["ä\nö"]


def test_a_chat_from_standard_input_is_recognised(tmp_path: Path) -> None:
    path = chat(tmp_path, "[31.12.23, 21:05:09] Ann: hi", "[01.01.24, 00:05:09] Ben: hi", name="-")
    assert detect(path) is whatsapp
    assert [event.speaker for event in read(path)] == ["Ann", "Ben"]


@pytest.mark.parametrize(
    "text", ["[2024-05-01 09:00] Ann: hi", "[2024-05-01 09:00:10] Ann: hi", "Ann: hi", "1. one - a: b", ""]
)
def test_other_texts_are_not_recognised(tmp_path: Path, text: str) -> None:
    path = chat(tmp_path, text, name="log.txt")
    assert not whatsapp.sniff(path, path.read_bytes())
