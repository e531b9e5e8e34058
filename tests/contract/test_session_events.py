"""A session's events are returned verbatim in order of arrival, whatever happens to their notes."""

from __future__ import annotations

import pytest

from zettel import Memory, Scope
from zettel.errors import InvalidInput

pytestmark = pytest.mark.over_http

OTHER = Scope(user="somebody else")


def test_session_events_are_returned_in_order(memory: Memory) -> None:
    contents = [("Ann keeps bees.", "hive"), ("Ida keeps bees.", None), ("Nils keeps a heron.", "hive")]
    for number, (content, source) in enumerate(contents):
        memory.add(content, session="s1", source=source, payload={"deep": [number, {"x": None}]}, speaker="Ann")
    memory.add("Bo plays the tuba.", session="s2")
    memory.add("Elsewhere.", session="s1", scope=OTHER)
    events = memory.events("s1")
    assert [event.content for event in events] == [content for content, _ in contents]
    assert [event.payload for event in events] == [{"deep": [number, {"x": None}]} for number in range(3)]
    assert [event.content for event in memory.events("s1", limit=2)] == ["Ida keeps bees.", "Nils keeps a heron."]
    assert memory.events("s1", limit=99) == events
    assert memory.events("s1", source="hive") == [events[0], events[2]]
    assert memory.events("s1", source="hive", limit=1) == [events[2]]
    assert [event.content for event in memory.events("s1", scope=OTHER)] == ["Elsewhere."]
    assert memory.events("s3") == []

    notes = {note.content: note.id for note in memory.list(session="s1").notes}
    memory.update(notes["Ann keeps bees."], content="Ann keeps wasps.")
    memory.archive(notes["Ida keeps bees."])
    memory.quarantine(notes["Nils keeps a heron."], "not sure")
    assert memory.events("s1") == events
    memory.delete(events[1].event_id)
    assert memory.events("s1") == [events[0], events[2]]


def test_invalid_input_is_one_clear_line(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="limit=0"):
        memory.events("s1", limit=0)
    with pytest.raises(InvalidInput, match="NUL"):
        memory.events("s1\x00")
