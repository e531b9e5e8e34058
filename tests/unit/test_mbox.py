"""Mail: threads, what the writer wrote, names and dates as headers have them."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from zettel.model import Event
from zettel.transcripts import Rejected, mbox
from zettel.transcripts.mail_text import own_words, text_of_html

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
UTC = timezone.utc


def read(path: Path) -> list[Event]:
    records = list(mbox.read(path))
    assert all(isinstance(one, Event) for one in records), records
    return [one for one in records if isinstance(one, Event)]


def test_the_sample() -> None:
    first, answer, listed, other, undated = read(SAMPLES / "mail.mbox")
    assert first.content == ("Der Schlüssel liegt bei mir.\nFrom Monday on it is with Mia.\n[file: Schlüsselliste.pdf]")
    assert (first.id, first.title, first.role) == ("a1@mail.example.org", "Schüssel für die Hütte", "Jürgen Sandt")
    assert first.occurred_at == datetime(2024, 1, 8, 8, tzinfo=UTC)
    assert first.metadata == {
        "address": "juergen@example.org",
        "to": "Mia Holt, Ode, Ben",
        "labels": "Inbox,Bootshütte",
        "attachments": ["Schlüsselliste.pdf"],
    }
    assert answer.content == "Good.\n\nI will bring it back: promised."
    assert answer.session == first.session == "1788000000000000001"
    assert listed.content == "Who sails in May?\n\n- Two boats\n- Six & a dog"
    assert listed.metadata["channel"] == "Crew of the Petrel"
    assert (other.content, other.role, other.session) == ("Me.", "mia@example.org", listed.session)
    assert (undated.content, undated.occurred_at) == ("From the shed I took two. – Mia", None)
    assert undated.id is not None, "without time and Message-ID it is known by what it says"
    assert [event.source.position for event in (first, answer) if event.source] == ["1", "46"]


def test_a_single_mail() -> None:
    path = SAMPLES / "mail.eml"
    assert mbox.sniff(path, path.read_bytes())
    (event,) = read(path)
    assert event.content == "Red to port.\n[file: Rules of the road]"
    assert event.occurred_at == datetime(2024, 1, 10, 17, tzinfo=UTC)


def test_threads_are_found_by_references(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    mails = [("1", ""), ("2", "In-Reply-To: <1>"), ("3", "References: <1> <2>"), ("4", "In-Reply-To: <3>"), ("5", "")]
    with path.open("w", encoding="utf-8") as file:
        for id, header in mails:
            told = [f"Message-ID: <{id}>", "Subject: Tar", "From: a@b", *([header] if header else [])]
            file.write("\n".join(["From a@b Mon Jan  8 08:00:00 2024", *told, "", f"hi {id}", "", ""]))
    assert [event.session for event in read(path)] == ["1", "1", "1", "1", "5"]


def test_raw_bytes_in_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes("From a Mon Jan 08 2024\nSubject: Übung\nFrom: Åse <a@b>\n\nhei\n".encode())
    (event,) = read(path)
    assert (event.title, event.role) == ("Übung", "Åse")


def test_what_is_no_mail_is_rejected_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(b"From a Mon Jan 08 2024\n\nno header\n\nFrom b Mon Jan 08 2024\nFrom: b@c\n\n\0\n")
    records = list(mbox.read(path))
    assert [one.position for one in records if isinstance(one, Rejected)] == ["1", "5"]
    assert len(records) == 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Yes.\n\nAm 8. Jan. 2024 um 09:00 schrieb Ann Ode <a@b.example>:\n\n> Coming?\n", "Yes."),
        ("Yes.\nAnn Ode wrote:\n> Coming?", "Yes."),
        ("It costs:\n> 7\n", "It costs:"),
        ("> one?\nFirst.\n> two?\nSecond.", "First.\nSecond."),
        ("Yes.\n-- \nAnn\nHarbour 4", "Yes."),
        ("Yes.\n--\nAnn", "Yes."),
        ("Yes.\n\n-----Original Message-----\nComing?", "Yes."),
        ("Yes.\n\nFrom: Ann <a@b>\nSent: Monday\nTo: Ben\n\nComing?", "Yes."),
        ("From: the shed\nI took it", "From: the shed\nI took it"),
    ],
)
def test_own_words(text: str, kept: str) -> None:
    assert own_words(text) == kept


def test_html_with_a_broken_declaration() -> None:
    assert text_of_html("<p>one</p><![weird[ <p>two</p>").startswith("one")
    assert text_of_html('<p>Yes</p><div class="gmail_quote"><div>no</div></div><p>after</p>') == "Yes\n\nafter"
