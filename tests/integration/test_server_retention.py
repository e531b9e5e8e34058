"""Expiry and retention over HTTP, and the rights that they require."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import Served, served
from zettel import Memory, Scope
from zettel.errors import PermissionDenied
from zettel.model import Retention, Swept

pytestmark = pytest.mark.integration

TEAM = Scope(tenant="team")
END = "2090-01-01T00:00:00Z"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "a.db") as running:
        yield running


def test_an_event_has_a_time_to_live_in_seconds(server: Served) -> None:
    asker = server.asker(server.key("ann", TEAM, right="write"))
    answer = asker("POST", "/v1/events", {"content": "The door code is 4711.", "ttl": 3600})
    note = asker("GET", f"/v1/notes/{answer.body['id']}").body
    left = datetime.fromisoformat(note["expires_at"]) - datetime.now(timezone.utc)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    events = {"events": [{"content": "It is wet.", "expires_at": END}]}
    (id,) = asker("POST", "/v1/events/batch", events).body["ids"]
    assert asker("GET", f"/v1/notes/{id}").body["expires_at"] == END
    for body in ({"ttl": 0}, {"ttl": 60, "expires_at": END}, {"expires_at": "2020-01-01"}, {"ttl": "1d"}):
        assert asker("POST", "/v1/events", {"content": "x", **body}).status in (400, 422)


def test_retention_is_read_set_and_removed(server: Served) -> None:
    admin = server.asker(server.key("ann", TEAM))
    assert admin("GET", "/v1/retention").body == {"retention": None}
    assert admin("POST", "/v1/retention", {"max_age": 86_400, "then": "archive"}).status == 200
    assert admin("GET", "/v1/retention").body == {"retention": {"max_age": 86_400.0, "then": "archive"}}
    assert admin("POST", "/v1/sweep", {"dry_run": True}).body == {"deleted": 0, "archived": 0}
    assert admin("DELETE", "/v1/retention").body == {"removed": True}


def test_a_key_without_the_right_admin_deletes_nothing(server: Served, tmp_path: Path) -> None:
    """Neither by a retention, nor by letting notes of others expire."""
    admin, writer = server.key("ann", TEAM), server.key("form", TEAM, right="write")
    file = tmp_path / "events.jsonl"
    file.write_text(f'{{"id": "a", "content": "The code is 2222.", "expires_at": "{END}"}}\n')
    with Memory(server.url, key=admin) as person, Memory(server.url, key=writer) as other:
        id = person.add("The code is 1111.", id="a")
        revised: dict[str, Any] = {"id": "a", "content": "The code is 2222.", "expires_at": END}
        calls: list[Any] = [
            other.sweep,
            lambda: other.set_retention(60),
            other.remove_retention,
            lambda: other.update(id, expires_at=END),
            lambda: other.add("The code is 2222.", id="a", ttl=60, on_conflict="revise"),
            lambda: other.add_many([revised], on_conflict="revise"),
            lambda: other.add_many_report([revised], on_conflict="revise"),
            lambda: other.import_transcript(file, edits=True),
        ]
        for call in calls:
            with pytest.raises(PermissionDenied):
                call()
        other.import_transcript(file)
        assert person.get(id).expires_at is None
        assert other.retention() is None
        assert other.update(id, expires_at=None).expires_at is None
        assert person.set_retention(60) == other.retention() == Retention(max_age=timedelta(seconds=60))
        assert person.update(id, expires_at=END).expires_at == datetime(2090, 1, 1, tzinfo=timezone.utc)
        assert person.sweep() == Swept()
