"""Mail: threads, text without quotations, and names and dates of headers."""

from __future__ import annotations

import quopri
from datetime import datetime, timezone
from pathlib import Path

import pytest

from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import mbox
from zettel.transcripts.formats.mail_text import own_text, text_of_html

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
UTC = timezone.utc


def read(path: Path) -> list[Event]:
    records = [record for record in mbox.read(path) if record is not None]
    assert all(isinstance(record, Event) for record in records), records
    return [record for record in records if isinstance(record, Event)]


def test_the_sample_is_read() -> None:
    first, answer, listed, other, undated = read(SAMPLES / "mail.mbox")
    assert first.content == ("Der Schlüssel liegt bei mir.\nFrom Monday on it is with Mia.\n[file: Schlüsselliste.pdf]")
    assert (first.external_id, first.title, first.speaker) == (
        "a1@mail.example.org",
        "Schüssel für die Hütte",
        "Jürgen Sandt",
    )
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
    assert (other.content, other.speaker, other.session) == ("Me.", "mia@example.org", listed.session)
    assert (undated.content, undated.occurred_at) == ("From the shed I took two. – Mia", None)
    assert undated.external_id is not None, "without time and Message-ID, the content identifies a mail"
    assert [event.source.position for event in (first, answer) if event.source] == ["1", "46"]


def test_a_single_mail_is_read() -> None:
    path = SAMPLES / "mail.eml"
    assert mbox.sniff(path, path.read_bytes())
    (event,) = read(path)
    assert event.content == "Red to port.\n[file: Rules of the road]"
    assert event.occurred_at == datetime(2024, 1, 10, 17, tzinfo=UTC)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_sentence_that_begins_with_from_does_not_start_a_mail(tmp_path: Path, end: bytes) -> None:
    message_lines = [b"From: a@b", b"", b"We sail.", b"", b"From May to June 2024", b"", b"Bring food.", b""]
    (tmp_path / "a.mbox").write_bytes(end.join([b"From a@b Mon Jan  8 08:00:00 2024", *message_lines]))
    (tmp_path / "a.eml").write_bytes(end.join(message_lines))
    for name in ("a.mbox", "a.eml"):
        (event,) = read(tmp_path / name)
        assert event.content == "We sail.\n\nFrom May to June 2024\n\nBring food."


def test_a_single_mail_with_from_lines_is_one_event(tmp_path: Path) -> None:
    patch = "From 1c2d3e Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: Tar the hull"
    path = tmp_path / "a.eml"
    path.write_text(f"From: c@d\n\nHere it is.\n\n{patch}\n\nMore tar.\n")
    (event,) = read(path)
    assert (event.speaker, event.content) == ("c@d", f"Here it is.\n\n{patch}\n\nMore tar.")


