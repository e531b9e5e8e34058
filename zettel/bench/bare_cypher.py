"""Bare Cypher statements that recreate the graph of one Neo4j scope.

Labels, types and keys come from the database. A node is a row of the ``UNWIND`` for its labels, a relationship a row of
the one for its type. Only the ends of relationships are looked up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from neo4j import AsyncDriver, AsyncManagedTransaction

Row = dict[str, Any]

_KEYS = """
SHOW CONSTRAINTS YIELD type, labelsOrTypes, properties
WHERE type ENDS WITH 'UNIQUENESS' AND 'scope' IN properties
RETURN labelsOrTypes[0] AS label, properties AS key ORDER BY size(properties) DESC
"""


class Statement(NamedTuple):
    """A Cypher statement and its ``$rows``."""

    text: str
    rows: list[Row]


class ScopeGraph:
    """The nodes and relationships of a scope, given by its opaque key.

    A uniqueness constraint, with ``scope`` among its properties, identifies a node. A node without such a constraint (a
    note's first state) is written together with its relationship to an identified node.
    """

    def __init__(self, driver: AsyncDriver, database: str, scope: str) -> None:
        self._driver, self._database, self._scope = driver, database, scope
        self._keys: dict[str, list[str]] = {}

    async def ids(self) -> list[str]:
        """Return element ids of all nodes with a key, and of their outgoing relationships."""
        nodes = [one async for (one,) in self._all("RETURN elementId(x)")]
        return nodes + [one async for (one,) in self._all("MATCH (x)-[r]->() RETURN elementId(r)")]

    async def counts(self) -> Counter[str]:
        """Count nodes and relationships by labels and types."""
        counts: Counter[str] = Counter()
        async for labels, many in self._all("RETURN labels(x), count(*)"):
            counts[_labels(labels)] += many
        async for type, labels, many in self._all("MATCH (x)-[r]->(y) RETURN type(r), labels(y), count(*)"):
            counts[f"{type} to {_labels(labels)}"] += many
        return counts

    async def statements(self, batch_of: Mapping[str, int], batches: int) -> list[list[Statement]]:
        """Return statements that recreate the graph, per batch; ``batch_of`` gives the batch by element id."""
        rows: dict[tuple[int, str], list[Row]] = defaultdict(list)
        keys: dict[str, tuple[str, Row]] = {}
        async for id, labels, node in self._all("RETURN elementId(x), labels(x), properties(x)"):
            label = next(label for label in labels if label in self._keys)
            keys[id] = label, {name: node[name] for name in self._keys[label] if name != "scope"}
            rows[batch_of[id], f"CREATE (x:{_labels(labels)}) SET x = row"].append(_sendable(node))
        async for id, text, row in self._links(keys):
            rows[batch_of[id], text].append(row)
        statements: list[list[Statement]] = [[] for _ in range(batches)]
        for (batch, text), same in rows.items():  # nodes come first
            statements[batch].append(Statement(f"UNWIND $rows AS row {text}", same))
        return statements

    async def _links(self, keys: Mapping[str, tuple[str, Row]]) -> AsyncIterator[tuple[str, str, Row]]:
        """Yield each relationship's id, statement and row."""
        columns = (
            "elementId(r), type(r), properties(r), elementId(x), elementId(y), labels(y), "
            "CASE WHEN any(label IN labels(y) WHERE label IN $keyed) THEN null ELSE properties(y) END"
        )
        async for id, type, properties, source, target, ends, end in self._all(f"MATCH (x)-[r]->(y) RETURN {columns}"):
            start, key = keys[source]
            text, row = self._matched("a", start), {"a": key}
            if target in keys:
                other, row["b"] = keys[target]
                text += f" {self._matched('b', other)} CREATE (a)-[r:`{type}`]->(b)"
            else:
                row["b"] = _sendable(end)
                text += f" CREATE (a)-[r:`{type}`]->(b:{_labels(ends)}) SET b = row.b"
            if properties:
                row["r"] = _sendable(properties)
                text += " SET r = row.r"
            yield id, text, row

    def _matched(self, name: str, label: str) -> str:
        conditions = (f"{key}: $scope" if key == "scope" else f"{key}: row.{name}.{key}" for key in self._keys[label])
        return f"MATCH ({name}:`{label}` {{{', '.join(conditions)}}})"

    async def _all(self, clause: str) -> AsyncIterator[tuple[Any, ...]]:
        """Run ``clause`` for every node x of the scope with a key, and yield rows."""
        self._keys = self._keys or {label: key async for label, key in self._rows(_KEYS)}
        for label, key in self._keys.items():
            present = " AND ".join(f"x.{name} IS NOT NULL" for name in key)
            async for row in self._rows(f"MATCH (x:`{label}`) WHERE x.scope = $scope AND {present} {clause}"):
                yield row

    async def _rows(self, text: str) -> AsyncIterator[tuple[Any, ...]]:
        async with self._driver.session(database=self._database) as session:
            async for record in await session.run(text, scope=self._scope, keyed=list(self._keys)):
                yield tuple(record.values())

    async def write(self, statements: Sequence[Statement]) -> None:
        """Run statements in one transaction."""

        async def work(transaction: AsyncManagedTransaction) -> None:
            for text, rows in statements:
                await (await transaction.run(text, scope=self._scope, rows=rows)).consume()

        async with self._driver.session(database=self._database) as session:
            await session.execute_write(work)


def _labels(labels: Sequence[str]) -> str:
    return ":".join(f"`{label}`" for label in sorted(labels))


def _sendable(properties: Row) -> Row:
    """Convert Neo4j times to Python's."""
    return {name: value.to_native() if hasattr(value, "to_native") else value for name, value in properties.items()}
