"""Client for MemTensor's OmniMemEval, whose factory imports this module: see docs/how-to/harnesses.md."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from zettel import Event, Memory, Scope

STORE, TOKENS = "ZETTEL_STORE", "ZETTEL_MAX_TOKENS"
"""Environment: the store (a file or a server's URL), and the size of a context in tokens."""
DEFAULT_STORE, DEFAULT_TOKENS = "omnimemeval.db", 4000


class ZettelClient:
    """OmniMemEval's backend: ``add`` stores the messages of a session, ``search`` returns a context as text.

    The harness makes a client for each user and thread; all clients of a process share one memory.
    """

    def __init__(self) -> None:
        self._memory = _memory(os.environ.get(STORE) or DEFAULT_STORE)
        self._tokens = int(os.environ.get(TOKENS) or DEFAULT_TOKENS)

    def add(self, messages: Sequence[Mapping[str, Any]], user_id: str, **_: Any) -> None:
        """Add ``{"role", "content", "chat_time"}`` of one session, and wait until they are linked.

        A message with a ``name`` comes from a person of that name, so its role is left out.
        """
        self._memory.add_many(list(_events(messages)), scope=Scope(user=user_id))
        self._memory.flush()

    def search(self, query: str, user_id: str, top_k: int = 20, **_: Any) -> str:
        """Return the first ``top_k`` hits with days and speakers, within the size of a context."""
        return self._memory.context(query, self._tokens, k=top_k, log=False, scope=Scope(user=user_id))

    def delete(self, user_id: str) -> None:
        """Destroy all that a user's scope contains."""
        self._memory.delete_scope(scope=Scope(user=user_id))


@lru_cache
def _memory(store: str) -> Memory:
    return Memory(store)


def _events(messages: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    for message in messages:
        name, time = message.get("name"), message.get("chat_time")
        content = message["content"]
        if name:
            content = content.removeprefix(f"{name}: ")
        yield Event(
            content=content, session=time, occurred_at=time, speaker=name, role=None if name else message.get("role")
        )
