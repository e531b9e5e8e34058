"""LlamaIndex: a memory block and a retriever."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

from zettel.errors import MissingExtra

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise MissingExtra("the memory for LlamaIndex", "llamaindex") from error

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import checked
from zettel.integrations.conversation_turns import HEAD, RecalledContext, report_answer, tokens_left
from zettel.integrations.json_values import storable_text
from zettel.integrations.note_access import event_fields
from zettel.integrations.recalled_text import normalized
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.model import Event, Hit, Scope
from zettel.model.hits import CONTEXT_HITS, DEFAULT_TOKENS
from zettel.search.pack import estimate_tokens, pack
from zettel.search.question_kind import asks_about_past

_ADAPTER = Adapter("llamaindex")
HITS = 10
"""Default number of notes that a retriever returns."""
SESSION = "session_id"
"""LlamaIndex's key of the session in the additional arguments of a message."""
MESSAGES = 100_000
"""Stored messages whose ids are cached."""
SESSIONS = 1000
"""Sessions whose recalled context is cached, and texts made from it."""
SPEAKERS = ("user", "assistant")
"""Roles of the messages that are stored; tool and system messages are not."""


class ZettelMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]
    """One scope of a ``Memory`` or ``AsyncMemory`` as a block of LlamaIndex's ``Memory``.

    ``aget`` stores the new messages of the chat history and recalls memories for the last user message, in at most
    ``max_tokens``. ``aput`` stores messages that leave the history. Each message is stored once; recalled sentences in
    an answer are left out, and the notes that it used are reported. ``session`` names the session, by default
    LlamaIndex's ``session_id``. ``user`` and ``assistant`` name the speakers; ``fields`` are those of every block.
    Raises ``InvalidInput``.
    """

    name: str = "zettel"
    _memory: AnyMemory = PrivateAttr()
    _scope: Scope = PrivateAttr()
    _session: str | None = PrivateAttr()
    _max_tokens: int = PrivateAttr()
    _speakers: dict[str, str] = PrivateAttr()
    _left: Counter[str] = PrivateAttr(default_factory=Counter)
    _remembered: dict[str, None] = PrivateAttr(default_factory=dict)
    _contexts: dict[str, RecalledContext] = PrivateAttr(default_factory=dict)
    _packed_hits: dict[str, list[Hit]] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: Scope | None = None,
        session: str | None = None,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
        **fields: Any,
    ) -> None:
        require_memory(memory)
        tokens = tokens_left(max_tokens, HEAD)
        super().__init__(**fields)
        self._memory, self._scope, self._session = memory, scope or memory.scope, session
        self._max_tokens = tokens
        self._speakers = dict(zip(SPEAKERS, (user, assistant), strict=True))

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        if not messages:
            return ""
        session = self._session_of(messages, block_kwargs.get(SESSION))
        if len(messages) > 1 and _is_repeated(*messages[-2:]):
            messages = messages[:-1]  # during tool calls LlamaIndex repeats the user message after the history
        return await _ADAPTER.run_async(self._memory, partial(self._recall, messages, session))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        session = self._session_of(messages)
        await _ADAPTER.run_async(self._memory, partial(self._remember, messages, session, True))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return a shorter text with only the best notes."""
        if not content:  # an empty block is truncated too, and receives a list
            return None
        max_tokens = estimate_tokens(content) - tokens_to_truncate - estimate_tokens(f"{HEAD}\n\n")
        return _headed(pack(self._packed_hits.get(content, []), max_tokens)) or None if max_tokens > 0 else None

    # The methods below run in the memory's event loop.

    async def _recall(self, messages: Sequence[ChatMessage], session: str, memory: AsyncMemory) -> str:
        await self._remember(messages, session, False, memory)
        question = _question(messages)
        if not question:
            return ""
        now = datetime.now(timezone.utc)
        current = not asks_about_past(question)
        hits = await memory.search(question, CONTEXT_HITS, now=now, current_only=current, scope=self._scope)
        history = "\n".join(normalized(message.content or "") for message in messages)
        new = [hit for hit in hits if not hit.note.flags and normalized(hit.note.content) not in history]
        packed = pack(new, self._max_tokens)
        self._contexts.pop(session, None)
        self._contexts[session] = RecalledContext(hits, packed, self._speakers["user"])
        _evict(self._contexts, SESSIONS)
        text = _headed(packed)
        self._packed_hits.pop(text, None)
        self._packed_hits[text] = new
        _evict(self._packed_hits, SESSIONS)
        return text

    async def _remember(
        self, messages: Sequence[ChatMessage], session: str, leaving: bool, memory: AsyncMemory
    ) -> None:
        """Store the new messages of the history, or of those that are ``leaving`` it.

        Equal messages of a session are distinguished by their count so far.
        """
        counts: Counter[str] = Counter()
        ids: list[str] = []
        events: list[Event] = []
        for message in messages:
            role, text = message.role.value, _text(message)
            if role not in SPEAKERS or not text:
                continue
            first_id = _id(session, role, text, 0)
            id = _id(session, role, text, self._left[first_id] + counts[first_id])
            counts[first_id] += 1
            if id not in self._remembered:
                ids.append(id)
                events += self._event(id, session, role, text)
                if role == "assistant" and session in self._contexts:
                    await report_answer(memory, self._contexts[session].search_id, text, self._scope)
        if events:
            await memory.add_many_report(events, on_conflict="skip", scope=self._scope)
        self._remembered |= dict.fromkeys(ids)
        _evict(self._remembered, MESSAGES)
        if leaving:
            for first_id, times in counts.items():
                self._left[first_id] = self._left.pop(first_id, 0) + times
            _evict(self._left, MESSAGES)

    def _event(self, id: str, session: str, role: str, text: str) -> Iterable[Event]:
        context = self._contexts.get(session)
        new = context.without(text, own=role == "user") if context else text
        if new:
            now = datetime.now(timezone.utc)
            fields = {"id": id, "content": new, "speaker": self._speakers[role], "role": role}
            yield checked({**fields, "occurred_at": now, "session": session})

    def _session_of(self, messages: Sequence[ChatMessage], given: object = None) -> str:
        names = (message.additional_kwargs.get(SESSION) for message in messages)
        return self._session or str(given or next(filter(None, names), None) or self.name)


class ZettelRetriever(BaseRetriever):  # type: ignore[misc]
    """Returns the notes that answer a query as nodes, for query engines and other users of retrievers.

    It returns at most ``k`` notes and leaves out notes that look like instructions to a model; ``search`` are further
    arguments of ``Memory.search``. A node has the id and the metadata of its note, and ``role``, ``title``,
    ``occurred_at`` and ``session`` if known. Its ``search_id``, which models do not see, is for ``Memory.feedback``.
    With an ``AsyncMemory`` only ``aretrieve`` works. Raises ``InvalidInput``.
    """

    def __init__(self, memory: AnyMemory, *, scope: Scope | None = None, k: int = HITS, **search: Any) -> None:
        require_memory(memory)
        super().__init__()
        self._memory = memory
        self._search: dict[str, Any] = {"k": k, "scope": scope or memory.scope} | search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _ADAPTER.run_sync(self._memory, partial(self._find, query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await _ADAPTER.run_async(self._memory, partial(self._find, query_bundle))

    async def _find(self, query_bundle: QueryBundle, memory: AsyncMemory) -> list[NodeWithScore]:
        hits = await memory.search(query_bundle.query_str, **self._search)
        return [_node(hit) for hit in hits if not hit.note.flags]


def _node(hit: Hit) -> NodeWithScore:
    note = hit.note
    search = {} if hit.search_id is None else {"search_id": hit.search_id}
    node = TextNode(
        id_=note.id,
        text=note.content,
        metadata={**note.metadata, **event_fields(note), **search},
        excluded_llm_metadata_keys=list(search),
        excluded_embed_metadata_keys=list(search),
    )
    return NodeWithScore(node=node, score=hit.score)


def _headed(packed: str) -> str:
    return f"{HEAD}\n\n{packed}" if packed else ""


def _id(session: str, role: str, text: str, before: int) -> str:
    identity = json.dumps(["llamaindex", session, role, text, before])
    return f"llamaindex:{hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()}"


def _question(messages: Sequence[ChatMessage]) -> str:
    """Return the text of the last user message."""
    last = next((message for message in reversed(messages) if message.role.value == "user"), None)
    return _text(last) if last else ""


def _text(message: ChatMessage) -> str:
    return storable_text(message.content or "").strip()


def _is_repeated(first: ChatMessage, second: ChatMessage) -> bool:
    """Return whether both are user messages with the same text."""
    return first.role.value == second.role.value == "user" and _text(first) == _text(second)


def _evict(cache: dict[Any, Any], max_entries: int) -> None:
    """Drop the oldest entries beyond ``max_entries``."""
    while len(cache) > max_entries:
        del cache[next(iter(cache))]
