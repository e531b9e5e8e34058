"""``zettel mcp --knowledge-graph`` behaves like MCP's reference server-memory, called by the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.mcp_client import Client, HttpServer, over_http, over_stdio
from zettel import Memory, Scope, acting_as
from zettel.integrations.knowledge_graph import GRAPH_URI, KnowledgeGraph

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

Wire = dict[str, Any]

JOHN = {"name": "John_Smith", "entityType": "person", "observations": ["Speaks fluent Spanish", "Graduated in 2019"]}
ACME = {"name": "Acme", "entityType": "organization", "observations": []}
WORKS = {"from": "John_Smith", "to": "Acme", "relationType": "works_at"}
EMPTY: Wire = {"entities": [], "relations": []}
READING = {"read_graph", "search_nodes", "open_nodes"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graph") / "a.db"


@pytest.fixture(scope="module")
def url(store: Path) -> Iterator[str]:
    with HttpServer(store, "--knowledge-graph", "--user", "ann") as server:
        yield server.url


@asynccontextmanager
async def filled(url: str) -> AsyncIterator[Client]:
    """Return a client of a graph that contains JOHN, ACME and WORKS."""
    async with over_http(url) as client:
        graph = await structured(client, "read_graph")
        await structured(client, "delete_entities", entityNames=[entity["name"] for entity in graph["entities"]])
        await structured(client, "create_entities", entities=[JOHN, ACME])
        await structured(client, "create_relations", relations=[WORKS])
        yield client


async def structured(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the structured answer of a tool, after comparing its text."""
    answer = await client.ask("call_tool", tool, arguments)
    assert not answer.get("isError"), answer
    (content,) = answer["content"]
    value = answer["structuredContent"]
    shown = value["message"] if tool.startswith("delete") else next(iter(value.values()))
    if tool.startswith("delete"):
        assert content["text"] == shown
    else:
        assert json.loads(content["text"]) == (value if tool in READING else shown)
    return value


async def test_the_nine_tools_have_the_schemas_of_the_reference(url: str) -> None:
    async with over_http(url) as client:
        tools = {tool["name"]: tool for tool in (await client.ask("list_tools"))["tools"]}
    assert list(tools) == [
        "create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations",
        "delete_relations", "read_graph", "search_nodes", "open_nodes",
    ]  # fmt: skip
    for name, tool in tools.items():
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert tool["annotations"]["readOnlyHint"] is (name in READING)
        assert tool["annotations"]["destructiveHint"] is name.startswith("delete")
    text = {"type": "string"}
    assert tools["create_relations"]["inputSchema"]["properties"]["relations"] == {"type": "array", "items": {
        "type": "object", "required": ["from", "to", "relationType"], "properties": {
            "from": text | {"description": "The name of the entity where the relation starts"},
            "to": text | {"description": "The name of the entity where the relation ends"},
            "relationType": text | {"description": "The type of the relation"},
        },
    }}  # fmt: skip
    assert tools["create_entities"]["title"] == "Create Entities"


async def test_read_graph_returns_what_was_created(url: str) -> None:
    async with filled(url) as client:
        assert await structured(client, "read_graph") == {"entities": [JOHN, ACME], "relations": [WORKS]}


async def test_create_entities_ignores_existing_names(url: str) -> None:
    async with filled(url) as client:
        new = {"name": "Ann", "entityType": "person", "observations": ["Plays the cello"]}
        assert await structured(client, "create_entities", entities=[{**JOHN, "entityType": "x"}, new]) == {
            "entities": [new]
        }
        assert (await structured(client, "read_graph"))["entities"] == [JOHN, ACME, new]


async def test_create_relations_skips_duplicates(url: str) -> None:
    async with filled(url) as client:
        new = {"from": "Acme", "to": "Nobody", "relationType": "employs"}
        assert await structured(client, "create_relations", relations=[WORKS, new]) == {"relations": [new]}
        assert (await structured(client, "read_graph"))["relations"] == [WORKS, new]


async def test_add_observations_returns_the_new_ones(url: str) -> None:
    async with filled(url) as client:
        added = {"entityName": "John_Smith", "contents": ["Graduated in 2019", "Prefers morning meetings"]}
        assert await structured(client, "add_observations", observations=[added]) == {
            "results": [{"entityName": "John_Smith", "addedObservations": ["Prefers morning meetings"]}]
        }
        john, _ = (await structured(client, "read_graph"))["entities"]
        assert john["observations"] == [*JOHN["observations"], "Prefers morning meetings"]


