"""Redaction of records before they are stored."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.secret_samples import SAMPLES as SECRETS
from zettel.errors import InvalidInput, MissingExtra
from zettel.model import Event, Source
from zettel.transcripts import Rejected
from zettel.transcripts.options import ImportOptions, import_options
from zettel.transcripts.records import ContentKeys, redacted_keys
from zettel.transcripts.redaction import Redactor
from zettel.transcripts.report import MAX_SECRETS, ImportCounter, ImportReport, Secret
from zettel.transcripts.scopes import ScopedEvent
from zettel.transcripts.sources import find_parts

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)

def cleaned(text: str, region: str | None = None) -> str:
    pytest.importorskip("phonenumbers")
    return Redactor(region, Counter()).text(text)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Write to ann.b+boats@post.example.no, or 'o'hara@x.co.uk'.", "Write to [e-mail], or '[e-mail]'."),
        ("Skriv til øya@blåbær.no", "Skriv til [e-mail]"),
        ("Ring +47 912 34 567 at 10:30", "Ring [phone] at 10:30"),
        ("tel:+442079460958 or (+1) 415-555-0132 x22", "tel:[phone] or [phone]"),
        ("0047 22 12 34 56", "[phone]"),
        ("@4791234567 are you in? https://wa.me/4791234567", "[phone] are you in? https://wa.me/[phone]"),
        ("the card is 4111 1111 1111 1111, thanks", "the card is [card], thanks"),
        ("pay to GB82 WEST 1234 5698 7654 32.", "pay to [account]."),
        ("5555-5555-5555-4444 or 378282246310005", "[card] or [card]"),
        (f"it is {SECRETS['GitHub token'][1]}.", "it is [key]."),
        (f"a\n{SECRETS['private key'][1]}\nb", "a\n[key]\nb"),
    ],
)
def test_personal_data_is_redacted(text: str, redacted: str) -> None:
    assert cleaned(text) == redacted
    assert cleaned(redacted) == redacted


@pytest.mark.parametrize("region", [None, "NO", "US", "GB", "DE"])
@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01 09:00, 01.05.2024, 5/1/2024, 20240501, 2024-05-01T09:00:00+02:00, (1694–1755)",
        "12 000 000 kr, NOK 22 123 456, $22,123,456, 22 123 456 €, +500 000, +100 000 000 kr, 22123456%",
        "ISBN 978-82-02-12345-6, ISBN 0306406152, order #22123456, invoice 22123456, id=91234567",
        "v1.22.123456, 192.168.1.100, 0.91234567, 3f2a-5395-4037-a1d4, 550e8400-e29b-41d4-a716-446655440000",
        "photo_1@01-02-2024_10-03-00.jpg, icon@2x.png, react@18.2.0, git@github.com:a/b.git, @ann, a @ b.no",
        "4111 1111 1111 1112, 1234 5678 9012 3456, 1098765432109876543, 1714550400.123456",
        "x+12345678901, ring @20240501, task-force-2024-in-the-harbour, sk-fading-circle-indicator-light",
    ],
)
def test_other_text_is_unchanged(text: str, region: str | None) -> None:
    assert cleaned(text, region) == text


def test_local_phone_numbers_require_a_region() -> None:
    text = "Call 912 34 567, 91 23 45 67 or 91234567."
    assert cleaned(text) == text
    assert cleaned(text, "NO") == "Call [phone], [phone] or [phone]."
    assert cleaned("(415) 555-0132", "US") == "[phone]"
    assert cleaned("020 7946 0958", "GB") == "[phone]"


def test_the_samples_have_no_false_positives() -> None:
    pytest.importorskip("phonenumbers")
    counts: Counter[str] = Counter()
    changed: set[tuple[str | None, str]] = set()
    for part in find_parts(SAMPLES).parts:
        if part.format.name == "parquet":
            pytest.importorskip("pyarrow")
        before = list(ImportOptions().records(part))
        after = list(ImportOptions().records(part, Redactor("NO", counts)))
        for original, other in zip(before, after, strict=True):
            if isinstance(original, ScopedEvent) and isinstance(other, ScopedEvent):
                redacted_fields = (other.event.speaker, other.event.content)
                if redacted_fields != (original.event.speaker, original.event.content):
                    changed.add(redacted_fields)
    assert counts == {"e-mail": 9, "phone": 3}
    assert changed == {
        ("[e-mail]", "Me."),
        ("Ann Tellers", "Between us: mail [e-mail]"),
        ("Oda Lind", "[contact: Per [phone]]"),
        ("[phone]", "Frohes Neues!"),
        ("[phone]", "שלום! see you at 12:00"),
    }


def full(**fields: Any) -> Event:
    return Event(**{"content": "Hm.", "source": Source(file="chat.txt", position="7"), **fields})


class TestEvents:
    @pytest.fixture
    def counts(self) -> Counter[str]:
        pytest.importorskip("phonenumbers")
        return Counter()

    def test_every_field_is_redacted(self, counts: Counter[str]) -> None:
        event = full(
            content="Mail cy@example.org", title="Re: +47 912 34 567", speaker="+47 912 34 567", occurred_at=NOON,
            session="chat with +47 912 34 567",
            source=Source(file="with +47 912 34 567.txt", position="cy@example.org"),
            payload={"cy@example.org": ["4111 1111 1111 1111", 7], "bo@example.org": None},
            metadata={"to": "cy@example.org", "channel": "yard"},
        )  # fmt: skip
        redacted = Redactor(None, counts).event(event)
        assert isinstance(redacted, Event)
        assert (redacted.content, redacted.title, redacted.speaker) == ("Mail [e-mail]", "Re: [phone]", "[phone]")
        assert (redacted.session, redacted.occurred_at) == ("chat with [phone]", NOON)
        assert redacted.source is not None
        assert redacted.source.file == "with [phone].txt"
        assert "cy@" not in str(redacted.source)
        assert redacted.payload == {"[e-mail]": ["[card]", 7], "[e-mail] 2": None}
        assert redacted.metadata == {"to": "[e-mail]", "channel": "yard"}
        assert counts == {"e-mail": 4, "phone": 2, "card": 1}

    def test_an_event_without_personal_data_is_unchanged(self, counts: Counter[str]) -> None:
        event = full(id="C1/1714550400.123456", session="91234567", metadata={"n": "12"})
        assert Redactor("NO", counts).event(event) is event
        assert not counts

    def test_redacted_ids_and_sessions_stay_distinct(self, counts: Counter[str]) -> None:
        events = [full(id=f"{name}@mail.example.org", session="a1@mail.example.org") for name in ("a1", "a2")]
        first, two = (Redactor(None, counts).event(event) for event in events)
        assert isinstance(first, Event)
        assert isinstance(two, Event)
        assert first.external_id != two.external_id
        assert first.session == two.session == first.external_id
        assert "example" not in f"{first} {two}"
        assert not counts

    def test_a_phone_number_as_id_is_replaced_by_a_content_hash(self, counts: Counter[str]) -> None:
        dated, undated = full(id="+4791234567/1", occurred_at=NOON), full(id="+4791234567/1")
        redactor = Redactor(None, counts)
        redacted = [redactor.event(event) for event in (dated, undated, undated)]
        ids = [record.external_id for record in redacted if isinstance(record, Event)]
        assert ids[0] is None
        assert None not in ids[1:]
        assert len(set(ids)) == 3
        second = Redactor(None, counts)
        assert [second.event(event) for event in (dated, undated, undated)] == redacted

    def test_ids_are_hashes_of_the_redacted_text(self, counts: Counter[str]) -> None:
        redactor = Redactor(None, counts)
        with redacted_keys(redactor.text):
            key = ContentKeys().key("s", "Ann", "My card is 4111 1111 1111 1111")
        assert key == ContentKeys().key("s", "Ann", "My card is [card]")

    def test_invalid_records_are_reported_without_personal_data(self, counts: Counter[str]) -> None:
        bad = Rejected(file="with +47 912 34 567.txt", position="3", reason="unknown field 'cy@example.org'")
        redacted = Redactor(None, counts).rejected(bad)
        assert redacted == Rejected(file="with [phone].txt", position="3", reason="unknown field '[e-mail]'")

    def test_content_at_its_limit_is_rejected_when_it_grows(
        self, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("zettel.core.arguments.MAX_CONTENT_BYTES", 70)
        redacted = Redactor(None, counts).event(full(content=" a@b.no" * 10))
        assert isinstance(redacted, Rejected)
        assert (redacted.file, redacted.position) == ("chat.txt", "7")


def test_a_report_counts_all_secrets_and_lists_the_first() -> None:
    report = ImportReport(file="log.jsonl", format="jsonl")
    tally = ImportCounter(report)
    for _ in range(3):
        tally.find([Secret("JWT", "log.jsonl", "7")] * 600)
    assert (report.secrets_found, len(report.secrets)) == (1_800, MAX_SECRETS)


class TestOptions:
    def test_a_missing_package_raises_and_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "phonenumbers", None)
        with pytest.raises(MissingExtra, match=r'pip install "zettel-graph\[redact\]"'):
            import_options(redact=True)

    def test_a_region_enables_redaction(self) -> None:
        pytest.importorskip("phonenumbers")
        options = import_options(redact_region="no")
        assert (options.redact, options.region) == (True, "NO")
        with pytest.raises(InvalidInput, match="two-letter region such as NO or US, got 'XQ'"):
            import_options(redact_region="xq")

    def test_unknown_rules_raise(self) -> None:
        with pytest.raises(InvalidInput, match="'user', 'channel' or 'project'"):
            import_options(scope_by="server")
