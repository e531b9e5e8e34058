"""A server records the key of a request as the writer, and its trust binds what the holder writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http_server import Served, served
from zettel import Memory, Scope
from zettel.errors import PermissionDenied

pytestmark = pytest.mark.integration
TEAM = Scope(user="team")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "a.db") as running:
        yield running


def test_a_key_writes_under_its_name_and_trust(server: Served, tmp_path: Path) -> None:
    ann, form = server.key("ann", TEAM), server.key("form", TEAM, right="write", trust=0.5)
    assert server.keys is not None
    ids = {key.name: key.id for key in server.keys.all()}
    file = tmp_path / "chat.jsonl"
    file.write_text('{"content": "The code of the shed is 3333."}\n')
    with Memory(server.url, key=ann) as person, Memory(server.url, key=form) as stranger:
        first = person.add("The code of the shed is 1111.", id="code")
        second = stranger.add("The code of the shed is 2222.", id="code", metadata={"principal": f"key:{ids['ann']}"})
        stranger.import_transcript(file)
        (third,) = {note.id for note in person.list().notes} - {first, second}
        events = [person.get(person.get(id).event_ids[0]) for id in (first, second, third)]
        assert [event.principal for event in events] == [f"key:{ids[name]}" for name in ("ann", "form", "form")]
        assert [person.get(id).trust for id in (first, second, third)] == [1.0, 0.5, 0.5]
    asker = server.asker(form)
    for body in ({"content": "x", "principal": "key:1"}, {"content": "x", "ceiling": 1}):
        assert asker("POST", "/v1/events", body).status == 422
    answer = asker("PATCH", f"/v1/notes/{first}", {"content": "The code of the shed is 2222."})
    assert answer.status == 403
    assert ids["ann"] not in answer.error


def test_an_admin_quarantines_a_principal(server: Served) -> None:
    ann, form = server.key("ann", TEAM), server.key("form", TEAM, right="write")
    assert server.keys is not None
    (principal,) = [key.principal for key in server.keys.all() if key.name == "form"]
    with Memory(server.url, key=ann) as person, Memory(server.url, key=form) as stranger:
        first = person.add("The code of the shed is 1111.")
        second = stranger.add("The code of the shed is 2222.")
        stranger.update(first, content="The code of the shed is 2222.")
        with pytest.raises(PermissionDenied):
            stranger.quarantine(principal=principal)
        assert {note.id for note in person.quarantine(principal=principal, reason="stolen")} == {first, second}
        assert [note.content for note in person.list().notes] == ["The code of the shed is 1111."]
        person.quarantine(first)
        person.release(first)
        assert {note.id for note in person.release(principal=principal)} == {first, second}
