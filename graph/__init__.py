"""The stores: how a memory is kept. Installed as ``zettel.graph``.

Each store implements ``zettel.ports.GraphStore`` and knows nothing of models, scorers or the public face. What all
stores must agree on (which notes a question is asked of, what a note is found by) is defined in ``zettel.search.pool``
and ``zettel.annotate.index``; a store may be quicker than these words, never different.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from zettel.errors import DISTRIBUTION, InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from zettel.ports import GraphStore

ENTRY_POINTS = "zettel.stores"
"""Packages that bring a store name it here by URL scheme: a callable ``(url, auth) -> GraphStore``."""

NEO4J = frozenset({"neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc"})
"""Schemes of Neo4j servers: ``neo4j`` finds its way in a cluster, ``+s`` encrypts, ``+ssc`` without checking whom."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def open_store(url: str | Path, auth: Any = None, database: str | None = None) -> GraphStore:
    """The store for a path or URL, not opened yet.

    A path (``file:///…`` too) is an embedded store; ``:memory:`` is one that is gone when it is closed. ``neo4j://``,
    ``bolt://`` and their encrypted forms are Neo4j servers: ``auth`` is (user, password), ``database`` which of the
    server's databases. Every other scheme must have been brought by a package. Raises ``InvalidInput`` for an unknown
    scheme, and for a file with ``auth`` or ``database``.
    """
    address = file_named(str(url))
    if not (address.strip() and _is_name(address)):
        raise InvalidInput("the store has no name that a file can have: give a path such as 'zettel.db'")
    scheme = _SCHEME.match(address)
    if scheme is None:
        return _embedded(address, auth, database)
    if scheme[1].lower() in NEO4J:
        from zettel.graph.neo4j.store import Neo4jStore

        return Neo4jStore(address, auth, database)
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=scheme[1].lower()):
        store: GraphStore = entry.load()(address, auth)
        return store
    raise InvalidInput(
        f"no store is known for {scheme[1]}:// addresses: give a path such as 'zettel.db', "
        f"or install the package that brings that store ({DISTRIBUTION} finds it by the entry point {ENTRY_POINTS!r})"
    )


def file_named(address: str) -> str:
    """The path that a ``file:///…`` address names; every other address, and a path, as it is."""
    if not address.lower().startswith("file://"):
        return address
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(address).path)


def _is_name(address: str) -> bool:
    try:
        return b"\x00" not in os.fsencode(address)
    except UnicodeEncodeError:
        return False


def _embedded(path: str, auth: Any, database: str | None) -> GraphStore:
    if auth is not None or database is not None:
        raise InvalidInput(
            f"{path} names a file, and auth= and database= are for a server: write its address as "
            "neo4j://localhost:7687, or leave them out"
        )
    from zettel.graph.embedded.store import EmbeddedStore

    return EmbeddedStore(path)
