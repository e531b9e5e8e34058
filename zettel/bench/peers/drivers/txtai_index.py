"""txtai: an index with contents, which is written to the folder after every call that changes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from txtai import Embeddings


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._path = str(Path(folder) / "index")

        def transform(texts: list[str]) -> Any:
            return np.array(embed(list(texts)), dtype=np.float32)

        self._index = Embeddings({"method": "external", "transform": transform, "content": True})
        if self._index.exists(self._path):
            self._index.load(self._path, config={"transform": transform})

    def add_many(self, items: list[dict[str, Any]]) -> None:
        self._index.upsert([(item["id"], item["text"], None) for item in items])
        self._index.save(self._path)

    def search(self, question: str, k: int) -> list[str]:
        return [hit["id"] for hit in self._index.search(question, limit=k)]

    def delete(self, ids: list[str]) -> None:
        self._index.delete(ids)
        self._index.save(self._path)

    def close(self) -> None:
        self._index.close()


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
