"""Subtitles and meeting transcripts: speakers, offsets into the recording, and dates."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from zettel.model import Event
from zettel.transcripts import Rejected, detect
from zettel.transcripts.formats import subtitles

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
UTC = timezone.utc


def read(path: Path) -> list[Event]:
    records = list(subtitles.read(path))
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_srt_is_read() -> None:
    events = read(SAMPLES / "talk.srt")
    assert [(event.content, event.metadata["offset"]) for event in events] == [
        ("The ferry to the islands leaves at nine, from the old pier.", 1.0),
        ("Remember: bring your own lunch. 🥪", 70.25),
        ("\u202bשלום\u202c", 3600.0),
    ]
    assert {(event.speaker, event.session, event.occurred_at) for event in events} == {(None, "talk", None)}
    assert len({event.external_id for event in events} - {None}) == 3, "without a time, the content identifies an event"


def test_zoom_speakers_and_dates_are_read() -> None:
    events = read(SAMPLES / "GMT20240108-090000_Recording.transcript.vtt")
    assert [(event.speaker, event.content) for event in events] == [
        ("Ann Lee", "Good morning, shall we begin?"),
        ("Ben Øst", "Yes."),
        ("Ben Øst", "The keel is laid: at last."),
    ]
    assert events[0].occurred_at == datetime(2024, 1, 8, 9, 0, 5, 120_000, tzinfo=UTC)


def test_teams_transcripts_are_read() -> None:
    events = read(SAMPLES / "teams.vtt")
    assert [(event.speaker, event.content) for event in events] == [
        ("Ann Lee", "Who has the list & the pen?"), ("Ben Øst", "I do. Both."), (None, "- no voice here"),
    ]  # fmt: skip
    first, second = read(SAMPLES / "teams.txt")
    assert (first.speaker, first.content) == ("Ann Lee", "Good morning.\nShall we begin?")
    assert first.occurred_at == datetime(2024, 1, 8, 9, 0, 5, tzinfo=UTC)
    assert (second.speaker, second.content, second.metadata["offset"]) == ("Ben Øst", "Yes.", 3607)


@pytest.mark.parametrize("between", ["\n", "</v>", "</v> ", "</v>\n"])
def test_one_subtitle_may_have_several_speakers(tmp_path: Path, between: str) -> None:
    cue = f"<v.loud Ann Lee>Is that a heron?{between}<v Ben>No,\na bittern.</v>"
    events = read(write(tmp_path / "a.vtt", f"WEBVTT\n\n00:01.000 --> 00:03.000\n{cue}\n"))
    assert [(event.speaker, event.content) for event in events] == [
        ("Ann Lee", "Is that a heron?"), ("Ben", "No, a bittern."),
    ]  # fmt: skip


def test_zoom_captions_take_the_date_from_the_folder(tmp_path: Path) -> None:
    text = (SAMPLES / "zoom-captions.txt").read_text(encoding="utf-8")
    assert [event.metadata["offset"] for event in read(SAMPLES / "zoom-captions.txt")] == [0, 20]
    folder = tmp_path / "2024-01-08 23.55.00 Launch 5550100"
    folder.mkdir()
    path = write(folder / "meeting_saved_closed_caption.txt", text)
    records = list(subtitles.read(path, ZoneInfo("Europe/Oslo")))
    assert [(record.occurred_at, record.session) for record in records if isinstance(record, Event)] == [
        (datetime(2024, 1, 8, 22, 59, 50, tzinfo=UTC), folder.name),
        (datetime(2024, 1, 8, 23, 0, 10, tzinfo=UTC), folder.name),
    ]


def test_zoom_chats_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "chat.txt",
        "09:00:12\t From Ann Lee to Everyone:\n\tHere is\n\tthe link\n"
        "09:01:00 From  Ben  to  Ann(Direct Message) : ok\n",
    )
    assert subtitles.sniff(path, path.read_bytes())
    assert [(event.speaker, event.content) for event in read(path)] == [("Ann Lee", "Here is\nthe link"), ("Ben", "ok")]


def test_old_zoom_chats_are_read(tmp_path: Path) -> None:
    text = "09:00:12\t From  Ann to Be : Here: the link\n09:01:00\t From Ben Øst : ok\n"
    path = write(tmp_path / "meeting_saved_chat.txt", text)
    assert subtitles.sniff(path, path.read_bytes())
    assert [(event.speaker, event.content) for event in read(path)] == [("Ann", "Here: the link"), ("Ben Øst", "ok")]


def test_cloud_recording_chats_are_read(tmp_path: Path) -> None:
    text = "00:05:12\tAnn Lee:\tHere: the link\nand more\n01:00:00\tBen Øst:\tok\n"
    path = write(tmp_path / "GMT20240108-090000_Recording.txt", text)
    assert subtitles.sniff(path, path.read_bytes())
    assert [(event.speaker, event.content, event.metadata["offset"]) for event in read(path)] == [
        ("Ann Lee", "Here: the link\nand more", 312), ("Ben Øst", "ok", 3600),
    ]  # fmt: skip
    assert read(path)[0].occurred_at == datetime(2024, 1, 8, 9, 5, 12, tzinfo=UTC)


def test_rolling_captions_yield_each_line_once(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.vtt",
        "WEBVTT\nKind: captions\n\n00:00:01.000 --> 00:00:02.000\n \nso<00:00:01.200><c> we</c> sail\n\n"
        "00:00:02.000 --> 00:00:02.010\nso we sail\n\n"
        "00:00:02.010 --> 00:00:04.000\nso we sail\nat<00:00:03.000><c> dawn</c>\n",
    )
    assert [event.content for event in read(path)] == ["so we sail at dawn"]


def test_long_talk_is_split_at_sentences(tmp_path: Path) -> None:
    cues = [f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{'word ' * 20}end.\n" for n in range(6)]
    events = read(write(tmp_path / "a.srt", "\n".join(cues)))
    assert [event.metadata["offset"] for event in events] == [0.0, 2.0, 4.0]
    assert all(event.content.endswith("end.") for event in events)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\n00:00:0x,000 --> 00:00:02,000\nlost\n\n2\n00:00:03,000 --> 00:00:04,000\nkept\n", ("2", "'00")),
        ("1\n00:00:03,000 --> 00:00:04,000\nkept\n\nstray\nlines\n\n", ("6", "a text without a time")),
    ],
)
def test_cues_without_a_time_are_rejected(tmp_path: Path, text: str, reason: tuple[str, str]) -> None:
    records = list(subtitles.read(write(tmp_path / "a.srt", text)))
    assert [row.content for row in records if isinstance(row, Event)] == ["kept"]
    assert [(row.position, row.reason.partition(":")[0]) for row in records if isinstance(row, Rejected)] == [reason]


def test_other_texts_are_not_recognised(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "Ann: at 9:00\nBen: yes\n")
    assert not subtitles.sniff(path, path.read_bytes())


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("01/05/2024, 09:00 - Ann: Plan:\nCheck-in  14:00\nDinner\t19:30\n02/05/2024, 09:00 - Ben: Fine\n", "whatsapp"),
        ("Ann: Plan:\nCheck-in  14:00\nDinner\t19:30\nBen: Fine\n", "plain"),
        ("Ann: One thing, at\nCheck-in  14:00\nand not before.\nBen: Fine\n", "plain"),
        ("Sync: boats\nJanuary 8, 2024, 9:00AM\n35m 12s\n\nAnn Lee   0:05\nGood morning.\n", "subtitles"),
        ("Ann Lee   0:05\nBen Øst   0:07\nRemember: at nine.\n", "subtitles"),
    ],
)
def test_a_chat_with_a_timetable_is_not_a_meeting(tmp_path: Path, text: str, format: str) -> None:
    assert detect(write(tmp_path / "trip.txt", text)).name == format


def test_a_timetable_is_not_a_meeting(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "Check-in  14:00\nDinner\t19:30\n")
    assert not subtitles.sniff(path, path.read_bytes())
