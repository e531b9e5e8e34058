"""Speakers, roles, and the implications between them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from zettel import Event, Memory
from zettel.core.arguments import checked
from zettel.errors import InvalidEvent, InvalidInput
from zettel.graph.bodies import body_of, read_body
from zettel.model import Cause, Note, Revision, Source, implied_role
from zettel.transcripts.records import ContentKeys, record

BODY = """{"id": "n_1", "content": "x", "event_ids": ["e_1"], "seq": 1, "recorded_at": "2024-01-01T00:00Z", %s}"""


@pytest.mark.parametrize(
    ("fields", "speaker", "role"),
    [
        ({}, None, None),
        ({"speaker": "Ann"}, "Ann", None),
        ({"speaker": "AI"}, "AI", "assistant"),
        ({"role": "tool"}, "tool", "tool"),
        ({"speaker": "Ann", "role": "user"}, "Ann", "user"),
    ],
)
def test_speaker_and_role_imply_each_other(fields: dict[str, str], speaker: str | None, role: str | None) -> None:
    event = Event.model_validate({"content": "x", **fields})
    assert (event.speaker, event.role) == (speaker, role)


def test_role_is_from_a_closed_set() -> None:
    with pytest.raises(ValidationError, match="role"):
        Event.model_validate({"content": "x", "speaker": "Ann", "role": "cook"})
    assert (implied_role("Human"), implied_role("Ann"), implied_role(None)) == ("user", None, None)


@pytest.mark.parametrize(
    ("named", "speaker", "role"),
    [("Ann", "Ann", None), ("human", "human", "user"), ("assistant", "assistant", "assistant")],
)
def test_old_records_name_the_speaker_as_role(named: str, speaker: str, role: str | None) -> None:
    note = read_body(Note, BODY % f'"role": "{named}"')
    assert (note.speaker, note.role) == (speaker, role)
    assert read_body(Note, body_of(note)) == note
    event = record({"content": "x", "role": named}, Source(file="old.jsonl"), ContentKeys())
    assert isinstance(event, Event)
    assert (event.speaker, event.role) == (speaker, role)
    change = {"note": "n_1", "version": 2, "seq": 2, "recorded_at": "2024-01-01T00:00Z", "cause": Cause(by="add")}
    revision = Revision.model_validate({**change, "change": {"role": named}})
    assert revision.change == {"speaker": speaker, "role": role}


def test_filters_by_speaker_and_by_role() -> None:
    with Memory(":memory:") as memory:
        memory.add("The kettle is blue.", speaker="Ann", role="user")
        memory.add("The kettle is red.", speaker="Bob")
        memory.add("The kettle is green.", role="assistant")

        def speakers(**filters: str) -> set[str | None]:
            listed = {note.speaker for note in memory.list(**filters).notes}  # type: ignore[arg-type]
            assert {hit.note.speaker for hit in memory.search("kettle", **filters)} == listed  # type: ignore[arg-type]
            return listed

        assert speakers(role="user") == speakers(speaker="Ann") == {"Ann"}
        assert speakers(role="assistant") == {"assistant"}
        assert speakers(role="tool") == set()
        with pytest.raises(InvalidInput, match="filter names with speaker="):
            speakers(role="Ann")


def test_a_name_as_role_is_refused_and_not_taken_for_a_speaker() -> None:
    with pytest.raises(InvalidEvent, match="role: Input should be 'user', 'assistant'"):
        checked({"content": "The kiln is cold.", "role": "Ann"})
