"""LlamaIndex: a block of its ``Memory`` that remembers and recalls, and a retriever."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

from zettel.errors import InvalidInput, MissingExtra

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise MissingExtra("the memory for LlamaIndex", "llamaindex") from error

from zettel.arguments import checked
from zettel.async_memory import AsyncMemory
from zettel.face.finding import CONTEXT_HITS, DEFAULT_TOKENS
from zettel.integrations.either import Either, reach, require_memory, wait
from zettel.integrations.plain import storable_text
from zettel.integrations.recalled import spaced
from zettel.integrations.turns import HEAD, Known
from zettel.model import Event, Hit, Scope
from zettel.search.pack import estimate_tokens, pack

HITS = 10
"""Notes that a retriever brings, unless another number is asked for."""
SESSION = "session_id"
"""What LlamaIndex calls the session, in the further arguments of a message that it hands on."""
MESSAGES = 100_000
"""Messages that are kept in mind, so that they need not be looked for in the memory again."""
SESSIONS = 1000
"""Sessions of which it is kept in mind what was recalled in them last, and texts that were made of it."""
SPEAKERS = ("user", "assistant")
"""Roles of the messages that are remembered: what tools say and what a model is told to do is not."""


class ZettelMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]
    """One scope of a ``Memory`` or ``AsyncMemory`` as a block of LlamaIndex's ``Memory``.

    ``aget`` remembers what is new in the chat history, and recalls what its last words are about, in at most
    ``max_tokens``; ``aput`` remembers what leaves the history. A message is remembered once, and of an answer only what
    was not recalled. ``session`` is what it is remembered of, by default LlamaIndex's ``session_id``. ``user`` and
    ``assistant`` are the roles under which it is remembered; ``fields`` are those of every block. Raises
    ``InvalidInput``.
    """

    name: str = "zettel"
    _memory: Either = PrivateAttr()
    _scope: Scope = PrivateAttr()
    _session: str | None = PrivateAttr()
    _max_tokens: int = PrivateAttr()
    _roles: dict[str, str] = PrivateAttr()
    _left: Counter[str] = PrivateAttr(default_factory=Counter)
    _remembered: dict[str, None] = PrivateAttr(default_factory=dict)
    _known: dict[str, Known] = PrivateAttr(default_factory=dict)
    _told: dict[str, list[Hit]] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        memory: Either,
        *,
        scope: Scope | None = None,
        session: str | None = None,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
        **fields: Any,
    ) -> None:
        require_memory(memory)
        if max_tokens <= (least := estimate_tokens(HEAD)):
            raise InvalidInput(f"max_tokens={max_tokens} leaves no room for a word: use {least + 1} or more")
        super().__init__(**fields)
        self._memory, self._scope, self._session = memory, scope or memory.scope, session
        self._max_tokens = max_tokens - least
        self._roles = dict(zip(SPEAKERS, (user, assistant), strict=True))

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        if not messages:
            return ""
        session = self._session_of(messages, block_kwargs.get(SESSION))
        if len(messages) > 1 and _says_the_same(*messages[-2:]):
            messages = messages[:-1]  # while tools are called, what the user said is handed on beside the history too
        return await reach(self._memory, partial(self._recall, messages, session))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        session = self._session_of(messages)
        await reach(self._memory, partial(self._remember, messages, session, True))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The same, so many tokens shorter: with fewer notes, the best of them."""
        if not content:  # a block that told nothing is asked too, and handed a list
            return None
        room = estimate_tokens(content) - tokens_to_truncate - estimate_tokens(f"{HEAD}\n\n")
        return _headed(pack(self._told.get(content, []), room)) or None if room > 0 else None

    # -------------------------------------------------------------------------------------------- in the memory's loop

    async def _recall(self, messages: Sequence[ChatMessage], session: str, memory: AsyncMemory) -> str:
        await self._remember(messages, session, False, memory)
        question = _question(messages)
        if not question:
            return ""
        now = datetime.now(timezone.utc)
        hits = await memory.search(question, CONTEXT_HITS, now=now, log=False, scope=self._scope)
        said = "\n".join(spaced(message.content or "") for message in messages)
        new = [hit for hit in hits if not hit.note.flags and spaced(hit.note.content) not in said]
        packed = pack(new, self._max_tokens)
        self._known.pop(session, None)
        self._known[session] = Known(hits, packed, self._roles["user"])
        _bound(self._known, SESSIONS)
        text = _headed(packed)
        self._told.pop(text, None)
        self._told[text] = new
        _bound(self._told, SESSIONS)
        return text

    async def _remember(
        self, messages: Sequence[ChatMessage], session: str, leaving: bool, memory: AsyncMemory
    ) -> None:
        """Remember what is new among messages that stand in the history, or leave it.

        A message is told from others that say the same by how many of these came before it in its session.
        """
        seen: Counter[str] = Counter()
        ids: list[str] = []
        events: list[Event] = []
        for message in messages:
            role, text = message.role.value, _text(message)
            if role not in SPEAKERS or not text:
                continue
            said = _id(session, role, text, 0)
            id = _id(session, role, text, self._left[said] + seen[said])
            seen[said] += 1
            if id not in self._remembered:
                ids.append(id)
                events += self._event(id, session, role, text)
        if events:
            await memory.remember(events, on_conflict="skip", scope=self._scope)
        self._remembered |= dict.fromkeys(ids)
        _bound(self._remembered, MESSAGES)
        if leaving:
            for said, times in seen.items():
                self._left[said] = self._left.pop(said, 0) + times
            _bound(self._left, MESSAGES)

    def _event(self, id: str, session: str, role: str, text: str) -> Iterable[Event]:
        known = self._known.get(session)
        new = known.without(text, own=role == "user") if known else text
        if new:
            now = datetime.now(timezone.utc)
            role = self._roles[role]
            yield checked({"id": id, "content": new, "role": role, "occurred_at": now, "session": session})

    def _session_of(self, messages: Sequence[ChatMessage], told: object = None) -> str:
        named = told or next((name for one in messages if (name := one.additional_kwargs.get(SESSION))), None)
        return self._session or (str(named) if named else self.name)


