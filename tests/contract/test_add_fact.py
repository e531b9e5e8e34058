"""Facts that a caller extracted: semantic notes that supersede earlier values, revertible, erasable and stored once."""

from __future__ import annotations

from typing import Any

import pytest

from zettel import Memory, Scope, acting_as
from zettel.errors import EventDeleted, IdentityConflict, InvalidEvent, InvalidInput, NotFound
from zettel.model import Kind, LinkType, Note

pytestmark = pytest.mark.over_http


def note_of(memory: Memory, id: str) -> Note:
    note = memory.get(id)
    assert isinstance(note, Note)
    return note


def types(memory: Memory, id: str) -> list[tuple[str, str]]:
    """Return the links that a note starts, without those that a job found meanwhile."""
    links = [link for link in memory.links(id) if link.source == id and link.type is not LinkType.RELATES]
    return sorted((link.type.value, link.target) for link in links)


def test_a_fact_supersedes_the_former_value(memory: Memory) -> None:
    old = memory.add_fact("Ann", "home", "Porto", valid_from="2023-02-01")
    other = memory.add_fact("Bo", "home", "Oslo", valid_from="2023-03-01")
    new = memory.add_fact("ann", "Home", "Braga", valid_from="2024-07-01")
    again = memory.add_fact("Ann", "home", "Braga", valid_from="2025-01-01")
    fact = note_of(memory, new)
    assert (fact.kind, fact.content) == (Kind.SEMANTIC, "ann, Home: Braga")
    assert fact.metadata == {"fact": "ann/home", "subject": "ann", "attribute": "Home", "value": "Braga"}
    assert note_of(memory, old).valid_to == fact.valid_from
    assert fact.valid_to is None
    assert note_of(memory, other).valid_to is None
    assert types(memory, new) == [("SUPERSEDES", old)]
    assert ("SUPERSEDES", new) not in types(memory, again)
    assert [note.id for note in memory.query(kinds=["semantic"], as_of="2023-06-01").notes] == [old, other]


def test_values_may_arrive_in_any_order(memory: Memory) -> None:
    years = {year: memory.add_fact("Ann", "home", town, valid_from=f"{year}-01-01")
             for year, town in ((2024, "Braga"), (2020, "Oslo"), (2022, "Porto"))}  # fmt: skip
    ends = {year: note_of(memory, id).valid_to for year, id in years.items()}
    assert {year: end and end.year for year, end in ends.items()} == {2020: 2022, 2022: 2024, 2024: None}
    bounded = memory.add_fact("Ann", "car", "Corsa", valid_from="2019-01-01", valid_to="2021-01-01")
    end = note_of(memory, bounded).valid_to
    assert end is not None
    assert end.year == 2021


def test_revert_undoes_all_effects_and_the_fact_is_not_made_again(memory: Memory) -> None:
    old = memory.add_fact("Ann", "home", "Porto", valid_from="2023-02-01")
    fields: dict[str, Any] = {"valid_from": "2024-07-01", "id": "crm-12"}
    new = memory.add_fact("Ann", "home", "Braga", **fields)
    memory.revert(new, 1)
    assert note_of(memory, old).valid_to is None
    assert memory.add_fact("Ann", "home", "Braga", **fields) == new
    assert note_of(memory, old).valid_to is None


def test_a_fact_is_stored_once(memory: Memory) -> None:
    first = memory.add_fact("Ann", "home", "Porto", id="crm-1")
    assert memory.add_fact("Ann", "home", "Porto", id="crm-1") == first
    cars = [memory.add_fact("Ann", "car", "Corsa", valid_from="2024-05-01") for _ in range(2)]
    assert cars[0] == cars[1]
    assert memory.query(limit=0).count == 2
    assert len(memory.history(first)) == 2
    with pytest.raises(IdentityConflict):
        memory.add_fact("Ann", "home", "Oslo", id="crm-1")
    memory.delete("crm-1")
    with pytest.raises(EventDeleted):
        memory.add_fact("Ann", "home", "Porto", id="crm-1")