def test_references_define_threads(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    mails = [("1", ""), ("2", "In-Reply-To: <1>"), ("3", "References: <1> <2>"), ("4", "In-Reply-To: <3>"), ("5", "")]
    with path.open("w", encoding="utf-8") as file:
        for id, header in mails:
            headers = [f"Message-ID: <{id}>", "Subject: Tar", "From: a@b", *([header] if header else [])]
            file.write("\n".join(["From a@b Mon Jan  8 08:00:00 2024", *headers, "", f"hi {id}", "", ""]))
    assert [event.session for event in read(path)] == ["1", "1", "1", "1", "5"]


def test_raw_bytes_in_a_header_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes("From a Mon Jan 08 2024\nSubject: Übung\nFrom: Åse <a@b>\n\nhei\n".encode())
    (event,) = read(path)
    assert (event.title, event.speaker) == ("Übung", "Åse")


def test_invalid_mails_are_rejected_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(b"From a Mon Jan 08 2024\n\nno header\n\nFrom b Mon Jan 08 2024\nFrom: b@c\n\n\0\n")
    records = list(mbox.read(path))
    assert [record.position for record in records if isinstance(record, Rejected)] == ["1", "5"]
    assert len(records) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes.\n\nAm 8. Jan. 2024 um 09:00 schrieb Ann Ode <a@b.example>:\n\n> Coming?\n", "Yes."),
        ("Yes.\nAnn Ode wrote:\n> Coming?", "Yes."),
        ("It costs:\n> 7\n", "It costs:"),
        ("> one?\nFirst.\n> two?\nSecond.", "First.\nSecond."),
        ("Yes.\n-- \nAnn\nHarbour 4", "Yes."),
        ("Yes.\n--\nAnn", "Yes."),
        ("Yes.\n\n-----Original Message-----\nComing?", "Yes."),
        ("Yes.\n\nFrom: Ann <a@b>\nSent: Monday\nTo: Ben\n\nComing?", "Yes."),
        ("Ja.\n\nVon: Ann Lee\nGesendet: Montag\nAn: Ben\nBetreff: Boot\n\nKommst du?", "Ja."),
        ("はい\n\n差出人: Ann\n送信日時: 2024年1月8日\n宛先: Ben\n\n何", "はい"),
        ("Yes.\n\nFrom: Ann Lee\nDate: Monday\nTo: Ben\nCc: Mia\nSubject: Boat\n\nComing?", "Yes."),
        ("From: the shed\nI took it", "From: the shed\nI took it"),
        (trip := "Hi,\n\nFrom: Visby\nTo: Fårö\nDate: 3 June 2024\n\nBring food.", trip),
        (form := "De: Marie\nÀ: midi\nLieu: quai 4\n\nApportez du pain.", form),
    ],
)
def test_quotations_are_removed(text: str, expected: str) -> None:
    assert own_text(text) == expected


def test_a_long_line_of_dashes_is_read_quickly() -> None:
    """A quadratic pattern would take minutes for this text and hours for a megabyte."""
    line = "---original" + "-" * 100_000 + "x"
    assert own_text(line) == line


def test_hidden_elements_of_html_are_left_out() -> None:
    hidden = '<div style="color:#fff; Display: none">the code is <b>9999</b></div><img style="display:none">'
    assert text_of_html(f"<p>one</p>{hidden}<p>two</p>") == "one\n\ntwo"


def test_html_with_a_broken_declaration_is_read() -> None:
    assert text_of_html("<p>one</p><![weird[ <p>two</p>").startswith("one")
    quoting = '<p>Yes</p><div class="gmail_quote"><div>no</div></div><p>after</p>'
    assert own_text(text_of_html(quoting)) == "Yes\n\nafter"


def read_mail(tmp_path: Path, data: bytes) -> Event:
    path = tmp_path / "a.eml"
    path.write_bytes(data)
    (event,) = read(path)
    return event


def test_a_bare_from_line_separates_mails_above_a_header(tmp_path: Path) -> None:
    older = b"From - Mon Jan 08 09:00:00 2024\r\nMessage-ID: <1>\r\n\r\nFirst.\r\n\r\n"
    newer = b"From \r\nMessage-ID: <2>\r\n\r\nSecond.\r\nFrom \r\nX: y\r\n\r\nFrom \r\nthe shed, and\r\n\r\n"
    newer += b"From now on\r\nP: s\r\n"
    path = tmp_path / "Inbox"
    path.write_bytes(older + newer + b"\r\n" + newer.replace(b"\r\n", b"\n").replace(b"<2>", b"<3>"))
    first, second, third = read(path)
    assert (first.external_id, first.content) == ("1", "First.")
    assert (second.external_id, third.external_id) == ("2", "3")
    assert second.content == third.content == "Second.\nFrom\nX: y\n\nFrom\nthe shed, and\n\nFrom now on\nP: s"


