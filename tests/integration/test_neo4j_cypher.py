"""``memory.cypher``: whatever reads is answered, whatever else is refused before it runs, on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.neo4j_servers import DATABASE, Server
from zettel import Memory
from zettel.errors import InvalidQuestion, StoreError
from zettel.graph.neo4j import read_queries

pytestmark = [pytest.mark.integration, pytest.mark.every_release]

GRAPH = """
CREATE (ann:Note {id: 'n_1', caption: 'Oslo', at: datetime('2024-05-01T09:00:00Z'), day: date('2024-05-01')}),
       (ben:Note {id: 'n_2', caption: 'Piano', tags: ['a', 'b']}),
       (ann)-[:RELATES {weight: 0.5}]->(ben)
"""

WRITES = [
    "CREATE (n:Note) RETURN n",
    "MATCH (n) SET n.caption = 'x'",
    "MATCH (n) DETACH DELETE n",
    "MERGE (n:Note {id: 'n_3'}) RETURN n",
    "MATCH (n) FOREACH (x IN [1] | REMOVE n.caption)",
    "CREATE INDEX mine FOR (n:Note) ON (n.caption)",
    "MATCH (n) CALL (n) { SET n.caption = 'x' } RETURN n",
    "CALL (*) { CREATE (n) } IN TRANSACTIONS",
    "MATCH (n) /* only */ // reading\n\\u0053ET n.caption = 'x'",
]
OUTSIDE = [
    "LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row",
    "MATCH (n) WHERE n.x = 1 OR EXISTS { LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row } RETURN n",
    "RETURN any(x IN range(1, 3) WHERE size(COLLECT { LOAD CSV FROM 'file:///' + x AS row RETURN row }) > 2) AS found",
    "RETURN reduce(a = 0, x IN [1] | a + COUNT { load /* */ csv FROM 'http://x.example' AS row RETURN row }) AS found",
]
PROCEDURES = [
    "CALL dbms.listConfig() YIELD name RETURN name",
    "CALL `dbms`.`components`()",
    "CALL db.ping()",
    "CALL db.createLabel('X')",
    "RETURN [x IN [1] WHERE EXISTS { CALL dbms.listConfig() YIELD name RETURN name }] AS found",
    "RETURN CASE WHEN $yes THEN COUNT { CALL dbms.components() YIELD name RETURN name } ELSE 0 END AS found",
]
COMMANDS = [
    "SHOW SETTINGS",
    "SHOW DATABASES",
    "SHOW USERS",
    "SHOW TRANSACTIONS",
    "TERMINATE TRANSACTION 'neo4j-transaction-1'",
]
WRONG = [
    "",
    "RETURN",
    "RETURN $missing",
    "RETURN 1; RETURN 2",
    "PROFILE MATCH (n) RETURN n",
    "USE elsewhere RETURN 1",
    "RETURN 1 / 0",
]


def asked(server: Server, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """What a server answers to a query that a person may ask."""

    async def answer() -> list[dict[str, Any]]:
        import neo4j

        # Warnings, such as of a label that is not there, are not the test's.
        async with neo4j.AsyncGraphDatabase.driver(
            server.url, auth=server.auth, notifications_min_severity="OFF"
        ) as driver:
            return await read_queries.ask(driver, DATABASE, query, parameters or {})

    return asyncio.run(answer())


@pytest.fixture
def graph(neo4j_server: Server) -> Server:
    """A server with two notes."""
    import neo4j

    with neo4j.GraphDatabase.driver(neo4j_server.url, auth=neo4j_server.auth) as driver:
        driver.execute_query(GRAPH, database_=DATABASE)
    return neo4j_server


def test_answers_are_python_values(graph: Server) -> None:
    query = "MATCH way=(a {id: $id})-[r]->(b) RETURN a, r, way, a.at AS at, a.day AS day, [b] AS list, {x: b} AS map"
    (row,) = asked(graph, query, {"id": "n_1"})
    moment, day = datetime(2024, 5, 1, 9, tzinfo=timezone.utc), date(2024, 5, 1)
    one = {"id": "n_1", "caption": "Oslo", "at": moment, "day": day}
    other = {"id": "n_2", "caption": "Piano", "tags": ["a", "b"]}
    link = {"type": "RELATES", "weight": 0.5}
    values = {"a": one, "r": link, "way": [one, link, other], "at": moment, "day": day}
    assert row == values | {"list": [other], "map": {"x": other}}
    assert {"label": "Note"} in asked(graph, "CALL db.labels() YIELD label RETURN label")
    assert asked(graph, "MATCH (n:Nothing) RETURN n") == []


@pytest.mark.parametrize(
    ("queries", "told"),
    [
        pytest.param(WRITES, r"would write|IN TRANSACTIONS", id="writes"),
        pytest.param(OUTSIDE, "LOAD CSV may not be used", id="outside"),
        pytest.param(PROCEDURES, "may not be (called|used inside)", id="procedures"),
        pytest.param(COMMANDS, "server commands", id="commands"),
        pytest.param(WRONG, ".", id="wrong"),
    ],
)
def test_what_is_not_a_question_is_refused(graph: Server, queries: list[str], told: str) -> None:
    before = asked(graph, "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n, r ORDER BY n.id")
    for query in queries:
        with pytest.raises(InvalidQuestion, match=told) as refused:
            asked(graph, query, {"yes": True})
        assert "\n" not in str(refused.value), query
    assert asked(graph, "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n, r ORDER BY n.id") == before


def test_limits(graph: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(asked(graph, f"UNWIND range(1, {read_queries.ROWS}) AS i RETURN i")) == read_queries.ROWS
    with pytest.raises(InvalidQuestion, match="more than 10,000 rows: end it with LIMIT"):
        asked(graph, f"UNWIND range(1, {read_queries.ROWS} + 1) AS i RETURN i")
    monkeypatch.setattr(read_queries, "SECONDS", 0.5)
    with pytest.raises(InvalidQuestion, match="took longer than"):
        asked(graph, "UNWIND range(1, 100000000) AS i UNWIND range(1, 1000) AS j RETURN sum(i * j)")


def test_values_that_no_query_takes(graph: Server) -> None:
    for value in (object(), 2**70):
        with pytest.raises(InvalidQuestion, match="unsupported type or value"):
            asked(graph, "RETURN $value", {"value": value})


def test_other_stores_say_what_to_do(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "memory.db") as memory,
        pytest.raises(StoreError, match=r"the embedded store does not support Cypher: store the memory in Neo4j"),
    ):
        memory.cypher("RETURN 1")
