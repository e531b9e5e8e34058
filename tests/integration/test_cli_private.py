"""``zettel import`` with ``--redact`` and ``--scope-by``: no personal data in the store, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.command import CommandResult, Zettel

pytestmark = pytest.mark.integration

TOKEN = "ghp_" + "aB3d" * 9  # split, so that secret scanners do not report this file
PRIVATE = ("cyrano@example.org", "912 34 567", "4111 1111 1111 1111", TOKEN)
"""One of each kind, as a file would contain it without redaction."""
CHAT = f"""\
13/05/2024, 09:15 - +47 912 34 567: Write to cyrano@example.org
13/05/2024, 09:16 - Ann: Is your number still +47 912 34 567?
13/05/2024, 09:17 - Ann: The card is 4111 1111 1111 1111, for the boat of 2,400,000 kr.
13/05/2024, 09:18 - Ben: export GITHUB_TOKEN={TOKEN}
13/05/2024, 09:19 - Ben: Or call 912 34 567 on 2024-05-14.
"""
LOG = [
    {"content": "Write to cyrano@example.org"},
    {"content": "My card is 4111 1111 1111 1111."},
    {"id": "cyrano@example.org/1", "session": "cyrano@example.org", "content": "It is signed."},
    {"content": "Hm.", "payload": {"to": ["cyrano@example.org"], "env": {"TOKEN": TOKEN}}, "title": "+47 912 34 567"},
    {"content": "Hm.", "cyrano@example.org": 1},
]


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "WhatsApp Chat with +47 912 34 567.txt").write_text(CHAT)
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in LOG))
    return folder


def private_words(*files: Path) -> list[str]:
    """Return file and word of each private word in the files."""
    contents = {file: file.read_bytes() for file in files if file.is_file()}
    forms = {word: (word.encode(), word.encode("utf-16-le")) for word in PRIVATE}
    return [
        f"{file.name}: {word}"
        for file, data in contents.items()
        for word in PRIVATE
        if any(form in data for form in forms[word])
    ]


def check_refused(result: CommandResult, *messages: str) -> None:
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1), result
    for message in messages:
        assert message in result.err


def test_redaction_leaves_no_personal_data_in_any_file(zettel: Zettel, tmp_path: Path, exports: Path) -> None:
    pytest.importorskip("phonenumbers")
    options = ("import", "exports", "--redact-region", "NO", "--rejected", "bad.jsonl", "--json")
    dry_run = zettel(*options, "--dry-run")
    result = zettel(*options)
    assert result.status == 1  # for the record with an unknown field
    assert "unknown field '[e-mail]'" in result.err
    report = json.loads(result.out)
    assert (report["added"], len(report["rejected_records"])) == (9, 1)
    assert report["redacted"] == {"phone": 9, "e-mail": 3, "card": 2, "key": 2}
    assert report["secrets"] == []
    assert json.loads(dry_run.out)["redacted"] == report["redacted"]
    store = [file for file in tmp_path.rglob("*") if exports not in file.parents]
    assert {"zettel.db", "bad.jsonl"} <= {file.name for file in store}
    assert private_words(*store) == []

    repeated = json.loads(zettel(*options).out)
    assert (repeated["added"], repeated["existing"], repeated["revised"]) == (0, 9, 0)
    assert private_words(*tmp_path.rglob("*.db*")) == []
    exported = [json.loads(line)["content"] for line in zettel("export").out.splitlines()]
    assert "The card is [card], for the boat of 2,400,000 kr." in exported
    assert "Or call [phone] on 2024-05-14." in exported


def test_the_table_counts_redacted_data_by_kind(zettel: Zettel, exports: Path) -> None:
    pytest.importorskip("phonenumbers")
    (exports / "log.jsonl").unlink()
    result = zettel("import", "exports", "--redact")
    assert result.status == 0
    assert "7  phone numbers redacted" in result.out
    assert "1  keys or passwords redacted" in result.out


def test_without_redaction_secrets_are_reported_by_position_only(zettel: Zettel, exports: Path) -> None:
    (exports / "log.jsonl").write_text(json.dumps(LOG[3]) + "\n")
    places = [
        ["card number", "exports/WhatsApp Chat with +47 912 34 567.txt", "3"],
        ["GitHub token", "exports/WhatsApp Chat with +47 912 34 567.txt", "4"],
        ["GitHub token", "exports/log.jsonl", "1"],
    ]
    for options in (["--dry-run"], []):
        assert [[*secret] for secret in zettel("import", "exports", "--json", *options).json()["secrets"]] == places
    result = zettel("import", "exports")
    assert "3  possible secrets: --privacy redact removes them" in result.out
    assert "exports/log.jsonl:1: GitHub token" in result.out
    assert TOKEN not in result.out + result.err
    assert len(private_words(*exports.parent.glob("*.db*"))) >= len(PRIVATE)  # the search finds words that are present


def test_events_are_imported_into_a_scope_per_user(zettel: Zettel, exports: Path) -> None:
    result = zettel("import", "exports/log.jsonl", "--scope-by", "user", "--user", "ann")
    check_refused(result, "--scope-by user sets the user of each scope: leave --user out")
    check_refused(zettel("import", "exports", "--scope-by", "place"), "scope_by must be 'user', 'channel' or 'project'")
    chat = next(exports.glob("*.txt"))
    result = zettel("import", str(chat), "--scope-by", "user", "--tenant", "acme")
    assert result.status == 0
    assert "3  scopes" in result.out
    assert "tenant='acme', user='Ann': 2 added" in result.out
    report = zettel("import", str(chat), "--scope-by", "user", "--tenant", "acme", "--json").json()
    ann = {
        "scope": {"tenant": "acme", "user": "Ann", "agent": None},
        "added": 0,
        "existing": 2,
        "revised": 0,
        "deleted": 0,
    }
    assert ann in report["scopes"]
    assert "boat" in zettel("search", "the boat", "--tenant", "acme", "--user", "Ann").out
    assert "boat" not in zettel("search", "the boat", "--tenant", "acme", "--user", "Ben").out
