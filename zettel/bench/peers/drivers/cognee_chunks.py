"""Cognee without a model: each message is a chunk of one document, and a pipeline of one task stores its chunks.

Cognee's own pipeline then extracts a graph from the chunks: by a language model, or without a key by a small local one,
which it downloads. Here chunks alone are in its graph (Ladybug) and vector store (LanceDB), and its search for chunks
ranks them.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

DATASET = "conversation"
COLLECTION = "DocumentChunk_text"
DOCUMENT = uuid5(NAMESPACE_URL, DATASET)


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        dim = len(embed(["dimensions"])[0])
        roots = {"DATA_ROOT_DIRECTORY": "data", "SYSTEM_ROOT_DIRECTORY": "system", "CACHE_ROOT_DIRECTORY": "cache"}
        os.environ.update({name: str(Path(folder) / part) for name, part in roots.items()})
        os.environ.update(
            COGNEE_LOGS_DIR=str(Path(folder) / "logs"), COGNEE_SKIP_CONNECTION_TEST="true", LLM_API_KEY="none",
            ENABLE_BACKEND_ACCESS_CONTROL="false", EMBEDDING_PROVIDER="custom", EMBEDDING_MODEL="benchmark",
            EMBEDDING_DIMENSIONS=str(dim), LOG_LEVEL="ERROR",
        )  # fmt: skip
        import cognee

        self._cognee = cognee
        self._loop = asyncio.new_event_loop()
        _use(embed, dim)

    def add_many(self, items: list[dict[str, Any]]) -> None:
        from cognee.modules.pipelines.tasks.task import Task
        from cognee.tasks.storage import add_data_points

        tasks = [Task(_chunks, needs_llm=False), Task(add_data_points, needs_llm=False)]
        self._run(self._cognee.run_custom_pipeline(tasks=tasks, data=[items], dataset=DATASET))

    def flush(self) -> None:
        """Compact the vector store, as Cognee's own pipeline does at its end."""
        from cognee.infrastructure.databases.vector.compact_vector_store import compact_vector_store

        self._run(compact_vector_store())

    def search(self, question: str, k: int) -> list[str]:
        kind = self._cognee.SearchType.CHUNKS
        found = self._run(self._cognee.search(question, query_type=kind, datasets=[DATASET], top_k=k))
        return [hit["document_id"] for hit in found]

    def delete(self, ids: list[str]) -> None:
        self._run(self._delete([_chunk_id(id) for id in ids]))

    async def _delete(self, ids: list[UUID]) -> None:
        from cognee.infrastructure.databases.unified import get_unified_engine

        stores = await get_unified_engine()
        await stores.graph.delete_nodes([str(id) for id in ids])
        await stores.vector.delete_data_points(COLLECTION, ids)

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)


def _use(embed: Callable[[list[str]], list[list[float]]], dim: int) -> None:
    """Replace the only place where Cognee makes an embedder: its settings name hosted models and downloads alone."""
    from cognee.infrastructure.databases.vector.embeddings.EmbeddingEngine import EmbeddingResult

    class Embedding:
        model, max_completion_tokens = "benchmark", 8191

        async def embed_text(self, text: list[str]) -> Any:
            return EmbeddingResult(embed(text), tokens=0)

        def get_vector_size(self) -> int:
            return dim

        def get_batch_size(self) -> int:
            return 100

        async def input_limit(self) -> None:
            return None

    engines = sys.modules["cognee.infrastructure.databases.vector.embeddings.get_embedding_engine"]
    engines.create_embedding_engine = lambda *_, **__: Embedding()  # type: ignore[attr-defined]


def _chunk_id(id: str) -> UUID:
    return uuid5(NAMESPACE_URL, id)


def _chunks(batches: list[list[dict[str, Any]]]) -> list[Any]:
    from cognee.modules.chunking.models import DocumentChunk
    from cognee.modules.data.processing.document_types import TextDocument

    document = TextDocument(
        id=DOCUMENT, name=DATASET, raw_data_location="", external_metadata=None, mime_type="text/plain"
    )
    return [
        DocumentChunk(
            id=_chunk_id(item["id"]), text=item["text"], chunk_size=len(item["text"].split()), chunk_index=0,
            cut_type="message", is_part_of=document, document_id=item["id"], contains=[],
        )
        for batch in batches
        for item in batch
    ]  # fmt: skip


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
