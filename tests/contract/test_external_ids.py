"""A caller's own id of an event, wherever a note's id is accepted, also through a server."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.support import noted
from zettel import Memory
from zettel.errors import NotFound

pytestmark = pytest.mark.over_http

IDS = [
    "boats/blue-heron", "D1:3", "größe 1", "käse/../1", ".", "..", "a?b=c#d", "50%", "%2F", "a%2Fb", "~", "e_1", "n_x",
    "notes/history", "\n", "line\r\nbreak", "中", "😀", " ", "x" * 5_000,
]  # fmt: skip
"""Ids with the characters that separate, end or hide the parts of a path."""


@pytest.mark.any_store  # a store sees a hash of the id
@pytest.mark.parametrize("id", IDS, ids=[ascii(id[:20]) for id in IDS])
def test_every_method_accepts_an_external_id(memory: Memory, id: str) -> None:
    note_id = memory.add("The kettle is blue.", id=id, session="kitchen")
    other_id = memory.add("The teapot is red.", id="2", session="kitchen")
    assert noted(memory, id).id == note_id
    assert noted(memory, id).external_id == id
    assert memory.search("kettle")[0].note.external_id == id
    assert memory.update(id, importance=0.9).id == note_id
    assert memory.link(id, "2").target == other_id
    assert memory.link("2", id).target == note_id
    assert {link.source for link in memory.links(id)} == {note_id, other_id}
    assert [neighbor.note.id for neighbor in memory.neighbors(id)] == [other_id]
    assert [note.id for note in memory.graph(id).notes] == [note_id, other_id]
    assert memory.terms(id) == memory.terms(note_id)
    assert {revision.note for revision in memory.history(id)} == {note_id}
    assert memory.revert(id, 1).importance != 0.9
    assert memory.archive(id).archived
    assert not memory.unarchive(id).archived
    assert [note.id for note in memory.quarantine(id, "wrong")] == [note_id]
    assert [note.id for note in memory.release(id)] == [note_id]
    assert memory.revert_effects(id) == []
    memory.search("kettle", log=True)
    memory.feedback(memory.searches()[-1].id, [id])
    assert memory.searches()[-1].used == (note_id,)
    assert memory.delete(id) == 1
    for method in (memory.get, memory.history, memory.delete, memory.terms):
        with pytest.raises(NotFound):
            method(id)


@pytest.mark.any_store
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(id=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_text_is_an_id(memory: Memory, id: str) -> None:
    unique = f"{id}{uuid4().hex}{id}"
    memory.add("The kettle is blue.", id=unique)
    assert noted(memory, unique).external_id == unique


@pytest.mark.parametrize("id", ["", "unknown", "\ud800", "a\0b", "n_", "n_1f2e", "e_x"])
def test_an_unknown_id_is_not_found(memory: Memory, id: str) -> None:
    for method in (memory.get, memory.history, memory.delete, memory.links, memory.terms, memory.archive):
        with pytest.raises(NotFound):
            method(id)


@pytest.mark.any_store
def test_an_empty_id_counts_as_none(memory: Memory) -> None:
    ids = [memory.add(text, id="") for text in ("The kettle is blue.", "The teapot is red.")]
    assert [noted(memory, id).external_id for id in ids] == [None, None]
