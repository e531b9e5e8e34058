"""mem0 without a model: ``infer=False``, its default store (Qdrant in a folder) and no limit on the score."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENAI_API_KEY"] = "none"  # its client is created, never called

from mem0 import Memory

USER = "user"


class Embedding:
    """mem0's interface of an embedder."""

    def __init__(self, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._embed = embed

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._embed([text])[0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return self._embed(texts)


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        dim = len(embed(["dimensions"])[0])
        store = {"path": str(Path(folder) / "qdrant"), "on_disk": True, "embedding_model_dims": dim}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(Path(folder) / "history.db"),
            }
        )
        self._memory.embedding_model = Embedding(embed)
        self._ids: dict[str, str] = {}

    def add_many(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            added = self._memory.add(item["text"], user_id=USER, infer=False, metadata={"item": item["id"]})
            self._ids[item["id"]] = added["results"][0]["id"]

    def search(self, question: str, k: int) -> list[str]:
        found = self._memory.search(question, top_k=k, filters={"user_id": USER}, threshold=0.0)
        return [hit["metadata"]["item"] for hit in found["results"]]

    def delete(self, ids: list[str]) -> None:
        for id in ids:
            self._memory.delete(self._ids[id])

    def close(self) -> None:
        self._memory.close()


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
