"""LangMem's tools that add, search and delete memories, called without an agent, over LangGraph's InMemoryStore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool

NAMESPACE = ("memories",)


class Peer:
    def __init__(self, embed: Callable[[list[str]], list[list[float]]]) -> None:
        dim = len(embed(["dimensions"])[0])
        store = InMemoryStore(index={"dims": dim, "embed": embed, "fields": ["content"]})
        self._manage = create_manage_memory_tool(NAMESPACE, store=store).func
        self._search = create_search_memory_tool(NAMESPACE, store=store, response_format="content_and_artifact").func
        self._items: dict[str, str] = {}

    def add_many(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            answer = self._manage(content=item["text"], action="create")
            self._items[answer.rpartition(" ")[2]] = item["id"]

    def search(self, question: str, k: int) -> list[str]:
        _, found = self._search(question, limit=k)
        return [self._items[item.key] for item in found]

    def delete(self, ids: list[str]) -> None:
        for key in [key for key, id in self._items.items() if id in ids]:
            self._manage(action="delete", id=key)


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(embed)