class ZettelRetriever(BaseRetriever):  # type: ignore[misc]
    """What answers a query, as nodes: for query engines, and whatever else takes a retriever.

    ``k`` notes at most, without what looks like instructions to a model; ``search`` are further arguments of
    ``Memory.search``. The id of a node is that of its note, its metadata that of the note, with what is known of
    ``role``, ``title``, ``occurred_at`` and ``session``. An ``AsyncMemory`` has only ``aretrieve``. Raises
    ``InvalidInput``.
    """

    def __init__(self, memory: Either, *, scope: Scope | None = None, k: int = HITS, **search: Any) -> None:
        require_memory(memory)
        super().__init__()
        self._memory = memory
        self._search: dict[str, Any] = {"log": False, "k": k, "scope": scope or memory.scope} | search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return wait(self._memory, partial(self._find, query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await reach(self._memory, partial(self._find, query_bundle))

    async def _find(self, query_bundle: QueryBundle, memory: AsyncMemory) -> list[NodeWithScore]:
        hits = await memory.search(query_bundle.query_str, **self._search)
        return [_node(hit) for hit in hits if not hit.note.flags]


def _node(hit: Hit) -> NodeWithScore:
    note = hit.note
    known = {
        "role": note.role, "title": note.title, "session": note.session,
        "occurred_at": note.occurred_at.isoformat() if note.occurred_at else None,
    }  # fmt: skip
    metadata = {**note.metadata, **{name: told for name, told in known.items() if told is not None}}
    return NodeWithScore(node=TextNode(id_=note.id, text=note.content, metadata=metadata), score=hit.score)


def _headed(packed: str) -> str:
    return f"{HEAD}\n\n{packed}" if packed else ""


def _id(session: str, role: str, text: str, before: int) -> str:
    told = json.dumps(["llamaindex", session, role, text, before])
    return f"llamaindex:{hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}"


def _question(messages: Sequence[ChatMessage]) -> str:
    """The user's last words."""
    asked = next((message for message in reversed(messages) if message.role.value == "user"), None)
    return _text(asked) if asked else ""


def _text(message: ChatMessage) -> str:
    return storable_text(message.content or "").strip()


def _says_the_same(one: ChatMessage, other: ChatMessage) -> bool:
    """Whether both are the user's, in the same words."""
    return one.role.value == other.role.value == "user" and _text(one) == _text(other)


def _bound(known: dict[Any, Any], most: int) -> None:
    """Forget what came first, beyond so many."""
    while len(known) > most:
        del known[next(iter(known))]