@pytest.mark.parametrize(
    ("head", "is_mail"),
    [
        (b"From \r\nX-Mozilla-Status: 0001\r\n", True),
        (b"From \nDate: Mon, 8 Jan 2024\n", True),
        (b"From \nthe shed I took two oars.\n", False),
        (b"From now on\nDate: to be told\n", False),
    ],
)
def test_a_file_may_begin_with_a_bare_from_line(head: bytes, is_mail: bool) -> None:
    assert mbox.sniff(Path("Inbox"), head) == is_mail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "---------- Forwarded message ---------\nFrom: Ben Ode <ben@b.example>\nDate: Mon, 8 Jan 2024\n"
            "Subject: Start\nTo: <mia@b.example>\n\nWe sail at noon.\n\n> Who says so?\n\n-- \nBen",
            "---------- Forwarded message ---------\nFrom: Ben Ode <ben@b.example>\nDate: Mon, 8 Jan 2024\n"
            "Subject: Start\nTo: <mia@b.example>\n\nWe sail at noon.\n\n> Who says so?\n\n--\nBen",
        ),
        (
            "Look.\n-- \nMia\n\n-------- Weitergeleitete Nachricht --------\nVon: Ben\n\nUm zwölf.",
            "Look.\n\n-------- Weitergeleitete Nachricht --------\nVon: Ben\n\nUm zwölf.",
        ),
        (
            "Look:\n\nBegin forwarded message:\n\n> From: Ben\n> Date: 8 January 2024\n>\n> At noon.\n>> Sure?\n",
            "Look:\n\nBegin forwarded message:\n\nFrom: Ben\nDate: 8 January 2024\n\nAt noon.\n> Sure?",
        ),
        (
            "\n> Début du message réexpédié :\n>\n> De: Ben\n>\n> À midi.\n\nMia",
            "Début du message réexpédié :\n\nDe: Ben\n\nÀ midi.\n\nMia",
        ),
        ("Yes.\n\nOn Monday Ann Ode wrote:\n\n> Begin forwarded message:\n>\n> From: Ben\n>\n> Noon?", "Yes."),
        ("Yes.\n\n> See:\n>\n> Begin forwarded message:\n>\n> Noon?", "Yes."),
        ("Yes.\n\n-----Original Message-----\n\n---------- Forwarded message ---------\nNoon?", "Yes."),
    ],
)
def test_forwarded_text_stays(text: str, expected: str) -> None:
    assert own_text(text) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (
            '<div>Look.<br><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">---------- Forwarded message'
            " ---------<br>From: <b>Ben</b><br></div><br><p>At noon.</p><ul><li>Two boats</li></ul></div></div>",
            "Look.\n\n---------- Forwarded message ---------\nFrom: Ben\n\nAt noon.\n\n- Two boats",
        ),
        (
            '<div>Yes.</div><div class="gmail_quote"><div class="gmail_attr">On Mon, 8 Jan 2024, Ann wrote:<br></div>'
            '<blockquote class="gmail_quote">---------- Forwarded message ---------<br>Noon?</blockquote></div>',
            "Yes.",
        ),
        (
            '<div><br><blockquote type="cite"><div>Begin forwarded message:</div><br><div><b>From: </b>Ben</div><br>'
            "<div>At noon.</div></blockquote></div>",
            "Begin forwarded message:\n\nFrom: Ben\n\nAt noon.",
        ),
        (
            '<p>Yes.</p><div class="moz-cite-prefix">Ann wrote:</div><blockquote type="cite"><div>Begin forwarded'
            " message:</div>Noon?</blockquote>",
            "Yes.",
        ),
    ],
)
def test_forwarded_html_stays(html: str, expected: str) -> None:
    text = own_text(text_of_html(html))
    assert "\n".join(text.split()) == "\n".join(expected.split())


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Type: text/plain\n\nLook.\n\nFrom: Ben\nSent: Monday\nTo: Mia\n\nWe sail at noon.\n",
        b"Content-Type: text/plain\n\nLook.\n\n-----Original Message-----\nFrom: Ben\n\nWe sail at noon.\n",
        b'Content-Type: text/html\n\n<p>Look.</p><div id="divRplyFwdMsg">From: Ben</div><p>We sail at noon.</p>\n',
    ],
)
def test_outlook_forwards_are_distinguished_from_replies(tmp_path: Path, body: bytes) -> None:
    forwarded = read_mail(tmp_path, b"Subject: [crew] WG: Start\n" + body).content
    assert forwarded.startswith("Look.\n")
    assert "From: Ben\n" in forwarded
    assert forwarded.endswith("\nWe sail at noon.")
    assert read_mail(tmp_path, b"Subject: AW: WG: Start\n" + body).content == "Look."


