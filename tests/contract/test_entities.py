"""Entities: names with kinds, merged and split by rules, people and a model, and erased with the notes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_annotation import model
from tests.contract.test_erasable import traces as traces  # a fixture
from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import Memory, Scope, acting_as
from zettel.errors import InvalidInput, NotFound
from zettel.model import EntityDetails

pytestmark = pytest.mark.over_http

CHAT = (
    ("2024-01-03", "s1", "My wife Ana starts at the Porto clinic on Monday."),
    ("2024-01-09", "s2", "We had dinner with Ann Berg. Ann wrote to us about her move to Oslo."),
    ("2024-02-01", "s3", "Ann lives in Oslo now."),
    ("2024-02-10", "s4", "My wife works at Siemens."),
    ("2024-04-01", "s6", "Ann moved to Bergen last week."),
    ("2024-05-03", "s7", "Ana left Siemens."),
)


def remember(memory: Memory, *texts: tuple[str, str, str], **event: Any) -> list[str]:
    fields = {"role": "user", **event}
    return [memory.add(text, occurred_at=day, session=session, **fields) for day, session, text in texts]


def names_of(memory: Memory, name: str, **scope: Any) -> set[str]:
    entity = memory.entity(name, **scope)
    return {entity.name, *entity.aliases}


def facts_of(entity: EntityDetails) -> list[tuple[str, str, bool]]:
    return [(fact.attribute, fact.value, fact.current) for fact in entity.facts]


def test_entities_have_kinds_aliases_and_counts(memory: Memory) -> None:
    remember(memory, *CHAT)
    found = {entity.name: (entity.kind, entity.aliases, entity.notes) for entity in memory.entities().entities}
    assert found["Ana"] == ("person", ("my wife",), 3)
    assert found["Ann"] == ("person", ("Ann Berg",), 3)
    assert found["Oslo"] == ("place", (), 2)
    assert found["Siemens"] == ("organisation", (), 2)
    assert [entity.name for entity in memory.entities(kind="organisation").entities] == ["Siemens"]
    first = memory.entities(kind="person", limit=1)
    rest = memory.entities(kind="person", limit=1, cursor=first.cursor)
    assert [entity.name for entity in (*first.entities, *rest.entities)] == ["Ana", "Ann"]
    assert rest.cursor is None
    assert memory.entities(scope=Scope(user="nobody")).entities == ()
    with pytest.raises(InvalidInput, match="kind"):
        memory.entities(kind="animal")  # type: ignore[arg-type]


def test_an_entity_has_facts_a_timeline_and_neighbours_under_all_names(memory: Memory) -> None:
    ids = remember(memory, *CHAT)
    memory.flush()
    ana = memory.entity("my wife")
    assert [note.id for note in ana.timeline] == [ids[0], ids[3], ids[5]]
    assert facts_of(ana) == [("role", "Ana", True), ("work", "Siemens", False), ("work", "Siemens", False)]
    (merge,) = ana.merges
    assert (merge.by, merge.note, merge.sources) == ("rule", None, (ids[0],))
    assert merge.reason == 'the user wrote "my wife Ana"'
    siemens = next(neighbor for neighbor in ana.neighbors if neighbor.name == "Siemens")
    assert (siemens.kind, siemens.count, siemens.notes) == ("organisation", 2, (ids[3], ids[5]))
    ann = memory.entity("Ann Berg")
    assert ("home", "Oslo", False) in facts_of(ann)
    assert ("home", "Bergen", True) in facts_of(ann)
    old = next(fact for fact in ann.facts if fact.value == "Oslo")
    assert (old.note, old.valid_to and old.valid_to.date().isoformat()) == (ids[2], "2024-04-01")
    assert [note.id for note in memory.entity("Ann", limit=1).timeline] == [ids[4]]
    fact = memory.add_fact("Ann Berg", "car", "Corsa")
    assert ("car", "Corsa", True) in facts_of(memory.entity("Ann"))
    assert memory.entity("Ann").facts[-1].note == fact
    memory.update(fact, valid_to="2199-01-01")
    assert ("car", "Corsa", True) in facts_of(memory.entity("Ann")), "it is still true"
    first = memory.add_fact("Ann Berg", "car", "Astra", valid_from="1999-01-01")
    assert memory.entity("Ann").facts[0].note == first


def test_unknown_and_ambiguous_names_are_errors(memory: Memory) -> None:
    remember(memory, ("2024-01-01", "a", "I met Ida Berg."), ("2024-01-02", "b", "I met Ida Lund, too."))
    with pytest.raises(NotFound, match="'Zorg' is not in the names of"):
        memory.entity("Zorg")
    with pytest.raises(NotFound, match="a role has no entity; `context"):
        memory.entity("user")
    with pytest.raises(InvalidInput, match="'Ida' may be Ida Berg, Ida Lund"):
        memory.entity("Ida")
    with pytest.raises(InvalidInput, match="name is empty"):
        memory.entity("…")
    with pytest.raises(NotFound):
        memory.merge_entities("Zorg", "Ida Berg")
    with pytest.raises(InvalidInput, match="are the same name"):
        memory.split_entity("Ida Berg", "ida  BERG")


@pytest.mark.parametrize(
    "texts",
    [
        ["My wife Ana rang.", "My wife Eva rang."],  # two names
        ["I wrote: \"my wife Ana rang\"."],  # a quotation
        ["Is it true that my boss Carla resigned?"],  # a question
        ["My wife is American."],
        ["My sister Laura rang."],  # one may have several sisters
        ["I met Ann Berg and Ann Lund.", "Ann rang."],
    ],
)  # fmt: skip
def test_doubtful_names_are_not_merged(memory: Memory, texts: list[str]) -> None:
    remember(memory, *((f"2024-01-0{day}", "s", text) for day, text in enumerate(texts, 1)))
    assert [entity.aliases for entity in memory.entities().entities if entity.aliases] == []


def test_first_names_in_different_sessions_are_not_merged(memory: Memory) -> None:
    remember(memory, ("2024-01-01", "a", "I read a novel by Ann Berg."), ("2024-06-01", "b", "Ann sent me a joke."))
    assert names_of(memory, "Ann") == {"Ann"}


def test_the_relations_of_several_people_have_their_names(memory: Memory) -> None:
    memory.add("My wife Ana sings.", speaker="Bob", session="s")
    memory.add("My wife Eva paints.", speaker="Carl", session="s")
    assert names_of(memory, "Bob's wife") == {"Ana", "Bob's wife"}
    assert names_of(memory, "Carl's wife") == {"Eva", "Carl's wife"}
    with pytest.raises(NotFound):
        memory.entity("my wife")


def test_what_others_write_merges_nothing(memory: Memory) -> None:
    memory.add("My wife Ana sings.", role="assistant")
    memory.add("My wife Ana sings.", role="document", title="A novel")
    assert names_of(memory, "Ana") == {"Ana"}


def test_merges_and_splits_are_recorded_and_reverted(memory: Memory) -> None:
    remember(memory, *CHAT)
    split = memory.split_entity("Ann", "Ann Berg", reason="two people")
    assert names_of(memory, "Ann") == {"Ann"}
    assert [(r.cause.by.value, r.cause.reason) for r in memory.history(split.id)][-1] == ("user", "two people")
    assert memory.split_entity("Ann Berg", "Ann").id == split.id  # the same decision
    memory.revert(split.id, 1)
    assert names_of(memory, "Ann") == {"Ann", "Ann Berg"}
    memory.revert(split.id, 2)
    assert names_of(memory, "Ann") == {"Ann"}
    merge = memory.merge_entities("Ann", "Ann Berg", reason="one after all")  # the later decision counts
    (why,) = memory.entity("Ann Berg").merges
    assert (why.by, why.reason, why.note) == ("user", "one after all", merge.id)
    memory.revert(merge.id, 1)
    assert names_of(memory, "Ann") == {"Ann"}
    memory.merge_entities("Ann", "Annie")
    assert names_of(memory, "annie") == {"Ann", "Annie"}
    memory.split_entity("Ana", "my wife")  # overrules a rule
    assert names_of(memory, "Ana") == {"Ana"}


def test_a_split_overrules_a_chain_of_merges(memory: Memory) -> None:
    remember(memory, ("2024-01-01", "a", "I met Ida."), ("2024-01-02", "b", "I met Eva."),
             ("2024-01-03", "c", "I met Mia."))  # fmt: skip
    memory.merge_entities("Ida", "Eva")
    memory.split_entity("Ida", "Mia")
    memory.merge_entities("Eva", "Mia")  # the last word: now the split is void
    assert names_of(memory, "Mia") == {"Eva", "Mia"}
    assert names_of(memory, "Ida") == {"Ida"}


def test_decisions_are_no_hits_and_name_nobody(memory: Memory) -> None:
    ids = remember(memory, *CHAT)
    memory.merge_entities("Ann", "Annie", reason="a nickname")
    memory.flush()
    assert memory.entity("Ann").notes == 3
    assert {hit.note.id for hit in memory.search("Who is Annie, also called Ann Berg?")} <= set(ids)
    assert {hit.note.id for hit in memory.search("What are the main topics?")} <= set(ids)


@pytest.mark.here
def test_a_decision_without_full_trust_waits_for_a_person(memory: Memory) -> None:
    remember(memory, *CHAT)
    with acting_as("tool:crawler", trust=0.5):
        note = memory.merge_entities("Ann", "Ana")
    assert "Ana" not in names_of(memory, "Ann")
    memory.confirm(note.id)
    assert "Ana" in names_of(memory, "Ann")


@pytest.mark.here
def test_quarantine_suspends_a_decision(memory: Memory) -> None:
    remember(memory, *CHAT)
    with acting_as("ann", trust=1.0):
        memory.merge_entities("Ann", "Ana")
    memory.quarantine(principal="ann", reason="stolen key")
    assert "Ana" not in names_of(memory, "Ann")
    memory.release(principal="ann")
    assert "Ana" in names_of(memory, "Ann")


def test_a_decision_is_deleted_with_the_last_note_that_contains_a_name(memory: Memory) -> None:
    ids = remember(memory, *CHAT)
    note = memory.merge_entities("Ann", "Annie")
    memory.delete(ids[1])
    memory.delete(ids[2])
    assert names_of(memory, "Annie") == {"Ann", "Annie"}
    memory.delete(ids[4])
    with pytest.raises(NotFound):
        memory.get(note.id)
    with pytest.raises(NotFound):
        memory.entity("Annie")
    remember(memory, ("2024-07-01", "s9", "Ann is back."))
    assert names_of(memory, "Ann") == {"Ann"}
    assert memory.merge_entities("Ann", "Annie").id != note.id


@pytest.mark.here
def test_nothing_of_an_erased_name_remains_in_the_files(url: Any, traces: Callable[[str], list[str]]) -> None:
    with Memory(url) as memory:
        ids = remember(memory, ("2024-01-01", "a", "I met Zhvorbel."), ("2024-01-02", "a", "It rained."))
        merge = memory.merge_entities("Zhvorbel", "Zhvorbelinka", reason="Zhvorbel has a nickname")
        memory.revert(merge.id, 1)
        memory.split_entity("Zhvorbel", "Zhvorbelon")
        memory.entity("Zhvorbel")
        memory.delete(ids[0])
        memory.flush()
        assert [entity.name for entity in memory.entities().entities] == []
        assert memory.check() == []
    assert traces("Zhvorbel") == []


@pytest.mark.here
def test_decisions_move_to_another_store(memory: Memory, tmp_path: Path) -> None:
    remember(memory, *CHAT)
    memory.split_entity("Ann", "Ann Berg", reason="two people")
    merge = memory.merge_entities("Ann", "Annie")
    memory.flush()  # no job writes during the export
    memory.export(tmp_path / "all.zettel", "zettel")
    with Memory(tmp_path / "there.db") as moved:
        moved.import_transcript(tmp_path / "all.zettel")
        assert names_of(moved, "Annie") == {"Ann", "Annie"}
        assert moved.entities() == memory.entities()
        moved.revert(merge.id, 1)
        assert names_of(moved, "Ann") == {"Ann"}
        for event, notes in [*moved.dump()]:
            if "Ann" in event.content and event.source is None:
                moved.delete(notes[0].id)
        assert "Ann" not in {entity.name for entity in moved.entities().entities}
        assert [event.content for event, _ in moved.dump() if "Ann" in event.content] == []


FAMILY = (
    ("2024-01-03", "s1", "Tom starts at the harbour office on Monday, as a crane driver."),
    ("2024-01-09", "s2", "Tommy Reed likes the crane at the harbour office."),
    ("2024-01-19", "s3", "I had lunch with Tom by the water."),
)


def same(request: dict[str, Any]) -> str:
    prompt = request["messages"][-1]["content"]
    if not prompt.startswith("pairs:"):
        return reply(request)
    pairs = [json.loads(line) for line in prompt.splitlines()[1:]]
    return json.dumps({"same": [{"id": pair["id"], "reason": "both drive the crane"} for pair in pairs]})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(same) as started:
        yield started


@pytest.mark.here
def test_a_model_merges_names_once_and_a_revert_stays(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = remember(memory, *FAMILY)
        memory.flush(timeout=60)
        memory.evolve()
        (why,) = memory.entity("Tom").merges
        assert (why.by, why.reason, set(why.names)) == ("reflect", "both drive the crane", {"Tom", "Tommy Reed"})
        assert set(why.sources) == set(ids)
        assert memory.history(why.note or "")[-1].cause.prompt == "entities/1"
        calls = memory.stats()["llm_calls"]
        memory.evolve()
        assert memory.stats()["llm_calls"] == calls
        memory.revert(why.note or "", 1)
        memory.evolve()
        assert names_of(memory, "Tom") == {"Tom"}


@pytest.mark.here
def test_people_overrule_a_model(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = remember(memory, *FAMILY)
        memory.flush(timeout=60)
        memory.evolve()
        memory.split_entity("Tom", "Tommy Reed", reason="father and son")
        assert names_of(memory, "Tom") == {"Tom"}
        memory.evolve()
        assert names_of(memory, "Tom") == {"Tom"}
        memory.merge_entities("Tom", "Tommy Reed")
        memory.delete(ids[1])
        assert names_of(memory, "Tom") == {"Tom"}
