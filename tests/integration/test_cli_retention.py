"""The commands of retention, and events that expire, on the command line."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


def test_an_event_gets_an_expiry_and_loses_it(zettel: Zettel) -> None:
    id = zettel("add", "The door code is 4711.", "--ttl", "30d").out.strip()
    end = datetime.fromisoformat(zettel("show", id, "--json").json()["expires_at"])
    assert timedelta(days=29) < end - datetime.now(timezone.utc) < timedelta(days=31)
    assert "expires_at" in zettel("show", id).out
    assert zettel("edit", id, "--expires-at", "", "--json").json()["expires_at"] is None
    assert "expires_at" not in zettel("show", id).out
    other = zettel("add", "It is wet.", "--expires-at", "2090-01-01").out.strip()
    assert zettel("show", other, "--json").json()["expires_at"] == "2090-01-01T00:00:00Z"


def test_a_retention_is_set_shown_and_removed(zettel: Zettel) -> None:
    zettel("add", "The door code is 4711.", "--user", "ann")
    assert "no retention is set" in zettel("retention", "show", "--user", "ann").out
    described = "notes are archived after 90 days, except pinned ones, and when they expire\n"
    assert zettel("retention", "set", "90d", "--then", "archive", "--user", "ann").out == described
    assert zettel("retention", "show", "--user", "ann").out == described
    assert zettel("retention", "show", "--json").json() == {"retention": None}
    shown = zettel("retention", "show", "--user", "ann", "--json").json()
    assert shown == {"retention": {"max_age": 90 * 86_400, "then": "archive"}}
    swept = zettel("retention", "sweep", "--dry-run", "--user", "ann")
    assert (swept.out, swept.err) == ("0 deleted, 0 archived\n", "zettel: this was a dry run; nothing changed\n")
    assert zettel("retention", "sweep", "--json").json() == {"deleted": 0, "archived": 0, "dry_run": False}
    assert zettel("retention", "set", "--user", "ann").out == "notes that expire are deleted\n"
    assert zettel("retention", "remove", "--user", "ann").out == "removed\n"
    assert zettel("retention", "remove", "--user", "ann").out == "no retention was set\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "x", "--ttl", "soon"], "--ttl 'soon': expected a number and one of"),
        (["add", "x", "--ttl", "1d", "--expires-at", "2090-01-01"], "not both"),
        (["add", "x", "--expires-at", "2020-01-01"], "is in the past"),
        (["retention", "set", "old"], "AGE 'old'"),
        (["retention", "set", "--then", "burn"], "then='burn' must be one of delete, archive"),
    ],
)
def test_wrong_input_is_a_one_line_error(zettel: Zettel, arguments: list[str], message: str) -> None:
    zettel("add", "The Heron is red.")
    failed = zettel(*arguments)
    assert (failed.status, failed.out, failed.err.count("\n")) == (2, "", 1)
    assert message in failed.err
