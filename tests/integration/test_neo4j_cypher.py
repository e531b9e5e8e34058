"""``memory.cypher`` on real servers: read queries are answered, all others are refused before they run."""

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


def ask(server: Server, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a user's query."""

    async def run_query() -> list[dict[str, Any]]:
        import neo4j

        # The test ignores warnings, for example of missing labels.
        async with neo4j.AsyncGraphDatabase.driver(
            server.url, auth=server.auth, notifications_min_severity="OFF"
        ) as driver:
            return await read_queries.ask(driver, DATABASE, query, parameters or {})

    return asyncio.run(run_query())


@pytest.fixture
def graph(neo4j_server: Server) -> Server:
    """Return a server with two notes."""
    import neo4j

    with neo4j.GraphDatabase.driver(neo4j_server.url, auth=neo4j_server.auth) as driver:
        driver.execute_query(GRAPH, database_=DATABASE)
    return neo4j_server


def test_answers_are_python_values(graph: Server) -> None:
    query = "MATCH way=(a {id: $id})-[r]->(b) RETURN a, r, way, a.at AS at, a.day AS day, [b] AS list, {x: b} AS map"
    (row,) = ask(graph, query, {"id": "n_1"})
    moment, day = datetime(2024, 5, 1, 9, tzinfo=timezone.utc), date(2024, 5, 1)
    first = {"id": "n_1", "caption": "Oslo", "at": moment, "day": day}
    second = {"id": "n_2", "caption": "Piano", "tags": ["a", "b"]}
    link = {"type": "RELATES", "weight": 0.5}
    values = {"a": first, "r": link, "way": [first, link, second], "at": moment, "day": day}
    assert row == values | {"list": [second], "map": {"x": second}}
    assert {"label": "Note"} in ask(graph, "CALL db.labels() YIELD label RETURN label")
    assert ask(graph, "MATCH (n:Nothing) RETURN n") == []


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        pytest.param(WRITES, r"would write|IN TRANSACTIONS", id="writes"),
        pytest.param(OUTSIDE, "LOAD CSV may not be used", id="outside"),
        pytest.param(PROCEDURES, "may not be (called|used inside)", id="procedures"),
        pytest.param(COMMANDS, "server commands", id="commands"),
        pytest.param(WRONG, ".", id="wrong"),
    ],
)
def test_other_queries_are_refused_before_they_run(graph: Server, queries: list[str], message: str) -> None:
    before = ask(graph, "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n, r ORDER BY n.id")
    for query in queries:
        with pytest.raises(InvalidQuestion, match=message) as error:
            ask(graph, query, {"yes": True})
        assert "\n" not in str(error.value), query
    assert ask(graph, "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n, r ORDER BY n.id") == before


def test_rows_and_time_are_limited(graph: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(ask(graph, f"UNWIND range(1, {read_queries.ROWS}) AS i RETURN i")) == read_queries.ROWS
    with pytest.raises(InvalidQuestion, match="more than 10,000 rows: end it with LIMIT"):
        ask(graph, f"UNWIND range(1, {read_queries.ROWS} + 1) AS i RETURN i")
    monkeypatch.setattr(read_queries, "SECONDS", 0.5)
    with pytest.raises(InvalidQuestion, match="took longer than"):
        ask(graph, "UNWIND range(1, 100000000) AS i UNWIND range(1, 1000) AS j RETURN sum(i * j)")


def test_the_bytes_of_an_answer_are_limited(graph: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_queries, "BYTES", 100_000)
    query = "UNWIND range(1, $rows) AS n RETURN reduce(text = '', x IN range(1, 100) | text + '0123456789') AS text"
    assert len(ask(graph, query, {"rows": 90})) == 90
    with pytest.raises(InvalidQuestion, match="more than 100,000 bytes"):
        ask(graph, query, {"rows": 1000})


@pytest.mark.parametrize(
    ("details", "refused"),
    [
        ("apoc.text.join(list, $sep) AS text", None),
        ("apoc.coll.sum(values) AS total, apoc.Convert.toJson(n) AS json", None),
        ("apoc.cypher.runFirstColumnSingle($statement, {}) AS value", "apoc.cypher.runFirstColumnSingle"),
        ("apoc.text.join(list, $sep) AS a, `apoc`.`static`.`get`($key) AS b", "apoc.static.get"),
    ],
)
def test_functions_of_apoc_that_do_not_only_compute_are_refused(details: str, refused: str | None) -> None:
    plan = {"operatorType": "Projection@neo4j", "args": {"Details": details}, "children": []}
    if refused is None:
        read_queries.require_harmless("r", plan)
    else:
        with pytest.raises(InvalidQuestion, match=f"{refused} may not be called"):
            read_queries.require_harmless("r", plan)


@pytest.mark.parametrize("name", ["apoc.load.json", "apoc.cypher.doIt", "apoc.export.csv.all", "apoc.periodic.commit"])
def test_procedures_of_apoc_are_refused(name: str) -> None:
    plan = {"operatorType": "ProcedureCall@neo4j", "args": {"Details": f"{name}($x) :: (value)"}, "children": []}
    with pytest.raises(InvalidQuestion, match=f"the procedure {name} may not be called"):
        read_queries.require_harmless("r", {"operatorType": "ProduceResults", "args": {}, "children": [plan]})


def test_unsupported_parameter_values_are_refused(graph: Server) -> None:
    for value in (object(), 2**70):
        with pytest.raises(InvalidQuestion, match="unsupported type or value"):
            ask(graph, "RETURN $value", {"value": value})


def test_the_error_of_other_stores_names_neo4j(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "memory.db") as memory,
        pytest.raises(StoreError, match=r"the embedded store does not support Cypher: store the memory in Neo4j"),
    ):
        memory.cypher("RETURN 1")
