"""A caller's own id of an event, wherever a note's id is accepted."""

from __future__ import annotations

import pytest

from zettel import Event, Memory
from zettel.errors import NotFound
from zettel.model import Note


def test_methods_accept_external_ids() -> None:
    with Memory(":memory:") as memory:
        note_id = memory.add("The kettle is blue.", id="käse/1")
        memory.add("The teapot is red.", id="2")
        note = memory.get("käse/1")
        assert isinstance(note, Note)
        assert (note.id, note.external_id) == (note_id, "käse/1")
        assert memory.search("kettle")[0].note.external_id == "käse/1"
        assert memory.link("käse/1", "2").source == note_id
        assert memory.links("käse/1")
        assert memory.update("käse/1", importance=0.9).id == note_id
        assert [revision.note for revision in memory.history("käse/1")] == [note_id] * 3
        assert memory.revert("käse/1", 1).version == 4
        assert memory.archive("2").external_id == "2"
        assert memory.delete("käse/1") == 1
        for method in (memory.get, memory.history, memory.delete, memory.terms):
            with pytest.raises(NotFound, match="käse/1"):
                method("käse/1")


def test_former_name_of_the_field() -> None:
    assert Event.model_validate({"content": "x", "id": "1"}).external_id == "1"
    assert Event.model_validate_json('{"content": "x", "id": "1"}').model_dump()["external_id"] == "1"