async def test_add_observations_fails_for_an_unknown_entity(url: str) -> None:
    async with filled(url) as client:
        known, unknown = ({"entityName": name, "contents": ["x"]} for name in ("Acme", "Nobody"))
        error = await client.call("add_observations", observations=[known, unknown])
        assert error == "Entity with name Nobody not found"
        assert (await structured(client, "read_graph"))["entities"] == [JOHN, ACME]


async def test_delete_entities_deletes_their_relations(url: str, store: Path) -> None:
    async with filled(url) as client:
        assert await structured(client, "delete_entities", entityNames=["John_Smith", "Nobody"]) == {
            "success": True, "message": "Entities deleted successfully"
        }  # fmt: skip
        assert await structured(client, "read_graph") == {"entities": [ACME], "relations": []}
    with Memory(store, scope=Scope(user="ann")) as memory:
        left = [note.title for archived in (False, True) for note in memory.list(archived=archived).notes]
        assert left == ["Acme"]


async def test_delete_observations_deletes_only_these(url: str) -> None:
    async with filled(url) as client:
        deletions = [
            {"entityName": "John_Smith", "observations": ["Graduated in 2019", "none"]},
            {"entityName": "Nobody", "observations": ["x"]},
        ]
        assert (await structured(client, "delete_observations", deletions=deletions))["success"] is True
        john, _ = (await structured(client, "read_graph"))["entities"]
        assert john["observations"] == ["Speaks fluent Spanish"]


async def test_delete_relations_deletes_only_these(url: str) -> None:
    async with filled(url) as client:
        other = {**WORKS, "relationType": "owns"}
        await structured(client, "create_relations", relations=[other])
        await structured(client, "delete_relations", relations=[WORKS, {**WORKS, "to": "Nobody"}])
        assert await structured(client, "read_graph") == {"entities": [JOHN, ACME], "relations": [other]}


async def test_what_was_deleted_can_be_created_again(url: str) -> None:
    async with filled(url) as client:
        for _ in range(2):
            await structured(client, "delete_entities", entityNames=["John_Smith", "Acme"])
            assert await structured(client, "create_entities", entities=[JOHN, ACME]) == {"entities": [JOHN, ACME]}


@pytest.mark.parametrize(("query", "names"), [
    ("john", ["John_Smith"]), ("ORGANIZ", ["Acme"]), ("fluent span", ["John_Smith"]), ("", ["John_Smith", "Acme"]),
    ("What does John speak?", ["John_Smith"]), ("quantum chromodynamics", []),
])  # fmt: skip
async def test_search_nodes_matches_names_types_and_observations(url: str, query: str, names: list[str]) -> None:
    async with filled(url) as client:
        found = await structured(client, "search_nodes", query=query)
        assert [entity["name"] for entity in found["entities"]] == names
        assert found["relations"] == ([WORKS] if names else [])


async def test_open_nodes_skips_unknown_names(url: str) -> None:
    async with filled(url) as client:
        found = await structured(client, "open_nodes", names=["Acme", "Nobody"])
        assert found == {"entities": [ACME], "relations": [WORKS]}


async def test_the_graph_is_a_resource(url: str) -> None:
    async with filled(url) as client:
        (listed,) = (await client.ask("list_resources"))["resources"]
        assert (listed["uri"], listed["name"]) == (GRAPH_URI, "knowledge-graph")
        (content,) = (await client.ask("read_resource", GRAPH_URI))["contents"]
        assert json.loads(content["text"]) == {"entities": [JOHN, ACME], "relations": [WORKS]}
        with pytest.raises(Exception, match="unknown resource"):
            await client.ask("read_resource", "memory://other")


async def test_wrong_calls_are_errors_of_one_line(url: str) -> None:
    async with filled(url) as client:
        assert await client.call("open_nodes") == "open_nodes: names: Field required"
        assert "entities.0.observations" in await client.call("create_entities", entities=[{**JOHN, "observations": 1}])
        assert "unknown tool 'add_memory'" in await client.call("add_memory", text="x")


async def test_scopes_are_separate_over_stdio(store: Path) -> None:
    async with over_stdio(store, "--knowledge-graph", "--user", "bob") as bob:
        assert await structured(bob, "read_graph") == EMPTY
        await structured(bob, "create_entities", entities=[JOHN])
        async with over_stdio(store, "--knowledge-graph", "--user", "cleo") as cleo:
            assert await structured(cleo, "read_graph") == EMPTY
            assert await structured(cleo, "search_nodes", query="John") == EMPTY
            await structured(cleo, "delete_entities", entityNames=["John_Smith"])
        assert await structured(bob, "read_graph") == {"entities": [JOHN], "relations": []}


async def test_read_only_leaves_out_writing(store: Path) -> None:
    async with over_stdio(store, "--knowledge-graph", "--read-only") as client:
        assert {tool["name"] for tool in (await client.ask("list_tools"))["tools"]} == READING
        assert "unknown tool" in await client.call("create_entities", entities=[JOHN])


