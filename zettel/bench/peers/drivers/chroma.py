"""Chroma: a collection in a folder, cosine, default settings otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chromadb
from chromadb.config import Settings

BATCH = 5_000  # Chroma limits the size of a call


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._embed = embed
        client = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
        self._items = client.get_or_create_collection(
            "items", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add_many(self, items: list[dict[str, Any]]) -> None:
        for start in range(0, len(items), BATCH):
            part = items[start : start + BATCH]
            texts = [item["text"] for item in part]
            self._items.add(ids=[item["id"] for item in part], documents=texts, embeddings=self._embed(texts))

    def search(self, question: str, k: int) -> list[str]:
        found = self._items.query(query_embeddings=self._embed([question]), n_results=k, include=[])
        return list(found["ids"][0])

    def delete(self, ids: list[str]) -> None:
        self._items.delete(ids=ids)


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