def test_a_fact_is_deleted_with_its_source(memory: Memory) -> None:
    source = memory.add("We live in Porto.", speaker="Ann", id="turn-7")
    fact = memory.add_fact("Ann", "home", "Porto", sources=["turn-7"])
    assert types(memory, fact) == [("DERIVED_FROM", source)]
    memory.delete(source)
    with pytest.raises(NotFound):
        memory.get(fact)
    assert list(memory.dump()) == []  # the fact's own event too
    with pytest.raises(NotFound):
        memory.add_fact("Ann", "home", "Porto", sources=["n_0123456789abcdef0123"])


@pytest.mark.parametrize("name", ["id", "session"])
def test_a_fact_with_a_faulty_field_is_not_stored(memory: Memory, name: str) -> None:
    faulty: dict[str, Any] = {name: 5}
    with pytest.raises((InvalidEvent, InvalidInput), match=f"{name}: Input should be a valid string"):  # by HTTP
        memory.add_fact("Ann", "home", "Porto", **faulty)
    assert list(memory.dump()) == []


def test_the_current_fact_survives_the_delete_of_a_former_one(memory: Memory) -> None:
    memory.add("We live in Porto.", speaker="Ann", id="turn-7")
    memory.add("We have moved to Braga.", speaker="Ann", id="turn-9")
    old = memory.add_fact("Ann", "home", "Porto", valid_from="2023-02-01", sources=["turn-7"])
    new = memory.add_fact("Ann", "home", "Braga", valid_from="2024-07-01", sources=["turn-9"])
    bare = memory.add_fact("Ann", "home", "Oslo", valid_from="2025-07-01", valid_to="2030-01-01")
    memory.delete("turn-7")
    with pytest.raises(NotFound):
        memory.get(old)
    assert (note_of(memory, new).kind, note_of(memory, bare).kind) == (Kind.SEMANTIC, Kind.SEMANTIC)
    memory.delete(new)
    last = note_of(memory, bare)
    assert (last.kind, last.valid_to and last.valid_to.year) == (Kind.SEMANTIC, 2030)
    assert types(memory, bare) == []
    assert memory.check() == []


@pytest.mark.here
def test_a_fact_of_less_trust_only_contradicts(memory: Memory) -> None:
    old = memory.add_fact("Ann", "home", "Porto", valid_from="2023-02-01")
    with acting_as("tool:crawler", 0.5):
        new = memory.add_fact("Ann", "home", "Braga", valid_from="2024-07-01")
    page = memory.add("Ann's home is in Oslo.", role="document")
    derived = memory.add_fact("Ann", "home", "Oslo", valid_from="2025-07-01", sources=[page])
    assert types(memory, new) == [("CONTRADICTS", old)]
    assert note_of(memory, old).valid_to is None
    assert note_of(memory, derived).trust == 0.5
    assert ("CONTRADICTS", old) in types(memory, derived)


def test_facts_of_other_scopes_are_separate(memory: Memory) -> None:
    old = memory.add_fact("Ann", "home", "Porto")
    memory.add_fact("Ann", "home", "Braga", scope=Scope(user="bob"))
    assert note_of(memory, old).valid_to is None
    assert {link.type for link in memory.links(old)} <= {LinkType.RELATES}


@pytest.mark.parametrize(
    ("fields", "error_text"),
    [
        ({"value": " "}, "value is empty"),
        ({"subject": "\x00"}, "NUL"),
        ({"valid_from": "2024-05-01", "valid_to": "2023-05-01"}, "before valid_from"),
        ({"valid_from": "May"}, "not a time"),
    ],
)
def test_invalid_facts_are_one_clear_line(memory: Memory, fields: dict[str, Any], error_text: str) -> None:
    with pytest.raises(InvalidInput, match=error_text):
        memory.add_fact(**{"subject": "Ann", "attribute": "home", "value": "Porto"} | fields)
    assert memory.query(limit=0).count == 0
