"""Stores: the implementations of ``zettel.ports.GraphStore``. Installed as ``zettel.graph``.

A store knows nothing of models, scorers or the public API. ``zettel.ports.candidate_rules`` (which notes are
candidates) and ``zettel.text.index`` (the index entries of a note) define the results that all stores share.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from zettel.errors import InvalidInput
from zettel.version import DISTRIBUTION

if TYPE_CHECKING:
    from pathlib import Path

    from zettel.ports import GraphStore

ENTRY_POINTS = "zettel.stores"
"""Entry points of other packages' stores, named by URL scheme: a callable ``(url, auth) -> GraphStore``."""

NEO4J = frozenset({"neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc"})
"""Schemes of Neo4j servers: ``neo4j`` routes in a cluster, ``+s`` encrypts, ``+ssc`` skips certificate verification."""

STORE_KEY = "ZETTEL_STORE_KEY"
"""Environment variable with the key of encrypted files. It is not an option, because others can see options."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def open_store(
    url: str | Path, auth: Any = None, database: str | None = None, key: str | None = None
) -> GraphStore:
    """Return the store for a path or URL, without opening it.

    A path (``file:///…`` too) is an embedded store, ``:memory:`` a temporary one; ``key`` encrypts the file, by default
    ZETTEL_STORE_KEY. ``neo4j://``, ``bolt://`` and their encrypted forms are Neo4j servers: ``auth`` is
    (user, password), ``database`` one of the server's databases. Packages may add other schemes. Raises
    ``InvalidInput`` for an unknown scheme, for a file with ``auth`` or ``database``, and for a server with ``key``.
    """
    address = file_named(str(url))
    if not (address.strip() and _is_name(address)):
        raise InvalidInput("the store name is not a valid file name: pass a path such as 'zettel.db'")
    scheme = _SCHEME.match(address)
    if scheme is None:
        return _embedded(address, auth, database, key)
    if key is not None:
        raise InvalidInput("key= encrypts a file, or is for a zettel server: leave it out for other stores")
    if scheme[1].lower() in NEO4J:
        from zettel.graph.neo4j.store import Neo4jStore

        return Neo4jStore(address, auth, database)
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=scheme[1].lower()):
        store: GraphStore = entry.load()(address, auth)
        return store
    raise InvalidInput(
        f"no store supports {scheme[1]}:// addresses: pass a path such as 'zettel.db', "
        f"or install the package that brings that store ({DISTRIBUTION} finds it by the entry point {ENTRY_POINTS!r})"
    )


def file_named(address: str) -> str:
    """Return the path of a ``file:///…`` address; other addresses and paths are returned unchanged."""
    if not address.lower().startswith("file://"):
        return address
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(address).path)


def _is_name(address: str) -> bool:
    try:
        return b"\x00" not in os.fsencode(address)
    except UnicodeEncodeError:
        return False


def _embedded(path: str, auth: Any, database: str | None, key: str | None) -> GraphStore:
    if auth is not None or database is not None:
        raise InvalidInput(
            f"{path} names a file, and auth= and database= are for a server: write its address as "
            "neo4j://localhost:7687, or leave them out"
        )
    from zettel.graph.embedded.store import EmbeddedStore

    return EmbeddedStore(path, key=key if key is not None else os.environ.get(STORE_KEY) or None)
