"""A peer for the tests of ``zettel bench peers``: BM25 over a file of JSON lines, with the standard library alone."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

K1, B = 1.2, 0.75


class Peer:
    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "items.jsonl"
        self._file.touch()

    def add_many(self, items: list[dict[str, Any]]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": item["id"], "text": item["text"]}) + "\n" for item in items)

    def search(self, question: str, k: int) -> list[str]:
        documents = {item["id"]: Counter(_words(item["text"])) for item in self._items()}
        mean = sum(words.total() for words in documents.values()) / max(len(documents), 1)
        scores: Counter[str] = Counter()
        for word in set(_words(question)):
            having = [id for id, words in documents.items() if word in words]
            idf = math.log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
            for id in having:
                tf, length = documents[id][word], documents[id].total()
                scores[id] += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / mean))  # type: ignore[assignment]
        return [id for id, _ in scores.most_common(k)]

    def delete(self, ids: list[str]) -> None:
        left = [item for item in self._items() if item["id"] not in ids]
        self._file.write_text("".join(json.dumps(item) + "\n" for item in left), encoding="utf-8")

    def _items(self) -> list[dict[str, Any]]:
        whole, _, _ = self._file.read_text(encoding="utf-8").rpartition("\n")  # a kill may leave half a line
        return [json.loads(line) for line in whole.split("\n") if line]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder)
