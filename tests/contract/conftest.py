"""The stores that run the contract tests. To test another store, add one line to BACKENDS.

The exhaustive in-memory store is the oracle for rankings. Tests of durability and erasure run on persistent stores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import neo4j_servers
from tests.contract.transfer_helpers import live
from zettel import Memory
from zettel.testing.reference_store import ReferenceStore


class ServerUrl(str):
    """A URL with its server."""

    server: neo4j_servers.Server


def neo4j(name: str) -> Callable[[Path], ServerUrl]:
    """Return the address of an emptied Neo4j server and set user and password in the environment."""

    def emptied(folder: Path) -> ServerUrl:
        server = neo4j_servers.empty(name)
        os.environ["NEO4J_USERNAME"], os.environ["NEO4J_PASSWORD"] = server.auth
        url = ServerUrl(server.url)
        url.server = server
        return url

    return emptied


BACKENDS: dict[str, Callable[[Path], Any]] = {
    "embedded": lambda folder: folder / "memory.db",
    "reference": lambda folder: ReferenceStore(),
    **{name: neo4j(name) for name in neo4j_servers.NAMES},
}
EVERY_STORE = [
    neo4j_servers.param(name) if name in neo4j_servers.NAMES else pytest.param(name, marks=pytest.mark.store(name))
    for name in BACKENDS
]
"""Parameters for a test on each of BACKENDS."""
PERSISTENT = [store for store in EVERY_STORE if store.values != ("reference",)]


HTTP = "http"
"""A memory on a server, for modules marked ``over_http``, which use only the public API."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with a ``memory`` on every store, and over HTTP if the module enables it and the test allows it."""
    if "memory" in metafunc.fixturenames:
        marks = {mark.name for mark in metafunc.definition.iter_markers()}
        over_http = "over_http" in marks and "here" not in marks
        served = [pytest.param(HTTP, marks=[pytest.mark.store(HTTP), pytest.mark.http])] if over_http else []
        metafunc.parametrize("memory", [*EVERY_STORE, *served], indirect=True)


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Return an empty memory on each store, and one behind a server."""
    with ExitStack() as stack:
        if request.param == HTTP:
            pytest.importorskip("fastapi", reason="the server is not installed: make test-env")
            from tests.http_server import served

            url = stack.enter_context(served(tmp_path / "memory.db", keyed=False)).url
        else:
            url = BACKENDS[request.param](tmp_path)
        yield stack.enter_context(Memory(url))


@pytest.fixture(params=PERSISTENT)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Return the URL of an empty memory on each persistent store, for several connections and processes."""
    return BACKENDS[request.param](tmp_path)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the export of one scope with history."""
    path = tmp_path_factory.mktemp("exported") / "ann.zettel"
    with Memory(path.parent / "ann.db") as memory:
        live(memory)
        memory.export(path, "zettel")
    return path
