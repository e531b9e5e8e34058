"""LlamaIndex's VectorMemory over its own vector store, written to the folder after every change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import VectorMemory


class Embedding(BaseEmbedding):  # type: ignore[misc]
    function: Callable[[list[str]], list[list[float]]]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.function([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.function(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._folder = folder
        model = Embedding(function=embed, model_name="benchmark")
        if (Path(folder) / "docstore.json").exists():
            index = load_index_from_storage(StorageContext.from_defaults(persist_dir=folder), embed_model=model)
        else:
            index = VectorStoreIndex([], embed_model=model)
        self._memory = VectorMemory(vector_index=index, batch_by_user_message=False)
        self._nodes: dict[str, str] = {}

    def add_many(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            message = ChatMessage(role="user", content=item["text"], additional_kwargs={"item": item["id"]})
            self._memory.put(message)
            self._nodes[item["id"]] = self._memory.cur_batch_textnode.id_
        self._save()

    def search(self, question: str, k: int) -> list[str]:
        self._memory.retriever_kwargs = {"similarity_top_k": k}
        return [message.additional_kwargs["item"] for message in self._memory.get(question)]

    def delete(self, ids: list[str]) -> None:
        self._memory.vector_index.delete_nodes([self._nodes[id] for id in ids], delete_from_docstore=True)
        self._save()

    def _save(self) -> None:
        self._memory.vector_index.storage_context.persist(self._folder)


def open_peer(folder: str, embed: Callable[[list[str]], list[list[float]]]) -> Peer:
    return Peer(folder, embed)
