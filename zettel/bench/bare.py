"""One scope of a Neo4j database as bare statements that write the same nodes and relationships again.

Labels, types and keys are those that the database has, so this knows nothing of how zettel arranges them: a node is one
row of one ``UNWIND`` for its labels, a relationship one row of one for its type, and nothing is looked up but its ends.
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
    """What is sent, and its rows."""

    text: str
    rows: list[Row]


class Written:
    """What is written in a scope, which goes by its opaque key.

    A node is known by the properties that a constraint makes unique, ``scope`` among them. One whose label has no such
    constraint (a note's first state) hangs on one that has, and is written with the relationship that holds it.
    """

    def __init__(self, driver: AsyncDriver, database: str, scope: str) -> None:
        self._driver, self._database, self._scope = driver, database, scope
        self._keys: dict[str, list[str]] = {}

    async def ids(self) -> list[str]:
        """The database's own ids of all nodes with a key, and of all relationships that start at one."""
        found = [one async for (one,) in self._all("RETURN elementId(x)")]
        return found + [one async for (one,) in self._all("MATCH (x)-[r]->() RETURN elementId(r)")]

    async def counted(self) -> Counter[str]:
        """How many of them there are, by labels and types."""
        counts: Counter[str] = Counter()
        async for labels, many in self._all("RETURN labels(x), count(*)"):
            counts[_labels(labels)] += many
        async for type, labels, many in self._all("MATCH (x)-[r]->(y) RETURN type(r), labels(y), count(*)"):
            counts[f"{type} to {_labels(labels)}"] += many
        return counts

    async def statements(self, made_by: Mapping[str, int], batches: int) -> list[list[Statement]]:
        """What writes all of it again, batch by batch; ``made_by`` says which batch made what has that id."""
        rows: dict[tuple[int, str], list[Row]] = defaultdict(list)
        keys: dict[str, tuple[str, Row]] = {}
        async for one, labels, node in self._all("RETURN elementId(x), labels(x), properties(x)"):
            label = next(label for label in labels if label in self._keys)
            keys[one] = label, {name: node[name] for name in self._keys[label] if name != "scope"}
            rows[made_by[one], f"CREATE (x:{_labels(labels)}) SET x = row"].append(_sendable(node))
        async for one, text, row in self._links(keys):
            rows[made_by[one], text].append(row)
        told: list[list[Statement]] = [[] for _ in range(batches)]
        for (batch, text), same in rows.items():  # nodes come first
            told[batch].append(Statement(f"UNWIND $rows AS row {text}", same))
        return told

    async def _links(self, keys: Mapping[str, tuple[str, Row]]) -> AsyncIterator[tuple[str, str, Row]]:
        """Each relationship's id, what writes it, and its row."""
        columns = (
            "elementId(r), type(r), properties(r), elementId(x), elementId(y), labels(y), "
            "CASE WHEN any(label IN labels(y) WHERE label IN $keyed) THEN null ELSE properties(y) END"
        )
        async for one, type, properties, source, target, ends, end in self._all(f"MATCH (x)-[r]->(y) RETURN {columns}"):
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
            yield one, text, row

    def _matched(self, name: str, label: str) -> str:
        wanted = (f"{key}: $scope" if key == "scope" else f"{key}: row.{name}.{key}" for key in self._keys[label])
        return f"MATCH ({name}:`{label}` {{{', '.join(wanted)}}})"

    async def _all(self, what: str) -> AsyncIterator[tuple[Any, ...]]:
        """The rows of ``what`` for every node x of the scope that has a key."""
        self._keys = self._keys or {label: key async for label, key in self._asked(_KEYS)}
        for label, key in self._keys.items():
            there = " AND ".join(f"x.{name} IS NOT NULL" for name in key)
            async for row in self._asked(f"MATCH (x:`{label}`) WHERE x.scope = $scope AND {there} {what}"):
                yield row

    async def _asked(self, text: str) -> AsyncIterator[tuple[Any, ...]]:
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
    """Times as Python's own, as zettel sends them."""
    return {name: value.to_native() if hasattr(value, "to_native") else value for name, value in properties.items()}