# ------------------------------------------------------------------------------------------------------- in the process


def run(graph: KnowledgeGraph, tool: str, **arguments: Any) -> Any:
    """Return the structured answer of a tool, or the text of its error."""
    answer = asyncio.run(graph.call_tool({"name": tool, "arguments": arguments}))
    return answer["content"][0]["text"] if answer["isError"] else answer["structuredContent"]


class Reference:
    """The rules of the reference server, on lists."""

    def __init__(self) -> None:
        self.entities: list[Wire] = []
        self.relations: list[Wire] = []

    def create_entities(self, entities: list[Wire]) -> Wire:
        new = [entity for entity in entities if entity["name"] not in [known["name"] for known in self.entities]]
        self.entities += [{**entity, "observations": [*entity["observations"]]} for entity in new]
        return {"entities": new}

    def create_relations(self, relations: list[Wire]) -> Wire:
        new = [relation for relation in relations if relation not in self.relations]
        self.relations += new
        return {"relations": new}

    def add_observations(self, observations: list[Wire]) -> Any:
        results = []
        known = {entity["name"]: entity["observations"] for entity in self.entities}
        for addition in observations:
            name = addition["entityName"]
            if name not in known:
                return f"Entity with name {name} not found"
            results.append([name, [text for text in addition["contents"] if text not in known[name]]])
        for name, new in results:
            known[name] += new
        return {"results": [{"entityName": name, "addedObservations": new} for name, new in results]}

    def delete_entities(self, entityNames: list[str]) -> Wire:
        self.entities = [entity for entity in self.entities if entity["name"] not in entityNames]
        self.relations = [
            relation for relation in self.relations if not {relation["from"], relation["to"]} & {*entityNames}
        ]
        return {"success": True, "message": "Entities deleted successfully"}

    def delete_observations(self, deletions: list[Wire]) -> Wire:
        for deletion in deletions:
            for entity in self.entities:
                if entity["name"] == deletion["entityName"]:
                    left = [text for text in entity["observations"] if text not in deletion["observations"]]
                    entity["observations"] = left
        return {"success": True, "message": "Observations deleted successfully"}

    def delete_relations(self, relations: list[Wire]) -> Wire:
        self.relations = [relation for relation in self.relations if relation not in relations]
        return {"success": True, "message": "Relations deleted successfully"}

    def read_graph(self) -> Wire:
        return {"entities": self.entities, "relations": self.relations}

    def open_nodes(self, names: list[str]) -> Wire:
        found = [entity for entity in self.entities if entity["name"] in names]
        ends = {entity["name"] for entity in found}
        return {"entities": found, "relations": [
            relation for relation in self.relations if {relation["from"], relation["to"]} & ends
        ]}  # fmt: skip


NAMES = st.sampled_from(["Ann", "Bob_Berg", "Bob Berg", "Acme", "ann: x"])
TEXTS = st.lists(st.sampled_from(["", " ", "likes red", "Ann: likes red", "x" * 3000, "☃"]), max_size=3, unique=True)
RELATIONS = st.lists(
    st.fixed_dictionaries({"from": NAMES, "to": NAMES, "relationType": st.sampled_from(["knows", "works_at"])}),
    max_size=2, unique_by=lambda relation: tuple(relation.values()),
)  # fmt: skip
CALLS = st.one_of(
    st.tuples(st.just("create_entities"), st.fixed_dictionaries({"entities": st.lists(st.fixed_dictionaries({
        "name": NAMES, "entityType": st.sampled_from(["person", ""]), "observations": TEXTS
    }), max_size=3, unique_by=lambda entity: entity["name"])})),
    st.tuples(st.just("create_relations"), st.fixed_dictionaries({"relations": RELATIONS})),
    st.tuples(st.just("delete_relations"), st.fixed_dictionaries({"relations": RELATIONS})),
    st.tuples(st.just("add_observations"), st.fixed_dictionaries({"observations": st.lists(
        st.fixed_dictionaries({"entityName": NAMES, "contents": TEXTS}), max_size=2,
        unique_by=lambda addition: addition["entityName"],
    )})),
    st.tuples(st.just("delete_entities"), st.fixed_dictionaries({"entityNames": st.lists(NAMES, max_size=2)})),
    st.tuples(st.just("delete_observations"), st.fixed_dictionaries({"deletions": st.lists(
        st.fixed_dictionaries({"entityName": NAMES, "observations": TEXTS}), max_size=2
    )})),
    st.tuples(st.just("open_nodes"), st.fixed_dictionaries({"names": st.lists(NAMES, max_size=3)})),
    st.tuples(st.just("read_graph"), st.just({})),
)  # fmt: skip


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:") as instance:
        yield instance


