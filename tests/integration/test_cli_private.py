"""``zettel import --redact`` and ``--scope-by``: nothing private is in the store, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.command import CommandResult, Zettel

pytestmark = pytest.mark.integration

TOKEN = "ghp_" + "aB3d" * 9  # in pieces, so that nobody takes this file for a leak
PRIVATE = ("cyrano@example.org", "912 34 567", "4111 1111 1111 1111", TOKEN)
"""One of each kind; wherever one is left, it is as it is here."""
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
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in LOG))
    return folder


def left_in(*files: Path) -> list[str]:
    """Which of the private things are in which file."""
    kept = {file: file.read_bytes() for file in files if file.is_file()}
    forms = {word: (word.encode(), word.encode("utf-16-le")) for word in PRIVATE}
    return [
        f"{file.name}: {word}" for file, data in kept.items() for word in PRIVATE if any(f in data for f in forms[word])
    ]


def refused(ran: CommandResult, *told: str) -> None:
    assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1), ran
    for words in told:
        assert words in ran.err


def test_nothing_private_is_in_the_store_or_beside_it(zettel: Zettel, tmp_path: Path, exports: Path) -> None:
    pytest.importorskip("phonenumbers")
    options = ("import", "exports", "--redact-region", "NO", "--rejected", "bad.jsonl", "--json")
    foreseen = zettel(*options, "--dry-run")
    ran = zettel(*options)
    assert ran.status == 1  # for the record with an unknown field
    assert "unknown field '[e-mail]'" in ran.err
    report = json.loads(ran.out)
    assert (report["added"], len(report["rejected_records"])) == (9, 1)
    assert report["redacted"] == {"phone": 9, "e-mail": 3, "card": 2, "key": 2}
    assert report["secrets"] == []
    assert json.loads(foreseen.out)["redacted"] == report["redacted"]
    store = [file for file in tmp_path.rglob("*") if exports not in file.parents]
    assert {"zettel.db", "bad.jsonl"} <= {file.name for file in store}
    assert left_in(*store) == []

    again = json.loads(zettel(*options).out)
    assert (again["added"], again["existing"], again["revised"]) == (0, 9, 0)
    assert left_in(*tmp_path.rglob("*.db*")) == []
    said = [json.loads(line)["content"] for line in zettel("export").out.splitlines()]
    assert "The card is [card], for the boat of 2,400,000 kr." in said
    assert "Or call [phone] on 2024-05-14." in said


def test_the_table_tells_what_was_taken_out(zettel: Zettel, exports: Path) -> None:
    pytest.importorskip("phonenumbers")
    (exports / "log.jsonl").unlink()
    ran = zettel("import", "exports", "--redact")
    assert ran.status == 0
    assert "7  phone numbers redacted" in ran.out
    assert "1  keys or passwords redacted" in ran.out


def test_secrets_are_told_without_it_and_never_shown(zettel: Zettel, exports: Path) -> None:
    (exports / "log.jsonl").write_text(json.dumps(LOG[3]) + "\n")
    places = [
        ["GitHub token", "exports/WhatsApp Chat with +47 912 34 567.txt", "4"],
        ["GitHub token", "exports/log.jsonl", "1"],
    ]
    for dry in (["--dry-run"], []):
        assert [[*one] for one in zettel("import", "exports", "--json", *dry).json()["secrets"]] == places
    ran = zettel("import", "exports")
    assert "2  possible keys or passwords: --redact removes them" in ran.out
    assert "exports/log.jsonl:1: GitHub token" in ran.out
    assert TOKEN not in ran.out + ran.err
    assert len(left_in(*exports.parent.glob("*.db*"))) >= len(PRIVATE)  # so that to find none means something


def test_scopes_by_rule(zettel: Zettel, exports: Path) -> None:
    ran = zettel("import", "exports/log.jsonl", "--scope-by", "user", "--user", "ann")
    refused(ran, "--scope-by sets the user of each scope: leave --user out")
    refused(zettel("import", "exports", "--scope-by", "place"), "scope_by must be 'user' or 'channel'")
    chat = next(exports.glob("*.txt"))
    ran = zettel("import", str(chat), "--scope-by", "user", "--tenant", "acme")
    assert ran.status == 0
    assert "3  scopes" in ran.out
    assert "tenant='acme', user='Ann': 2 added" in ran.out
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
