"""Slack exports: names, threads, edits, readable text, and skipped messages."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import slack
from zettel.transcripts.formats.slack_text import readable, text_of

SAMPLE = Path(__file__).parents[1] / "data" / "transcripts" / "slack"


def read(path: Path) -> list[Event]:
    records = list(slack.read(path))
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def test_edits_and_deletions_on_later_days_are_applied(tmp_path: Path) -> None:
    def message(nth: int, text: str, **more: Any) -> dict[str, Any]:
        return {"type": "message", "user": "U1", "text": text, "ts": f"170470{nth}000.000100", **more}

    def change(**more: Any) -> dict[str, Any]:
        return {"type": "message", "subtype": "message_changed", "hidden": True, "ts": "1704900000.000100", **more}

    days = {
        "2024-01-08": [message(nth, f"Said {nth}.") for nth in (1, 2, 3, 4)],
        "2024-01-09": [
            change(message=message(1, "First mended.")),
            change(subtype="message_deleted", deleted_ts=message(2, "")["ts"]),
            change(message=message(3, "This message was deleted.", subtype="tombstone")),
        ],
        "2024-01-10": [change(message=message(1, "Mended.", edited={"user": "U1"}))],
    }
    (tmp_path / "general").mkdir()
    (tmp_path / "users.json").write_text("[]")
    for day, messages in days.items():
        (tmp_path / "general" / f"{day}.json").write_text(json.dumps(messages))
    events = read(tmp_path)
    assert [event.content for event in events] == ["Mended.", "Said 4."]
    assert events[0].metadata["edited"] is True


def test_the_sample_is_read() -> None:
    events = read(SAMPLE)
    assert [(event.external_id, event.speaker, event.content) for event in events] == [
        ("D01XYZ/1704880000.000100", "Ann Tellers", "Between us: mail cam@example.org"),
        (
            "C01GEN/1704700800.000200",
            "Ann Tellers",
            "@channel The dock needs paint: two litres (https://shop.example.org/paint?a=1&b=2) at "
            "https://shop.example.org, ask @cam 🛶 in #general <soon>",
        ),
        ("C01GEN/1704701000.000300", "Ben Øst", "I have a brush\nand a ladder."),
        ("C01GEN/1704710000.000400", "cam 🛶", "Painted! 🎨"),
        ("C01GEN/1704710100.000500", "cam 🛶", "[file: The dock, dry]"),
        ("C01GEN/1704787200.000100", "Weather", "Storm warning\nGusts to 9 Bft after 18:00"),
        ("C01GEN/1704787300.000200", "Dee Park", "Is @gus out there?"),
        ("C01GEN/1704787400.000300", "Ann Tellers", "He is ashore."),
        ("C01GEN/1704787800.000700", "Ben Øst", "waves"),
        ("G01MPI/1704960000.000100", "Ben Øst", "Lunch, all three?"),
    ]
    assert [event.session for event in events] == [None, *["C01GEN/1704700800.000200"] * 3, *[None] * 6]
    assert events[1].occurred_at == datetime(2024, 1, 8, 8, 0, 0, 200, tzinfo=timezone.utc)
    assert [event.metadata["channel"] for event in events][:2] == ["Ann Tellers, Ben Øst", "general"]
    assert events[-1].metadata == {"channel": "Ann Tellers, Ben Øst, cam 🛶"}
    assert [event.metadata.get("edited") for event in events if event.metadata.get("edited")] == [True, True]
    assert events[4].metadata["attachments"] == ["The dock, dry"]


def test_a_zip_yields_the_events_of_its_folder(tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "export"), "zip", SAMPLE.parent, "slack"))
    assert slack.sniff(archive, archive.read_bytes())
    assert [event.model_copy(update={"source": None}) for event in read(archive)] == [
        event.model_copy(update={"source": None}) for event in read(SAMPLE)
    ]


def test_a_damaged_day_is_rejected_and_the_others_are_read(tmp_path: Path) -> None:
    export = tmp_path / "export"
    shutil.copytree(SAMPLE, export)
    day = export / "general" / "2024-01-08.json"
    day.write_text(day.read_text(encoding="utf-8").replace('"type":', "", 1).replace("]", "", 1), encoding="utf-8")
    records = list(slack.read(export))
    (rejected,) = [record for record in records if isinstance(record, Rejected)]
    assert rejected.file == str(day)
    assert "damaged" in rejected.reason
    assert sum(isinstance(record, Event) for record in records) == 6


@pytest.mark.parametrize(
    "message", [7, {"type": "message", "text": "hi"}, {"text": "hi", "ts": "nan"}, {"text": "\0", "ts": "1.0"}]
)
def test_a_bad_message_is_rejected(tmp_path: Path, message: Any) -> None:
    (tmp_path / "general").mkdir()
    (tmp_path / "users.json").write_text("[]", encoding="utf-8")
    path = tmp_path / "general" / "2024-01-08.json"
    path.write_text(json.dumps([message, {"text": "ok", "user": "U1", "ts": "1.5"}]), encoding="utf-8")
    assert slack.sniff(tmp_path, b"")
    rejected, event = slack.read(tmp_path)
    assert isinstance(rejected, Rejected)
    assert isinstance(event, Event)
    assert (event.external_id, event.speaker, event.content) == ("general/1.5", "U1", "ok")


def test_messages_of_unknown_subtypes_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "general").mkdir()
    (tmp_path / "users.json").write_text("[]", encoding="utf-8")
    kinds = (None, ["x"], "x")
    messages = [{"text": "ok", "user": "U1", "ts": f"{n}.5", "subtype": kind} for n, kind in enumerate(kinds)]
    (tmp_path / "general" / "2024-01-08.json").write_text(json.dumps(messages), encoding="utf-8")
    assert [event.external_id for event in read(tmp_path)] == ["general/0.5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<@U1|ann> &amp;lt; <!here>", "@Ann &lt; @here"),
        ("<@U7|old>", "@old"),
        ("<#C1> <#C9|gone> <#C8>", "#dock #gone #C8"),
        ("<!subteam^S1|@crew> <!date^1700000000^{date_short}|14 Nov>", "@crew 14 Nov"),
        ("<https://a.example|a.example> <tel:+1555|+1555>", "https://a.example +1555"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    ],
)
def test_markup_becomes_readable_text(text: str, expected: str) -> None:
    assert readable(text, {"U1": "Ann"}, {"C1": "dock"}) == expected


def test_blocks_supply_missing_text() -> None:
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*Build* failed"}, "fields": [{"text": "main"}]}]
    assert text_of({"text": "", "blocks": blocks}) == "*Build* failed\nmain"


SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "*Build* failed"}}
SHARED = {"is_share": True, "author_name": "Ben Øst", "text": "The regatta moved to Sunday.", "fallback": "[noon] ben"}


@pytest.mark.parametrize("stock", ["This content can't be displayed.", "[no preview available]", " "])
def test_placeholder_texts_are_skipped(stock: str) -> None:
    assert text_of({"text": stock, "blocks": [SECTION]}) == "*Build* failed"
    assert text_of({"text": "", "attachments": [{"fallback": stock, "blocks": [SECTION]}]}) == "*Build* failed"
    assert text_of({"text": stock, "attachments": [{"fallback": stock}]}) == ""


def test_attachment_fields_become_text() -> None:
    fields = [{"title": "Host", "value": "db-3"}, {"title": "", "value": "down"}, {"title": "Since"}, {}, 7]
    attachment = {"fallback": "Alarm", "title": "Alarm", "fields": fields}
    assert text_of({"text": "", "attachments": [attachment]}) == "Alarm\nHost: db-3\ndown\nSince"
    message = {"blocks": [SECTION], "attachments": [{"fallback": "Alarm", "fields": fields[:1]}, {"fallback": "Mast"}]}
    assert text_of(message) == "*Build* failed\nHost: db-3\nMast"


def test_shared_messages_follow_the_text() -> None:
    unfurled = {"is_msg_unfurl": True, "text": "Bring oars.", "blocks": [SECTION]}
    page = {"title": "A page", "text": "that was linked"}
    assert text_of({"text": "FYI", "attachments": [SHARED, unfurled, page]}) == (
        "FYI\nBen Øst: The regatta moved to Sunday.\nBring oars."
    )
    assert text_of({"text": "", "attachments": [SHARED]}) == "Ben Øst: The regatta moved to Sunday."
    assert text_of({"text": "FYI", "attachments": [SHARED | {"text": ""}]}) == "FYI\n[noon] ben"


def test_rich_text_sentences_are_single_lines() -> None:
    elements: list[Any] = [
        {"type": "user", "user_id": "U1"},
        {"type": "text", "text": " and "},
        {"type": "usergroup", "usergroup_id": "S1"},
        {"type": "text", "text": ": see <@U1> & "},
        {"type": "link", "url": "https://a.example/?b=1&c=2", "text": "the <list>"},
        {"type": "text", "text": " or ", "style": {"bold": True}},
        {"type": "link", "url": "https://b.example"},
        {"type": "text", "text": " in "},
        {"type": "channel", "channel_id": "C1"},
        {"type": "text", "text": ", "},
        {"type": "broadcast", "range": "here"},
        {"type": "emoji", "name": "sailboat"},
        {"type": "date", "timestamp": 1700000000, "fallback": " on 14 Nov"},
        {"type": ["odd"]},
        7,
    ]

    def run(kind: str, *texts: str) -> dict[str, Any]:
        return {"type": f"rich_text_{kind}", "elements": [{"type": "text", "text": line} for line in texts]}

    rich = [
        {"type": "rich_text_section", "elements": elements},
        {"type": "rich_text_list", "elements": [run("section", line) for line in ("Oars", "\n", "Rope")]},
        run("preformatted", "if a < b:\n  row()\n"),
        run("quote", "Ready ", "about!"),
    ]
    text = text_of({"text": "", "blocks": [{"type": "rich_text", "elements": rich}]})
    assert readable(text, {"U1": "Ann"}, {"C1": "dock"}).splitlines() == [
        "@Ann and @subteam: see <@U1> & the <list> (https://a.example/?b=1&c=2) or https://b.example in #dock, "
        "@here:sailboat: on 14 Nov",
        "Oars",
        "Rope",
        "if a < b:",
        "  row()",
        "Ready about!",
    ]
