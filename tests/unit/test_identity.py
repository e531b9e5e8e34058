"""Identity of events."""

from __future__ import annotations

from zettel import Event
from zettel.core.identity import Ordinals, identity_bytes, identity_of, same_content

SECRET = b"s" * 16


def identity(event: Event, ordinal: int = 0, secret: bytes = SECRET) -> str:
    return identity_of(identity_bytes(event, ordinal), secret)


def test_the_external_id_is_the_identity() -> None:
    assert identity(Event(id="a", content="x")) == identity(Event(id="a", content="y"), 3)
    assert identity(Event(id="a", content="x")) != identity(Event(id="b", content="x"))


def test_without_external_id_content_speaker_time_and_ordinal_are_the_identity() -> None:
    event = Event(content="x", occurred_at="2024-01-01")
    assert identity(event) == identity(event.model_copy(update={"metadata": {"a": 1}}))
    assert identity(event) != identity(event, 1)
    for field, value in [("speaker", "Ann"), ("session", "s"), ("title", "t"), ("payload", {"a": 1}), ("content", "y")]:
        assert identity(event) != identity(event.model_copy(update={field: value}))


def test_without_external_id_and_time_an_event_is_always_new() -> None:
    assert identity(Event(content="x")) != identity(Event(content="x"))


def test_the_hash_is_keyed() -> None:
    assert identity(Event(id="a", content="x")) != identity(Event(id="a", content="x"), secret=b"t" * 16)


def test_ordinals_count_identical_events() -> None:
    ordinals = Ordinals()
    at = {"occurred_at": "2024-05-01T09:00Z"}
    events = [Event(content="yes", **at), Event(content="no", **at), Event(content="yes", source="f", **at)]
    assert [ordinals.next(event) for event in events] == [0, 0, 1]


def test_ordinals_ignore_events_with_external_ids() -> None:
    ordinals = Ordinals()
    at = {"occurred_at": "2024-05-01T09:00Z"}
    turns = [Event(content="yes", id="a", **at), Event(content="yes"), Event(content="yes"), Event(content="yes", **at)]
    assert [ordinals.next(event) for event in turns] == [0, 0, 0, 0]


def test_same_content_compares_metadata_but_not_the_source() -> None:
    event = Event(content="x", metadata={"a": 1}, source="f")
    assert same_content(event, event.model_copy(update={"source": None}))
    assert not same_content(event, event.model_copy(update={"metadata": {}}))
