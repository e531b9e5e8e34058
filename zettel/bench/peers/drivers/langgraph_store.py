"""LangGraph's InMemoryStore with an index. It has no file: nothing outlives the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

NAMESPACE = ("memories",)


class Peer:
    def __init__(self, embed: Callable[[list[str]], list[list[float]]]) -> None:
        dim = len(embed(["dimensions"])[0])
        self._store = InMemoryStore(index={"dims": dim, "embed": embed, "fields": ["text"]})

    def add_many(self, items: list[dict[str, Any]]) -> None:
        """Put items in batches without a repeated text: a batch with one fails (langchain-ai/langgraph#8822)."""
        while items:
            batch = {item["text"]: item for item in items}
            self._store.batch([PutOp(NAMESPACE, item["id"], {"text": text}) for text, item in batch.items()])
            items = [item for item in items if batch[item["text"]] is not item]

    def search(self, question: str, k: int) -> list[str]:
        return [item.key for item in self._store.search(NAMESPACE, query=question, limit=k)]

    def delete(self, ids: list[str]) -> None:
        for id in ids:
            self._store.delete(NAMESPACE, id)


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(embed)
