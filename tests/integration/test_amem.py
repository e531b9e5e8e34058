"""A-MEM's interface follows A-MEM's documentation, and its notes persist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput, JobFailed
from zettel.integrations.amem import UNSORTED, AgenticMemorySystem, MemoryNote

pytestmark = pytest.mark.integration


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "a.db", scope=Scope(user="ann")) as instance:
        yield instance


@pytest.fixture
def system(memory: Memory) -> AgenticMemorySystem:
    return AgenticMemorySystem(memory)


def test_given_fields_are_stored(system: AgenticMemorySystem) -> None:
    first, second = system.add_note("Spruce is split, not sawn."), system.add_note("Maple is bent over a hot iron.")
    fields: dict[str, Any] = {
        "content": "A violin is glued with hide glue.", "tags": ["glue", "violin"], "keywords": ["hide", "glue"],
        "links": [second, first], "context": "Giulia explains her workshop.", "category": "Craft",
    }  # fmt: skip
    id = system.add_note(**fields, timestamp="202405011830", evolution_history=["was heard"], retrieval_count=7)
    note = system.read(id)
    assert isinstance(note, MemoryNote)
    assert {name: getattr(note, name) for name in fields} == fields
    assert (note.id, note.retrieval_count) == (id, 0)
    assert note.timestamp == note.last_accessed == "202405011830"
    assert note.evolution_history[0] == "was heard"
    assert [first["by"] for first in note.evolution_history[1:]][:1] == ["user"]
    stored = system.memory.get(id)
    assert str(stored.occurred_at) == "2024-05-01 18:30:00+00:00"
    (bare,) = [system.read(first)]
    assert bare is not None
    assert bare.keywords  # extracted from the content
    assert (bare.category, bare.links, bare.evolution_history) == (UNSORTED, [], [])
    assert bare.timestamp == bare.last_accessed
    assert len(bare.timestamp) == 12
    assert system.read("nobody") is None


def test_links_are_stored_and_followed_in_searches(system: AgenticMemorySystem) -> None:
    """Unknown ids are skipped; a search finds linked notes that share no word with the question."""
    iron = system.add_note("The iron is kept at two hundred degrees.")
    bent = system.add_note("Maple ribs are bent by hand.", links=["nobody", iron, "n_0"])
    for number in range(8):
        system.add_note(f"Kettle number {number} whistles.", links=[])
    system.memory.flush()
    ribs = system.read(bent)
    assert ribs is not None
    assert ribs.links == [iron]
    hits = system.search_agentic("How are maple ribs made?", k=2)
    assert [(hit["id"], hit["is_neighbor"]) for hit in hits] == [(bent, False), (iron, True)]
    assert hits[0]["score"] > hits[1]["score"]
    reverse_hits = system.search_agentic("At how many degrees is the iron kept?", k=2)
    assert [(hit["id"], hit["is_neighbor"]) for hit in reverse_hits] == [(iron, False), (bent, True)]
    assert hits[0].keys() == {"id", "content", "context", "keywords", "tags", "timestamp", "category", "score",
                               "is_neighbor"}  # fmt: skip
    raw = system.find_related_memories_raw("How are maple ribs made?", k=1)
    assert [line.split("\t")[1] for line in raw.splitlines()] == [
        "memory content: Maple ribs are bent by hand.", "memory content: The iron is kept at two hundred degrees.",
    ]  # fmt: skip
    note = system.read(iron)
    assert note is not None
    note.links.append(bent)
    assert system.update(iron, links=note.links)
    assert system.update(bent, links=[iron])  # the link exists already
    assert [note.links for note in map(system.read, (iron, bent)) if note] == [[bent], [iron]]
    with pytest.raises(InvalidInput, match=f"cannot remove the links to {iron}: use Memory.revert"):
        system.update(bent, links=[])
    assert system.delete(iron)
    remaining = system.read(bent)
    assert remaining is not None
    assert remaining.links == []


def test_near_notes_can_be_linked_manually(system: AgenticMemorySystem) -> None:
    first = system.add_note("The first of the notes on glue.")
    second = system.add_note("The second of the notes on glue.")
    system.memory.flush()
    assert system.memory.links(second)
    assert [note.links for note in system.memories.values()] == [[], []]
    system.update(second, links=[first])
    assert [note.links for note in system.memories.values()] == [[], [first]]


def test_find_related_memories_returns_the_documented_text(system: AgenticMemorySystem) -> None:
    assert system.find_related_memories("glue") == ("", [])
    assert system.find_related_memories_raw("glue") == ""
    system.add_note("Hide glue is warmed.", time="202405011830", keywords=["glue"], tags=["craft"], context="On glue.")
    system.add_note("Bone glue is brittle.")
    text, numbers = system.find_related_memories("Which glue is warmed?", k=2)
    assert numbers == [0, 1]
    lines = text.splitlines()
    assert lines[0] == (
        "memory index:0\ttalk start time:202405011830\tmemory content: Hide glue is warmed.\tmemory context: On glue."
        "\tmemory keywords: ['glue']\tmemory tags: ['craft']"
    )
    assert lines[1].startswith("memory index:1\t")
    assert [hit["content"] for hit in system.search("Which glue is warmed?", k=1)] == ["Hide glue is warmed."]
    assert system.search("glue", k=1)[0].keys() == {"id", "content", "context", "keywords", "score"}


def test_a_note_can_be_updated_reverted_and_deleted(system: AgenticMemorySystem) -> None:
    id = system.add_note("The boat is red.", category="Boats")
    changed: dict[str, Any] = {"content": "The boat is blue.", "tags": ["boat"], "keywords": ["blue"],
                               "context": "New.", "category": "Ships"}  # fmt: skip
    assert system.update(id, **changed) is True
    note = system.read(id)
    assert {name: getattr(note, name) for name in changed} == changed
    assert system.search_agentic("Which colour is the boat?", k=1)[0]["content"] == "The boat is blue."
    assert note is not None
    assert note.evolution_history[-1]["changed"]["text"] == "The boat is blue."
    system.memory.revert(id, 1)
    assert [memory.content for memory in system.memories.values()] == ["The boat is red."]
    assert system.delete(id) is True
    assert system.read(id) is None
    assert system.search_agentic("The boat is blue.", k=1) == []
    assert (system.delete(id), system.update(id, content="x")) == (False, False)


LONG = " ".join(f"Chapter {n} tells of the sea and of ship {n}." for n in range(100))


@pytest.mark.parametrize("own_id", [None, "mine"])
def test_a_long_note_is_read_and_changed_as_one_note(system: AgenticMemorySystem, own_id: str | None) -> None:
    short = system.add_note("The harbour closes at ten.")
    id = system.add_note(LONG, tags=["sea"], links=[short], id=own_id)
    later = system.memory.list().notes[-1]
    assert later.part > 0
    assert list(system.memories) == [short, id]
    for note_id in (id, later.id):
        note = system.read(note_id)
        assert note is not None
        assert (note.id, note.content, note.tags, note.links) == (id, LONG, ["sea"], [short])
    (hit,) = system.search("What does chapter 97 tell of?", 1)
    assert (hit["id"], hit["content"]) == (id, LONG)
    assert system.search_agentic("What does chapter 97 tell of?", 1)[0]["tags"] == ["sea"]
    assert LONG in system.find_related_memories("What does chapter 97 tell of?", 1)[0]
    assert system.memories[id].retrieval_count == 3
    for content in ("The book was lost.", LONG + "\n" + LONG):
        assert system.update(id, content=content, category="Books")
        note = system.read(id)
        assert note is not None
        assert (note.content, note.category, note.tags) == (content, "Books", ["sea"])
    system.update(id, content="The book was found.")
    assert system.search("chapter 97 book", 5)[0]["content"] == "The book was found."
    assert [note.content for note in system.memory.list().notes][1:] == ["The book was found."]
    assert system.delete(later.id)
    assert list(system.memories) == [short]


def test_a_deleted_note_can_be_added_again(system: AgenticMemorySystem) -> None:
    for _ in range(3):
        assert system.add_note("The boat is red.", id="mine", time="202405011830") == "mine"
        assert list(system.memories) == ["mine"]
        assert system.delete("mine")
        bare = system.add_note("The boat is red.", time="202405011830")
        assert list(system.memories) == [bare]
        assert system.delete(bare)


def test_an_archived_note_keeps_its_id(system: AgenticMemorySystem) -> None:
    system.add_note("The boat is red.", id="mine")
    (note,) = system.memory.list().notes
    system.memory.archive(note.id)
    assert list(system.memories) == []
    archived = system.read("mine")
    assert archived is not None
    assert (archived.id, archived.content) == ("mine", "The boat is red.")
    with pytest.raises(InvalidInput, match="there is a note 'mine' already"):
        system.add_note("The boat is red.", id="mine")
    assert system.update("mine", content="The boat is blue.")
    assert system.delete("mine")
    assert system.read("mine") is None
    system.add_note("The boat is red.", id="mine")  # with another event id
    system.memory.archive(system.memory.list().notes[0].id)
    with pytest.raises(InvalidInput, match="there is a note 'mine' already"):
        system.add_note("The boat is red.", id="mine")


def test_accesses_are_counted(system: AgenticMemorySystem) -> None:
    id = system.add_note("The boat is red.", time="in spring")
    for _ in range(2):
        system.search("Which colour is the boat?")
    note = system.read(id)
    assert note is not None
    assert (note.retrieval_count, note.timestamp) == (2, "in spring")
    assert note.last_accessed > "2026"
    assert system.memory.get(id).occurred_at is None
    system.search_agentic("boat")
    reopened = AgenticMemorySystem(system.memory)
    for instance in (system, reopened):
        assert [note.retrieval_count for note in instance.memories.values()] == [3]


def test_notes_persist_and_instances_share_them(tmp_path: Path) -> None:
    first = AgenticMemorySystem("all-MiniLM-L6-v2", None, url=tmp_path / "a.db")
    id = first.add_note("The boat is red.", id="mine")
    assert id == "mine"
    with pytest.raises(InvalidInput, match="there is a note 'mine' already: change it with update"):
        first.add_note("The boat is red.", id="mine")
    other = first.add_note("It is a gaff cutter.", links=["mine"])
    second = AgenticMemorySystem(model_name="sentence-transformers/all-MiniLM-L6-v2", llm_backend=None,
                                 url=tmp_path / "a.db")  # fmt: skip
    assert list(second.memories) == ["mine", other]
    assert len(second.memories) == 2
    assert "mine" in second.memories
    assert second.memories[other].links == ["mine"]
    assert second.search("Which colour is the boat?")[0]["id"] == "mine"
    with pytest.raises(KeyError):
        second.memories["nobody"]
    assert second.delete("mine")
    assert first.read("mine") is None
    for instance in (first, second):
        instance.memory.close()


def test_scopes_are_separate(memory: Memory) -> None:
    ann_system, bob_system = AgenticMemorySystem(memory), AgenticMemorySystem(memory, scope=Scope(user="bob"))
    id = ann_system.add_note("The code of the safe is 4711.")
    assert bob_system.read(id) is None
    assert bob_system.search("code of the safe") == []
    assert (bob_system.update(id, content="x"), bob_system.delete(id), dict(bob_system.memories)) == (False, False, {})


def test_notes_evolve_after_the_threshold(memory: Memory) -> None:
    repeated = "Ann painted the barn and used seven brushes."
    for number in range(2):
        system = AgenticMemorySystem(memory, evo_threshold=3)  # as in two programs
        system.add_note(repeated, time=f"20240501090{number}")
    memory.flush()
    assert len(system.memories) == 2
    system.add_note("Maple is bent over a hot iron.")
    memory.flush()
    assert [note.content for note in system.memories.values()].count(repeated) == 1
    system.add_note("Spruce is split, not sawn.")
    system.consolidate_memories()
    assert system.search_agentic("How is spruce worked?", k=1)[0]["content"] == "Spruce is split, not sawn."


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # LiteLLM leaves its connections open
def test_a_language_model_writes_the_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(reply) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        system = AgenticMemorySystem(llm_backend="openai", llm_model="gpt-4o-mini", api_key="none", url=":memory:")
        id = system.add_note("The neck of my cello cracked tonight.")
        system.consolidate_memories()
        (note,) = system.memories.values()
        assert system.memory.get(id).authored
        assert note.evolution_history[0]["model"] == "openai/gpt-4o-mini"
        assert server.asked
        system.memory.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_without_a_key_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    system = AgenticMemorySystem(url=":memory:")
    id = system.add_note("The neck of my cello cracked tonight.")
    assert system.search("What cracked?")[0]["id"] == id
    with pytest.raises(JobFailed, match="OPENAI_API_KEY"):
        system.consolidate_memories()
    system.memory.close()


def test_wrong_input_raises_clear_errors(system: AgenticMemorySystem) -> None:
    id = system.add_note("The boat is red.")
    for wrong, error_text in [
        ({"llm_backend": "sglang"}, "llm_backend='sglang' is unknown: use openai, ollama, openrouter, None, or"),
        ({"evo_threshold": 0}, "evo_threshold must be 1 or more notes, got 0"),
        ({"memory": AsyncMemory(":memory:")}, "memory must be a Memory, got AsyncMemory"),
        ({"memory": system.memory, "llm_model": "gpt-5"}, "a Memory has its own models and file"),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput, match=error_text):
            AgenticMemorySystem(**wrong)  # type: ignore[arg-type]
    for fields, error_text in [
        ({"mood": "x"}, "mood cannot be set: use content"),
        ({"tags": "x"}, "tags must be a list of strings"),
        ({"keywords": [7]}, "keywords must be a list"), ({"context": 7}, "context must be a string"),
        ({"tags": ["\ud800"]}, "tags: contains a lone surrogate"),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput, match=error_text):
            system.add_note("Another.", **fields)
        with pytest.raises(InvalidInput, match=error_text):
            system.update(id, **fields)
    with pytest.raises(InvalidInput, match="id cannot be set"):
        system.update(id, id="x")
    with pytest.raises(InvalidInput, match="is empty"):
        system.add_note(" ")
    for k in (0, 1.5):
        with pytest.raises(InvalidInput, match=f"k={k}"):
            system.search("boat", k=k)  # type: ignore[arg-type]
    assert list(system.memories) == [id]  # no partial change