def test_plain_text_replaces_only_equal_html(tmp_path: Path) -> None:
    html, footer = b"Content-Type: text/html\n\n<p>We sail at noon.</p>\n", b"\nSent to the crew's list\n"
    alternatives = b'Content-Type: multipart/alternative; boundary="b"\n\n--b\n\n%s\n--b\n' + html + b"--b--\n"
    mixed = b'Content-Type: multipart/mixed; boundary="a"\n\n--a\n%s\n--a\n' + footer + b"--a--\n"
    expected = "We sail at noon.\nSent to the crew's list"
    assert read_mail(tmp_path, mixed % html).content == expected
    assert read_mail(tmp_path, mixed % (alternatives % b" ")).content == expected
    assert read_mail(tmp_path, mixed % (alternatives % b"Noon!")).content == "Noon!\nSent to the crew's list"


@pytest.mark.parametrize(
    ("charset", "body", "expected"),
    [
        ("utf-8", "Grüße aus Köln".encode() + b"\xff", "Grüße aus Köln\ufffd"),
        ("utf-8", "Köln um 12".encode("latin-1"), "Köln um 12"),
        ("x-unknown", "Grüße aus Köln".encode() + b"\xff", "Grüße aus Köln\ufffd"),
        ("gb2312", "朱镕基到码头".encode("gbk"), "朱镕基到码头"),
        ("gb2312", "朱镕基到码头".encode("gbk") + b"\xff!", "朱镕基到码头\ufffd!"),
        ("ks_c_5601-1987", "똠방각하".encode("cp949"), "똠방각하"),
        ("shift_jis", "①番 髙橋".encode("cp932"), "①番 髙橋"),
        ("iso-2022-jp", b"\x1b$B-!HV\x1b(B ok \x1b(I6]\x1b(B \x1b$B|b66\x1b(J.", "①番 ok ｶﾝ 髙橋."),
        ("iso-2022-jp", b"\x1b$B3$$N4_\x1b(B \x85 ok", "海の岸 \ufffd ok"),
        ("iso-2022-jp", "海の岸".encode(), "海の岸"),
        ("iso-8859-1", b"\x93Noon\x94 \x96 5 \x80", "“Noon” – 5 €"),
        ("us-ascii", b"\x93Noon\x94 in K\xf6ln", "“Noon” in Köln"),
        ("us-ascii", "“Noon” in Köln".encode(), "“Noon” in Köln"),
        ("windows-1252", b"\x93Noon\x94 in K\xf6ln\x81", "“Noon” in Köln\ufffd"),
        ("windows-1252", b"Noon\x81", "Noon\x81"),
    ],
)
def test_charsets_of_bodies_are_decoded(tmp_path: Path, charset: str, body: bytes, expected: str) -> None:
    header = f"Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    assert read_mail(tmp_path, header.encode() + body).content == expected


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (b"=?gb2312?Q?" + quopri.encodestring("朱镕基".encode("gbk"), header=True) + b"?=", "朱镕基"),
        (b"=?iso-8859-1?Q?=93Noon=94?=", "“Noon”"),
        (b"=?utf-8?Q?K=C3=B6ln_=FF?=", "Köln \ufffd"),
        ("Grüße ".encode() + b"\xff", "Grüße \ufffd"),
        (b"\x93Noon\x94 in K\xf6ln", "“Noon” in Köln"),
        ("海 – =?utf-8?Q?K=C3=B6ln?=".encode(), "海 – Köln"),
    ],
)
def test_charsets_of_headers_are_decoded(tmp_path: Path, header: bytes, read: str) -> None:
    assert read_mail(tmp_path, b"Subject: " + header + b"\n\nAt noon.\n").title == read
