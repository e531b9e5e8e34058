"""A person's or an agent's own Cypher: read, never write, within limits, and with nothing that leaves the database.

The planner is asked first (EXPLAIN), and its plan decides, not the text: there are no comments or escapes in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from zettel.errors import InvalidQuestion

if TYPE_CHECKING:
    from neo4j import AsyncBookmarkManager, AsyncDriver

SECONDS = 30.0
"""How long a query may take; the server ends it then."""
ROWS = 10_000
"""How many rows a query may answer: more are no answer to look at, and all of them are held in memory."""

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
"""Those that read this database and nothing else, in lower case."""

_READS = "r"
_TIMED_OUT = "Neo.ClientError.Transaction.TransactionTimedOut"
_NAME = re.compile(r"\s*([\w.`]+)")
# A subquery inside an expression is no operator of its own: the plan has its text, in the planner's words.
_HIDDEN = re.compile(r"\b(LOAD CSV|ResolvedCall\(|CALL )")


async def ask(
    driver: AsyncDriver,
    database: str,
    query: str,
    parameters: Mapping[str, Any],
    bookmarks: AsyncBookmarkManager | None = None,
) -> list[dict[str, Any]]:
    """The rows of a query, each a dict by column: what ``memory.cypher`` answers.

    Raises ``InvalidQuestion`` for a query that is wrong, would write, reads files or addresses, calls a procedure that
    is not in ``ALLOWED_PROCEDURES``, takes longer than ``SECONDS`` or answers more than ``ROWS`` rows.
    """
    from neo4j import READ_ACCESS
    from neo4j.exceptions import ClientError

    session = driver.session(
        database=database, default_access_mode=READ_ACCESS, bookmark_manager=bookmarks, fetch_size=ROWS + 1
    )
    try:
        async with session, await session.begin_transaction(timeout=SECONDS) as transaction:
            try:
                explained = await transaction.run("EXPLAIN " + query, dict(parameters))
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidQuestion(f"a query cannot be given that value: {error}") from error
            summary = await explained.consume()
            require_harmless(summary.query_type, summary.plan)
            answer = await transaction.run(query, dict(parameters))
            columns = answer.keys()
            rows = await answer.fetch(ROWS + 1)
    except ClientError as error:
        raise InvalidQuestion(_told(error)) from error
    if len(rows) > ROWS:
        raise InvalidQuestion(f"that query answers more than {ROWS:,} rows: end it with LIMIT")
    return [{key: plain(value) for key, value in zip(columns, row, strict=True)} for row in rows]


def require_harmless(kind: str | None, plan: Mapping[str, Any] | None) -> None:
    """Raises ``InvalidQuestion`` unless the plan only reads this database."""
    for operator, details in _operators(plan or {}):
        if operator == "ProcedureCall":
            name = _NAME.match(details)
            called = name[1].replace("`", "") if name else details
            if called.lower() not in ALLOWED_PROCEDURES:
                raise InvalidQuestion(
                    f"the procedure {called} may not be called here: only queries of labels and indexes"
                )
        elif operator == "LoadCSV":
            raise InvalidQuestion("LOAD CSV may not be used here: it reads files and addresses")
        elif operator.startswith(("Show", "Terminate", "AdministrationCommand")):
            raise InvalidQuestion("commands to the server may not be used here: only queries of the graph")
        elif operator.startswith("Transaction"):
            raise InvalidQuestion("IN TRANSACTIONS may not be used here: a query is one transaction that only reads")
        elif hidden := _HIDDEN.search(details):
            what = "LOAD CSV" if hidden[1] == "LOAD CSV" else "CALL of a procedure"
            raise InvalidQuestion(f"{what} may not be used inside an expression here")
    if kind != _READS:
        raise InvalidQuestion("that query would write: only those that read may be asked here")


def plain(value: Any) -> Any:
    """Python's own values: a node's properties, a relationship's with its ``type``, of a path both in turn."""
    from neo4j.graph import Node, Path, Relationship

    if isinstance(value, Node):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Relationship):
        return {"type": value.type} | {key: plain(one) for key, one in value.items()}
    if isinstance(value, Path):
        steps = [plain(value.start_node)]
        for relationship, node in zip(value.relationships, value.nodes[1:], strict=True):
            steps += [plain(relationship), plain(node)]
        return steps
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if hasattr(value, "to_native"):  # dates, times and vectors
        return value.to_native()
    return value


def _operators(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each operator of a plan without its runtime's name, and what it says of itself."""
    if plan:
        yield plan["operatorType"].partition("@")[0], str(plan["args"].get("Details", ""))
    for child in plan.get("children", ()):
        yield from _operators(child)


def _told(error: Exception) -> str:
    """The server's own words, the first line of them."""
    if str(getattr(error, "code", "")).startswith(_TIMED_OUT):
        return f"that query took longer than {SECONDS:.0f} s: ask for less"
    return str(getattr(error, "message", None) or error).partition("\n")[0]
