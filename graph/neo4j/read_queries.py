"""Read-only Cypher queries of users and agents, within limits.

The query plan (EXPLAIN) decides if a query is allowed, not its text, which may hide writes in comments or escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from zettel.errors import InvalidQuestion

if TYPE_CHECKING:
    from neo4j import AsyncBookmarkManager, AsyncDriver, AsyncResult

SECONDS = 30.0
"""Timeout of a query on the server."""
ROWS = 10_000
"""Most rows of a result, all of which are in memory."""
BYTES = 32 * 2**20
"""Most bytes of a result, about: those of its texts, and a few for each other value."""
FETCHED_ROWS = 100
"""Rows that are fetched at once."""

ALLOWED_PROCEDURES = frozenset(
    {
        "db.labels",
        "db.relationshiptypes",
        "db.propertykeys",
        "db.schema.nodetypeproperties",
        "db.schema.reltypeproperties",
        "db.schema.visualization",
        "db.index.fulltext.querynodes",
        "db.index.fulltext.queryrelationships",
        "db.index.vector.querynodes",
        "db.index.vector.queryrelationships",
    }
)
"""Procedures that only read this database, in lower case."""
ALLOWED_APOC = frozenset("coll convert date map number temporal text".split())
"""Packages of APOC whose functions only compute; others run Cypher from a text, or read settings and files."""

_VALUE_BYTES = 8
_READS = "r"
_TIMED_OUT = "Neo.ClientError.Transaction.TransactionTimedOut"
_NAME = re.compile(r"\s*([\w.`]+)")
# A subquery inside an expression has no operator in the plan, only its text.
_HIDDEN = re.compile(r"\b(LOAD CSV|ResolvedCall\(|CALL )")
_APOC = re.compile(r"\b(apoc\s*\.\s*(\w+)[\w.]*)", re.IGNORECASE)


async def ask(
    driver: AsyncDriver,
    database: str,
    query: str,
    parameters: Mapping[str, Any],
    bookmarks: AsyncBookmarkManager | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a query, each a dict by column.

    Raises ``InvalidQuestion`` for a query that is invalid, writes, reads files or URLs, calls a procedure outside
    ``ALLOWED_PROCEDURES``, calls a function of APOC outside ``ALLOWED_APOC``, takes longer than ``SECONDS`` or returns
    more than ``ROWS`` rows or ``BYTES`` bytes.
    """
    from neo4j import READ_ACCESS
    from neo4j.exceptions import ClientError

    session = driver.session(
        database=database, default_access_mode=READ_ACCESS, bookmark_manager=bookmarks, fetch_size=FETCHED_ROWS
    )
    try:
        async with session, await session.begin_transaction(timeout=SECONDS) as transaction:
            try:
                explained = await transaction.run("EXPLAIN " + query, dict(parameters))
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidQuestion(f"a parameter has an unsupported type or value: {error}") from error
            summary = await explained.consume()
            require_harmless(summary.query_type, summary.plan)
            answer = await transaction.run(query, dict(parameters))
            rows = await _bounded_rows(answer)
    except ClientError as error:
        raise InvalidQuestion(_message(error)) from error
    return rows


async def _bounded_rows(answer: AsyncResult) -> list[dict[str, Any]]:
    """Return the rows of a result. Raises ``InvalidQuestion`` as soon as there are too many."""
    columns = answer.keys()
    rows: list[dict[str, Any]] = []
    size = 0
    async for record in answer:
        row = {key: plain(value) for key, value in zip(columns, record.values(), strict=True)}
        size += _size(row)
        if len(rows) == ROWS:
            raise InvalidQuestion(f"the query returns more than {ROWS:,} rows: end it with LIMIT")
        if size > BYTES:
            raise InvalidQuestion(f"the query returns more than {BYTES:,} bytes: end it with LIMIT, or return less")
        rows.append(row)
    return rows


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | bytearray):
        return _VALUE_BYTES + len(value)
    if isinstance(value, dict):
        return _VALUE_BYTES + sum(len(key) + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return _VALUE_BYTES + sum(map(_size, value))
    return _VALUE_BYTES


def require_harmless(kind: str | None, plan: Mapping[str, Any] | None) -> None:
    """Raise ``InvalidQuestion`` unless the plan only reads this database."""
    for operator, details in _operators(plan or {}):
        if operator == "ProcedureCall":
            name = _NAME.match(details)
            called = name[1].replace("`", "") if name else details
            if called.lower() not in ALLOWED_PROCEDURES:
                raise InvalidQuestion(
                    f"the procedure {called} may not be called here: only those that read labels and indexes"
                )
        elif operator == "LoadCSV":
            raise InvalidQuestion("LOAD CSV may not be used here: it reads files and URLs")
        elif operator.startswith(("Show", "Terminate", "AdministrationCommand")):
            raise InvalidQuestion("server commands may not be used here: only queries of the graph are allowed")
        elif operator.startswith("Transaction"):
            raise InvalidQuestion("IN TRANSACTIONS may not be used here: a query runs in one read transaction")
        elif apoc := next((each for each in _APOC.finditer(details.replace("`", "")) if not _computes(each)), None):
            raise InvalidQuestion(f"{apoc[1]} may not be called here: of APOC only functions that compute are allowed")
        elif hidden := _HIDDEN.search(details):
            what = "LOAD CSV" if hidden[1] == "LOAD CSV" else "CALL of a procedure"
            raise InvalidQuestion(f"{what} may not be used inside an expression here")
    if kind != _READS:
        raise InvalidQuestion("the query would write: only queries that read are allowed here")


def _computes(apoc: re.Match[str]) -> bool:
    return apoc[2].lower() in ALLOWED_APOC


def plain(value: Any) -> Any:
    """Return a value as Python's types: node properties, relationship properties with ``type``, a path as a list."""
    from neo4j.graph import Node, Path, Relationship

    if isinstance(value, Node):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Relationship):
        return {"type": value.type} | {key: plain(item) for key, item in value.items()}
    if isinstance(value, Path):
        steps = [plain(value.start_node)]
        for relationship, node in zip(value.relationships, value.nodes[1:], strict=True):
            steps += [plain(relationship), plain(node)]
        return steps
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "to_native"):  # dates, times and vectors
        return value.to_native()
    return value


def _operators(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each operator of a plan, without its runtime, and its details."""
    if plan:
        yield plan["operatorType"].partition("@")[0], str(plan["args"].get("Details", ""))
    for child in plan.get("children", ()):
        yield from _operators(child)


def _message(error: Exception) -> str:
    """Return the first line of the server's message."""
    if str(getattr(error, "code", "")).startswith(_TIMED_OUT):
        return f"the query took longer than {SECONDS:.0f} s: make it smaller, for example with LIMIT"
    return str(getattr(error, "message", None) or error).partition("\n")[0]