@given(calls=st.lists(CALLS, min_size=1, max_size=15))
def test_random_calls_have_the_answers_of_the_reference(memory: Memory, calls: list[tuple[str, Wire]]) -> None:
    memory.delete_scope()
    graph, reference = KnowledgeGraph(memory), Reference()
    for tool, arguments in [*calls, ("read_graph", {})]:
        assert run(graph, tool, **arguments) == getattr(reference, tool)(**arguments)


def test_observations_are_found_by_search_and_have_a_history(memory: Memory) -> None:
    memory.delete_scope()
    graph = KnowledgeGraph(memory)
    run(graph, "create_entities", entities=[JOHN, ACME])
    run(graph, "create_relations", relations=[WORKS])
    memory.flush()
    note = next(hit.note for hit in memory.search("Who speaks Spanish?") if hit.note.title is None)
    assert note.content == "John Smith: Speaks fluent Spanish"
    assert {link.type.value for link in memory.links(note.id)} >= {"MENTIONS"}
    memory.update(note.id, content="John Smith: Speaks fluent Italian")
    assert run(graph, "open_nodes", names=["John_Smith"])["entities"][0]["observations"] == [
        "Speaks fluent Italian", "Graduated in 2019"
    ]  # fmt: skip
    assert len(memory.history(note.id)) >= 2


@pytest.mark.parametrize("deleted", [0, 1])
def test_decayed_and_merged_notes_stay_in_the_graph(memory: Memory, deleted: int) -> None:
    memory.delete_scope()
    graph = KnowledgeGraph(memory)
    texts = ["Moors the Heron at the north pier of Bergen.", "Moors the Heron at the north pier of Bergen!"]
    run(graph, "create_entities", entities=[{**JOHN, "observations": texts}])
    assert memory.evolve().merged == 1
    memory.archive(memory.list(filter={"type": "entity"}).notes[0].id)
    assert run(graph, "read_graph")["entities"] == [{**JOHN, "observations": texts}]
    run(graph, "delete_observations", deletions=[{"entityName": "John_Smith", "observations": [texts[deleted]]}])
    assert run(graph, "read_graph")["entities"] == [{**JOHN, "observations": [texts[1 - deleted]]}]


def test_the_graph_has_the_trust_of_the_assistant(memory: Memory) -> None:
    memory.delete_scope()
    run(KnowledgeGraph(memory), "create_entities", entities=[JOHN])
    note = memory.list().notes[0]
    assert (note.role, memory.get(note.event_ids[0]).principal) == ("assistant", "tool:mcp")
    refused = run(KnowledgeGraph(memory, trust=0.5), "delete_entities", entityNames=["John_Smith"])
    assert "has trust 0.5" in refused
    with acting_as("person"):
        memory.quarantine(note.id, "wrong")
    assert run(KnowledgeGraph(memory), "read_graph") == EMPTY


def test_an_imported_file_is_the_graph(memory: Memory, tmp_path: Path) -> None:
    memory.delete_scope()
    path = tmp_path / "memory.json"
    lines = [{"type": "entity", **JOHN}, {"type": "entity", **ACME}, {"type": "relation", **WORKS}]
    path.write_text("\n".join(map(json.dumps, lines)))
    reports = [memory.import_transcript(path) for _ in range(2)]
    assert [(report.format, report.added, report.existing) for report in reports] == [
        ("server-memory", 5, 0), ("server-memory", 0, 5)
    ]  # fmt: skip
    graph = KnowledgeGraph(memory)
    assert run(graph, "read_graph") == {"entities": [JOHN, ACME], "relations": [WORKS]}
    assert run(graph, "create_entities", entities=[JOHN]) == {"entities": []}
    run(graph, "delete_entities", entityNames=["John_Smith"])
    assert memory.import_transcript(path).added == 0  # an import does not revive what was deleted
    assert run(graph, "read_graph") == {"entities": [ACME], "relations": []}
    assert run(graph, "create_entities", entities=[JOHN]) == {"entities": [JOHN]}


def test_incomplete_metadata_does_not_break_the_graph(memory: Memory) -> None:
    memory.delete_scope()
    for metadata in ({}, {"type": "entity"}, {"type": "relation", "from": 1}, {"type": "observation"}, {"type": [1]}):
        memory.add("An odd note.", metadata={"tool": "server-memory", **metadata})
    assert run(KnowledgeGraph(memory), "read_graph") == {
        "entities": [{"name": "", "entityType": "", "observations": ["An odd note."]}],
        "relations": [{"from": "1", "to": "", "relationType": ""}],
    }
