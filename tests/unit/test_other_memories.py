"""Stores of A-MEM, mem0, Graphiti and server-memory, read as events: ids, dates, users and kinds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from zettel import Memory
from zettel.errors import BadRecord
from zettel.model import Event, LinkType
from zettel.transcripts import Rejected
from zettel.transcripts.formats import amem, graphiti, mem0, server_memory
from zettel.transcripts.formats.memory_dumps import flat

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
CET = timezone(timedelta(hours=1))


def split_records(format: ModuleType, path: Path) -> tuple[list[Event], dict[str, str]]:
    records = list(format.read(path, CET))
    rejected = {record.position: record.reason for record in records if isinstance(record, Rejected)}
    return [record for record in records if isinstance(record, Event)], rejected


def dumped(folder: Path, value: Any) -> Path:
    path = folder / "dump.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


class TestAMem:
    def test_a_dump_is_read(self) -> None:
        (key, paint, sketch), rejected = split_records(amem, SAMPLES / "amem.json")
        assert key.content.startswith("Runa keeps the spare key")
        assert key.external_id == "0c0f6f3e-6f0e-4c1b-9a54-2f2d6a3f7a01"
        assert key.occurred_at == datetime(2024, 3, 2, 9, 15, tzinfo=CET)
        assert key.metadata == {
            "was": "A-MEM note", "context": "Where the spare key of the boathouse is kept.",
            "keywords": ["spare key", "boathouse"], "tags": ["household", "location"], "category": "Uncategorized",
            "links": ["5b7a1a7c-95f8-4a55-8f0c-8d5be2b7d802"],
        }  # fmt: skip
        assert paint.payload == {"evolution_history": [["update_neighbor", "5b7a1a7c"]]}
        assert (sketch.content, sketch.occurred_at) == ("[sketch] A new jetty", None)
        assert sketch.metadata["timestamp"] == "some day"
        assert rejected == {"3": "the note has no content"}

    def test_a_chroma_store_yields_the_events_of_the_dump(self) -> None:
        events, rejected = split_records(amem, SAMPLES / "amem-chroma")
        assert rejected == {}
        dump, _ = split_records(amem, SAMPLES / "amem.json")
        expected = {event.external_id: event.model_dump(exclude={"source"}) for event in dump}
        assert {event.external_id: event.model_dump(exclude={"source"}) for event in events} == expected
        by_file, _ = split_records(amem, SAMPLES / "amem-chroma" / "chroma.sqlite3")
        assert by_file == events

    def test_foreign_chroma_folders_are_not_recognised(self, tmp_path: Path) -> None:
        assert not amem.sniff(tmp_path, b"")
        with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as connection:
            connection.execute("CREATE TABLE embeddings (id, embedding_id)")
            connection.execute("CREATE TABLE embedding_metadata (id, key, string_value, int_value, float_value)")
            connection.execute("INSERT INTO embeddings VALUES (1, 'a')")
            connection.execute("INSERT INTO embedding_metadata VALUES (1, 'content', 'text', NULL, NULL)")
            connection.commit()
        assert not amem.sniff(tmp_path, b"")
        assert list(amem.read(tmp_path)) == []
        (tmp_path / "chroma.sqlite3").write_bytes(b"SQLite format 3\0" + b"\1" * 200)
        assert not amem.sniff(tmp_path, b"")
        with pytest.raises(BadRecord, match=r"chroma\.sqlite3: the database cannot be read"):
            list(amem.read(tmp_path))

    @pytest.mark.parametrize("wrap", [None, "memories", "notes"])
    def test_notes_keyed_by_id_are_read(self, tmp_path: Path, wrap: str | None) -> None:
        note = {"content": "Dry.", "keywords": [], "context": "", "timestamp": "7:05 pm on 3 March, 2024", "links": {}}
        notes = {"n1": note, "n2": note | {"id": "own"}}
        events, _ = split_records(amem, dumped(tmp_path, {wrap: notes} if wrap else notes))
        assert [event.external_id for event in events] == ["n1", "own"]
        assert events[0].occurred_at == datetime(2024, 3, 3, 19, 5, tzinfo=CET)

    def test_answers_of_chroma_are_read(self, tmp_path: Path) -> None:
        answer = {"ids": ["a"], "documents": ["Dry."], "metadatas": [{"id": "a", "content": "Dry.", "tags": '["x"]'}]}
        (event,), rejected = split_records(amem, dumped(tmp_path, answer))
        assert (event.external_id, event.metadata["tags"], rejected) == ("a", ["x"], {})


class TestMem0:
    def test_get_all_answers_are_read(self) -> None:
        events, rejected = split_records(mem0, SAMPLES / "mem0.json")
        walnuts, porridge, milk, allergic, neighbour = events
        assert (walnuts.content, walnuts.speaker, walnuts.session) == ("Allergic to walnuts", "edda", "breakfast-17")
        assert walnuts.external_id == "bb0f5a55-0a4c-4f7f-8a27-70a5d3c1e111"
        assert walnuts.occurred_at == datetime(2024, 3, 2, 17, 15, 0, 123456, tzinfo=timezone.utc)
        assert walnuts.metadata == {
            "was": "mem0 memory", "source_app": "kitchen", "long": "x", "user_id": "edda", "agent_id": "cook",
            "run_id": "breakfast-17", "role": "user",
        }  # fmt: skip
        assert walnuts.payload == {"metadata": {"nested": {"level": 2}}}
        assert porridge.metadata["updated_at"] == "2024-04-01T07:00:00-07:00"
        assert milk.speaker == "cook", "the assistant by its name"
        assert [event.content for event in (allergic, neighbour)] == [
            "edda allergic to walnuts", "edda neighbour of tomas brandt",
        ]  # fmt: skip
        assert allergic.metadata == {"was": "mem0 relation"}
        assert allergic.external_id is not None
        assert list(rejected) == ["4"]

    def test_a_memory_expires_after_its_day(self, tmp_path: Path) -> None:
        memory = {"memory": "Rows.", "created_at": "2024-03-02T09:00Z", "user_id": "edda"}
        dates = ["2090-05-01", "2090-05-01T10:00:00Z", None, "soon"]
        dump = [memory | {"id": str(n), "expiration_date": date} for n, date in enumerate(dates)]
        events, rejected = split_records(mem0, dumped(tmp_path, dump))
        assert [event.expires_at for event in events] == [
            datetime(2090, 5, 2, tzinfo=CET), datetime(2090, 5, 1, 10, tzinfo=timezone.utc), None, None,
        ]  # fmt: skip
        assert (events[0].metadata["expiration_date"], rejected) == ("2090-05-01", {})

    def test_pages_of_memories_are_read(self, tmp_path: Path) -> None:
        (event,), rejected = split_records(mem0, SAMPLES / "mem0-page.json")
        assert (event.content, event.speaker, rejected) == ("Rows on Tuesdays", "edda", {})
        pages = [json.loads(line) for line in (SAMPLES / "mem0-page.json").read_text().split("\n{")[:1]]
        assert split_records(mem0, dumped(tmp_path, pages))[0][0].external_id == event.external_id

    def test_a_rewritten_memory_is_a_revision(self, tmp_path: Path) -> None:
        item = {"id": "m1", "memory": "Rows on Tuesdays", "user_id": "edda", "created_at": "2024-05-01T07:00:00Z"}
        with Memory(":memory:") as memory:
            for text in ("Rows on Tuesdays", "Rows on Fridays"):
                report = memory.import_transcript(dumped(tmp_path, {"results": [item | {"memory": text}]}))
            (note,) = memory.list().notes
        assert (report.format, report.revised) == ("mem0", 1)
        assert (note.content, note.version) == ("Rows on Fridays", 2)

    @pytest.mark.parametrize(
        ("item", "reason"),
        [
            (7, "expected an object"),
            ({"id": "x"}, "no memory"),
            ({"memory": "x", "created_at": "soon"}, "created_at: 'soon' is not a time"),
            ({"memory": ["x"]}, "content"),
            ({"relations": [{"source": "a"}]}, "expected a relation"),
        ],
    )
    def test_invalid_memories_are_rejected(self, tmp_path: Path, item: Any, reason: str) -> None:
        events, rejected = split_records(mem0, dumped(tmp_path, [item]))
        assert events == []
        assert reason in rejected["1"]


class TestGraphiti:
    def test_query_rows_are_read(self) -> None:
        events, rejected = split_records(graphiti, SAMPLES / "graphiti.json")
        message, several, log, tower, south, north = events
        assert (message.content, message.speaker) == ("The lamp was moved to the north tower in May.", "Solveig")
        assert message.occurred_at == datetime(2024, 5, 2, 18, tzinfo=timezone.utc)
        assert message.metadata == {
            "was": "Graphiti episode", "group_id": "lighthouse", "created_at": "2024-06-01T00:00:00.123456789Z",
            "source_description": "chat", "source": "message", "name": "turn 1",
        }  # fmt: skip
        assert (several.speaker, several.content) == (None, "Anders: Which one?\nSolveig: The north one.")
        assert several.occurred_at == datetime(2024, 5, 2, 18, 1, tzinfo=timezone.utc)
        assert (log.title, log.occurred_at) == ("Keeper's log 12", None), (
            "the time of recording is not the time of the event"
        )
        assert (tower.title, tower.metadata["labels"]) == ("North tower", ["Building"])
        assert south.content == "The lamp stands in the south tower. (until 2024-05-01)"
        assert south.occurred_at == datetime(1998, 1, 1, tzinfo=timezone.utc)
        assert {"was": "Graphiti fact", "from": "lamp", "to": "South tower"}.items() <= south.metadata.items()
        assert south.payload == {"episodes": ["4d5c7a52-0001-4a41-9e02-000000000001"]}
        assert (north.external_id, north.payload) == ("4d5c7a52-0003-4a41-9e02-000000000002", None)
        assert rejected == {"8": "valid_at: 'in spring' is not a time"}

    def test_apoc_lines_yield_the_events_of_the_rows(self) -> None:
        events, rejected = split_records(graphiti, SAMPLES / "graphiti-apoc.json")
        assert rejected == {}
        assert [event.metadata["was"] for event in events] == [
            "Graphiti episode", "Graphiti entity", "Graphiti fact",
        ]  # fmt: skip
        in_json, _ = split_records(graphiti, SAMPLES / "graphiti.json")
        assert {event.external_id for event in events} < {event.external_id for event in in_json}
        assert {"from": "lamp", "to": "North tower"}.items() <= events[2].metadata.items()

    @pytest.mark.parametrize("wrapped", [json.dumps, lambda facts: "\n".join(map(json.dumps, facts))])
    def test_a_fact_with_several_episodes_is_one_event(self, tmp_path: Path, wrapped: Callable[[Any], str]) -> None:
        fact: dict[str, Any] = {"uuid": "f-1", "group_id": "g", "fact": "Ann knows Bob.", "episodes": ["e-1"]}
        events, rejected = split_records(graphiti, dumped(tmp_path, wrapped([fact, {**fact, "uuid": "f-2"}])))
        episodes = {"episodes": ["e-1"]}
        assert [(event.external_id, event.payload) for event in events] == [("f-1", episodes), ("f-2", episodes)]
        assert rejected == {}

    def test_facts_mention_their_entities(self) -> None:
        with Memory(":memory:") as memory:
            memory.import_transcript(SAMPLES / "graphiti.json")
            notes = {note.content: note for note in memory.list().notes}
            (mention,) = [
                link
                for link in memory.links(notes["The lamp stands in the north tower. 💡"].id)
                if link.type is LinkType.MENTIONS
            ]
        assert mention.target == notes["A tower of granite where the lamp has stood since May 2024."].id

    def test_model_dumps_and_browser_exports_are_read(self, tmp_path: Path) -> None:
        fact = {"uuid": "f", "group_id": "g", "fact": "A is B.", "episodes": [], "invalid_at": None}
        entity = {"uuid": "e", "group_id": "g", "name": "A", "summary": "S"}
        node = {"n": {"identity": 1, "labels": ["Entity"], "properties": entity}}
        edge = {"r": {"type": "RELATES_TO", "properties": fact}}
        for value in ({"edges": [fact], "nodes": [node]}, [edge, node]):
            events, rejected = split_records(graphiti, dumped(tmp_path, value))
            fields = [(event.external_id, event.content, event.title) for event in events]
            assert fields == [("f", "A is B.", None), ("e", "S", "A")]
            assert rejected == {}


class TestServerMemory:
    def test_entities_observations_and_relations_are_events(self) -> None:
        records = list(server_memory.read(SAMPLES / "server-memory.jsonl"))
        events = [record for record in records if isinstance(record, Event)]
        assert [(event.title, event.content) for event in events] == [
            ("Runa Dahl", "Runa Dahl (person)"),
            (None, "Runa Dahl: Keeps the spare key of the boathouse under the third plank"),
            (None, "Runa Dahl: Is allergic to walnuts"),
            ("Rowing Club", "Rowing Club (organization)"),
            (None, "Runa Dahl is treasurer of Rowing Club"),
        ]
        assert [event.metadata for event in events[2:]] == [
            {"tool": "server-memory", "type": "observation", "entityName": "Runa_Dahl"},
            {"tool": "server-memory", "type": "entity", "name": "Rowing_Club", "entityType": "organization"},
            {"tool": "server-memory", "type": "relation", "from": "Runa_Dahl", "to": "Rowing_Club",
             "relationType": "is_treasurer_of"},
        ]  # fmt: skip
        assert {(event.role, event.occurred_at) for event in events} == {("assistant", None)}
        (bad,) = (record for record in records if isinstance(record, Rejected))
        assert (bad.position, "expected an entity" in bad.reason) == ("4", True)

    @pytest.mark.parametrize("line", [
        "[]", "{", "3", '{"type": "x"}', '{"type": "entity", "name": "A", "entityType": 1}',
        '{"type": "entity", "name": "A", "entityType": "B", "observations": [1]}',
    ])  # fmt: skip
    def test_damaged_lines_are_rejected(self, line: str, tmp_path: Path) -> None:
        good = json.dumps({"type": "entity", "name": "A", "entityType": "b", "observations": []})
        first, second = server_memory.read(dumped(tmp_path, f"{line}\n{good}\n"))
        assert (isinstance(first, Rejected), isinstance(second, Event)) == (True, True)

    def test_entities_are_linked_to_what_names_them(self) -> None:
        with Memory(":memory:") as memory:
            report = memory.import_transcript(SAMPLES / "server-memory.jsonl")
            assert (report.format, report.added, report.rejected) == ("server-memory", 5, 1)
            memory.flush()
            relation = next(note for note in memory.list().notes if "treasurer" in note.content)
            mentioned = {link.target for link in memory.links(relation.id) if link.type is LinkType.MENTIONS}
            assert {memory.get(id).title for id in mentioned} == {"Runa Dahl", "Rowing Club"}


@pytest.mark.parametrize("format", [amem, mem0, graphiti])
def test_a_truncated_file_is_reported_with_its_position(format: ModuleType, tmp_path: Path) -> None:
    text = (SAMPLES / f"{format.name}.json").read_text()
    with pytest.raises(BadRecord, match=r"dump\.json:\d+:\d+: the JSON is truncated here"):
        list(format.read(dumped(tmp_path, text[: len(text) // 2])))


def test_nested_values_are_flattened() -> None:
    nested = {"a": 1, "b": "", "c": "x" * 301, "d": [1, "y"], "e": [], "f": [[1]], "g": None, "h": {"i": 1}, "j": 0.5}
    assert flat(nested) == {"a": 1, "d": ["1", "y"], "j": 0.5}
