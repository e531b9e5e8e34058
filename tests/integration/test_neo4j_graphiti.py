"""Import of a Graphiti graph from its Neo4j server."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from tests.integration.command import Zettel
from tests.neo4j_servers import DATABASE, Server
from zettel.errors import InvalidInput
from zettel.graph.neo4j.graphiti import Address, address_of

pytestmark = pytest.mark.integration

GRAPH = """
CREATE (e:Episodic {uuid: 'e-1', name: 'turn 1', group_id: 'light', source: 'message', source_description: 'chat',
    content: 'Solveig: The lamp was moved to the north tower.', entity_edges: ['f-1'],
    valid_at: datetime('2024-05-02T18:00:00+02:00'), created_at: datetime('2024-06-01T00:00:00Z')}),
  (a:Entity {uuid: 'n-1', name: 'Lamp', group_id: 'light', summary: '', name_embedding: [0.1, 0.2],
    created_at: datetime('2024-06-01T00:00:00Z')}),
  (b:Entity:Building {uuid: 'n-2', name: 'North tower', group_id: 'light', summary: 'The taller of two towers.',
    labels: ['Entity', 'Building'], created_at: datetime('2024-06-01T00:00:00Z')}),
  (a)-[:RELATES_TO {uuid: 'f-1', name: 'STANDS_IN', fact: 'The lamp stands in the North tower.', group_id: 'light',
    fact_embedding: [0.3], episodes: ['e-1'], valid_at: datetime('2024-05-02T16:00:00Z'),
    invalid_at: datetime('2025-01-01T00:00:00Z'), created_at: datetime('2024-06-01T00:00:00Z')}]->(b),
  (e)-[:MENTIONS {uuid: 'm-1', group_id: 'light'}]->(a),
  (c:Community {uuid: 'c-1', name: 'Towers', group_id: 'light', summary: 'All about towers.'})-[:HAS_MEMBER]->(b)
"""


@pytest.fixture
def graphiti(server: Server) -> str:
    """Return the address of a server with a Graphiti graph, including user and password."""
    import neo4j

    with neo4j.GraphDatabase.driver(server.url, auth=server.auth) as driver:
        driver.execute_query(GRAPH, database_=DATABASE)
    parts = urlsplit(server.url)
    return f"{parts.scheme}://{':'.join(server.auth)}@{parts.netloc}"


def test_a_graph_is_imported_from_its_server(zettel: Zettel, server: Server, graphiti: str) -> None:
    report = zettel("import", "--format", "graphiti", f"{graphiti}?database={DATABASE}", "--json").json()
    assert (report["file"], report["added"], report["rejected_records"]) == (server.url, 3, [])
    events = {event["external_id"]: event for event in map(json.loads, zettel("export").out.splitlines())}
    assert set(events) == {"e-1", "n-2", "f-1"}
    assert (events["e-1"]["speaker"], events["e-1"]["occurred_at"]) == ("Solveig", "2024-05-02T16:00:00Z")
    assert (events["n-2"]["title"], events["n-2"]["metadata"]["labels"]) == ("North tower", ["Building"])
    fact = events["f-1"]
    assert (fact["content"], fact["payload"]) == (
        "The lamp stands in the North tower. (until 2025-01-01)", {"episodes": ["e-1"]},
    )  # fmt: skip
    assert {"from": "Lamp", "to": "North tower"}.items() <= fact["metadata"].items()
    assert fact["source"]["file"] == server.url
    second = zettel("import", "--format", "graphiti", graphiti, "--json").json()
    assert (second["added"], second["existing"]) == (0, 3)


def test_a_server_without_a_graphiti_graph_is_an_error(
    zettel: Zettel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_USERNAME", server.auth[0])
    monkeypatch.setenv("NEO4J_PASSWORD", server.auth[1])
    result = zettel("import", "--format", "graphiti", server.url)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "contains no Graphiti graph" in result.err


def test_addresses_are_parsed_and_invalid_ones_are_errors(zettel: Zettel) -> None:
    assert address_of("bolt+s://h:1?database=g") == Address("bolt+s://h:1", None, "g")
    assert address_of("neo4j://ann:a%40b@h") == Address("neo4j://h", ("ann", "a@b"), "neo4j")
    with pytest.raises(InvalidInput, match="is not a Neo4j server"):
        address_of("https://h/graph")
    result = zettel("import", "neo4j://127.0.0.1:1")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "pass --format graphiti" in result.err
    result = zettel("import", "neo4j://127.0.0.1:1", "--format", "graphiti")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "cannot be reached" in result.err
