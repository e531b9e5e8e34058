"""What makes an event this event."""

from __future__ import annotations

from zettel import Event
from zettel.core.identity import Ordinals, identity_bytes, identity_of, same_content

SECRET = b"s" * 16


def identity(event: Event, ordinal: int = 0, secret: bytes = SECRET) -> str:
    return identity_of(identity_bytes(event, ordinal), secret)


def test_the_callers_id_is_enough() -> None:
    assert identity(Event(id="a", content="x")) == identity(Event(id="a", content="y"), 3)
    assert identity(Event(id="a", content="x")) != identity(Event(id="b", content="x"))


def test_without_one_it_is_what_was_said_by_whom_when_and_how_often() -> None:
    event = Event(content="x", occurred_at="2024-01-01")
    assert identity(event) == identity(event.model_copy(update={"metadata": {"a": 1}}))
    assert identity(event) != identity(event, 1)
    for field, value in [("speaker", "Ann"), ("session", "s"), ("title", "t"), ("payload", {"a": 1}), ("content", "y")]:
        assert identity(event) != identity(event.model_copy(update={field: value}))


def test_with_neither_it_is_always_new() -> None:
    assert identity(Event(content="x")) != identity(Event(content="x"))


def test_the_hash_is_keyed() -> None:
    assert identity(Event(id="a", content="x")) != identity(Event(id="a", content="x"), secret=b"t" * 16)


def test_ordinals_count_what_is_identical() -> None:
    ordinals = Ordinals()
    at = {"occurred_at": "2024-05-01T09:00Z"}
    told = [Event(content="yes", **at), Event(content="no", **at), Event(content="yes", source="f", **at)]
    assert [ordinals.next(event) for event in told] == [0, 0, 1]


def test_ordinals_leave_out_what_is_known_otherwise() -> None:
    ordinals = Ordinals()
    at = {"occurred_at": "2024-05-01T09:00Z"}
    told = [Event(content="yes", id="a", **at), Event(content="yes"), Event(content="yes"), Event(content="yes", **at)]
    assert [ordinals.next(event) for event in told] == [0, 0, 0, 0]


def test_same_content_looks_at_metadata_but_not_at_the_source() -> None:
    event = Event(content="x", metadata={"a": 1}, source="f")
    assert same_content(event, event.model_copy(update={"source": None}))
    assert not same_content(event, event.model_copy(update={"metadata": {}}))
