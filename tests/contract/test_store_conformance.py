"""The installable store conformance suite on the embedded store, the reference store and Neo4j."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import neo4j_servers
from zettel.graph.embedded.store import EmbeddedStore
from zettel.graph.neo4j.store import Neo4jStore
from zettel.ports import GraphStore
from zettel.testing.reference_store import ReferenceStore
from zettel.testing.store_conformance import StoreConformance


class TestEmbedded(StoreConformance):
    def make_store(self, folder: Path) -> GraphStore:
        return EmbeddedStore(folder / "memory.db")


class TestReference(StoreConformance):
    persistent = False

    def make_store(self, folder: Path) -> GraphStore:
        return ReferenceStore()


@pytest.mark.timeout(300)
class TestNeo4j(StoreConformance):
    cosine_tolerance = 5e-4  # the server stores vectors with less precision

    @pytest.fixture(autouse=True, params=neo4j_servers.EVERY)
    def server(self, request: pytest.FixtureRequest) -> None:
        self._server = neo4j_servers.empty(request.param)

    def make_store(self, folder: Path) -> GraphStore:
        return Neo4jStore(self._server.url, self._server.auth)
