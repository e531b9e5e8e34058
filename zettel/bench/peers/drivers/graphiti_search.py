"""Graphiti's hybrid search without a model: each message is a fact between two nodes, in Kuzu, without a minimal score.

In Graphiti a model extracts facts from messages: ``add_episode`` calls it for each message, and ``add_triplet`` from
the second fact on. Its driver for Kuzu is deprecated, but its other databases need a server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

os.environ["OPENAI_API_KEY"] = "none"  # its clients are created, never called
os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
os.environ["EMBEDDING_DIM"] = "384"

from graphiti_core import Graphiti
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.nodes import EntityNode
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF

GROUP = "conversation"
SPEAKER, LISTENER = "speaker", "listener"
"""The two nodes, also their ids."""


class Embedding(EmbedderClient):  # type: ignore[misc]
    def __init__(self, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._embed = embed

    async def create(self, input_data: Any) -> list[float]:
        return self._embed([input_data] if isinstance(input_data, str) else list(input_data))[0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        return self._embed(input_data_list)


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        path = Path(folder) / "graph.kuzu"
        is_new = not path.exists()
        self._loop = asyncio.new_event_loop()
        self._driver = KuzuDriver(db=str(path))
        self._graphiti = Graphiti(graph_driver=self._driver, embedder=Embedding(embed))
        self._config = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        self._config.edge_config.sim_min_score = -1.0
        if is_new:
            self._loop.run_until_complete(self._create())

    async def _create(self) -> None:
        await self._driver.graph_ops.build_indices_and_constraints(self._driver)
        for name in (SPEAKER, LISTENER):
            await self._graphiti.nodes.entity.save(EntityNode(uuid=name, name=name, group_id=GROUP))

    def add_many(self, items: list[dict[str, Any]]) -> None:
        self._loop.run_until_complete(self._add(items))

    async def _add(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            fact = EntityEdge(
                uuid=item["id"], group_id=GROUP, source_node_uuid=SPEAKER, target_node_uuid=LISTENER, name="MESSAGE",
                fact=item["text"], created_at=datetime.now(timezone.utc),
            )  # fmt: skip
            await self._graphiti.edges.entity.save(fact)

    def search(self, question: str, k: int) -> list[str]:
        config = self._config.model_copy(update={"limit": k})
        found = self._loop.run_until_complete(self._graphiti.search_(question, config, group_ids=[GROUP]))
        return [edge.uuid for edge in found.edges]

    def delete(self, ids: list[str]) -> None:
        self._loop.run_until_complete(EntityEdge.delete_by_uuids(self._driver, ids))

    def close(self) -> None:
        self._loop.run_until_complete(self._graphiti.close())
        self._driver.client.close()
        self._driver.db.close()


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
