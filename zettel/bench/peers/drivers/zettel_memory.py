"""zettel of the checkout or installation that contains this file, with an embedded store and its defaults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[4]))

import numpy as np

from zettel import Memory
from zettel.embed.onnx import OnnxEmbedder


class Embedding:
    """The parent's vectors, under the name of the model that computes them."""

    remote = False
    slow = True
    info = OnnxEmbedder().info

    def __init__(self, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._embed = embed

    async def embed(self, texts: Sequence[str]) -> Any:
        from anyio import to_thread

        rows = await to_thread.run_sync(self._embed, list(texts))
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.info.dim)


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._memory = Memory(Path(folder) / "zettel.db", embedder=Embedding(embed))

    def add_many(self, items: list[dict[str, Any]]) -> None:
        """Add ``event`` of each item, an event's fields; without it the text alone."""
        alone = ({"external_id": item["id"], "content": item["text"]} for item in items)
        self._memory.add_many([item.get("event", text) for item, text in zip(items, alone, strict=True)])

    def flush(self) -> None:
        self._memory.flush()

    def search(self, question: str, k: int) -> list[str]:
        return [hit.note.external_id or "" for hit in self._memory.search(question, k=k)]

    def delete(self, ids: list[str]) -> None:
        for id in ids:
            self._memory.delete(id)

    def close(self) -> None:
        self._memory.close()


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
